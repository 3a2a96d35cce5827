// The workloads T1 to T4: transactions of several documents.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"

namespace strata::bench {

// Writes the documents of the population as accounts that can pay for a long time.
std::unique_ptr<Workload> OpenAccounts(Population& accounts);

struct TransferSettings {
  bool hot = false;        // the first account is one of the two, each time
  bool two_phase = false;  // else in one commit
  uint64_t seed = 1;
};

// T1 and T2: one account pays another if it has enough, in one transaction. Accounts are chosen at
// random, none that is part of another transfer, but for the hot one.
std::unique_ptr<Workload> Transfer(Population& accounts, const TransferSettings& settings);

// T3: twenty documents at random are replaced under compare-and-swap, all or none.
std::unique_ptr<Workload> UpdateTwenty(Population& population, uint64_t seed);

// Replaces all documents of the population, which are written, a hundred in a transaction and round
// after round, until each has `depth` versions: the fastest way to a long ledger.
std::unique_ptr<Workload> UpdateTogether(Population& population, int64_t depth);

// T4: ten documents at random as of one moment.
std::unique_ptr<Workload> ReadTen(const Population& population, uint64_t seed);

}  // namespace strata::bench
