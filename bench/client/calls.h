// The same calls by two ways: gRPC's stubs as they are, and the client library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace strata::bench {

inline constexpr int kDocuments = 1000;
inline constexpr char kCollection[] = "books";

// "d17".
std::string IdOf(int64_t number);

// Who makes calls, a fixed number of them at a time, until a moment has come.
class Caller {
 public:
  virtual ~Caller() = default;
  virtual std::string_view name() const = 0;
  // Answers how many were made; -1: one was answered with something else than the document. One at
  // a time it waits for each as a program would, with a blocking call.
  virtual int64_t Get(int in_flight, std::chrono::steady_clock::time_point until) = 0;
  // The same, replacing documents.
  virtual int64_t Update(int in_flight, std::chrono::steady_clock::time_point until) = 0;
};

std::unique_ptr<Caller> MakeRawCaller(const std::string& target);
std::unique_ptr<Caller> MakeLibraryCaller(const std::string& target);

}  // namespace strata::bench
