// What a store must do to be measured as Strata is: calls by slot, answered in any order. A driver
// per store starts its server and speaks its protocol; what is called when is the workloads'.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/followers.h"

namespace strata::bench {

enum class Operation {
  kUpdate,      // of the document with this version, which gets the next one; version 0: it is new
  kOverwrite,   // of the document whatever its version, which gets the next one
  kGet,         // the current version
  kGetVersion,  // this version, which is not the current one
  kNewestTen,
  kTransfer,  // kUpdate of this document and of another, both or none; neither is new
};

struct Call {
  Operation operation = Operation::kGet;
  int64_t document = 0;
  int64_t version = 0;
  std::string_view body;  // JSON, of what writes; read by Send only
  // The second one of kTransfer. Stores that lock may do so in this order.
  int64_t other_document = 0;
  int64_t other_version = 0;
  std::string_view other_body = {};
};

struct Answer {
  enum class Outcome {
    kDone,
    kConflict,  // another writer was faster; nothing was written
    kFailed,
  };
  struct Version {
    int64_t number = 0;
    size_t bytes = 0;  // of its body; 0 if that was not sent
  };
  Outcome outcome = Outcome::kFailed;
  // Read: what was asked for, newest first. Written: the new version, if the store tells; of a
  // transfer both. In conflict: the current version, if the store tells; of a transfer the first
  // document's.
  std::vector<Version> versions;
  std::string error;
};

// A store that runs, durable, and a client of it with one thread: the caller's. It throws
// std::runtime_error if the server cannot be reached. The server stops with the object, and with
// this process however that ends.
class Peer {
 public:
  virtual ~Peer() = default;

  virtual pid_t server() const = 0;
  // REQUIRES: the slot's last call was answered; it is one of kSlots, counted from 0.
  virtual void Send(int slot, const Call& call) = 0;
  // Hands over what has been answered, after at most a tenth of a second. The slot can be sent
  // its next call from within.
  virtual void Receive(const std::function<void(int slot, const Answer& answer)>& answered) = 0;
  // Whether a transfer takes version 0 of its first document: whatever it is once it is locked.
  virtual bool locks() const { return false; }
  // So many who follow all that is written, contents included, and who have been told that they do:
  // from now on, or from the first write on. They end before the peer does.
  // REQUIRES: it was started to be followed, and Loaded was called.
  virtual std::unique_ptr<Followers> Follow(int64_t count, bool from_beginning) = 0;
  // What the store's owner does once much has been loaded. Waits for the end.
  virtual void Loaded() {}
};

constexpr int kSlots = 64;

std::unique_ptr<Peer> StartEtcd();

// How history is kept in tables.
enum class TableLayout {
  kHistoryTable,    // current documents in one, the rows they replaced in another
  kFullCopies,      // each version a row of one table, the current one as well
  kFollowedCopies,  // the same with a position in each row, to be followed
};
std::unique_ptr<Peer> StartPostgres(TableLayout layout);

// Takes kUpdate and nothing else. `syncs`: once Loaded was called, each write is durable before it
// is answered; else it is within two minutes. Where it was built without libnats there is none.
std::unique_ptr<Peer> StartNats(bool syncs);

}  // namespace strata::bench
