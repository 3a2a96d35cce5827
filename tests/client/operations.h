// The operations of clients/conformance, by their names, as calls of this library.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "strata/client/client.h"
#include "tests/client/arguments.h"

namespace strata::client {

// What came of an operation.
struct Outcome {
  absl::Status status;         // not OK: the error
  bool missing = false;        // there is no such document
  std::optional<Value> value;  // what it gave
  std::optional<Array> items;  // what it listed, before the error if there is one
};

// What the operations of a case are made with.
struct Scene {
  Client client;
  std::string collection;
};

// Unset: there is no such operation.
std::optional<Outcome> Perform(const std::string& operation, Scene& scene, Arguments& arguments);

}  // namespace strata::client
