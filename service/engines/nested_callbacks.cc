#include "service/engines/nested_callbacks.h"

#include <deque>
#include <map>
#include <utility>

namespace strata::engines {
namespace {

// Deep enough that a caller who waits inside a callback for a commit of its own gets it, shallow
// enough for any stack.
constexpr int kDepthMax = 32;

struct Nesting {
  int depth = 0;
  std::deque<std::function<void()>> deferred;
};

}  // namespace

void CallNested(const store::Store& store, std::function<void()> callback) {
  // For each store apart: a decorator's callback may wait for the store that it decorates.
  thread_local std::map<const store::Store*, Nesting> nestings;
  Nesting& nesting = nestings[&store];
  if (nesting.depth >= kDepthMax) {
    nesting.deferred.push_back(std::move(callback));
    return;
  }
  ++nesting.depth;
  callback();
  // Only the outermost call calls what was deferred: an inner one would put the frames back.
  while (nesting.depth == 1 && !nesting.deferred.empty()) {
    const std::function<void()> next = std::move(nesting.deferred.front());
    nesting.deferred.pop_front();
    next();
  }
  if (--nesting.depth == 0) nestings.erase(&store);
}

}  // namespace strata::engines
