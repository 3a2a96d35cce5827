// Streaming in blocks of 128 KiB; zstd itself holds the window of up to 128 MiB.
#include "clients/cli/line_stream.h"

#include <algorithm>
#include <utility>

namespace strata::cli {
namespace {

constexpr int kWindowLog = 27;
constexpr size_t kBlock = size_t{1} << 17;
constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";

}  // namespace

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

LineReader::LineReader(std::istream& in) : in_(in) {}

bool LineReader::needs_input() const {
  if (at_end_ || output_held_ || raw_at_ < raw_.size()) return false;
  return text_.find('\n', text_at_) == std::string::npos;
}

// What there is: who writes slowly into a pipe keeps nobody waiting for a whole block. False: there
// is no more.
bool LineReader::AppendRaw() {
  if (in_.peek() == std::istream::traits_type::eof()) return false;
  const size_t before = raw_.size();
  const std::streamsize count = std::clamp<std::streamsize>(in_.rdbuf()->in_avail(), 1, kBlock);
  raw_.resize(before + static_cast<size_t>(count));
  in_.read(raw_.data() + before, count);
  bytes_read_ += count;
  return true;
}

// Appends some text to text_, or sets at_end_.
absl::Status LineReader::Refill() {
  text_.erase(0, text_at_);
  text_at_ = 0;
  if (output_held_) return Decompress();
  if (raw_at_ == raw_.size()) {
    raw_.clear();
    raw_at_ = 0;
    AppendRaw();
  }
  if (!begun_) {
    begun_ = true;
    while (raw_.size() < kZstdMagic.size() && kZstdMagic.starts_with(raw_) && AppendRaw()) {
    }
    if (raw_.starts_with(kZstdMagic)) {
      zstd_.reset(ZSTD_createDStream());
      ZSTD_DCtx_setParameter(zstd_.get(), ZSTD_d_windowLogMax, kWindowLog);
    }
  }
  if (raw_at_ == raw_.size()) {
    at_end_ = true;
    if (in_.bad()) return absl::DataLossError("cannot read on");
    return frame_open_ ? absl::DataLossError("the compressed file is cut short") : absl::OkStatus();
  }
  if (zstd_ != nullptr) return Decompress();
  text_.append(raw_);
  raw_at_ = raw_.size();
  return absl::OkStatus();
}

absl::Status LineReader::Decompress() {
  const size_t before = text_.size();
  text_.resize(before + kBlock);
  ZSTD_inBuffer input{raw_.data(), raw_.size(), raw_at_};
  ZSTD_outBuffer output{text_.data(), text_.size(), before};
  const size_t result = ZSTD_decompressStream(zstd_.get(), &output, &input);
  text_.resize(output.pos);
  raw_at_ = input.pos;
  if (ZSTD_isError(result)) {
    return absl::DataLossError(std::string("not readable as zstd: ") + ZSTD_getErrorName(result));
  }
  frame_open_ = result != 0;
  output_held_ = output.pos == output.size;
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::Next(std::string& line) {
  size_t searched = 0;  // Bytes after text_at_ that are known to hold no line end.
  while (true) {
    const size_t end = text_.find('\n', text_at_ + searched);
    if (end != std::string::npos || (at_end_ && text_at_ < text_.size())) {
      const size_t stop = end != std::string::npos ? end : text_.size();
      const std::string_view whole = std::string_view(text_).substr(text_at_, stop - text_at_);
      line = std::exchange(first_, false) ? WithoutByteOrderMark(whole) : whole;
      if (line.ends_with('\r')) line.pop_back();
      if (line.find_first_not_of(" \t") == std::string::npos) line.clear();
      text_at_ = std::min(stop + 1, text_.size());
      return true;
    }
    if (at_end_) return false;
    searched = text_.size() - text_at_;
    if (searched > kLineMax) return absl::ResourceExhaustedError("line of more than 64 MiB");
    const absl::Status status = Refill();
    if (!status.ok()) return status;
  }
}

LineWriter::LineWriter(std::ostream& out, bool compress) : out_(out) {
  if (!compress) return;
  zstd_.reset(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, 9);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_enableLongDistanceMatching, 1);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_windowLog, kWindowLog);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
  buffer_.resize(ZSTD_CStreamOutSize());
}

bool LineWriter::Feed(std::string_view bytes, ZSTD_EndDirective directive) {
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  while (true) {
    ZSTD_outBuffer output{buffer_.data(), buffer_.size(), 0};
    const size_t left = ZSTD_compressStream2(zstd_.get(), &output, &input, directive);
    out_.write(buffer_.data(), static_cast<std::streamsize>(output.pos));
    if (ZSTD_isError(left) || !out_) return false;
    if (directive == ZSTD_e_end ? left == 0 : input.pos == input.size) return true;
  }
}

bool LineWriter::Write(std::string_view line) {
  if (zstd_ != nullptr) return Feed(line, ZSTD_e_continue) && Feed("\n", ZSTD_e_continue);
  out_ << line << '\n';
  return static_cast<bool>(out_);
}

bool LineWriter::Finish() {
  if (zstd_ != nullptr && !Feed("", ZSTD_e_end)) return false;
  out_.flush();
  return static_cast<bool>(out_);
}

}  // namespace strata::cli
