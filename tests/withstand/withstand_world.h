// A real server in a folder of its own, an honest caller at 127.0.0.1, and room for attackers at
// the machine's other addresses.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/withstand/documents.h"
#include "tests/withstand/honest_caller.h"
#include "tests/withstand/raw_connection.h"
#include "tests/withstand/server_cost.h"

namespace strata::withstand {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// How long anything may take whose time is not the claim.
inline constexpr seconds kPatience{10};

class WithstandTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags, int open_files_max = 0) {
    server_ = std::make_unique<fault::ServerProcess>(
        fault::ServerSettings{.data = directory_.Join("data"),
                              .log = directory_.Join("log"),
                              .flags = std::move(flags),
                              .open_files_max = open_files_max});
    const std::string& address = server_->address();
    port_ = std::stoi(address.substr(address.rfind(':') + 1));
    documents_ = std::make_unique<Documents>(server_->Connect());
  }

  void Fill(const std::string& collection, int documents, size_t letters) {
    const grpc::Status status = documents_->Fill(collection, documents, letters);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  pid_t pid() const { return server_->pid(); }

  // A Get on a new connection, from an address that sends nothing else.
  FreshCall GetAfresh(milliseconds patience) const {
    return CallAfresh({.port = port_, .source = "127.0.9.9"}, kGetMethod, GetMessage("small", "0"),
                      patience);
  }

  // Gets small documents.
  std::unique_ptr<HonestCaller> HonestGets(milliseconds every) {
    return std::make_unique<HonestCaller>(
        [this](grpc::ClientContext& context, int64_t) {
          return documents_->Get(context, "small", "0");
        },
        every, kPatience);
  }

  test_support::TemporaryDirectory directory_;
  std::unique_ptr<fault::ServerProcess> server_;
  int port_ = 0;
  std::unique_ptr<Documents> documents_;
};

inline double Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

inline double Mebibytes(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kMiB);
}

// How often an honest caller was answered, how soon, and the first ways in which it was not.
inline std::string Describe(const HonestResult& result) {
  std::ostringstream text;
  text << result.answered() << " answered, p50 " << Milliseconds(result.Quantile(0.5))
       << " ms, p99 " << Milliseconds(result.Quantile(0.99)) << ", the longest "
       << Milliseconds(result.longest()) << "; " << result.failures.size() << " failed";
  for (size_t i = 0; i < result.failures.size() && i < 3; ++i) text << "; " << result.failures[i];
  return text.str();
}

}  // namespace strata::withstand
