// Readers that wait for a turn.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

namespace strata::feed {

class Reader;

// Callers go round, and of each its readers. Not thread-safe.
class ReaderLine {
 public:
  bool empty() const { return lines_.empty(); }
  void Add(std::shared_ptr<Reader> reader);
  // REQUIRES: !empty().
  std::shared_ptr<Reader> Take();

 private:
  std::map<std::string, std::deque<std::shared_ptr<Reader>>> lines_;  // by caller
  std::string last_;  // the caller who had the turn before
};

}  // namespace strata::feed
