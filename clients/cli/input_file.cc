// Read through its descriptor and not through the library's streams, which wait for a silent pipe
// whatever happens meanwhile. A directory can be opened, but not read: it is refused here.
#include "clients/cli/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace strata::cli {

class InputFile::Buffer : public std::streambuf {
 public:
  // `stream`, which reads from here, is told of errors.
  Buffer(int descriptor, bool owned, std::ios& stream)
      : descriptor_(descriptor),
        owned_(owned),
        stream_(stream),
        stopped_(eventfd(0, EFD_CLOEXEC)) {}
  ~Buffer() override {
    if (owned_) close(descriptor_);
    close(stopped_);
  }

  bool readable() const {
    if (gptr() < egptr()) return true;
    pollfd watched = {descriptor_, POLLIN, 0};
    return poll(&watched, 1, 0) != 0;
  }

  void Stop() {
    const uint64_t one = 1;
    // Nothing else is ever written there, so that it cannot be full.
    [[maybe_unused]] const ssize_t written = write(stopped_, &one, sizeof one);
  }

 protected:
  int_type underflow() override {
    if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
    pollfd watched[] = {{descriptor_, POLLIN, 0}, {stopped_, POLLIN, 0}};
    while (true) {
      if (poll(watched, 2, -1) < 0 && errno != EINTR) return traits_type::eof();
      // As an error, so that what has come of a line is not taken for all of it.
      if ((watched[1].revents & POLLIN) != 0) {
        stream_.setstate(std::ios::badbit);
        return traits_type::eof();
      }
      if (watched[0].revents == 0) continue;
      const ssize_t count = read(descriptor_, bytes_.data(), bytes_.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) stream_.setstate(std::ios::badbit);
      if (count <= 0) return traits_type::eof();
      setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
      return traits_type::to_int_type(*gptr());
    }
  }

 private:
  const int descriptor_;
  const bool owned_;
  std::ios& stream_;
  const int stopped_;
  std::array<char, size_t{1} << 17> bytes_;
};

InputFile::InputFile(const std::string& name, const Terminal& terminal)
    : standard_input_(terminal.in), name_(name == "-" ? "stdin" : name) {
  const bool from_standard_input = name == "-";
  if (from_standard_input && terminal.in_descriptor < 0) return;
  const int descriptor =
      from_standard_input ? terminal.in_descriptor : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  is_open_ = descriptor >= 0;
  if (!is_open_) return;
  buffer_ = std::make_unique<Buffer>(descriptor, !from_standard_input, stream_);
  stream_.rdbuf(buffer_.get());
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return;
  if (S_ISDIR(status.st_mode)) is_open_ = false;
  if (S_ISREG(status.st_mode)) size_ = static_cast<double>(status.st_size);
}

InputFile::~InputFile() = default;

double InputFile::Part(int64_t bytes) const {
  return size_ > 0 ? static_cast<double>(bytes) / size_ : 0;
}

bool InputFile::readable() const { return buffer_ == nullptr || buffer_->readable(); }

void InputFile::Stop() {
  if (buffer_ != nullptr) buffer_->Stop();
}

}  // namespace strata::cli
