// A directory can be opened, but not read: it is refused here.
#include "clients/cli/input_file.h"

#include <filesystem>

namespace strata::cli {

InputFile::InputFile(const std::string& name, std::istream& standard_input)
    : standard_input_(standard_input),
      name_(name == "-" ? "stdin" : name),
      from_standard_input_(name == "-") {
  if (from_standard_input_) return;
  file_.open(name, std::ios::binary);
  std::error_code error;
  is_open_ = file_.is_open() && !std::filesystem::is_directory(name, error);
  const auto bytes = std::filesystem::file_size(name, error);
  if (!error) size_ = static_cast<double>(bytes);
}

double InputFile::Part(int64_t bytes) const {
  return size_ > 0 ? static_cast<double>(bytes) / size_ : 0;
}

}  // namespace strata::cli
