#include "schemas/feed/subscription_store.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/feed/reader.h"
#include "schemas/feed/subscription_requests.h"
#include "schemas/lease/lease_record.h"
#include "schemas/versioning/audit.h"
#include "schemas/versioning/ledger.h"

namespace strata::feed {
namespace {

using lease::StoredLease;
using store::CommitPosition;
using store::Keyspace;
using store::WriteBatch;

// So many records at most are written by one commit of many.
constexpr size_t kChunkRecords = 256;
// Entries of the ledger looked at to see what a subscription has still to come.
constexpr int64_t kPendingEntriesMax = 10'000;

absl::Status SubscriptionExists(const std::string& name) {
  return Error(ErrorReason::kSubscriptionExists, "the subscription exists")
      .With("subscription", name);
}

std::string Nothing() { return document::BsonBuilder().Take(); }

// The first position that is still needed.
CommitPosition NeededFrom(const lease::Place& place) {
  return place.index ? place.position : place.position + 1;
}

}  // namespace

absl::Status CheckCapabilities(const store::Store& store) {
  const store::Capabilities capabilities = store.capabilities();
  if (!capabilities.commit_positions) {
    return versioning::NoLedger("there are no subscriptions to its changes");
  }
  if (capabilities.atomic_batches) return absl::OkStatus();
  return Error(ErrorReason::kUnsupportedByEngine,
               "this engine writes single records: there are no subscriptions to its changes")
      .With("capability", "atomic_batches");
}

store::CommitGround SubscriptionStore::Ground() {
  return {workshop_->store, workshop_->executor, {shared_from_this(), &workshop_->doors}};
}

void SubscriptionStore::RunCreations() {
  Creation next;
  {
    const std::lock_guard lock(mutex_);
    if (creating_ || creations_.empty()) return;
    creating_ = true;
    next = std::move(creations_.front());
    creations_.pop_front();
  }
  store::CommitGuarded(
      Ground(), {"subscription " + next.request.subscription.name, next.request.deadline},
      [this, request = next.request](WriteBatch& batch) { return PlanCreate(request, batch); },
      [this, done = std::move(next.done)](absl::StatusOr<Subscription> made) {
        if (made.ok()) CleanUp();
        done(std::move(made));
        {
          const std::lock_guard lock(mutex_);
          creating_ = false;
        }
        workshop_->Later(
            std::chrono::microseconds(0), [self = shared_from_this()] { self->RunCreations(); },
            [self = shared_from_this()] { self->EndCreations(); });
      });
}

void SubscriptionStore::EndCreations() {
  std::deque<Creation> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(creations_);
  }
  for (const Creation& creation : left) creation.done(Draining());
}

absl::Status SubscriptionStore::CheckRoom(const store::Reader& reader) const {
  const int64_t most = workshop_->options.subscriptions_max;
  int64_t count = 0;
  const auto cursor = reader.Scan(Keyspace::kFeed, SubscriptionRange("", ""));
  for (; cursor->Valid() && count < most; cursor->Next()) ++count;
  RETURN_IF_ERROR(cursor->status());
  if (count < most) return absl::OkStatus();
  return Error(ErrorReason::kSubscriptionLimit,
               "there are " + std::to_string(most) + " subscriptions already")
      .With("limit", most);
}

absl::StatusOr<CommitPosition> SubscriptionStore::PositionOf(const Start& start) const {
  if (const auto* position = std::get_if<FromPosition>(&start)) {
    RETURN_IF_ERROR(CheckPosition(workshop_->store, "after_position", position->after));
    return position->after;
  }
  if (const auto* time = std::get_if<FromTime>(&start)) {
    if (time->time > workshop_->clock.Now()) {
      return FieldError("start_time", "lies in the future; leave the start out to begin now");
    }
    return PositionBefore(workshop_->store, time->time, {});
  }
  return workshop_->store.LastPosition();
}

// A start in what is trimmed meanwhile is found by the floor's stamp.
absl::StatusOr<Subscription> SubscriptionStore::PlanCreate(const CreateSubscription& request,
                                                           WriteBatch& batch) const {
  Subscription made = request.subscription;
  const auto reader = workshop_->store.Snapshot();
  ASSIGN_OR_RETURN(const std::optional<StoredSubscription> there,
                   ReadSubscription(*reader, made.name));
  if (there) return SubscriptionExists(made.name);
  RETURN_IF_ERROR(CheckRoom(*reader));
  ASSIGN_OR_RETURN(const versioning::LedgerFloor floor, versioning::ReadLedgerFloor(*reader));
  ASSIGN_OR_RETURN(const std::optional<store::Record> incarnations,
                   reader->Get(Keyspace::kFeed, kIncarnationsKey));
  int64_t last = 0;
  if (incarnations) {
    ASSIGN_OR_RETURN(last, DecodeIncarnations(incarnations->value));
  }
  ASSIGN_OR_RETURN(made.start_position, PositionOf(request.start));
  // Above the last position, so that not even a backup that is restored brings one back.
  made.incarnation = std::max(last, workshop_->store.LastPosition()) + 1;
  made.create_time = workshop_->clock.Now();
  if (incarnations) {
    batch.Replace(Keyspace::kFeed, std::string(kIncarnationsKey),
                  EncodeIncarnations(made.incarnation), incarnations->stamp);
  } else {
    batch.Insert(Keyspace::kFeed, std::string(kIncarnationsKey),
                 EncodeIncarnations(made.incarnation));
  }
  batch.Insert(Keyspace::kFeed, IncarnationKey(made.incarnation), EncodeName(made.name));
  batch.Insert(Keyspace::kFeed, SubscriptionKey(made.name), EncodeSubscription(made));
  AddFloorHolder(floor, batch);
  return made;
}

void SubscriptionStore::Create(CreateSubscription request,
                               std::function<void(absl::StatusOr<Subscription>)> done) {
  absl::Status valid = CheckCapabilities(workshop_->store);
  if (valid.ok()) valid = CheckCreate(request);
  if (!valid.ok()) return done(std::move(valid));
  {
    const std::lock_guard lock(mutex_);
    creations_.push_back({std::move(request), std::move(done)});
  }
  RunCreations();
}

absl::StatusOr<Subscription> SubscriptionStore::Require(const store::Reader& reader,
                                                        const std::string& name) const {
  RETURN_IF_ERROR(CheckCapabilities(workshop_->store));
  ASSIGN_OR_RETURN(std::optional<StoredSubscription> stored, ReadSubscription(reader, name));
  if (!stored) return SubscriptionNotFound(name);
  return std::move(stored->subscription);
}

absl::StatusOr<SubscriptionState> SubscriptionStore::Get(const std::string& name) const {
  RETURN_IF_ERROR(ValidateName("name", name));
  const auto reader = workshop_->store.Snapshot();
  SubscriptionState state;
  ASSIGN_OR_RETURN(state.subscription, Require(*reader, name));
  state.last_position = workshop_->store.LastPosition();
  const Subscription& subscription = state.subscription;
  for (int32_t partition = 0; partition < subscription.partitions; ++partition) {
    ASSIGN_OR_RETURN(PartitionState each, StateOf(subscription, partition, *reader));
    state.partitions.push_back(std::move(each));
  }
  RETURN_IF_ERROR(FindPending(*reader, state));
  const auto parked = reader->Scan(Keyspace::kFeed, ParkedRange(subscription.incarnation));
  for (; parked->Valid(); parked->Next()) {
    ASSIGN_OR_RETURN(const StoredParked document,
                     DecodeParked(parked->key(), parked->value(), parked->stamp()));
    const auto partition = static_cast<size_t>(document.document.partition);
    if (!document.discard && partition < state.partitions.size()) {
      ++state.partitions[partition].parked;
    }
  }
  RETURN_IF_ERROR(parked->status());
  std::string last;
  const auto members = reader->Scan(
      Keyspace::kLeases, lease::LeaseRange(MemberLeasePrefix(subscription.incarnation), ""));
  for (; members->Valid(); members->Next()) {
    ASSIGN_OR_RETURN(const std::string_view lease_name, lease::LeaseNameOf(members->key()));
    if (lease_name == last) continue;
    last = lease_name;
    ASSIGN_OR_RETURN(const StoredLease stored, lease::ReadLease(*reader, lease_name));
    if (workshop_->leases.IsHeld(lease_name, stored)) ++state.consumers;
  }
  RETURN_IF_ERROR(members->status());
  return state;
}

absl::StatusOr<PartitionState> SubscriptionStore::StateOf(const Subscription& subscription,
                                                          int32_t partition,
                                                          const store::Reader& reader) const {
  PartitionState state;
  state.partition = partition;
  state.place.position = subscription.start_position;
  const std::string lease_name = PartitionLeaseName(subscription.incarnation, partition);
  ASSIGN_OR_RETURN(const StoredLease stored, lease::ReadLease(reader, lease_name));
  PartitionData data;
  if (stored.state) {
    state.place = std::max(state.place, stored.state->place);
    ASSIGN_OR_RETURN(data, PartitionData::Decode(stored.state->data));
  }
  state.token = stored.token;
  if (data.failed > state.place) {
    state.attempts = data.attempts;
    state.reason = data.reason;
    state.blocked = data.blocked;
    if (data.retry_time > workshop_->clock.Now()) state.retry_time = data.retry_time;
  }
  if (workshop_->leases.IsHeld(lease_name, stored)) {
    const auto& metadata = stored.owner->metadata;
    const auto consumer = metadata.find(kConsumerMetadata);
    state.consumer = consumer == metadata.end() ? stored.owner->holder : consumer->second;
    state.in_flight = data.in_flight;
    if (data.oldest_open_time != 0) state.oldest_open_time = data.oldest_open_time;
  }
  return state;
}

// What each partition has still to come, as far as the next kPendingEntriesMax entries say.
absl::Status SubscriptionStore::FindPending(const store::Reader& reader,
                                            SubscriptionState& state) const {
  std::vector<PartitionState>& partitions = state.partitions;
  const lease::Place begin =
      std::min_element(partitions.begin(), partitions.end(),
                       [](const auto& left, const auto& right) { return left.place < right.place; })
          ->place;
  std::vector<std::optional<UnixMicros>> pending(partitions.size());
  size_t without = partitions.size();
  const auto note = [&](size_t partition, const lease::Place& place, UnixMicros time) {
    if (pending[partition] || place <= partitions[partition].place) return;
    pending[partition] = time;
    --without;
  };
  const Selection& selection = state.subscription.selection;
  int64_t examined = 0;
  versioning::LedgerCursor cursor(reader, NeededFrom(begin),
                                  begin.index ? static_cast<uint32_t>(*begin.index) + 1 : 0);
  while (without > 0 && cursor.Next() && examined++ < kPendingEntriesMax) {
    const Entry entry = Entry::Of(cursor.entry());
    if (!selection.Wants(entry)) continue;
    const lease::Place place{cursor.position(), static_cast<int32_t>(cursor.index())};
    const UnixMicros time = cursor.entry().time;
    if (entry.type == EventType::kVersion) {
      note(static_cast<size_t>(
               PartitionOf(entry.collection, entry.id, state.subscription.partitions)),
           place, time);
    } else {
      for (size_t i = 0; i < partitions.size(); ++i) note(i, place, time);
    }
  }
  RETURN_IF_ERROR(cursor.status());
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (!pending[i]) partitions[i].caught_up = examined <= kPendingEntriesMax;
    if (partitions[i].consumer.empty()) partitions[i].oldest_open_time = pending[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Subscription>> SubscriptionStore::List(const std::string& prefix,
                                                                  const std::string& after_name,
                                                                  size_t most,
                                                                  const StopCheck& stopped) const {
  if (!prefix.empty()) RETURN_IF_ERROR(ValidateName("prefix", prefix));
  RETURN_IF_ERROR(CheckCapabilities(workshop_->store));
  std::vector<Subscription> page;
  const auto cursor = workshop_->store.Scan(Keyspace::kFeed, SubscriptionRange(prefix, after_name));
  for (; cursor->Valid() && page.size() < most; cursor->Next()) {
    if (Stopped(stopped)) return StoppedError();
    ASSIGN_OR_RETURN(Subscription each, DecodeSubscription(cursor->key(), cursor->value()));
    page.push_back(std::move(each));
  }
  RETURN_IF_ERROR(cursor->status());
  return page;
}

// Every partition's lease is guarded, the free ones too: who acquires one meanwhile does so in
// front of this commit, which then looks again, or behind it, where Acquire finds the subscription
// gone.
absl::Status SubscriptionStore::PlanDelete(const std::string& name, WriteBatch& batch) const {
  const auto reader = workshop_->store.Snapshot();
  ASSIGN_OR_RETURN(const std::optional<StoredSubscription> stored, ReadSubscription(*reader, name));
  if (!stored) return SubscriptionNotFound(name);
  const int64_t incarnation = stored->subscription.incarnation;
  batch.MarkAsRemoval();
  batch.DeleteIf(Keyspace::kFeed, SubscriptionKey(name), stored->stamp);
  batch.Delete(Keyspace::kFeed, IncarnationKey(incarnation));
  batch.Delete(Keyspace::kFeed, RequestsKey(incarnation));
  batch.Put(Keyspace::kFeed, DeletedKey(incarnation), Nothing());
  const UnixMicros now = workshop_->clock.Now();
  for (int32_t partition = 0; partition < stored->subscription.partitions; ++partition) {
    const std::string lease_name = PartitionLeaseName(incarnation, partition);
    ASSIGN_OR_RETURN(const StoredLease held, lease::ReadLease(*reader, lease_name));
    if (!held.owner) {
      batch.CheckAbsent(Keyspace::kLeases, lease::OwnerKey(lease_name));
    } else if (held.owner->holder.empty()) {
      batch.Check(Keyspace::kLeases, lease::OwnerKey(lease_name), held.token);
    } else {
      lease::Owner released;
      released.acquire_time = held.owner->acquire_time;
      released.release_time = std::max<UnixMicros>(now, 1);
      batch.Replace(Keyspace::kLeases, lease::OwnerKey(lease_name), released.Encode(), held.token);
    }
  }
  return absl::OkStatus();
}

void SubscriptionStore::Delete(const std::string& name, Time deadline,
                               std::function<void(absl::Status)> done) {
  absl::Status valid = ValidateName("name", name);
  if (valid.ok()) valid = CheckCapabilities(workshop_->store);
  if (!valid.ok()) return done(std::move(valid));
  store::CommitGuarded(
      Ground(), {"subscription " + name, deadline},
      [this, name](WriteBatch& batch) { return PlanDelete(name, batch); },
      [this, done = std::move(done)](const absl::Status& status) {
        if (status.ok()) CleanUp();
        done(status);
      });
}

// Deletes what is left of subscriptions that were deleted, a chunk a commit. What a crash or an
// error leaves, the next one finds: whoever makes or deletes a subscription begins one.
void SubscriptionStore::CleanUp() {
  workshop_->Later([self = shared_from_this()] {
    store::CommitGuarded(
        self->Ground(), {"what deleted subscriptions left", /*deadline=*/std::nullopt},
        [self](WriteBatch& batch) { return self->PlanCleanUp(batch); },
        [self](const absl::StatusOr<bool>& more) {
          if (more.ok() && *more) self->CleanUp();
        });
  });
}

// Whether there may be more to do.
absl::StatusOr<bool> SubscriptionStore::PlanCleanUp(WriteBatch& batch) const {
  const auto reader = workshop_->store.Snapshot();
  const auto deleted = reader->Scan(Keyspace::kFeed, DeletedRange());
  RETURN_IF_ERROR(deleted->status());
  if (!deleted->Valid()) return false;
  ASSIGN_OR_RETURN(const int64_t incarnation, IncarnationOfDeletedKey(deleted->key()));
  batch.MarkAsRemoval();
  const auto add = [&](Keyspace keyspace, const store::Range& range) {
    const auto cursor = reader->Scan(keyspace, range);
    for (; cursor->Valid() && batch.writes().size() < kChunkRecords; cursor->Next()) {
      batch.Delete(keyspace, std::string(cursor->key()));
    }
    return cursor->status();
  };
  RETURN_IF_ERROR(add(Keyspace::kFeed, ParkedRange(incarnation)));
  RETURN_IF_ERROR(
      add(Keyspace::kLeases, lease::LeaseRange(SubscriptionLeasePrefix(incarnation), "")));
  if (batch.writes().size() < kChunkRecords) {
    batch.Delete(Keyspace::kFeed, std::string(deleted->key()));
  }
  return true;
}

absl::StatusOr<std::vector<ParkedDocument>> SubscriptionStore::ListParked(
    const std::string& name, const std::optional<ParkedDocument>& after, size_t most,
    const StopCheck& stopped) const {
  RETURN_IF_ERROR(ValidateName("subscription", name));
  const auto reader = workshop_->store.Snapshot();
  ASSIGN_OR_RETURN(const Subscription subscription, Require(*reader, name));
  store::Range range = ParkedRange(subscription.incarnation);
  if (after) {
    range.begin =
        ParkedKey(subscription.incarnation, after->partition, {after->collection, after->id}) +
        '\0';
  }
  std::vector<ParkedDocument> page;
  const auto cursor = reader->Scan(Keyspace::kFeed, range);
  for (; cursor->Valid() && page.size() < most; cursor->Next()) {
    if (Stopped(stopped)) return StoppedError();
    ASSIGN_OR_RETURN(StoredParked parked,
                     DecodeParked(cursor->key(), cursor->value(), cursor->stamp()));
    if (!parked.discard) page.push_back(std::move(parked.document));
  }
  RETURN_IF_ERROR(cursor->status());
  return page;
}

// A call of Request, a chunk of records at a time.
struct SubscriptionStore::Asking {
  std::string name;
  Subscriptions::ParkedRequest request = Subscriptions::ParkedRequest::kReplay;
  std::optional<DocumentToReplay> document;
  Time deadline;
  std::function<void(absl::StatusOr<int32_t>)> done;
  std::function<void(int64_t)> asked;

  int64_t incarnation = 0;  // 0: not known yet
  std::string begin;        // of the part that is left
  std::string next;         // behind the chunk under way
  bool more = false;        // there is something behind that
  int32_t documents = 0;    // that it concerns, of the chunks before
  int32_t in_chunk = 0;
};

absl::Status SubscriptionStore::PlanAsking(Asking& asking, WriteBatch& batch) const {
  const auto reader = workshop_->store.Snapshot();
  ASSIGN_OR_RETURN(const Subscription subscription, Require(*reader, asking.name));
  // One that was made meanwhile under the same name is not what was asked for.
  if (asking.incarnation != 0 && asking.incarnation != subscription.incarnation) {
    return SubscriptionNotFound(asking.name);
  }
  asking.incarnation = subscription.incarnation;
  store::Range range = ParkedRange(asking.incarnation);
  if (asking.document) {
    const auto& [collection, id] = *asking.document;
    range.begin = ParkedKey(asking.incarnation,
                            PartitionOf(collection, id, subscription.partitions), {collection, id});
    range.end = range.begin + '\0';
  }
  if (!asking.begin.empty()) range.begin = asking.begin;
  const bool replay = asking.request == Subscriptions::ParkedRequest::kReplay;
  asking.in_chunk = 0;
  const auto cursor = reader->Scan(Keyspace::kFeed, range);
  for (; cursor->Valid() && batch.writes().size() < kChunkRecords; cursor->Next()) {
    asking.next = std::string(cursor->key()) + '\0';
    ASSIGN_OR_RETURN(StoredParked parked,
                     DecodeParked(cursor->key(), cursor->value(), cursor->stamp()));
    if (parked.discard) continue;
    ++asking.in_chunk;
    if (replay && parked.document.replay) continue;
    parked.document.replay = replay;
    parked.discard = !replay;
    batch.Replace(Keyspace::kFeed, std::string(cursor->key()), EncodeParked(parked), parked.stamp);
  }
  RETURN_IF_ERROR(cursor->status());
  asking.more = cursor->Valid();
  if (!batch.writes().empty()) {
    batch.Put(Keyspace::kFeed, RequestsKey(asking.incarnation), Nothing());
  }
  return absl::OkStatus();
}

void SubscriptionStore::AskOn(const std::shared_ptr<Asking>& asking) {
  store::CommitGuarded(
      Ground(), {"subscription " + asking->name, asking->deadline},
      [this, asking](WriteBatch& batch) { return PlanAsking(*asking, batch); },
      [this, asking](const absl::Status& status) {
        if (!status.ok()) return asking->done(status);
        asking->documents += asking->in_chunk;
        asking->begin = asking->next;
        if (asking->more) {
          return workshop_->Later(
              std::chrono::microseconds(0),
              [self = shared_from_this(), asking] { self->AskOn(asking); },
              [asking] { asking->done(Draining()); });
        }
        asking->asked(asking->incarnation);
        asking->done(asking->documents);
      });
}

void SubscriptionStore::Request(const std::string& name, Subscriptions::ParkedRequest request,
                                std::optional<DocumentToReplay> document, Time deadline,
                                std::function<void(absl::StatusOr<int32_t>)> done,
                                std::function<void(int64_t)> asked) {
  absl::Status valid = ValidateName("subscription", name);
  if (valid.ok() && document) valid = ValidateName({document->collection, document->id});
  if (!valid.ok()) return done(std::move(valid));
  auto asking = std::make_shared<Asking>();
  asking->name = name;
  asking->request = request;
  asking->document = std::move(document);
  asking->deadline = deadline;
  asking->done = std::move(done);
  asking->asked = std::move(asked);
  AskOn(asking);
}

absl::StatusOr<std::optional<std::string>> SubscriptionStore::NameOf(int64_t incarnation) const {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   workshop_->store.Get(Keyspace::kFeed, IncarnationKey(incarnation)));
  if (!record) return std::nullopt;
  return DecodeName(record->value);
}

absl::StatusOr<std::optional<versioning::FloorHolder>> SubscriptionStore::LowestPlace(
    const store::Reader& reader) const {
  std::optional<versioning::FloorHolder> lowest;
  const auto cursor = reader.Scan(Keyspace::kFeed, SubscriptionRange("", ""));
  for (; cursor->Valid(); cursor->Next()) {
    ASSIGN_OR_RETURN(const Subscription subscription,
                     DecodeSubscription(cursor->key(), cursor->value()));
    for (int32_t partition = 0; partition < subscription.partitions; ++partition) {
      ASSIGN_OR_RETURN(
          const StoredLease stored,
          lease::ReadLease(reader, PartitionLeaseName(subscription.incarnation, partition)));
      lease::Place place{subscription.start_position, std::nullopt};
      if (stored.state) place = std::max(place, stored.state->place);
      if (lowest && lowest->position <= NeededFrom(place)) continue;
      lowest = versioning::FloorHolder{NeededFrom(place), "subscription/" + subscription.name};
    }
  }
  RETURN_IF_ERROR(cursor->status());
  return lowest;
}

}  // namespace strata::feed
