#include "tests/disk/stored_commits.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <latch>
#include <set>

#include "schemas/base/error.h"
#include "tests/support/ledger_entries.h"

namespace strata::engines::rocks {
namespace {

using store::Keyspace;

// The others are the engine's own.
constexpr auto kWritten = store::KeyspacesWith<&store::KeyspaceTraits::append_only, false>();

size_t RandomSize(std::mt19937_64& chance) {
  const uint64_t draw = chance() % 20;
  if (draw == 0) return 30'000 + chance() % 40'000;  // more than a block of the log
  if (draw < 4) return chance() % 8'000;
  return chance() % 200;
}

std::string RandomBytes(size_t size, std::mt19937_64& chance) {
  std::string bytes(size + sizeof(uint64_t), '\0');
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t draw = chance();
    std::memcpy(bytes.data() + at, &draw, sizeof draw);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

store::WriteBatch StoredCommits::RandomBatch(std::mt19937_64& chance, Answer& answer) const {
  store::WriteBatch batch;
  State here;  // what this batch wrote before
  const uint64_t writes = 1 + chance() % 3;
  for (uint64_t i = 0; i < writes; ++i) {
    const Place place{kWritten[chance() % std::size(kWritten)],
                      "key " + std::to_string(chance() % 30)};
    if (here.contains(place)) continue;
    here[place] = {};
    const uint64_t kind = chance() % 8;
    if (kind == 0) {
      batch.Delete(place.first, place.second);
      answer.changes.push_back({place, std::nullopt});
      continue;
    }
    std::string bytes = std::to_string(++written_) + ":" +
                        RandomBytes(std::min(RandomSize(chance), value_bytes_max_), chance);
    if (kind == 1) {
      batch.Insert(place.first, place.second, bytes);
      answer.inserts.push_back(place);
    } else {
      batch.Put(place.first, place.second, bytes);
    }
    answer.changes.push_back({place, std::move(bytes)});
  }
  if (chance() % 4 != 0) batch.AppendToLedger(test_support::EntryThatSays("entry"));
  return batch;
}

void StoredCommits::Apply(const std::vector<Change>& changes, store::CommitPosition position,
                          State& state) {
  for (const Change& change : changes) {
    if (change.bytes) {
      state[change.place] = {*change.bytes, position};
    } else {
      state.erase(change.place);
    }
  }
}

void StoredCommits::CommitSome(store::Store& store, int count, std::mt19937_64& chance) {
  std::deque<Answer> answers;
  std::latch answered(count);
  for (int i = 0; i < count; ++i) {
    Answer& answer = answers.emplace_back();
    store.Commit(RandomBatch(chance, answer), [&answer, &answered](store::CommitResult result) {
      answer.result = std::move(result);
      answered.count_down();
    });
  }
  answered.wait();
  for (Answer& answer : answers) Check(answer, count == 1);
}

void StoredCommits::CommitLarge(store::Store& store, std::mt19937_64& chance) {
  for (int i = 0; i < 6; ++i) {
    Answer answer;
    answer.changes = {
        {{Keyspace::kMeta, "large " + std::to_string(i)}, RandomBytes(size_t{400} << 10, chance)}};
    store::WriteBatch batch;
    batch.Put(Keyspace::kMeta, answer.changes[0].place.second, *answer.changes[0].bytes);
    std::latch answered(1);
    store.Commit(std::move(batch), [&](store::CommitResult result) {
      answer.result = std::move(result);
      answered.count_down();
    });
    answered.wait();
    Check(answer, false);
  }
}

// Batches are decided in the order in which they were handed in, each on what those before it left.
void StoredCommits::Check(Answer& answer, bool alone) {
  const store::CommitResult& result = *answer.result;
  const std::optional<ErrorReason> reason = ReasonOf(result.status);
  if (reason && reason != ErrorReason::kOutcomeUnknown) {
    EXPECT_TRUE(reason == ErrorReason::kStoreUnavailable || reason == ErrorReason::kRecordCorrupt ||
                reason == ErrorReason::kDiskFull)
        << result.status;
    // The store goes on where there was no room, or what the guard of a batch that is alone names
    // could not be read.
    if (reason != ErrorReason::kDiskFull && !alone) failed_ = true;
    return;
  }
  if (!reason && failed_) {
    // What was to be decided after a failure rests on what the failed write would have left.
    EXPECT_FALSE(result.committed) << "a write was taken after one that failed";
    return;
  }
  const bool must_commit = std::ranges::none_of(
      answer.inserts, [this](const Place& place) { return newest_.contains(place); });
  EXPECT_EQ(reason || result.committed, must_commit);
  if (!must_commit) return;
  commits_.push_back(std::move(answer.changes));
  const store::CommitPosition position =
      base_position_ + static_cast<store::CommitPosition>(commits_.size());
  Apply(commits_.back(), position, newest_);
  if (reason) {
    possible_ = std::max(possible_, position);
    failed_ = true;
    return;
  }
  EXPECT_EQ(result.position, position);
  acknowledged_ = possible_ = position;
}

StoredCommits::State StoredCommits::StateAt(store::CommitPosition position) const {
  State state = base_;
  for (store::CommitPosition at = base_position_ + 1; at <= position; ++at)
    Apply(commits_[static_cast<size_t>(at - base_position_ - 1)], at, state);
  return state;
}

void StoredCommits::RestartAt(store::CommitPosition position) {
  base_ = newest_ = StateAt(position);
  base_position_ = acknowledged_ = possible_ = position;
  commits_.clear();
  failed_ = false;
}

void StoredCommits::ExpectStored(const store::Store& store) const {
  const store::CommitPosition position = store.LastPosition();
  ASSERT_GE(position, acknowledged_) << "acknowledged commits are missing";
  ASSERT_LE(position, possible_) << "a commit that was refused is stored";
  const absl::StatusOr<State> stored = ReadAll(store);
  ASSERT_TRUE(stored.ok()) << stored.status();
  ExpectSame(*stored, StateAt(position));
}

void ExpectSame(const StoredCommits::State& stored, const StoredCommits::State& expected) {
  for (const auto& [place, value] : expected) {
    const auto found = stored.find(place);
    ASSERT_NE(found, stored.end()) << place.second << " is missing, of " << value.position;
    ASSERT_EQ(found->second.position, value.position) << place.second;
    ASSERT_TRUE(found->second.bytes == value.bytes) << place.second << " has another value";
  }
  ASSERT_EQ(stored.size(), expected.size()) << "there is what was deleted";
}

absl::StatusOr<StoredCommits::State> ReadAll(const store::Store& store) {
  StoredCommits::State state;
  for (const Keyspace keyspace : kWritten) {
    const auto cursor = store.Scan(keyspace, {});
    for (; cursor->Valid(); cursor->Next()) {
      EXPECT_EQ(cursor->stamp(), cursor->position());
      state[{keyspace, std::string(cursor->key())}] = {std::string(cursor->value()),
                                                       cursor->position()};
    }
    if (!cursor->status().ok()) return cursor->status();
  }
  // Each key's own read, of what is there and of what is not.
  std::set<StoredCommits::Place> places;
  for (const auto& [place, value] : state) places.insert(place);
  for (const Keyspace keyspace : kWritten) {
    for (int i = 0; i < 30; ++i) places.insert({keyspace, "key " + std::to_string(i)});
  }
  for (const StoredCommits::Place& place : places) {
    const auto record = store.Get(place.first, place.second);
    if (!record.ok()) return record.status();
    const auto found = state.find(place);
    EXPECT_EQ(record->has_value(), found != state.end()) << place.second;
    if (!*record || found == state.end()) continue;
    EXPECT_EQ((*record)->position, found->second.position) << place.second;
    EXPECT_TRUE((*record)->value == found->second.bytes) << place.second;
  }
  return state;
}

}  // namespace strata::engines::rocks
