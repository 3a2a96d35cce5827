// Builds and reads the BSON of records: flat, by name, without a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "schemas/document/bson_view.h"

namespace strata::document {

// Builds one BSON document.
class BsonBuilder {
 public:
  // Makes room for `bytes`, so that no growing copies what is there; more may come.
  explicit BsonBuilder(size_t bytes = 0) {
    bytes_.reserve(bytes);
    BeginDocument(bytes_);
  }
  BsonBuilder(const BsonBuilder&) = delete;
  BsonBuilder& operator=(const BsonBuilder&) = delete;

  BsonBuilder& Int32(std::string_view name, int32_t value) {
    AppendMemberHead(kBsonInt32, name, bytes_);
    AppendNumber(value, bytes_);
    return *this;
  }
  BsonBuilder& Int64(std::string_view name, int64_t value) {
    AppendMemberHead(kBsonInt64, name, bytes_);
    AppendNumber(value, bytes_);
    return *this;
  }
  BsonBuilder& Bool(std::string_view name, bool value) {
    AppendMemberHead(kBsonBool, name, bytes_);
    bytes_ += value ? '\1' : '\0';
    return *this;
  }
  BsonBuilder& String(std::string_view name, std::string_view value) {
    AppendMemberHead(kBsonString, name, bytes_);
    AppendStringValue(value, bytes_);
    return *this;
  }
  BsonBuilder& Binary(std::string_view name, std::string_view value) {
    AppendMemberHead(kBsonBinary, name, bytes_);
    AppendNumber(static_cast<int32_t>(value.size()), bytes_);
    bytes_ += '\0';  // the subtype of bytes that are just bytes
    bytes_ += value;
    return *this;
  }
  // `bytes`: a whole BSON document (array).
  BsonBuilder& Document(std::string_view name, std::string_view bytes) {
    AppendMember(kBsonObject, name, bytes, bytes_);
    return *this;
  }
  BsonBuilder& Array(std::string_view name, std::string_view bytes) {
    AppendMember(kBsonArray, name, bytes, bytes_);
    return *this;
  }

  // The document. REQUIRES: called once, last.
  std::string Take() {
    EndDocument(0, bytes_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Walks the members of one BSON document that a store returned. Looks at their frames; the text of
// a string is what was written. The bytes must outlive it.
class BsonReader {
 public:
  explicit BsonReader(std::string_view bytes) : members_(bytes), corrupt_(!IsFramed(bytes)) {}

  // Moves to the next member; false at the end, or where the bytes are no BSON (then corrupt()).
  bool Next() {
    if (corrupt_) return false;
    if (members_.Next(member_)) return true;
    corrupt_ = members_.failed();
    return false;
  }
  bool corrupt() const { return corrupt_; }

  std::string_view name() const { return member_.name; }
  // The member's value; the type's zero value if it is of another type (then corrupt()).
  int64_t Int64() {  // of an int32 too
    return Expect(IsInteger(member_.type)) ? LoadInteger(member_.type, member_.value) : 0;
  }
  bool Bool() {
    const bool holds = member_.type == kBsonBool &&
                       (member_.value.front() == '\0' || member_.value.front() == '\1');
    return Expect(holds) && member_.value.front() == '\1';
  }
  std::string_view String() {
    const bool holds = member_.type == kBsonString && member_.value.back() == '\0';
    return Expect(holds) ? StringText(member_.value) : std::string_view();
  }
  std::string_view Binary() {
    // Before the payload: its length and the subtype.
    return Expect(member_.type == kBsonBinary) ? member_.value.substr(5) : std::string_view();
  }
  std::string_view Document() {  // of an array too
    return Expect(IsContainer(member_.type)) ? member_.value : std::string_view();
  }

 private:
  // Whether the bytes say their own length and end as a document does; not what is between.
  static bool IsFramed(std::string_view bytes) {
    return bytes.size() >= kEmptyDocument.size() && bytes.size() <= INT32_MAX &&
           LoadNumber<int32_t>(bytes) == static_cast<int32_t>(bytes.size()) && bytes.back() == '\0';
  }

  bool Expect(bool holds) {
    corrupt_ |= !holds;
    return holds;
  }

  MemberReader members_;
  Member member_;
  bool corrupt_;
};

}  // namespace strata::document
