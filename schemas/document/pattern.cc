// Regular expressions of filters: RE2 syntax, bounded memory, time linear in the text.
#include "schemas/document/pattern.h"

#include <re2/re2.h>

#include "absl/strings/str_cat.h"

namespace strata::document {
namespace {

// For the program and for the states that matching caches. RE2 gives a quarter to the program: a
// pattern of more than 4096 instructions does not compile.
constexpr int64_t kMemoryBytesMax = int64_t{256} << 10;

bool Has(std::string_view options, char option) {
  return options.find(option) != std::string_view::npos;
}

RE2::Options OptionsOf(std::string_view options) {
  RE2::Options all;
  all.set_log_errors(false);
  all.set_max_mem(kMemoryBytesMax);
  all.set_case_sensitive(!Has(options, 'i'));
  all.set_dot_nl(Has(options, 's'));
  all.set_never_capture(true);
  return all;
}

}  // namespace

bool Pattern::AreOptions(std::string_view options) {
  return options.find_first_not_of("ims") == std::string_view::npos;
}

Pattern::Pattern(std::string_view text, std::string_view options) : value_(text) {
  // RE2 has no option for lines that leaves the rest of the syntax as it is, but a flag.
  const std::string source = Has(options, 'm') ? absl::StrCat("(?m)", value_) : value_;
  compiled_ = std::make_unique<re2::RE2>(source, OptionsOf(options));
  value_.push_back('\0');
  value_ += options;
  value_.push_back('\0');
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

bool Pattern::ok() const { return compiled_->ok(); }

std::string Pattern::Problem() const {
  const std::string part = compiled_->error_arg();
  switch (compiled_->error_code()) {
    case RE2::ErrorBadPerlOp:
      return absl::StrCat("uses \"", part, "\", which the syntax here does not have");
    case RE2::ErrorBadEscape:
      return absl::StrCat("has the escape \"", part, "\", which the syntax here does not have");
    case RE2::ErrorPatternTooLarge:
      return "is too large once its repetitions are written out";
    case RE2::ErrorRepeatSize:
      return absl::StrCat("repeats more often than 1000 times: \"", part, "\"");
    case RE2::ErrorMissingParen:
    case RE2::ErrorUnexpectedParen:
      return "has a parenthesis without its other half";
    case RE2::ErrorMissingBracket:
      return "has a \"[\" without its \"]\"";
    default:
      return part.empty() ? std::string("does not compile")
                          : absl::StrCat("does not compile at \"", part, "\"");
  }
}

int Pattern::Size() const { return compiled_->ProgramSize(); }

bool Pattern::Finds(std::string_view text) const {
  const re2::StringPiece piece(text.data(), text.size());
  return compiled_->Match(piece, 0, piece.size(), RE2::UNANCHORED, nullptr, 0);
}

bool Pattern::Equals(std::string_view regex_value) const { return regex_value == value_; }

}  // namespace strata::document
