// Patches, as clients send them, on any document: a patch is applied whole, within the limits, or
// refused, and leaves its base alone.
#include <string>

#include "schemas/document/content.h"
#include "schemas/document/patch.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;
using document::Limits;
using document::Operation;
using document::OperationKind;

constexpr OperationKind kKinds[] = {OperationKind::kSet,           OperationKind::kUnset,
                                    OperationKind::kIncrement,     OperationKind::kAppend,
                                    OperationKind::kAppendMissing, OperationKind::kRemoveAll};

document::Patch MakePatch(Input& input, const Content& base) {
  document::Patch patch;
  if (input.Below(3) == 1) patch.merge = input.Document();
  for (size_t i = input.Below(12); i > 0 && !input.done(); --i) {
    Operation operation;
    operation.kind = kKinds[input.Below(std::size(kKinds))];
    operation.path = input.Path(base);
    const bool array = operation.kind >= OperationKind::kAppend && !input.Chance(8);
    operation.operand = array ? input.Array() : input.Value();
    patch.operations.push_back(std::move(operation));
  }
  return patch;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  Limits limits;
  if (input.Chance(4)) limits.depth_max = 1 + static_cast<int>(input.Below(8));
  if (input.Chance(4)) limits.nodes_max = static_cast<int>(input.Below(64));
  if (input.Chance(4)) limits.bytes_max = input.Take<uint16_t>();
  const Content base = input.Document();
  const std::string bytes(base.bytes());
  const document::Patch patch = MakePatch(input, base);

  const auto result = document::ApplyPatch(base, patch, limits);
  Require(base.bytes() == bytes, "the base stays as it was");
  if (!result.ok()) return 0;
  Require(document::CheckLimits(*result, limits).ok(), "a result is a valid document");
  const auto again = document::ApplyPatch(Content::FromTrusted(bytes), patch, limits);
  Require(again.ok() && *again == *result, "the same patch makes the same document");

  // A merge patch does all that it does the first time; RFC 7396 knows no arithmetic.
  if (!patch.operations.empty()) return 0;
  const auto twice = document::ApplyPatch(*result, patch, limits);
  Require(twice.ok() && *twice == *result, "a merge patch changes nothing a second time");
  return 0;
}

}  // namespace strata::fuzz
