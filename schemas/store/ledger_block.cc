#include "schemas/store/ledger_block.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "schemas/base/varint.h"

namespace strata::store {
namespace {

constexpr size_t kNumberSize = 8;
constexpr size_t kCountSize = 4;
constexpr size_t kHashSize = std::tuple_size_v<Hash>;
constexpr size_t kHeaderSize = kHashSize + 3 * kNumberSize + kCountSize;

constexpr int kKindBits = 5;
static_assert(kLedgerKindMax == (1 << kKindBits) - 1);

// Members that an entry may lack, from bit kKindBits on.
enum Member : uint32_t {
  kActor = 1 << kKindBits,
  kOnBehalfOf = kActor << 1,
  kReason = kActor << 2,
  kLabels = kActor << 3,
  kRequestId = kActor << 4,
  kTransactionId = kActor << 5,
  kChain = kActor << 6,
  kBeyondMembers = kActor << 7,
};

void AppendBigEndian(uint64_t number, size_t size, std::string& out) {
  for (size_t i = size; i-- > 0;) out += static_cast<char>((number >> (8 * i)) & 0xFF);
}

uint64_t TakeBigEndian(size_t size, std::string_view& in) {
  uint64_t number = 0;
  for (const char byte : in.substr(0, size)) number = (number << 8) | static_cast<uint8_t>(byte);
  in.remove_prefix(size);
  return number;
}

bool IsPosition(uint64_t number) {
  return number >= 1 && number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// Small numbers for small differences of either sign. REQUIRES: |difference| < 2^62.
int64_t ToZigzag(int64_t difference) {
  return difference >= 0 ? 2 * difference : -2 * difference - 1;
}
int64_t FromZigzag(int64_t coded) { return coded % 2 == 0 ? coded / 2 : -(coded / 2) - 1; }

bool IsHexDigit(char byte) { return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f'); }
uint8_t HexValue(char digit) {
  return static_cast<uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

// The longest run of hexadecimal digits, an even number of them; shorter ones than 16 gain little.
std::pair<size_t, size_t> HexRun(std::string_view text) {
  constexpr size_t kRunMin = 16;
  std::pair<size_t, size_t> longest{0, 0};
  for (size_t begin = 0; begin < text.size(); ++begin) {
    size_t end = begin;
    while (end < text.size() && IsHexDigit(text[end])) ++end;
    const size_t size = (end - begin) & ~size_t{1};
    if (size > longest.second) longest = {begin, size};
    begin = end;
  }
  return longest.second >= kRunMin ? longest : std::pair<size_t, size_t>{0, 0};
}

void AppendId(std::string_view id, std::string& out) {
  const auto [begin, digits] = HexRun(id);
  if (digits == 0) {
    AppendVarint(static_cast<int64_t>(2 * id.size()), out);
    out += id;
    return;
  }
  const std::string_view after = id.substr(begin + digits);
  AppendVarint(static_cast<int64_t>(2 * begin + 1), out);
  out += id.substr(0, begin);
  AppendVarint(static_cast<int64_t>(digits / 2), out);
  for (size_t i = begin; i < begin + digits; i += 2) {
    out += static_cast<char>(HexValue(id[i]) << 4 | HexValue(id[i + 1]));
  }
  AppendVarint(static_cast<int64_t>(after.size()), out);
  out += after;
}

uint32_t MembersOf(const LedgerEntry& entry) {
  return (entry.actor.empty() ? 0u : kActor) | (entry.on_behalf_of.empty() ? 0u : kOnBehalfOf) |
         (entry.reason.empty() ? 0u : kReason) | (entry.labels.empty() ? 0u : kLabels) |
         (entry.request_id.empty() ? 0u : kRequestId) |
         (entry.transaction_id.empty() ? 0u : kTransactionId) | (entry.chain.empty() ? 0u : kChain);
}

}  // namespace

// Codes commits against those before them.
class LedgerBlockWriter::Coder {
 public:
  void Add(std::span<const LedgerEntry> entries, bool by_itself, std::string& out) {
    AppendVarint(static_cast<int64_t>(2 * entries.size()) + (by_itself ? 1 : 0), out);
    for (const LedgerEntry& entry : entries) AddEntry(entry, out);
  }

 private:
  void AddEntry(const LedgerEntry& entry, std::string& out) {
    const uint32_t members = MembersOf(entry);
    AppendVarint(entry.kind | members, out);
    AddPlace(entry, out);
    AddText(entry.id, out);
    AppendVarint(entry.version, out);
    AppendVarint(ToZigzag(entry.time - time_), out);
    time_ = entry.time;
    if (members & kActor) AddText(entry.actor, out);
    if (members & kOnBehalfOf) AddText(entry.on_behalf_of, out);
    if (members & kReason) AddText(entry.reason, out);
    if (members & kLabels) {
      AppendVarint(static_cast<int64_t>(entry.labels.size()), out);
      for (const auto& [name, value] : entry.labels) {
        AddText(name, out);
        AddText(value, out);
      }
    }
    if (members & kRequestId) AppendId(entry.request_id, out);
    if (members & kTransactionId) AppendId(entry.transaction_id, out);
    if (members & kChain) out += entry.chain;
  }

  void AddPlace(const LedgerEntry& entry, std::string& out) {
    const auto [known, is_new] = places_.try_emplace(
        {entry.incarnation, std::string_view(entry.collection)}, places_.size());
    if (!is_new) {
      AppendVarint(static_cast<int64_t>(places_.size() - known->second), out);
      return;
    }
    AppendVarint(0, out);
    AppendVarint(entry.incarnation, out);
    AddText(entry.collection, out);
  }

  void AddText(std::string_view text, std::string& out) {
    const auto [known, is_new] = texts_.try_emplace(text, texts_.size());
    if (!is_new) {
      AppendVarint(static_cast<int64_t>(2 * (texts_.size() - 1 - known->second) + 1), out);
      return;
    }
    AppendVarint(static_cast<int64_t>(2 * text.size()), out);
    out += text;
  }

  // With their numbers, from 0.
  absl::flat_hash_map<std::string_view, size_t> texts_;
  absl::flat_hash_map<std::pair<int64_t, std::string_view>, size_t> places_;
  UnixMicros time_ = 0;
};

size_t LedgerEntry::bytes() const {
  size_t bytes = collection.size() + id.size() + actor.size() + on_behalf_of.size() +
                 reason.size() + request_id.size() + transaction_id.size() + chain.size() + 16;
  for (const auto& [name, value] : labels) bytes += name.size() + value.size();
  return bytes;
}

std::string CodeCommit(std::span<const LedgerEntry> entries) {
  std::string coded;
  LedgerBlockWriter::Coder().Add(entries, /*by_itself=*/true, coded);
  return coded;
}

LedgerBlockWriter::LedgerBlockWriter(const LedgerTail& before)
    : before_(before),
      earliest_(std::numeric_limits<UnixMicros>::max()),
      latest_(before.latest),
      coder_(std::make_unique<Coder>()) {}

LedgerBlockWriter::~LedgerBlockWriter() = default;

bool LedgerBlockWriter::full() const { return value_.size() > kLedgerBlockBytesMax; }

void LedgerBlockWriter::Add(CommitPosition position, std::span<const LedgerEntry> entries) {
  if (empty()) {
    first_ = newest_ = position;
    value_.assign(kHeaderSize, '\0');  // until Finish
  }
  AppendVarint(position - newest_, value_);
  newest_ = position;
  for (const LedgerEntry& entry : entries) {
    earliest_ = std::min(earliest_, entry.time);
    latest_ = std::max(latest_, entry.time);
  }
  coder_->Add(entries, /*by_itself=*/false, value_);
}

LedgerBlockWriter::Block LedgerBlockWriter::Finish(CommitPosition last) {
  const bool late = earliest_ < before_.latest - kLateMicros;
  Block block;
  block.first = first_;
  block.tail = {last, kNoHash, latest_, before_.late + (late ? 1 : 0)};
  std::string header(kHashSize, '\0');
  header.reserve(kHeaderSize);
  AppendBigEndian(static_cast<uint64_t>(first_), kNumberSize, header);
  AppendBigEndian(static_cast<uint64_t>(last), kNumberSize, header);
  AppendBigEndian(static_cast<uint64_t>(latest_), kNumberSize, header);
  AppendBigEndian(block.tail.late, kCountSize, header);
  value_.replace(0, kHeaderSize, header);
  block.tail.hash = LedgerBlockHash(before_.hash, value_);
  value_.replace(0, kHashSize, HashBytes(block.tail.hash));
  block.value = std::move(value_);
  return block;
}

std::optional<LedgerBlockHeader> ParseLedgerBlockHeader(std::string_view block) {
  if (block.size() < kHeaderSize) return std::nullopt;
  LedgerBlockHeader header;
  std::copy_n(block.begin(), kHashSize, header.tail.hash.begin());
  block.remove_prefix(kHashSize);
  const uint64_t first = TakeBigEndian(kNumberSize, block);
  const uint64_t last = TakeBigEndian(kNumberSize, block);
  header.tail.latest = static_cast<UnixMicros>(TakeBigEndian(kNumberSize, block));
  header.tail.late = static_cast<uint32_t>(TakeBigEndian(kCountSize, block));
  if (!IsPosition(first) || !IsPosition(last) || first > last) return std::nullopt;
  header.first = static_cast<CommitPosition>(first);
  header.tail.last = static_cast<CommitPosition>(last);
  return header;
}

Hash LedgerBlockHash(const Hash& before, std::string_view block) {
  return Sha256().Update(HashBytes(before)).Update(block.substr(kHashSize)).Finish();
}

LedgerEntry LedgerEntryView::ToEntry() const {
  LedgerEntry made;
  made.kind = kind;
  made.collection = collection;
  made.incarnation = incarnation;
  made.id = id;
  made.version = version;
  made.time = time;
  made.actor = actor;
  made.on_behalf_of = on_behalf_of;
  made.reason = reason;
  for (const auto& [name, value] : labels) made.labels.emplace(name, value);
  made.request_id = request_id;
  made.transaction_id = transaction_id;
  made.chain = chain;
  return made;
}

LedgerBlockReader::LedgerBlockReader(std::string_view block) {
  const std::optional<LedgerBlockHeader> header = ParseLedgerBlockHeader(block);
  corrupt_ = !header;
  if (corrupt_) return;
  rest_ = block.substr(kHeaderSize);
  position_ = header->first;
  last_ = header->tail.last;
  corrupt_ = rest_.empty();  // there is no block without a commit
}

bool LedgerBlockReader::Next() {
  if (corrupt_) return false;
  if (entries_left_ == 0) {
    if (rest_.empty()) return false;
    corrupt_ = !NextCommit();
  } else {
    ++index_;
  }
  corrupt_ = corrupt_ || !ReadEntry();
  --entries_left_;
  return !corrupt_;
}

bool LedgerBlockReader::NextCommit() {
  int64_t step = 0;
  int64_t count = 0;
  if (!ReadNumber(step) || !ReadNumber(count)) return false;
  // The first commit is the one that gives the block its key; no two have one position.
  if (first_commit_ != (step == 0) || step > last_ - position_) return false;
  first_commit_ = false;
  position_ += step;
  index_ = 0;
  entries_left_ = count / 2;
  const bool by_itself = count % 2 == 1;
  if (by_itself) {
    texts_.clear();
    places_.clear();
    entry_.time = 0;
  }
  return entries_left_ > 0 && entries_left_ <= std::numeric_limits<uint32_t>::max();
}

bool LedgerBlockReader::ReadEntry() {
  int64_t head = 0;
  int64_t time = 0;
  if (!ReadNumber(head) || head >= kBeyondMembers) return false;
  const auto members = static_cast<uint32_t>(head);
  entry_.kind = static_cast<uint8_t>(members & kLedgerKindMax);
  if (!ReadPlace() || !ReadText(entry_.id) || !ReadNumber(entry_.version) || !ReadNumber(time)) {
    return false;
  }
  const int64_t difference = FromZigzag(time);
  if (__builtin_add_overflow(entry_.time, difference, &entry_.time) || entry_.time < 0)
    return false;
  entry_.actor = entry_.on_behalf_of = entry_.reason = entry_.chain = {};
  entry_.request_id = entry_.transaction_id = {};
  entry_.labels.clear();
  return (!(members & kActor) || ReadText(entry_.actor)) &&
         (!(members & kOnBehalfOf) || ReadText(entry_.on_behalf_of)) &&
         (!(members & kReason) || ReadText(entry_.reason)) &&
         (!(members & kLabels) || ReadLabels()) &&
         (!(members & kRequestId) || ReadId(request_id_, entry_.request_id)) &&
         (!(members & kTransactionId) || ReadId(transaction_id_, entry_.transaction_id)) &&
         (!(members & kChain) || ReadBytes(kLedgerChainBytes, entry_.chain));
}

bool LedgerBlockReader::ReadPlace() {
  int64_t number = 0;
  if (!ReadNumber(number)) return false;
  if (number > 0) {
    if (number > static_cast<int64_t>(places_.size())) return false;
    std::tie(entry_.incarnation, entry_.collection) =
        places_[places_.size() - static_cast<size_t>(number)];
    return true;
  }
  if (!ReadNumber(entry_.incarnation) || !ReadText(entry_.collection)) return false;
  places_.emplace_back(entry_.incarnation, entry_.collection);
  return true;
}

bool LedgerBlockReader::ReadLabels() {
  int64_t count = 0;
  if (!ReadNumber(count)) return false;
  for (; count > 0; --count) {
    std::string_view name;
    std::string_view value;
    if (!ReadText(name) || !ReadText(value)) return false;
    entry_.labels.emplace_back(name, value);
  }
  return true;
}

bool LedgerBlockReader::ReadNumber(int64_t& number) {
  const std::optional<int64_t> taken = TakeVarint(rest_);
  number = taken.value_or(0);
  return taken.has_value();
}

bool LedgerBlockReader::ReadBytes(int64_t size, std::string_view& bytes) {
  if (size > static_cast<int64_t>(rest_.size())) return false;
  bytes = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(static_cast<size_t>(size));
  return true;
}

bool LedgerBlockReader::ReadText(std::string_view& text) {
  int64_t number = 0;
  if (!ReadNumber(number)) return false;
  const int64_t half = number / 2;
  if (number % 2 == 1) {
    if (half >= static_cast<int64_t>(texts_.size())) return false;
    text = texts_[texts_.size() - 1 - static_cast<size_t>(half)];
    return true;
  }
  if (!ReadBytes(half, text)) return false;
  texts_.push_back(text);
  return true;
}

bool LedgerBlockReader::ReadId(std::string& unpacked, std::string_view& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  int64_t size = 0;
  std::string_view bytes;
  if (!ReadNumber(size) || !ReadBytes(size / 2, bytes)) return false;
  if (size % 2 == 0) {
    id = bytes;
    return true;
  }
  unpacked = bytes;
  if (!ReadNumber(size) || !ReadBytes(size, bytes)) return false;
  for (const char byte : bytes) {
    unpacked += kDigits[static_cast<uint8_t>(byte) >> 4];
    unpacked += kDigits[static_cast<uint8_t>(byte) & 0xF];
  }
  if (!ReadNumber(size) || !ReadBytes(size, bytes)) return false;
  unpacked += bytes;
  id = unpacked;
  return true;
}

}  // namespace strata::store
