#include "schemas/feed/reader_line.h"

#include <utility>

#include "schemas/feed/reader.h"

namespace strata::feed {

void ReaderLine::Add(std::shared_ptr<Reader> reader) {
  const std::string& caller = reader->caller();
  lines_[caller].push_back(std::move(reader));
}

std::shared_ptr<Reader> ReaderLine::Take() {
  auto line = lines_.upper_bound(last_);
  if (line == lines_.end()) line = lines_.begin();
  last_ = line->first;
  std::shared_ptr<Reader> reader = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty()) lines_.erase(line);
  return reader;
}

}  // namespace strata::feed
