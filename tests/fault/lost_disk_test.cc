// The real server whose disk goes: its directory is deleted, or all its calls fail.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/counted_documents.h"
#include "tests/fault/mounted_disk.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

using std::chrono::steady_clock;

constexpr int kExitStorageFailed = 3;

class LostDiskTest : public testing::Test {
 protected:
  void Start(const std::string& data) {
    ServerSettings settings;
    settings.data = data;
    settings.log = directory_.Join("log");
    settings.flags = {"--disk-reserve-mib", "16", "--ballast-mib", "8", "--grace", "2"};
    server_ = std::make_unique<ServerProcess>(settings);
    documents_.Connect(*server_);
  }
  std::string Log() const { return ReadFile(directory_.Join("log")); }

  // The reason of the first write that is not acknowledged, and when it came.
  std::string WriteUntilRefused(steady_clock::time_point until) {
    while (steady_clock::now() < until) {
      if (const auto refused = documents_.Update("a")) return *refused;
    }
    return "none";
  }

  bool WritesEndInHealth() {
    const auto until = steady_clock::now() + std::chrono::seconds(3);
    while (documents_.IsServing("strata.writes")) {
      if (steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return documents_.IsServing("") && documents_.IsServing("strata.v1.DocumentService");
  }

  test_support::TemporaryDirectory directory_;
  CountedDocuments documents_{1000, 1};
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(LostDiskTest, ADeletedDirectoryEndsWritesWithinTwoSeconds) {
  const std::string data = directory_.Join("data");
  Start(data);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(documents_.Update("a"), std::nullopt);
  std::filesystem::remove_all(data);
  EXPECT_EQ(WriteUntilRefused(steady_clock::now() + std::chrono::seconds(2)), "STORE_UNAVAILABLE");
  documents_.ExpectAllAcknowledged();  // from memory, but what was said goes on to be said
  EXPECT_TRUE(WritesEndInHealth());
  EXPECT_EQ(server_->Stop(), kExitStorageFailed) << Log();
}

TEST_F(LostDiskTest, AFileSystemThatFailsEndsWritesAndNothingElse) {
  const auto disk = MountedDisk::Make(MountedDisk::Kind::kExt4, 256);
  if (disk == nullptr) {
    GTEST_SKIP() << "no such disk can be mounted; tests/store/rocksdb_store_test.cc stands in";
  }
  Start(disk->Join("data"));
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(documents_.Update("w" + std::to_string(i % 4)), std::nullopt);
  }
  // While nothing is written: of a sync that is under way at that moment the kernel may say that it
  // went well, and nothing is stored.
  disk->ShutDown();
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this, writer] {
      const auto refused = documents_.Update("w" + std::to_string(writer));
      EXPECT_TRUE(refused == "OUTCOME_UNKNOWN" || refused == "STORE_UNAVAILABLE")
          << refused.value_or("acknowledged");
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(documents_.Update("w0"), "STORE_UNAVAILABLE");
  documents_.ExpectAllAcknowledged();
  EXPECT_TRUE(WritesEndInHealth());
  EXPECT_EQ(server_->Stop(), kExitStorageFailed) << Log();

  ASSERT_TRUE(disk->MountAgain());
  Start(disk->Join("data"));
  documents_.ExpectNothingLost();
  EXPECT_EQ(documents_.Update("new"), std::nullopt);
  EXPECT_EQ(server_->Stop(), 0) << Log();
}

}  // namespace
}  // namespace strata::fault
