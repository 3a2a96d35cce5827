// What a storm of writers writes to, and what its watchers ask for and get: documents by their
// numbers, entries of the ledger in few bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "strata/v1/feed_service.pb.h"

namespace strata::rpc_test {

inline constexpr int kDocuments = 1000;
inline constexpr int kCollections = 8;  // that stay
inline constexpr int kPassing = 2;      // collections that come and go
inline constexpr int kPassingDocuments = 20;

// The documents have numbers: first those of the collections that stay, then those of the others.
inline std::string CollectionOf(int document) {
  if (document >= kDocuments) {
    return "passing" + std::to_string((document - kDocuments) / kPassingDocuments);
  }
  return "c" + std::to_string(document % kCollections);
}
inline std::string IdOf(int document) {
  const int number = document < kDocuments ? document : (document - kDocuments) % kPassingDocuments;
  return (number % 3 == 0 ? "x/" : "y/") + std::to_string(number);
}
inline int DocumentOf(std::string_view collection, std::string_view id) {
  const int number = std::atoi(std::string(id.substr(2)).c_str());
  if (collection[0] == 'c') return number;
  return kDocuments + (collection.back() - '0') * kPassingDocuments + number;
}
inline bool IsPassing(int document) { return document >= kDocuments; }

inline constexpr int32_t kNothing = -1;  // no content, or none that was asked for
inline constexpr int32_t kGone = -2;     // its collection was deleted

// One entry: a version, or the deletion of a collection.
struct Told {
  int64_t position = 0;
  int32_t index = 0;
  int32_t document = 0;  // of a deletion of a collection: the first one in it
  int32_t version = 0;   // 0: a deletion of a collection
  int16_t kind = 0;
  int16_t number = kNothing;  // "n" of its content

  friend bool operator==(const Told& a, const Told& b) {
    return std::tie(a.position, a.index, a.document, a.version, a.kind) ==
           std::tie(b.position, b.index, b.document, b.version, b.kind);
  }
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << told.position << "." << told.index << " " << CollectionOf(told.document) << "/"
               << IdOf(told.document) << "@" << told.version;
  }
};

// What was told, in a file: ten million entries for each of several watchers are more than memory
// should hold. First all is added, then all is read, once.
class ToldFile {
 public:
  explicit ToldFile(const std::string& path) : file_(std::fopen(path.c_str(), "w+b")) {
    if (file_ == nullptr) throw std::runtime_error("no file " + path);
  }

  void Add(const Told& told) {
    if (std::fwrite(&told, sizeof told, 1, file_.get()) != 1) throw std::runtime_error("disk full");
    ++size_;
  }
  int64_t size() const { return size_; }

  void Rewind() { std::rewind(file_.get()); }
  std::optional<Told> Next() {
    Told told;
    if (std::fread(&told, sizeof told, 1, file_.get()) != 1) return std::nullopt;
    return told;
  }

 private:
  static_assert(std::is_trivially_copyable_v<Told>);
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, Close> file_;
  int64_t size_ = 0;
};

// "n" of each version of each document, from version 1; kNothing for a deletion.
class Numbers {
 public:
  static constexpr int64_t kMost = INT8_MAX;

  Numbers() : numbers_(kDocuments + kPassing * kPassingDocuments) {
    // Written once in each life of their collections.
    for (int document = kDocuments; IsPassing(document) && document < end(); ++document) {
      Set(document, 1, OfPassing(document));
    }
  }
  static int64_t OfPassing(int document) { return (document - kDocuments) % kPassingDocuments * 5; }

  int end() const { return static_cast<int>(numbers_.size()); }
  void Set(int document, int64_t version, int64_t number) {
    auto& numbers = numbers_[static_cast<size_t>(document)];
    if (numbers.size() < static_cast<size_t>(version))
      numbers.resize(static_cast<size_t>(version), kNothing);
    numbers[static_cast<size_t>(version) - 1] = static_cast<int8_t>(number);
  }
  int32_t Of(int document, int64_t version) const {
    const auto& numbers = numbers_[static_cast<size_t>(document)];
    if (version < 1 || static_cast<size_t>(version) > numbers.size()) return kNothing;
    return numbers[static_cast<size_t>(version) - 1];
  }

 private:
  std::vector<std::vector<int8_t>> numbers_;
};

// What one watcher asks for.
struct Wish {
  enum class Start { kBeginning, kPosition, kTime, kNow, kCopy };

  Start start = Start::kBeginning;
  std::vector<std::string> collections;
  std::string id_prefix;
  std::optional<v1::VersionKind> kind;
  std::optional<int32_t> at_least;  // "n" of the content, or of the one before
  bool content = false;
  bool slow = false;  // takes a message a second

  v1::WatchRequest Request() const {
    v1::WatchRequest request;
    for (const std::string& collection : collections) request.add_collections(collection);
    request.set_id_prefix(id_prefix);
    if (kind) request.add_kinds(*kind);
    if (at_least) {
      auto& condition = (*request.mutable_filter()->mutable_fields())["n"];
      (*condition.mutable_struct_value()->mutable_fields())["$gte"].set_number_value(*at_least);
    }
    request.set_include_content(content);
    request.mutable_bookmark_interval()->set_seconds(1);
    return request;
  }

  bool Names(const Told& told) const {
    if (collections.empty()) return true;
    const std::string collection = CollectionOf(told.document);
    return std::find(collections.begin(), collections.end(), collection) != collections.end();
  }
  bool NamesDocument(const Told& told) const {
    return Names(told) && (id_prefix.empty() || IdOf(told.document).rfind(id_prefix, 0) == 0);
  }
  // As far as it does not take the contents.
  bool Selects(const Told& told) const {
    if (told.version == 0) return Names(told);
    return NamesDocument(told) && (!kind || told.kind == *kind);
  }
  bool Matches(const Told& told, const Numbers& numbers) const {
    return told.version == 0 || !at_least || numbers.Of(told.document, told.version) >= *at_least ||
           numbers.Of(told.document, told.version - 1) >= *at_least;
  }
};

}  // namespace strata::rpc_test
