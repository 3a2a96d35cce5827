// The file that a command reads its lines from.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

#include "clients/cli/session.h"

namespace strata::cli {

// A file, or standard input for "-".
class InputFile {
 public:
  InputFile(const std::string& name, const Terminal& terminal);
  ~InputFile();

  // False: it cannot be read.
  bool is_open() const { return is_open_; }
  std::istream& stream() { return buffer_ == nullptr ? standard_input_ : stream_; }
  // As messages call it: "stdin", or its name.
  const std::string& name() const { return name_; }
  // Which part of it `bytes` are; 0 if its size is not known (pipes and devices).
  double Part(int64_t bytes) const;

  // Whether a read does not wait.
  bool readable() const;

  // Makes it unreadable from here on, also for a read that waits for a silent pipe. From any
  // thread.
  void Stop();

 private:
  class Buffer;

  std::istream& standard_input_;  // where it has no descriptor
  std::string name_;
  bool is_open_ = true;
  double size_ = 0;
  std::unique_ptr<Buffer> buffer_;
  std::istream stream_{nullptr};
};

}  // namespace strata::cli
