#include "bench/micro/orders.h"

#include <bson/bson.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/support/ten_fields.h"
#include "schemas/document/bson_view.h"

namespace strata::bench {
namespace {

using document::Content;

constexpr size_t kLineBytes = 300;

// The array of `first` to `last`, both included.
std::string Lines(int64_t first, int64_t last, int64_t changed, int64_t version) {
  std::string lines;
  const size_t begin = document::BeginDocument(lines);
  document::IndexName index;
  for (int64_t line = first; line <= last; ++line, index.Next()) {
    document::AppendMember(document::kBsonObject, index.text(),
                           TenFields(line, line == changed ? version : 0, kLineBytes), lines);
  }
  document::EndDocument(begin, lines);
  return lines;
}

Content Make(size_t bytes, int64_t version, int64_t first) {
  // Room for the document's own ten fields is kept, and for the lines' names.
  const auto last = static_cast<int64_t>(bytes / (kLineBytes + 10)) - 1;
  if (last < 1) return Content::FromTrusted(TenFields(0, version, bytes));
  std::string tail;
  document::AppendMember(document::kBsonArray, "lines", Lines(first, last, last / 2 + 1, version),
                         tail);
  const std::string fields = TenFields(0, version, bytes - tail.size());
  std::string order;
  const size_t begin = document::BeginDocument(order);
  order.append(fields, sizeof(int32_t), fields.size() - sizeof(int32_t) - 1);
  order += tail;
  document::EndDocument(begin, order);
  return Content::FromTrusted(std::move(order));
}

}  // namespace

Content Order(int64_t bytes, int64_t version) {
  return Make(static_cast<size_t>(bytes), version, 1);
}

Content OrderWithoutFirstLine(int64_t bytes, int64_t version) {
  return Make(static_cast<size_t>(bytes), version, 2);
}

Content ContentOf(std::string_view json) {
  bson_error_t error;
  bson_t* const bson = bson_new_from_json(reinterpret_cast<const uint8_t*>(json.data()),
                                          static_cast<ssize_t>(json.size()), &error);
  if (bson == nullptr) {
    std::fprintf(stderr, "strata_micro: %s\n", error.message);
    std::exit(1);
  }
  Content content =
      Content::FromTrusted({reinterpret_cast<const char*>(bson_get_data(bson)), bson->len});
  bson_destroy(bson);
  return content;
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes")->Arg(300)->Arg(2'048)->Arg(20'480);
}

}  // namespace strata::bench
