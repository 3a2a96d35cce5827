// What fuzz targets make of the fuzzer's bytes: valid documents, values and paths, so that a run
// gets past the checks at the door. Bytes that ran out count as zeros, and zeros end everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/document/bson_view.h"
#include "schemas/document/content.h"
#include "schemas/document/path.h"

namespace strata::fuzz {

// Ends the run as found: prints `what`, and the fuzzer keeps the input.
void Require(bool holds, std::string_view what);

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  uint8_t Byte();
  size_t Below(size_t end) { return Byte() % end; }  // REQUIRES: 0 < end <= 256
  bool Chance(size_t of) { return Byte() % of == 1; }
  template <typename Number>
  Number Take() {
    const std::string bytes = Raw(sizeof(Number));
    return document::LoadNumber<Number>(bytes);
  }
  // Often a small number, or one at a border.
  int64_t Integer();
  // `size` bytes as they are.
  std::string Raw(size_t size);
  std::string Rest() { return Raw(left_.size()); }
  bool done() const { return left_.empty(); }

  // UTF-8 without zero bytes, mostly short.
  std::string Text();
  // Of few names, so that documents share some; at times any text.
  std::string Name();

  // Everything that Content::FromBson accepts, within the default limits.
  document::Value Value() { return ValueAt(/*depth=*/2); }
  document::Value Array() { return {document::kBsonArray, Container(true, /*depth=*/2)}; }
  document::Content Document();
  // Such a document's bytes, perhaps damaged, or the fuzzer's bytes as they are.
  std::string Bytes();
  // The document with a few members and elements added, removed, replaced, moved, changed inside.
  document::Content Changed(const document::Content& content);
  // Often of something in the document.
  document::Path Path(const document::Content& content);

 private:
  struct Owned {
    std::string name;
    document::Value value;
  };

  document::Value ValueAt(int depth);
  std::string Container(bool is_array, int depth);
  std::string ChangedContainer(std::string_view container, bool is_array, int depth);
  static std::string Write(const std::vector<Owned>& members, bool is_array);

  std::string_view left_;
};

}  // namespace strata::fuzz
