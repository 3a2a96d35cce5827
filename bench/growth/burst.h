// Many large updates at the same moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::bench {

struct BurstSettings {
  std::string address;
  std::string collection;
  int connections = 10;
  int64_t calls = 1'000;    // each on a document of its own, "0" and on
  int64_t at_once = 1'000;  // in flight at most
  size_t document_bytes = 0;
};

// How a call ended.
struct BurstAnswer {
  int code = 0;  // grpc::StatusCode
  std::string message;
  bool has_reason = false;  // Strata said so, and not gRPC by itself
};

// Sends them and waits for all answers, by call; the documents' bytes are shared, so that the
// client stays small.
std::vector<BurstAnswer> RunBurst(const BurstSettings& settings);

}  // namespace strata::bench
