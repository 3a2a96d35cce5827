#include "bench/strategies/reads.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

namespace strata::bench {
namespace {

using versioning::Documents;
using versioning::StoredVersion;

void Check(const Written& written, const Written::Document& document, int64_t number,
           const StoredVersion& read) {
  const document::Content* expected = written.content(document, number);
  const bool equal = read.header.version == number && read.deleted() == (expected == nullptr) &&
                     (expected == nullptr || (read.content && *read.content == *expected));
  if (equal) return;
  Fail("version " + std::to_string(number) + " of " + document.id + " is not what was written");
}

class Reads {
 public:
  Reads(const Documents& documents, const Written& written)
      : documents_(documents), written_(written) {
    for (const Written::Document& document : written.documents) {
      if (written.content(document, document.versions) != nullptr) live_.push_back(&document);
    }
    if (live_.empty()) Fail("every document is deleted: there is nothing to read");
  }

  // Reads everything once, so that what is measured comes from the engine's cache, as it does for a
  // server that has run for a while.
  void All() const {
    for (const Written::Document& document : written_.documents) {
      int64_t version = document.versions;
      versioning::HistoryQuery query;
      query.name = {kCollection, document.id};
      query.include_content = true;
      versioning::HistoryCursor history = documents_.History(std::move(query));
      while (history.Next()) Check(written_, document, version--, history.version());
      if (!history.status().ok()) Fail("reading a history: " + history.status().ToString());
      if (version != 0) Fail("the history of " + document.id + " is too short");
    }
  }

  Nanoseconds One() { return FetchOne(documents_, written_, AnyLive()); }

  size_t listed() const { return std::min(written_.list_max, live_.size()); }

  Nanoseconds Many() const {
    std::vector<std::pair<std::string, StoredVersion>> found;
    versioning::ListQuery query;
    query.collection = kCollection;
    absl::Status status;
    const Nanoseconds time = Timed([&] {
      versioning::ListCursor list = documents_.List(query);
      while (list.Next() && found.size() < listed()) {
        found.emplace_back(list.id(), std::move(list.version()));
      }
      status = list.status();
    });
    if (!status.ok()) Fail("listing: " + status.ToString());
    if (found.size() != listed()) Fail("a list does not have all documents");
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].first != live_[i]->id) Fail("a list has " + found[i].first + " out of place");
      Check(written_, *live_[i], live_[i]->versions, found[i].second);
    }
    return time;
  }

  Nanoseconds Old() {
    const Written::Document* document = nullptr;
    int64_t version = 0;
    do {
      document = &AnyLive();
      version = Draw(document->versions) + 1;
    } while (written_.content(*document, version) == nullptr);
    absl::StatusOr<StoredVersion> read;
    const Nanoseconds time = Timed([&] {
      read = documents_.Get({kCollection, document->id}, {.version = version, .time = {}});
    });
    if (!read.ok()) Fail("reading an old version: " + read.status().ToString());
    Check(written_, *document, version, *read);
    return time;
  }

  Nanoseconds Newest() {
    const Written::Document& document = AnyLive();
    const size_t wanted = std::min<size_t>(10, static_cast<size_t>(document.versions));
    versioning::HistoryQuery query;
    query.name = {kCollection, document.id};
    query.include_content = true;
    std::vector<StoredVersion> page;
    absl::Status status;
    const Nanoseconds time = Timed([&] {
      versioning::HistoryCursor history = documents_.History(query);
      while (history.Next() && page.size() < wanted) page.push_back(std::move(history.version()));
      status = history.status();
    });
    if (!status.ok()) Fail("reading a history: " + status.ToString());
    if (page.size() != wanted) Fail("the history of " + document.id + " is too short");
    for (size_t i = 0; i < page.size(); ++i) {
      Check(written_, document, document.versions - static_cast<int64_t>(i), page[i]);
    }
    return time;
  }

 private:
  int64_t Draw(int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(generator_);
  }
  const Written::Document& AnyLive() {
    return *live_[static_cast<size_t>(Draw(static_cast<int64_t>(live_.size())))];
  }

  const Documents& documents_;
  const Written& written_;
  std::vector<const Written::Document*> live_;
  // The same draws for every strategy.
  std::mt19937_64 generator_{174};
};

}  // namespace

Nanoseconds FetchOne(const Documents& documents, const Written& written,
                     const Written::Document& document) {
  absl::StatusOr<StoredVersion> read;
  const Nanoseconds time = Timed([&] {
    read = documents.Get({kCollection, document.id}, versioning::At{});
  });
  if (!read.ok()) Fail("reading " + document.id + ": " + read.status().ToString());
  Check(written, document, document.versions, *read);
  return time;
}

void MeasureReads(const Documents& documents, const Written& written, const Effort& effort,
                  Costs& costs) {
  Reads reads(documents, written);
  reads.All();
  const auto measure = [&](Operation operation, auto&& once, size_t parts = 1) {
    costs[static_cast<size_t>(operation)] = Repeat(
        effort, [&](int64_t) { return once(); }, static_cast<int64_t>(parts));
  };
  measure(Operation::kFetchOne, [&] { return reads.One(); });
  measure(
      Operation::kFetchMany, [&] { return reads.Many(); }, reads.listed());
  measure(Operation::kOldVersion, [&] { return reads.Old(); });
  measure(Operation::kHistory, [&] { return reads.Newest(); });
}

}  // namespace strata::bench
