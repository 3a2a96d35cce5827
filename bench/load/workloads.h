// The workloads W1 to W5 of a document store, and those that prepare them. transactions.h has T1
// to T4.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/load/closed_loop.h"

namespace strata::bench {

// The form of a document on the wire.
struct Form {
  bool json = false;
  size_t bytes = 300;
};

// The documents "0" to "documents - 1" of a collection, and their versions as far as they are
// known.
struct Population {
  std::string collection;
  Form form;
  std::vector<int64_t> versions;  // by document; 0: not written yet
};

std::unique_ptr<Workload> EmptyCalls();

// How far a population is to be written.
struct FillSettings {
  int64_t depth = 1;  // versions of each document
  // When to stop in any case.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Writes the documents of the population that have no version yet, one after the other and round
// after round. Without an end in time each has `depth` versions in the end; else fewer, or none.
std::unique_ptr<Workload> Fill(Population& population, const FillSettings& settings = {});

// The newest ten versions of documents at random, with their contents; all of them of a document
// that has fewer.
std::unique_ptr<Workload> NewestTenAtRandom(const Population& population, uint64_t seed);

// Writes one document over and over, `depth` times, each version another.
std::unique_ptr<Workload> Deepen(const std::string& collection, const std::string& id,
                                 const Form& form, int64_t depth);

// W1: documents at random are replaced under compare-and-swap.
std::unique_ptr<Workload> UpdateAtRandom(Population& population, uint64_t seed);

// W2: all slots change one document, each by counting up a member of its own.
std::unique_ptr<Workload> UpdateHot(const std::string& collection, const std::string& id);
// The same with the version that the caller saw last as its precondition, tried again when lost.
std::unique_ptr<Workload> UpdateHotCompareAndSwap(const std::string& collection,
                                                  const std::string& id);

// W3: documents at random as they are now.
std::unique_ptr<Workload> GetAtRandom(const Population& population, uint64_t seed);

// The same, but nine of ten calls are for one of a hundred documents.
std::unique_ptr<Workload> GetMostlyFew(const Population& population, uint64_t seed);

// W4: versions at random of one document of `depth` versions, the newest left out.
std::unique_ptr<Workload> GetOldVersion(const std::string& collection, const std::string& id,
                                        const Form& form, int64_t depth, uint64_t seed);

// W5: its newest ten versions, with their contents.
std::unique_ptr<Workload> NewestTen(const std::string& collection, const std::string& id,
                                    const Form& form, int64_t depth);

}  // namespace strata::bench
