// A server in memory for a test, and a client of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "strata/client/client.h"
#include "strata/client/testing.h"
#include "tests/support/places.h"

namespace strata::client {

class Serving : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = testing::Server::Start({.program = test_support::ServerProgram()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_.emplace(*std::move(server));
    client_.emplace(Connect());
  }

  Client Connect(ClientOptions options = {.actor = "ann"}) {
    options.target = server_->target();
    return *Client::Connect(options);
  }

  std::optional<testing::Server> server_;
  std::optional<Client> client_;
};

}  // namespace strata::client
