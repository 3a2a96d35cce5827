// W3 over HTTP: documents at random as they are now, in JSON, asked for as curl would.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/workloads.h"

namespace strata::bench {

// The request for one document, head and body.
std::string GetRequestText(const std::string& collection, const std::string& id, int port);

// Called by one thread.
class JsonGets {
 public:
  // Of `population`, from the port for people at 127.0.0.1:`port`. The order is that of
  // GetAtRandom with the same seed.
  JsonGets(const Population& population, int port, uint64_t seed);

  std::string name() const { return "W3 get, HTTP"; }
  // The next request of a slot: one of the connections, counted from 0.
  const std::string& Next(int slot);
  // Whether a body answers the slot's last request: the document, its version, and all of its
  // content.
  bool IsRight(int slot, std::string_view body) const;

 private:
  struct Request {
    std::string text;
    std::string answer;  // which the body begins with
  };

  const size_t bytes_;  // of a document
  std::mt19937_64 random_;
  std::vector<Request> requests_;
  std::vector<size_t> slots_;  // the request that each has sent last
};

}  // namespace strata::bench
