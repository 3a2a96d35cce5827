// Documents as C++ types: with two functions beside the type, found by its namespace,
//
//   strata::client::Value ToValue(const Book& book);
//   absl::Status FromValue(const strata::client::Value& value, Book* book);
//
// `client.collection("books").Of<Book>()` takes and gives Books.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strata/client/documents.h"

namespace strata::client {

// A document whose content is a T.
template <typename T>
struct Typed {
  T content = {};
  // Id, version and times; its content is moved into the one above.
  Document document = {};
};

namespace internal {
template <typename T>
absl::StatusOr<T> FromContent(const Value& content) {
  T made{};
  absl::Status status = FromValue(content, &made);
  if (!status.ok()) return status;
  return made;
}
}  // namespace internal

// A Collection whose contents are Ts.
template <typename T>
class TypedCollection {
 public:
  // Nothing in: missing or deleted; nothing out: write nothing.
  using Function = std::function<absl::StatusOr<std::optional<T>>(std::optional<T>)>;

  explicit TypedCollection(Collection collection) : collection_(std::move(collection)) {}

  const Collection& untyped() const { return collection_; }

  absl::StatusOr<Written> Create(const std::string& id, const T& content,
                                 const CreateOptions& options = {}) const {
    return collection_.Create(id, ToValue(content), options);
  }

  // A refusal of FromValue is the error.
  absl::StatusOr<std::optional<Typed<T>>> Get(const std::string& id,
                                              const GetOptions& options = {}) const {
    absl::StatusOr<std::optional<Document>> document = collection_.Get(id, options);
    if (!document.ok()) return document.status();
    if (!document->has_value()) return std::optional<Typed<T>>();
    absl::StatusOr<Typed<T>> typed = TypedOf(**std::move(document));
    if (!typed.ok()) return typed.status();
    return std::optional<Typed<T>>(*std::move(typed));
  }

  absl::StatusOr<Written> Replace(const std::string& id, const T& content,
                                  const UpdateOptions& options = {}) const {
    return collection_.Update(id, client::Replace(ToValue(content)), options);
  }

  // Members that T does not know are lost: the answer of `function` is the whole new content.
  absl::StatusOr<Written> Modify(const std::string& id, const Function& function,
                                 const ModifyOptions& options = {}) const {
    const auto on_values =
        [&](std::optional<Value> content) -> absl::StatusOr<std::optional<Value>> {
      std::optional<T> before;
      if (content.has_value()) {
        absl::StatusOr<T> read = internal::FromContent<T>(*content);
        if (!read.ok()) return read.status();
        before = *std::move(read);
      }
      absl::StatusOr<std::optional<T>> after = function(std::move(before));
      if (!after.ok()) return after.status();
      if (!after->has_value()) return std::optional<Value>();
      return std::optional<Value>(ToValue(**after));
    };
    return collection_.Modify(id, on_values, options);
  }

  // A listing ends at the first document that FromValue refuses.
  Range<Typed<T>> List(ListOptions options = {}) const {
    // One document a page: the pages of the server are the untyped listing's business.
    auto documents = std::make_shared<Range<Document>>(collection_.List(options));
    return Range<Typed<T>>(
        [documents](const std::string&) -> absl::StatusOr<typename Range<Typed<T>>::Page> {
          typename Range<Typed<T>>::Page page;
          std::optional<Document> document = documents->Next();
          if (!document.has_value()) {
            if (!documents->status().ok()) return documents->status();
            return page;
          }
          absl::StatusOr<Typed<T>> typed = TypedOf(*std::move(document));
          if (!typed.ok()) return typed.status();
          page.items.push_back(*std::move(typed));
          page.next_page_token = "more";
          return page;
        });
  }

 private:
  static absl::StatusOr<Typed<T>> TypedOf(Document document) {
    Typed<T> typed;
    if (document.content.has_value()) {
      absl::StatusOr<T> content = internal::FromContent<T>(*document.content);
      if (!content.ok()) return content.status();
      typed.content = *std::move(content);
      document.content.reset();
    }
    typed.document = std::move(document);
    return typed;
  }

  Collection collection_;
};

}  // namespace strata::client
