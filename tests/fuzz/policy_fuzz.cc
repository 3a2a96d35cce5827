// Policies: whatever is refused is refused by name, and what is taken grants the same each time.
#include <string>

#include "schemas/base/error.h"
#include "service/security/policy.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using security::Demand;
using security::Permission;
using security::Policy;
using security::ResourceKind;

// What policies consist of, so that a run gets past the reader of JSON.
constexpr std::string_view kPieces[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"grants\": [",
    "\"quotas\": [",
    "{\"principals\": [\"*\"], \"role\": \"writer\", \"resources\": [\"collection/a*\"]}",
    "{\"principals\": [\"user:a\"], \"calls_per_second\": 2}",
    "\"principals\": [\"user:a*\"]",
    "\"role\": \"admin\"",
    "\"role\": \"operator\"",
    "\"resources\": [\"server\"]",
    "\"resources\": [\"*\", \"queue/b\"]",
    "\"acts_for\": [\"a\", \"b*\"]",
    "\"mib_per_second\": 1e-2",
    "\"calls_in_flight\": 7",
    "null",
    "-0.5e3",
    "\\u0061",
};

std::string TextFrom(Input& input) {
  if (input.Below(3) == 0) return input.Rest();
  std::string text = input.Chance(4) ? "" : "{\"grants\": [";
  while (!input.done()) {
    const size_t piece = input.Below(std::size(kPieces) + 1);
    if (piece < std::size(kPieces)) {
      text += kPieces[piece];
    } else {
      text += static_cast<char>(input.Byte());
    }
  }
  return text;
}

void CheckTaken(const Policy& policy, const Policy& again) {
  for (const std::string_view name : {"a", "b", "*"}) {
    for (const Permission permission :
         {Permission::kRead, Permission::kWrite, Permission::kOperate}) {
      const Demand demand{permission, {ResourceKind::kCollection, name}};
      Require(policy.Permits("user:a", demand) == again.Permits("user:a", demand),
              "one text is one policy");
      Require(!policy.Permits("", demand), "nobody is granted nothing");
      Require(permission != Permission::kOperate || !policy.Permits("user:a", demand),
              "only the server is operated");
    }
    const security::Resource resource{ResourceKind::kCollection, name};
    Require(!policy.PermitsActingFor("user:a", resource, "b") ||
                policy.Permits("user:a", {Permission::kWrite, resource}),
            "whoever acts for others may write");
  }
  Require(policy.QuotaOf("user:a") == again.QuotaOf("user:a"), "one text is one quota");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string text = TextFrom(input);
  const auto policy = Policy::Parse(text);
  if (!policy.ok()) {
    Require(ReasonOf(policy.status()) == ErrorReason::kInvalidField, "a mistake has its reason");
    Require(MetadataOf(policy.status(), "field").has_value(), "a mistake has its place");
    return 0;
  }
  const auto again = Policy::Parse(text);
  Require(again.ok(), "what was taken is taken again");
  CheckTaken(*policy, *again);
  return 0;
}

}  // namespace strata::fuzz
