// Files of tokens: a taken one knows its tokens, and what is made for a name is taken.
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/sha256.h"
#include "service/security/tokens.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using security::Tokens;

constexpr std::string_view kPieces[] = {"\n",        " ",
                                        "\t",        "#",
                                        "a",         "B.z_9-@",
                                        " sha256:",  "0123456789abcdefABCDEF0123456789",
                                        " expires=", "2030-01-02T03:04:05",
                                        ".5",        "Z",
                                        "+01:00",    "infinite-future",
                                        "\r"};

std::string TextFrom(Input& input) {
  if (input.Below(3) == 0) return input.Rest();
  std::string text;
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

void CheckMade(Input& input) {
  const std::string token = input.Raw(input.Below(40));
  const std::string name = input.Raw(input.Below(8));
  const UnixMicros expires = 1 + (input.Take<int64_t>() & ((int64_t{1} << 55) - 1));
  const auto line = security::TokenLine(name, token, expires);
  if (!line.ok()) return;
  const auto tokens = Tokens::Parse(*line, 0);
  Require(tokens.ok() && tokens->size() == 1, "a made line is taken");
  const security::Token* const found = tokens->Find(HashBytes(Sha256().Update(token).Finish()));
  Require(found != nullptr && found->name == name && found->expires == expires,
          "a made line knows its token");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  CheckMade(input);
  const std::string text = TextFrom(input);
  const auto tokens = Tokens::Parse(text, 0);
  if (!tokens.ok()) {
    Require(ReasonOf(tokens.status()) == ErrorReason::kInvalidField, "a mistake has its reason");
    Require(MetadataOf(tokens.status(), "field").has_value(), "a mistake has its place");
    return 0;
  }
  const auto again = Tokens::Parse("# before\n" + text, 0);
  Require(again.ok() && again->size() == tokens->size(), "a comment before it changes nothing");
  return 0;
}

}  // namespace strata::fuzz
