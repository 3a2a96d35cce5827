// Listings that fetch their pages by themselves.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::client {

// The items of a listing, one after the other:
//
//   auto versions = books.History("moby");
//   while (auto version = versions.Next()) Use(*version);
//   if (!versions.status().ok()) …
//
// Requests a page when the one before is used up, and repeats the request as other calls. Not
// thread-safe.
template <typename T>
class Range {
 public:
  struct Page {
    std::vector<T> items = {};
    std::string next_page_token = {};  // empty: the last one
  };
  using Fetch = std::function<absl::StatusOr<Page>(const std::string& page_token)>;

  explicit Range(Fetch fetch) : fetch_(std::move(fetch)) {}

  // Nothing: there are no more, or status() says why they could not be read.
  std::optional<T> Next() {
    while (at_ == page_.items.size()) {
      if (complete_) return std::nullopt;
      absl::StatusOr<Page> page = fetch_(page_.next_page_token);
      if (!page.ok()) status_ = page.status();
      complete_ = !page.ok() || page->next_page_token.empty();
      at_ = 0;
      page_ = page.ok() ? *std::move(page) : Page();
    }
    return std::move(page_.items[at_++]);
  }

  const absl::Status& status() const { return status_; }

 private:
  Fetch fetch_;
  Page page_;
  size_t at_ = 0;
  bool complete_ = false;
  absl::Status status_;
};

// All remaining items of a listing.
template <typename T>
absl::StatusOr<std::vector<T>> All(Range<T> range) {
  std::vector<T> items;
  while (std::optional<T> item = range.Next()) items.push_back(*std::move(item));
  if (!range.status().ok()) return range.status();
  return items;
}

}  // namespace strata::client
