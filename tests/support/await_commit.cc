#include "tests/support/await_commit.h"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace strata::test_support {

store::CommitResult AwaitCommit(store::Store& store, store::WriteBatch batch) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<store::CommitResult> answer;
  store.Commit(std::move(batch), [&](store::CommitResult result) {
    // Notified under the lock: once it is released, the waiter may take the variables away.
    const std::lock_guard lock(mutex);
    answer = std::move(result);
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answer.has_value(); });
  return *std::move(answer);
}

}  // namespace strata::test_support
