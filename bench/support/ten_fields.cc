#include "bench/support/ten_fields.h"

#include <bson/bson.h>

#include <algorithm>

namespace strata::bench {
namespace {

void Append(bson_t& document, int64_t number, int64_t version, size_t text_bytes) {
  const std::string name = "customer-" + std::to_string(number);
  BSON_APPEND_UTF8(&document, "name", name.c_str());
  BSON_APPEND_UTF8(&document, "email", (name + "@example.org").c_str());
  BSON_APPEND_INT32(&document, "age", static_cast<int32_t>(20 + number % 60));
  BSON_APPEND_BOOL(&document, "active", version % 7 != 0);
  BSON_APPEND_DOUBLE(&document, "balance", static_cast<double>(version) * 0.25);
  BSON_APPEND_INT64(&document, "counter", version);
  BSON_APPEND_UTF8(&document, "city", number % 2 == 0 ? "Rotterdam" : "Antwerpen");
  BSON_APPEND_UTF8(&document, "street", "Nieuwe Binnenweg 117");
  BSON_APPEND_UTF8(&document, "country", "Netherlands");
  std::string note;
  while (note.size() < text_bytes) {
    note += "word" + std::to_string((static_cast<size_t>(number) + note.size()) % 97) + ' ';
  }
  note.resize(text_bytes);
  BSON_APPEND_UTF8(&document, "note", note.c_str());
}

struct Made {
  bson_t document = BSON_INITIALIZER;
  Made(int64_t number, int64_t version, size_t bytes) {
    bson_t bare = BSON_INITIALIZER;
    Append(bare, number, version, 0);
    Append(document, number, version, bytes - std::min<size_t>(bare.len, bytes));
    bson_destroy(&bare);
  }
  ~Made() { bson_destroy(&document); }
};

}  // namespace

std::string TenFields(int64_t number, int64_t version, size_t bytes) {
  const Made made(number, version, bytes);
  return {reinterpret_cast<const char*>(bson_get_data(&made.document)), made.document.len};
}

std::string TenFieldsJson(int64_t number, int64_t version, size_t bytes) {
  const Made made(number, version, bytes);
  char* const text = bson_as_relaxed_extended_json(&made.document, nullptr);
  std::string json = text;
  bson_free(text);
  return json;
}

}  // namespace strata::bench
