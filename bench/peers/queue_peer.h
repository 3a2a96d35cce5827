// What a store must do for its queues to be measured as Strata's are: calls by slot, answered in
// any order. A driver per store starts its server and speaks its protocol; what is called when is
// the workloads'.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::bench {

// Consumers, and producers beside them.
constexpr int kConsumers = 64;
constexpr int kQueueSlots = 2 * kConsumers;

enum class QueueOperation {
  kPush,
  kReserve,       // the oldest ones; answered at once with none if there are none
  kReserveAhead,  // likewise, and kept whatever the slot calls next; of stores that commit
  kReceive,       // likewise, by a consumer that is to be kept busy: the store may send ahead
  kAcknowledge,   // messages that the same slot got last
  kCommit,        // together: acknowledges a message, updates a document, pushes a message
};

// As the store knows a message, or one delivery of it.
struct MessageId {
  uint64_t high = 0;
  uint64_t low = 0;
};

struct QueueCall {
  QueueOperation operation = QueueOperation::kPush;
  // Of kPush and kCommit; read by Send only.
  std::vector<std::string_view> payloads{};
  // Of kReserve, kReserveAhead and kReceive: at most so many.
  int64_t count = 1;
  // Of kAcknowledge and kCommit.
  std::vector<MessageId> messages{};
  // Of kCommit: a document, which must have this version and gets the next one; JSON.
  int64_t document = 0;
  int64_t version = 0;
  std::string_view body{};
};

struct QueueAnswer {
  struct Message {
    MessageId id;
    std::string payload;
  };
  bool is_done = false;
  std::vector<Message> messages;  // of what reserves
  std::string error;
};

// A store that runs, durable, and a client of it with one thread: the caller's. It throws
// std::runtime_error if the server cannot be reached or breaks its protocol. The server stops with
// the object, and with this process however that ends.
class QueuePeer {
 public:
  virtual ~QueuePeer() = default;

  virtual pid_t server() const = 0;
  // All calls are of this queue from now on; it is new and empty, the last one is no more.
  // REQUIRES: nothing is in flight.
  virtual void OpenQueue(const std::string& name) = 0;
  // REQUIRES: the slot's last call was answered; it is one of kQueueSlots, counted from 0. Of
  // kReceive: one of kStreams.
  virtual void Send(int slot, const QueueCall& call) = 0;
  // Hands over what has been answered, after at most a tenth of a second. The slot can be sent
  // its next call from within.
  virtual void Receive(const std::function<void(int slot, QueueAnswer& answer)>& answered) = 0;
  // In the open queue, reserved ones included, which nobody may acknowledge any more.
  // REQUIRES: nothing is in flight.
  virtual int64_t CountMessages() = 0;
  // What the store's owner does once much has been pushed. Waits for the end.
  virtual void Loaded() {}

  // Whether it takes kCommit.
  virtual bool commits() const { return false; }
  // New documents 0, 1, … of version 1.
  virtual void MakeDocuments(const std::vector<std::string_view>& /*bodies*/) {}
};

constexpr int kStreams = 4;
constexpr int64_t kStreamCredit = 256;

// What keeps others from a message.
enum class PostgresReservation {
  kLocked,   // its row's lock: the consumer's transaction is open until it acknowledges
  kWritten,  // a column: as with Strata it outlives the connection, is counted and can time out
};
std::unique_ptr<QueuePeer> StartPostgresQueue(PostgresReservation reservation);
// Where it was built without librabbitmq, or hiredis, there is none.
std::unique_ptr<QueuePeer> StartRabbitmqQueue();
std::unique_ptr<QueuePeer> StartRedisQueue();

}  // namespace strata::bench
