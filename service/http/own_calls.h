// Calls of the server's own methods, as its gRPC port would get them: over its channel with itself.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/server/introduction.h"

namespace strata::http {

// What goes with one call.
struct CallMetadata {
  server::Introduction introduction;
  std::vector<std::string> authorization{};  // each such header's value; printable ASCII
  std::string traceparent{};                 // the same; empty: none
  std::optional<std::chrono::milliseconds> timeout{};
};

// Of one thread, which waits; one call at a time. The channel outlives it.
class OwnCalls {
 public:
  // Asked again and again while nothing comes: whether the caller is gone, so that the call is to
  // be given up.
  using IsGone = std::function<bool()>;
  // Takes a message of a stream; false: it cannot be taken, and the call is given up.
  using Take = std::function<bool(std::string message)>;

  OwnCalls(const std::shared_ptr<grpc::Channel>& channel, std::string introduction_key,
           IsGone is_gone);
  ~OwnCalls();
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

  // CANCELLED if the caller was gone.
  grpc::Status Unary(const std::string& path, const CallMetadata& metadata,
                     std::string_view request, std::string& response);
  // The next message is asked for when the one before has been taken.
  grpc::Status ServerStream(const std::string& path, const CallMetadata& metadata,
                            std::string_view request, const Take& take);

 private:
  void Prepare(const CallMetadata& metadata, grpc::ClientContext& context) const;
  // Until the operation is over; whether it came about.
  bool Await(grpc::ClientContext& context);

  grpc::GenericStub stub_;
  const std::string introduction_key_;
  const IsGone is_gone_;
  grpc::CompletionQueue queue_;
};

}  // namespace strata::http
