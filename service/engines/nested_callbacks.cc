#include "service/engines/nested_callbacks.h"

#include <deque>
#include <utility>

namespace strata::engines {
namespace {

// Deep enough that a caller who waits inside a callback for a commit of its own gets it, shallow
// enough for any stack.
constexpr int kDepthMax = 32;

struct ThreadState {
  int depth = 0;
  std::deque<std::function<void()>> deferred;
};

}  // namespace

void CallNested(std::function<void()> callback) {
  thread_local ThreadState state;
  if (state.depth >= kDepthMax) {
    state.deferred.push_back(std::move(callback));
    return;
  }
  ++state.depth;
  callback();
  // Only the outermost call empties the line: an inner one would put the frames back.
  while (state.depth == 1 && !state.deferred.empty()) {
    const std::function<void()> next = std::move(state.deferred.front());
    state.deferred.pop_front();
    next();
  }
  --state.depth;
}

}  // namespace strata::engines
