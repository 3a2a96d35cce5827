// The consumer of a stream. Internal to this folder.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schemas/queue/dispatcher.h"
#include "schemas/queue/queues.h"

namespace strata::queue {

// Holds what it was given until that has ended or its reservation has run out; from then on it is
// like anybody else's, also if its token is used once more.
class StreamConsumer final : public Consumer {
 public:
  // What it holds when it ends is handed to `give_back`: false: as if the reservation had run out.
  using GiveBack = std::function<void(std::vector<std::string> tokens, bool orderly)>;

  StreamConsumer(std::shared_ptr<ReceiverSink> sink, int32_t credits,
                 std::optional<std::chrono::microseconds> timeout, GiveBack give_back)
      : sink_(std::move(sink)),
        timeout_(timeout),
        give_back_(std::move(give_back)),
        credits_(credits) {}

  // INVALID_FIELD.
  absl::Status AddCredits(int32_t credits);
  // Nothing is delivered from then on.
  void Leave(bool orderly);

  bool gone() const override;
  std::optional<std::chrono::microseconds> timeout() const override { return timeout_; }
  int32_t wants() const override;
  bool takes_suspect() const override;
  size_t TakeRoom() override { return sink_->TakeRoom() ? kStreamedBytesMax : 0; }
  void KeepRoom(size_t bytes) override { sink_->KeepRoom(bytes); }
  void Expect(int32_t messages, bool suspect) override;
  bool Deliver(Handed handed) override;
  void End(const absl::Status& status) override;
  bool holds() const override { return true; }
  void Released(const MessageId& id, int64_t delivery) override;

 private:
  struct Held {
    std::string token;
    int64_t delivery = 0;
    bool suspect = false;
    uint64_t number = 0;  // of those that it was given, in order
  };

  const std::shared_ptr<ReceiverSink> sink_;
  const std::optional<std::chrono::microseconds> timeout_;
  const GiveBack give_back_;

  mutable std::mutex mutex_;  // guards what follows
  int32_t credits_;
  int32_t expected_ = 0;
  bool expects_suspect_ = false;
  int32_t suspects_ = 0;
  uint64_t given_ = 0;
  absl::flat_hash_map<MessageId, Held> held_;
  std::optional<bool> left_;  // orderly or not
};

}  // namespace strata::queue
