// Differences of two documents: deltas lead from one to the other to the byte, a diff is empty
// exactly if both say the same, and a damaged delta is an error or a document, never a crash.
#include <limits>
#include <string>

#include "schemas/document/bson_check.h"
#include "schemas/document/delta.h"
#include "schemas/document/diff.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;

constexpr size_t kDeltaExcessMax = 8;  // as delta.h promises
constexpr int kDepthMax = 600;         // deeper than the documents and the deltas of this target

void CheckPair(const Content& a, const Content& b) {
  const std::string delta = document::EncodeDelta(a, b);
  Require(delta.size() <= b.size() + kDeltaExcessMax, "no delta is larger than the next version");
  const auto applied = document::ApplyDelta(a, delta);
  Require(applied.ok() && *applied == b, "a delta leads to the next version, to the byte");
  constexpr size_t kBytes = 200;
  const document::Changes changes = document::Diff(a, b, kBytes);
  const bool same = changes.list.empty() && !changes.truncated;
  Require(same == SameMeaning(a, b), "no diff means no difference");
  size_t bytes = 0;
  for (const document::FieldChange& change : changes.list) bytes += document::WireSize(change);
  Require(bytes <= kBytes, "a diff keeps to its budget");
  Require(SameMeaning(a, b) == SameMeaning(b, a), "the same meaning is so both ways");
}

// A damaged delta, or any bytes. What they lead to need not make sense, but is BSON.
void CheckHostile(Input& input, const Content& a, const Content& b) {
  std::string delta = document::EncodeDelta(a, b);
  for (size_t i = input.Below(4); i > 0; --i) {
    const size_t at = input.Take<uint16_t>() % delta.size();
    delta[at] = static_cast<char>(input.Byte());
  }
  for (const std::string& hostile : {delta, std::string(input.Document().bytes()), input.Rest()}) {
    const auto applied = document::ApplyDelta(a, hostile);
    if (!applied.ok()) continue;
    Require(document::IsWellFormed(applied->bytes(), kDepthMax), "what a delta makes is BSON");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Content a = input.Document();
  const Content b = input.Below(4) == 0 ? input.Document() : input.Changed(a);
  CheckPair(a, a);
  CheckPair(a, b);
  CheckPair(b, a);
  CheckHostile(input, a, b);
  return 0;
}

}  // namespace strata::fuzz
