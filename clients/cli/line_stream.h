// Lines of a file, plain or compressed with zstd, one at a time in bounded memory.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::cli {

// As some editors write it before UTF-8. Readers of JSON may pass over it (RFC 8259, 8.1).
std::string_view WithoutByteOrderMark(std::string_view text);

// Reads lines. Whether the stream is compressed is seen from its first bytes, whatever its name; a
// window of 2^27 bytes (zstd --long=27) is accepted.
class LineReader {
 public:
  explicit LineReader(std::istream& in);

  // Reads the next line into `line`, without its end ("\n" or "\r\n") and, as the first one, its
  // byte order mark. A line of blanks is an empty one. False at the end.
  // DATA_LOSS if the compressed stream is damaged or cut short, RESOURCE_EXHAUSTED for a line of
  // more than kLineMax bytes.
  absl::StatusOr<bool> Next(std::string& line);

  // Whether Next reads more of the stream, which may wait.
  bool needs_input() const;

  // How many bytes of the stream, as stored, have been read.
  int64_t bytes_read() const { return bytes_read_; }

  static constexpr size_t kLineMax = size_t{64} << 20;

 private:
  absl::Status Refill();
  absl::Status Decompress();
  bool AppendRaw();

  struct FreeContext {
    void operator()(ZSTD_DStream* context) const { ZSTD_freeDStream(context); }
  };
  std::istream& in_;
  std::unique_ptr<ZSTD_DStream, FreeContext> zstd_;
  std::string raw_;  // As stored, not yet decompressed from raw_at_ on.
  size_t raw_at_ = 0;
  std::string text_;  // Decompressed, not yet given out from text_at_ on.
  size_t text_at_ = 0;
  bool begun_ = false;
  bool first_ = true;         // No line was given out yet.
  bool frame_open_ = false;   // Within a compressed frame: the end of the file would be a cut.
  bool output_held_ = false;  // The last decompression filled its room: there may be more.
  bool at_end_ = false;
  int64_t bytes_read_ = 0;
};

// Writes lines. Compressed output finds repetitions over 2^27 bytes, as histories have them, and is
// read with zstd --long=27.
class LineWriter {
 public:
  LineWriter(std::ostream& out, bool compress);

  // False: the stream does not take it (disk full).
  bool Write(std::string_view line);
  // Writes what is held back. Must be the last call.
  bool Finish();

 private:
  bool Feed(std::string_view bytes, ZSTD_EndDirective directive);

  struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::ostream& out_;
  std::unique_ptr<ZSTD_CCtx, FreeContext> zstd_;
  std::string buffer_;
};

}  // namespace strata::cli
