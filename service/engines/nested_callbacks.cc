#include "service/engines/nested_callbacks.h"

#include <deque>
#include <map>
#include <utility>

namespace strata::engines {
namespace {

// Deep enough that a caller who waits inside a callback for a commit of its own gets it, shallow
// enough for any stack.
constexpr int kDepthMax = 32;

struct Line {
  int depth = 0;
  std::deque<std::function<void()>> deferred;
};

}  // namespace

void CallNested(const store::Store& store, std::function<void()> callback) {
  // A line for each store: a decorator's callback may wait for the store that it decorates.
  thread_local std::map<const store::Store*, Line> lines;
  Line& line = lines[&store];
  if (line.depth >= kDepthMax) {
    line.deferred.push_back(std::move(callback));
    return;
  }
  ++line.depth;
  callback();
  // Only the outermost call empties the line: an inner one would put the frames back.
  while (line.depth == 1 && !line.deferred.empty()) {
    const std::function<void()> next = std::move(line.deferred.front());
    line.deferred.pop_front();
    next();
  }
  if (--line.depth == 0) lines.erase(&store);
}

}  // namespace strata::engines
