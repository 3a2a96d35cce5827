// Documents that a test writes over a server's disk, and what of them was acknowledged.
#pragma once

#include <grpc/health/v1/health.grpc.pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "strata/v1/document_service.grpc.pb.h"
#include "tests/fault/server_process.h"

namespace strata::fault {

// Each update puts another text beside a count that grows by one. What it writes is not easily
// packed. Thread-safe, each document by one thread at a time.
class CountedDocuments {
 public:
  // `seed` decides what the texts say.
  CountedDocuments(size_t text_bytes, uint64_t seed) : text_bytes_(text_bytes), seed_(seed) {}

  // Talks to this server from now on.
  void Connect(const ServerProcess& server);

  // Nothing if it was acknowledged; else the error's reason, or its code where there is none.
  std::optional<std::string> Update(const std::string& id);
  std::optional<std::string> Delete(const std::string& id);
  // Fails the test unless each document that was acknowledged, and was not deleted, is there as its
  // last acknowledged update left it, and as no other; or as a later one of unknown outcome did.
  void ExpectAllAcknowledged();
  void ExpectNothingLost();
  // Whether it is; false too if the server does not answer.
  bool IsServing(const std::string& service);

  int64_t acknowledged() const;  // updates

 private:
  enum class Beyond { kNone, kUnknown };
  void ExpectStored(Beyond beyond);
  std::string Text(const std::string& id, int64_t count) const;

  const size_t text_bytes_;
  const uint64_t seed_;
  std::unique_ptr<v1::DocumentService::Stub> documents_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, int64_t> counts_;
  int64_t acknowledged_ = 0;
};

}  // namespace strata::fault
