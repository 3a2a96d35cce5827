#include "service/engines/rocksdb/log_shape.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::engines::rocks {
namespace {

constexpr std::string_view kManifestPrefix = "MANIFEST-";
constexpr size_t kNumberBytes = 4;
constexpr size_t kBatchHeaderBytes = 12;

enum Type : uint8_t {
  kZero = 0,
  kFull = 1,
  kFirst = 2,
  kLast = 4,
  kNumberedFull = 5,
  kNumberedFirst = 6,
  kNumberedLast = 8,
};

uint64_t Number(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    number = (number << 8) | static_cast<unsigned char>(bytes[i]);
  return number;
}

bool AllZeros(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Follows the frames, block by block.
class Walk {
 public:
  explicit Walk(LogShape& shape) : shape_(shape) {}

  void Block(std::string_view block) {
    if (!ended_) block.remove_prefix(Records(block));
    if (in_zeros_ && !AllZeros(block)) shape_.hole = true;
    at_ += kLogBlockBytes;
  }
  bool done() const { return ended_ && (!in_zeros_ || shape_.hole); }

 private:
  // How much of the block was followed.
  size_t Records(std::string_view block) {
    size_t offset = 0;
    while (kLogBlockBytes - offset >= kLogHeaderBytes) {
      const std::string_view rest = block.substr(offset);
      if (rest.size() < kLogHeaderBytes) {
        ended_ = true;
        in_zeros_ = AllZeros(rest);
        return offset;
      }
      const auto type = static_cast<uint8_t>(rest[6]);
      const size_t length = Number(rest.substr(4, 2));
      if (type == kZero && length == 0) {
        ended_ = in_zeros_ = true;
        return offset;
      }
      const bool numbered = type >= kNumberedFull && type <= kNumberedLast;
      const size_t header = kLogHeaderBytes + (numbered ? kNumberBytes : 0);
      if (rest.size() < header + length) {
        ended_ = true;
        return offset;
      }
      Payload(type, rest.substr(header, length));
      offset += header + length;
      shape_.records_end = at_ + offset;
    }
    return std::min(offset, block.size());
  }

  void Payload(uint8_t type, std::string_view payload) {
    const bool begins =
        type == kFull || type == kFirst || type == kNumberedFull || type == kNumberedFirst;
    const bool ends =
        type == kFull || type == kLast || type == kNumberedFull || type == kNumberedLast;
    if (begins) batch_header_.clear();
    // A part may be shorter than the header.
    if (batch_header_.size() < kBatchHeaderBytes)
      batch_header_ += payload.substr(0, kBatchHeaderBytes - batch_header_.size());
    if (!ends || batch_header_.size() < kBatchHeaderBytes) return;
    const std::string_view header = batch_header_;
    const uint64_t sequence = Number(header.substr(0, 8));
    if (!shape_.first_sequence) shape_.first_sequence = sequence;
    shape_.next_sequence = sequence + Number(header.substr(8, 4));
  }

  LogShape& shape_;
  uint64_t at_ = 0;
  bool ended_ = false;
  bool in_zeros_ = false;
  std::string batch_header_;  // of the payload that is being followed
};

std::optional<uint64_t> ParseNumber(std::string_view digits) {
  uint64_t number = 0;
  const char* const digits_end = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), digits_end, number);
  if (error != std::errc() || end != digits_end) return std::nullopt;
  return number;
}

// The number in "…/000123.log"; nothing for another name.
std::optional<uint64_t> LogNumber(std::string_view path) {
  constexpr std::string_view kExtension = ".log";
  if (!path.ends_with(kExtension)) return std::nullopt;
  path.remove_suffix(kExtension.size());
  return ParseNumber(path.substr(path.rfind('/') + 1));  // of npos: all of it
}

// The sequence with which the logs after the one at `path` begin.
rocksdb::IOStatus FindNextSequence(rocksdb::FileSystem& files, const std::string& path,
                                   std::optional<uint64_t>* sequence) {
  const std::optional<uint64_t> own = LogNumber(path);
  if (!own) return rocksdb::IOStatus::OK();
  const std::string directory = path.substr(0, path.rfind('/'));
  std::vector<std::string> names;
  rocksdb::IOStatus status = files.GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
  if (!status.ok()) return status;
  std::vector<std::pair<uint64_t, std::string>> later;
  for (const std::string& name : names) {
    const std::optional<uint64_t> number = LogNumber(name);
    if (number && *number > *own) later.emplace_back(*number, directory + "/" + name);
  }
  std::sort(later.begin(), later.end());
  for (const auto& [number, log] : later) {
    LogShape shape;
    status = ReadLogShape(files, log, LogPart::kFirstRecord, &shape);
    if (!status.ok()) return status;
    if (!shape.first_sequence) continue;  // nothing was written to it yet
    *sequence = shape.first_sequence;
    break;
  }
  return status;
}

}  // namespace

std::string ManifestName(uint64_t number) {
  constexpr size_t kDigits = 6;
  const std::string digits = std::to_string(number);
  return std::string(kManifestPrefix) +
         std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

std::optional<uint64_t> ParseManifestName(std::string_view name) {
  if (!name.starts_with(kManifestPrefix)) return std::nullopt;
  return ParseNumber(name.substr(kManifestPrefix.size()));
}

rocksdb::IOStatus ReadLogShape(rocksdb::FileSystem& files, const std::string& path, LogPart part,
                               LogShape* shape) {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  rocksdb::IOStatus status = files.NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr);
  *shape = {};
  Walk walk(*shape);
  std::string block(kLogBlockBytes, '\0');
  while (status.ok() && !walk.done()) {
    if (part == LogPart::kFirstRecord && shape->first_sequence) break;
    size_t size = 0;
    rocksdb::Slice read;
    do {  // a read may answer less than was asked for
      status = file->Read(block.size() - size, rocksdb::IOOptions(), &read, block.data() + size,
                          nullptr);
      if (status.ok() && read.data() != block.data() + size)
        std::copy(read.data(), read.data() + read.size(), block.data() + size);
      size += read.size();
    } while (status.ok() && read.size() > 0 && size < block.size());
    if (status.ok()) walk.Block(std::string_view(block.data(), size));
    if (size < block.size()) break;
  }
  return status;
}

rocksdb::IOStatus FindLogGap(rocksdb::FileSystem& files, const std::string& path,
                             std::optional<uint64_t>* gap) {
  LogShape shape;
  rocksdb::IOStatus status = ReadLogShape(files, path, LogPart::kAll, &shape);
  if (!status.ok()) return status;
  std::optional<uint64_t> next;
  if (!shape.hole) status = FindNextSequence(files, path, &next);
  // No log follows one that nothing was written to.
  const bool goes_on = !next || (shape.first_sequence && *next == shape.next_sequence);
  if (shape.hole || !goes_on) *gap = shape.records_end;
  return status;
}

}  // namespace strata::engines::rocks
