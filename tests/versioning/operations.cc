#include "tests/versioning/operations.h"

#include <bson/bson.h>

#include <cstdlib>
#include <utility>

#include "schemas/versioning/fingerprint.h"
#include "tests/support/manual_clock.h"

namespace strata::versioning::checks {
namespace {

using document::Content;

constexpr UnixMicros kSecond = 1'000'000;

// Owns a bson_t for the length of a scope.
class Bson {
 public:
  Bson() : bson_(bson_new()) {}
  explicit Bson(std::string_view json) {
    bson_error_t error;
    bson_ = bson_new_from_json(reinterpret_cast<const uint8_t*>(json.data()),
                               static_cast<ssize_t>(json.size()), &error);
    if (bson_ == nullptr) std::abort();
  }
  ~Bson() { bson_destroy(bson_); }
  Bson(const Bson&) = delete;
  Bson& operator=(const Bson&) = delete;

  bson_t* get() { return bson_; }
  Content Take() const {
    return Content::FromTrusted({reinterpret_cast<const char*>(bson_get_data(bson_)), bson_->len});
  }

 private:
  bson_t* bson_;
};

bson_iter_t Members(std::string_view bytes) {
  bson_iter_t iterator;
  if (!bson_iter_init_from_data(&iterator, reinterpret_cast<const uint8_t*>(bytes.data()),
                                bytes.size())) {
    std::abort();
  }
  return iterator;
}

// `base` with its member `name` replaced by the one that `with` stands on (null: removed).
Content Replace(const Content& base, std::string_view name, const bson_iter_t* with) {
  Bson result;
  bool placed = false;
  bson_iter_t member = Members(base.bytes());
  while (bson_iter_next(&member)) {
    const bool hit = bson_iter_key(&member) == name;
    if (hit && with == nullptr) continue;
    bson_append_iter(result.get(), nullptr, 0, hit ? with : &member);
    placed |= hit;
  }
  if (with != nullptr && !placed) bson_append_iter(result.get(), nullptr, 0, with);
  return result.Take();
}

document::Hash Draw(std::string_view what, std::string_view name) {
  return document::PartHasher().Add(what).Add(name).Finish();
}

ChangeInfo ChangeOf(std::string_view name) {
  const uint8_t shape = Draw("shape", name)[0];
  ChangeInfo change{
      .actor = "tester", .on_behalf_of = "", .reason = std::string(name), .labels = {}};
  if ((shape & 1) != 0) change.on_behalf_of = "somebody else";
  if ((shape & 2) != 0) change.labels = {{"batch", std::string(name)}, {"kind", "test"}};
  return change;
}

bool Makes(const Outcome& outcome, const StoredVersion& version) {
  return outcome.kind == version.header.kind && outcome.content == version.content;
}

}  // namespace

Content ContentOf(std::string_view json) { return Bson(json).Take(); }

std::string JsonOf(std::string_view bson) {
  bson_t document;
  if (!bson_init_static(&document, reinterpret_cast<const uint8_t*>(bson.data()), bson.size())) {
    return "not BSON";
  }
  size_t size = 0;
  char* const text = bson_as_relaxed_extended_json(&document, &size);
  std::string json = text == nullptr ? "not BSON" : std::string(text, size);
  bson_free(text);
  return json;
}

Operation Create(std::string name, std::string_view json) {
  return {.name = std::move(name), .kind = VersionKind::kCreated, .content = ContentOf(json)};
}

Operation Set(std::string name, std::string_view json) {
  Operation operation{.name = std::move(name), .kind = VersionKind::kUpdated, .content = {}};
  operation.change = [member = ContentOf(json)](const Content& base) {
    bson_iter_t with = Members(member.bytes());
    bson_iter_next(&with);
    return Replace(base, bson_iter_key(&with), &with);
  };
  return operation;
}

Operation Remove(std::string name, std::string member) {
  Operation operation{.name = std::move(name), .kind = VersionKind::kUpdated, .content = {}};
  operation.change = [member = std::move(member)](const Content& base) {
    return Replace(base, member, nullptr);
  };
  return operation;
}

Operation Delete(std::string name) {
  return {.name = std::move(name), .kind = VersionKind::kDeleted, .content = {}};
}

Operation Restore(std::string name, int64_t source) {
  Operation operation{.name = std::move(name), .kind = VersionKind::kRestored, .content = {}};
  operation.source = source;
  return operation;
}

std::optional<Outcome> Apply(const Operation& operation, std::span<const StoredVersion> history) {
  const StoredVersion* head = history.empty() ? nullptr : &history.back();
  const bool live = head != nullptr && !head->deleted();
  switch (operation.kind) {
    case VersionKind::kCreated:
      if (live) return std::nullopt;
      return Outcome{VersionKind::kCreated, operation.content};
    case VersionKind::kUpdated:
      if (!live) return std::nullopt;
      return Outcome{VersionKind::kUpdated, operation.change(*head->content)};
    case VersionKind::kDeleted:
      if (!live) return std::nullopt;
      return Outcome{VersionKind::kDeleted, std::nullopt};
    case VersionKind::kRestored: {
      const int64_t source =
          operation.source != 0 ? operation.source : static_cast<int64_t>(history.size()) - 1;
      if (source < 1 || source > static_cast<int64_t>(history.size())) return std::nullopt;
      const StoredVersion& old = history[static_cast<size_t>(source - 1)];
      if (old.deleted()) return std::nullopt;
      return Outcome{VersionKind::kRestored, old.content};
    }
  }
  return std::nullopt;
}

StoredVersion NextVersion(std::string_view collection, std::string_view id,
                          const Operation& operation, const StoredVersion* head, Outcome outcome) {
  StoredVersion next;
  VersionHeader& header = next.header;
  header.version = head == nullptr ? 1 : head->header.version + 1;
  header.kind = outcome.kind;
  header.commit_time =
      head == nullptr ? test_support::ManualClock::kStart : head->header.commit_time + kSecond;
  const bool creates = head == nullptr || outcome.kind == VersionKind::kCreated;
  header.create_time = creates ? header.commit_time : head->header.create_time;
  header.change = ChangeOf(operation.name);
  if ((Draw("shape", operation.name)[0] & 4) != 0) {
    header.request_id = "request " + operation.name;
    header.request_fingerprint =
        document::HashBytes(Draw("fingerprint", operation.name)).substr(0, kFingerprintSize);
  }
  header.salt = document::HashBytes(Draw("salt", operation.name)).substr(0, kSaltSize);
  next.content = std::move(outcome.content);
  header.content_hash = ContentHashOf(header.salt, next.content);
  header.chain_hash =
      ChainHash(head == nullptr ? ChainStart(collection, id) : head->header.chain_hash, header);
  return next;
}

std::string Describe(const StoredVersion& version) {
  std::string text = "v" + std::to_string(version.header.version) + " kind " +
                     std::to_string(static_cast<int>(version.header.kind)) + " '" +
                     version.header.change.reason + "' position " +
                     std::to_string(version.position);
  if (version.content) text += " " + JsonOf(version.content->bytes());
  return text;
}

std::string CheckHistory(std::string_view collection, std::string_view id,
                         std::span<const StoredVersion> history) {
  document::Hash chain = ChainStart(collection, id);
  for (size_t i = 0; i < history.size(); ++i) {
    const StoredVersion& version = history[i];
    const VersionHeader& header = version.header;
    const std::string which = "place " + std::to_string(i + 1) + ": " + Describe(version);
    if (header.version != static_cast<int64_t>(i) + 1) return which + ": not dense";
    if (version.deleted() == version.content.has_value()) return which + ": content and kind";
    if (i > 0 && header.commit_time < history[i - 1].header.commit_time) return which + ": time";
    if (i > 0 && version.position < history[i - 1].position) return which + ": position falls";
    if (header.content_hash != ContentHashOf(header.salt, version.content)) {
      return which + ": content hash";
    }
    chain = ChainHash(chain, header);
    if (header.chain_hash != chain) return which + ": chain hash";
  }
  return "";
}

std::string CheckMadeBy(std::span<const StoredVersion> history, size_t known,
                        std::span<const Operation> operations, std::vector<bool>& used) {
  used.assign(operations.size(), false);
  for (size_t i = known; i < history.size(); ++i) {
    bool found = false;
    for (size_t j = 0; j < operations.size() && !found; ++j) {
      if (used[j]) continue;
      const std::optional<Outcome> outcome = Apply(operations[j], history.first(i));
      found = outcome && Makes(*outcome, history[i]);
      if (found) used[j] = true;
    }
    if (!found) {
      return Describe(history[i]) + ": not what an operation makes of " +
             (i == 0 ? "nothing" : Describe(history[i - 1])) + " (a lost update?)";
    }
  }
  return "";
}

}  // namespace strata::versioning::checks
