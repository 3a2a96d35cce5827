// What transactions work with. Internal to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/store/store.h"
#include "schemas/transaction/two_phase.h"
#include "schemas/versioning/documents.h"

namespace strata::transaction {

// As Transactions got it: all but the executor is left alone once the doors of `two_phase` are
// closed.
struct Environment {
  store::Store& store;
  versioning::Documents& documents;
  const Clock& clock;
  Entropy& entropy;
  Executor& executor;
  std::shared_ptr<TwoPhase> two_phase;

  // From nine tenths of that to eleven.
  std::chrono::microseconds Jittered(std::chrono::microseconds about) const {
    const int64_t byte = static_cast<uint8_t>(entropy.Bytes(1)[0]);
    return std::chrono::microseconds(about.count() * 9 / 10 + about.count() * byte / (5 * 255));
  }
};

}  // namespace strata::transaction
