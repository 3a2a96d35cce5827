// Calls of the server's methods by one connection, whose thread waits for the answers.
#pragma once

#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "service/server/call_life.h"

namespace strata::http {

// Asked again and again while nothing comes: whether the caller is gone, so that the call is to be
// given up.
using IsGone = std::function<bool()>;
// Takes a message of a stream; false: it cannot be taken, and the call is given up.
using Take = std::function<bool(std::string message)>;

// CANCELLED if the caller was gone.
grpc::Status CallUnary(const std::shared_ptr<server::LoopState>& state,
                       const server::Endpoint& endpoint, server::Arrival arrival,
                       std::string_view request, const IsGone& is_gone, std::string& response);

// A method that one message calls. The next message of the answer is asked for when the one before
// has been taken.
grpc::Status CallStream(const std::shared_ptr<server::LoopState>& state,
                        const server::Endpoint& endpoint, server::Arrival arrival,
                        std::string_view request, const IsGone& is_gone, const Take& take);

}  // namespace strata::http
