// One partition of a subscription in the hands of one consumer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/consumer.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/event.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/replay.h"
#include "schemas/feed/stream.h"
#include "schemas/feed/subscription_record.h"
#include "schemas/feed/window.h"
#include "schemas/feed/worker.h"

namespace strata::feed {

// How long a partition that goes to another consumer waits for its deliveries.
inline constexpr std::chrono::seconds kLetGoWait{5};
// The pause between two writes of acknowledgements; those that come meanwhile go with the second.
inline constexpr std::chrono::milliseconds kAckPause{10};

// The common data of a consumer's partitions.
struct PartitionSetup {
  std::shared_ptr<ConsumerWorkshop> workshop;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<ConsumerCounts> counts;
  StoredSubscription subscription;
  WatchQuery query;  // without partition and start
  int32_t window = kWindowDefault;
  std::string member;    // holds the leases
  std::string consumer;  // shown to operators
  // Called on the executor when the partition has ended, for any reason.
  std::function<void(int32_t partition)> ended;
  // Called on the executor when the consumer cannot continue.
  std::function<void(const absl::Status&)> failed;
};

// Checks that the subscription exists, for a commit that acquires one of its leases.
store::JoinedPlan WhileItExists(const StoredSubscription& subscription);

// Takes the partition's lease, follows its part of the feed from the lease's place, delivers, and
// stores the outcome: an acknowledged event moves the place, a failed one is counted, and one that
// fails too often is parked with its document.
//
// Deliveries come from a Reader of the feed, which holds no events: the partition refuses an event
// for now, and asks for it again later. A new beginning (after a failure, or after parking) closes
// the Reader and opens another one at the place. Thread-safe. Keep it in a shared_ptr: work in
// flight holds it.
class Partition : public std::enable_shared_from_this<Partition> {
 public:
  // `stale`: up to there the consumer had events delivered when it had the partition before.
  Partition(std::shared_ptr<const PartitionSetup> setup, int32_t partition,
            const lease::Place& stale);
  ~Partition();

  // Tries to take it; `ended` if another has it.
  void Take();

  // As Consumer.
  absl::Status Ack(const lease::Place& place);
  absl::Status Nack(const lease::Place& place, std::string_view reason, bool park);

  // To be called now and then: goes on with what waits for others, and reads again what is parked
  // if something was `asked` of it.
  void Look(bool asked);
  // Another gets it: no more is delivered, and what has been is waited for, but not for long.
  void LetGo();
  // Gives it back at once. `broken`: with an attempt counted of what is open.
  void End(bool broken);
  // Follows the feed no more; for when nothing that was begun comes to its end.
  void Drop();

  bool leaving() const;
  // Whether it was ever held.
  bool held() const;
  // The last event that was delivered.
  lease::Place highest_delivered() const;

 private:
  class Source;
  static constexpr std::chrono::milliseconds kLoadRetry{200};
  using Time = std::chrono::steady_clock::time_point;
  // Of a parked document, of which there may be many: what it takes to pass its events over.
  struct Known {
    int64_t incarnation = 0;  // of its collection
    bool replay = false;      // is asked for
    bool discard = false;     // is asked for, or its collection was deleted

    static Known Of(const StoredParked& parked) {
      return {parked.document.incarnation, parked.document.replay, parked.discard};
    }
  };
  using Parked = std::map<DocumentOfPartition, Known>;
  enum class Phase : uint8_t {
    kTakes,  // the lease, and what is parked
    kActive,
    kLeaving,  // waits for what has been delivered
    kEnding,   // the release is under way
    kEnded,
  };

  // An event that failed.
  struct Failure {
    OpenEvent event;
    std::string reason;
    bool park = false;       // at once
    bool uncertain = false;  // it may have been a later one: the first time does not park it
    bool again = false;      // no attempt more: it has failed often enough, and there was no room
    std::optional<RevokeReason> release;  // in the same commit
    PartitionData next;                   // what it comes to
    bool parks = false;
  };
  // A parked document's version on its way.
  struct Replay {
    DocumentOfPartition document;
    lease::Place place;
    int64_t next_version = 0;
    int32_t attempt = 1;
    bool delivered = false;
    Time since;
  };

  void OnTaken(const absl::StatusOr<lease::Lease>& lease);
  void Load();
  absl::Status LoadParked();
  absl::Status LoadParked(const DocumentOfPartition& document);
  absl::StatusOr<std::optional<StoredParked>> ReadParked(const DocumentOfPartition& document) const;
  void OpenSource();
  void Retire();
  void DropRetired();

  bool Offer(Source& source, Event&& event);
  bool Judge(Source& source, const OpenEvent& event, size_t bytes, Delivery& delivery);
  bool JudgeFirst(const OpenEvent& event);
  void BeginAttempt();
  void EndBeginAttempt(const absl::StatusOr<lease::HeldState>& result);
  void EndTurn(Source& source, const Progress& progress);
  bool CanDeliver() const;
  bool HasRoom() const;
  void Resume();
  void ResumeLater();
  void OnTurn();

  void Arm(Time time);
  void OnAlarm(Time time);
  void LookAtPlace(std::function<void()> looked);
  void FailIfLate();
  absl::Status Judge(const lease::Place& place, std::string_view reason, bool park, bool looked);

  void Acknowledged(size_t events);
  void WriteAcksLater();
  void WriteAcks();
  void EndAcks(const lease::Place& target, const absl::StatusOr<lease::HeldState>& result);
  void Refresh(lease::State& state);
  PartitionData Data() const;

  void Fail(Failure failure);
  void WriteFailure(const std::shared_ptr<Failure>& failure);
  void EndFailure(const std::shared_ptr<Failure>& failure,
                  const absl::StatusOr<lease::HeldState>& result);
  std::chrono::microseconds Backoff(int32_t attempts) const;
  absl::Status Park(const Failure& failure, const store::Reader& reader,
                    store::WriteBatch& batch) const;

  void GoOn();
  void GiveUp(const absl::Status& status);
  void Release(RevokeReason reason, bool told);
  void EndRelease(const lease::Place& target, const absl::StatusOr<lease::HeldState>& result);
  void OnLost();
  void Ended();

  void LookAtParked();
  void StepReplay(const lease::Place& stored);
  absl::StatusOr<bool> StepReplayOf(const Parked::value_type& parked, const lease::Place& stored);
  void DeliverReplay();
  void ReplayDone();
  void ReplayFailed(std::string_view reason);
  void WriteReplayFailure(const DocumentOfPartition& document, std::string reason);
  void WriteParked(const DocumentOfPartition& document,
                   std::function<bool(StoredParked& parked)> change);
  Parked::const_iterator NextAsked(Parked::const_iterator from) const;
  bool RemoveParked(const Parked::value_type& parked, const lease::Place& stored);

  static absl::Status NotDelivered(std::string_view field, const lease::Place& place,
                                   const std::string& problem);

  // Who waits for a turn of the stream's: the events, or a replay.
  int32_t EventsTurn() const { return partition_; }
  int32_t ReplayTurn() const { return -1 - partition_; }

  std::string LeaseName() const {
    return PartitionLeaseName(setup_->subscription.subscription.incarnation, partition_);
  }
  const Subscription& subscription() const { return setup_->subscription.subscription; }
  ConsumerWorkshop& workshop() const { return *setup_->workshop; }

  const std::shared_ptr<const PartitionSetup> setup_;
  const int32_t partition_;
  const std::shared_ptr<Worker> worker_;

  mutable std::mutex mutex_;  // guards what follows
  Phase phase_ = Phase::kTakes;
  bool end_asked_ = false;        // while something is under way that has to come to its end first
  std::optional<Window> window_;  // none: the lease is not held yet
  lease::Place stale_;            // acknowledgements of unknown events up to here are of before
  lease::Place highest_;          // that was delivered

  std::shared_ptr<Source> source_;  // null: none is followed now
  std::shared_ptr<Watch> watch_;
  std::vector<std::shared_ptr<Watch>> retired_;
  bool waits_ = false;       // the reader, for the partition to be ready
  bool turn_asked_ = false;  // of the stream
  bool resumes_ = false;     // Resume is to come

  PartitionData failed_;                 // of the first open event, if that is failed_.failed
  std::optional<UnixMicros> abandoned_;  // taken from one whose time was over then
  bool failing_ = false;                 // a failure is being written
  bool beginning_ = false;               // that it comes again is
  int32_t careful_ = 0;                  // so many events come one by one
  std::optional<Time> hold_until_;       // after a failure
  bool wants_room_ = false;              // an event waits to be parked
  Time first_open_since_;
  bool looking_at_place_ = false;  // as the first open event is late

  lease::Place acked_;  // the last event that was acknowledged
  lease::Place told_;   // of which the consumer was told
  bool writing_acks_ = false;
  Time last_ack_write_;

  Parked parked_;
  std::map<DocumentOfPartition, lease::Place> skipped_;  // the last event of each
  std::optional<DocumentOfPartition> leaves_parked_;     // its record is being deleted
  std::optional<DocumentOfPartition> perhaps_parked_;    // by a failure that was just written
  bool reload_parked_ = false;
  uint64_t parked_changes_ = 0;  // here, so that what was read before does not undo them
  std::optional<Replay> replay_;
  std::optional<Event> replay_event_;  // to be delivered
  lease::Place last_replay_;           // the last that failed
  bool replaying_ = false;             // a step is under way

  std::optional<Time> alarm_;
  Time leave_by_;
  RevokeReason revoke_ = RevokeReason::kBalance;
  bool tell_revoked_ = false;
};

}  // namespace strata::feed
