// The calls that attackers and honest callers make.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "strata/v1/document_service.grpc.pb.h"
#include "tests/withstand/raw_connection.h"

namespace strata::withstand {

inline constexpr char kGetMethod[] = "/strata.v1.DocumentService/Get";
inline constexpr char kListMethod[] = "/strata.v1.DocumentService/List";
inline constexpr char kWatchMethod[] = "/strata.v1.FeedService/Watch";
inline constexpr char kUpdateMethod[] = "/strata.v1.DocumentService/Update";

// Over a connection of its own; thread-safe.
class Documents {
 public:
  explicit Documents(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::DocumentService::NewStub(channel)) {}

  // Writes a document with a text of so many letters in its member "text".
  grpc::Status Write(grpc::ClientContext& context, const std::string& collection,
                     const std::string& id, size_t letters) const;
  // Adds one to its member "count"; makes it if it is missing.
  grpc::Status Count(grpc::ClientContext& context, const std::string& collection,
                     const std::string& id) const;
  grpc::Status Get(grpc::ClientContext& context, const std::string& collection,
                   const std::string& id) const;
  grpc::Status List(grpc::ClientContext& context, const std::string& collection) const;

  // Documents "0" and on, as Write makes them. The first status that is not OK, or OK.
  grpc::Status Fill(const std::string& collection, int documents, size_t letters) const;

 private:
  const std::unique_ptr<v1::DocumentService::Stub> stub_;
};

// Requests as they go over the wire.
std::string GetMessage(const std::string& collection, const std::string& id);
std::string ListMessage(const std::string& collection);
// Of what comes from now on, with contents.
std::string WatchMessage(const std::string& collection);
// With a filter of 100 regular expressions that no document of Write matches, each of which looks
// at all of a text.
std::string CostlyListMessage(const std::string& collection);
// An update of some 4 KB that such a filter is the precondition of, so that it writes nothing.
std::string CostlyUpdateMessage(const std::string& collection, const std::string& id);

// One call on a connection that is made for it.
struct FreshCall {
  Outcome outcome = Outcome::kNone;  // kNone: nothing came in time
  std::chrono::milliseconds took{0};
};
FreshCall CallAfresh(const ConnectionSettings& settings, const std::string& method,
                     const std::string& message, std::chrono::milliseconds patience);

}  // namespace strata::withstand
