// Regular expressions of filters: RE2 syntax, bounded memory, time linear in the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace strata::document {

class Pattern {
 public:
  // Whether these are "i", "m" and "s" only (any order, repeats do no harm).
  static bool AreOptions(std::string_view options);

  // Compiles; ok() says if that went well. REQUIRES: `text` is UTF-8, AreOptions(options).
  Pattern(std::string_view text, std::string_view options);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  bool ok() const;
  // Why it did not compile, as the end of a sentence about the pattern.
  std::string Problem() const;
  // The compiled instructions: what one byte of text may cost.
  int Size() const;

  // Whether it matches anywhere in the text. Thread-safe.
  bool Finds(std::string_view text) const;
  // Whether a regex value is the same pattern with the same options.
  bool Equals(std::string_view regex_value) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
  std::string value_;  // as a BSON regex
};

}  // namespace strata::document
