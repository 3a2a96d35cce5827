// The file that a command reads its lines from.
#pragma once

#include <cstdint>
#include <fstream>
#include <istream>
#include <string>

namespace strata::cli {

// A file, or standard input for "-".
class InputFile {
 public:
  InputFile(const std::string& name, std::istream& standard_input);

  // False: it cannot be read.
  bool is_open() const { return is_open_; }
  std::istream& stream() { return from_standard_input_ ? standard_input_ : file_; }
  // As messages call it: "stdin", or its name.
  const std::string& name() const { return name_; }
  // Which part of it `bytes` are; 0 if its size is not known (pipes and devices).
  double Part(int64_t bytes) const;

 private:
  std::istream& standard_input_;
  std::ifstream file_;
  std::string name_;
  bool from_standard_input_;
  bool is_open_ = true;
  double size_ = 0;
};

}  // namespace strata::cli
