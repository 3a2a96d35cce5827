// A store that sees that no batch of a call is without the call's deadline.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "schemas/store/forwarding_store.h"

namespace strata::rpc_test {

// Every call of a server has a deadline, the caller's or the server's. What a batch of a call wrote
// after it would take effect behind an answer that says DEADLINE_EXCEEDED.
class DeadlineCheck final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    if (!batch.background() && batch.deadline() == std::chrono::steady_clock::time_point::max()) {
      ADD_FAILURE() << "a batch of a call has no deadline; its first write is in "
                    << store::KeyspaceName(batch.writes().front().keyspace);
    }
    inner().Commit(std::move(batch), std::move(done));
  }
};

}  // namespace strata::rpc_test
