// Data directories that earlier builds have written: each is opened and found whole; what this
// build does not know is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "schemas/versioning/transaction_record.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/places.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

namespace fs = std::filesystem;
using store::Keyspace;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFolder = test_support::SourcePath("tests/data/formats");

engines::OpenOptions OptionsFor(const std::string& directory) {
  engines::OpenOptions options;
  options.directory = directory;
  return options;
}

// One line of versions.txt: what the build that made the directory said of a version.
struct Told {
  store::CommitPosition position = 0;
  uint32_t index = 0;
  std::string collection;
  std::string id;
  int64_t version = 0;
  std::string kind;
  std::string chain;  // hexadecimal; "-": its collection is gone
};

std::vector<Told> ReadTold(const fs::path& path) {
  std::vector<Told> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    Told told;
    words >> told.position >> told.index >> told.collection >> told.id >> told.version >>
        told.kind >> told.chain;
    all.push_back(told);
  }
  return all;
}

std::string_view KindWord(VersionKind kind) {
  constexpr std::string_view kWords[] = {"", "created", "updated", "deleted", "restored"};
  return kWords[static_cast<size_t>(kind)];
}

// A directory of tests/data/formats.
struct OldDirectory {
  std::string_view name;
  int collections;
  int of_transactions;  // versions
};
void PrintTo(const OldDirectory& directory, std::ostream* out) { *out << directory.name; }

// A copy of one, with all that is above an engine.
class FormatsTest : public ::testing::TestWithParam<OldDirectory> {
 protected:
  FormatsTest() {
    for (const auto& file : fs::directory_iterator(Folder())) {
      if (file.path().extension() != ".txt") fs::copy(file.path(), directory_.path());
    }
  }
  ~FormatsTest() override { executor_.Stop(); }

  fs::path Folder() const { return fs::path(kFolder) / GetParam().name; }

  void Open() {
    documents_.reset();
    store_.reset();
    auto opened = engines::OpenEngine("rocksdb", OptionsFor(std::string(directory_.path())));
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
    documents_ = std::make_unique<Documents>(*store_, Clock::System(), Entropy::System(), executor_,
                                             DocumentsOptions{});
  }

  std::vector<Told> Tell() {
    std::vector<Told> all;
    std::optional<LedgerPlace> place;
    do {
      AuditQuery query;
      if (place) query.resume_at = *place;
      AuditCursor rows = documents_->Audit(query);
      while (rows.Next()) {
        const AuditRow& row = rows.row();
        const VersionHeader& header = row.version.header;
        const std::string chain(HashBytes(header.chain_hash));
        all.push_back({row.place.position, row.place.index, row.collection, row.id, header.version,
                       std::string(KindWord(header.kind)),
                       header.chain_hash == Hash{} ? "-" : absl::BytesToHexString(chain)});
      }
      EXPECT_THAT(rows.status(), IsOk());
      place = rows.resume_at();
    } while (place);
    return all;
  }

  test_support::TemporaryDirectory directory_;
  test_support::ThreadExecutor executor_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Documents> documents_;
};

TEST_P(FormatsTest, IsOpenedWithAllThatItHolds) {
  const std::vector<Told> expected = ReadTold(Folder() / "versions.txt");
  ASSERT_GT(expected.size(), 200u);
  for (int open = 0; open < 2; ++open) {
    ASSERT_NO_FATAL_FAILURE(Open());
    const std::vector<Told> told = Tell();
    ASSERT_EQ(told.size(), expected.size());
    for (size_t i = 0; i < told.size(); ++i) {
      const auto all = [](const Told& one) {
        return std::tie(one.position, one.index, one.collection, one.id, one.version, one.kind,
                        one.chain);
      };
      EXPECT_EQ(all(told[i]), all(expected[i])) << i;
    }
  }
}

TEST_P(FormatsTest, IsWholeAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int round = 0; round < 2; ++round) {
    int count = 0;
    CollectionCursor collections = documents_->collections().List("");
    for (; collections.Next(); ++count) {
      const std::string& name = collections.collection().name;
      const auto verified =
          Verify(*store_, documents_->collections(), Clock::System(), {name, "", false});
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty()) << name;
    }
    ASSERT_THAT(collections.status(), IsOk());
    EXPECT_EQ(count, GetParam().collections);
    if (round > 0) break;
    for (const StrategyEntry& strategy : AllStrategies()) {
      // Younger strategies have no collection in it.
      if (!documents_->collections().Get(strategy.name).ok()) continue;
      WriteRequest request;
      request.name = {std::string(strategy.name), "css/selectors/highlight"};
      request.request_id = "after-opening";
      Answer answer;
      documents_->Update(request, Number(1), false, answer.Callback());
      EXPECT_THAT(answer.Wait(), IsOk());
    }
  }
}

TEST_P(FormatsTest, TellsWhichVersionsAreOfTransactions) {
  ASSERT_NO_FATAL_FAILURE(Open());
  int of_requests = 0;
  int of_transactions = 0;
  for (const Told& told : ReadTold(Folder() / "versions.txt")) {
    if (told.chain == "-") continue;
    HistoryQuery query;
    query.name = {told.collection, told.id};
    query.from_version = query.to_version = told.version;
    HistoryCursor cursor = documents_->History(query);
    ASSERT_TRUE(cursor.Next()) << cursor.status();
    const VersionHeader& header = cursor.version().header;
    EXPECT_TRUE(header.mark == VersionMark::kNone || !header.transaction_id.empty());
    of_transactions += header.transaction_id.empty() ? 0 : 1;
    of_requests += header.request_id.empty() ? 0 : 1;
  }
  EXPECT_EQ(of_transactions, GetParam().of_transactions);
  EXPECT_GT(of_requests, 0);
}

// An older build, which does not know the keyspace, goes on to open a directory that this one has
// written, until there is something in it.
TEST_P(FormatsTest, GetsNoKeyspaceThatOlderBuildsDoNotKnow) {
  const auto has = [this](Keyspace keyspace) {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies({}, std::string(directory_.path()), &names).ok());
    return std::find(names.begin(), names.end(), store::KeyspaceName(keyspace)) != names.end();
  };
  ASSERT_NO_FATAL_FAILURE(Open());
  WriteRequest request;
  request.name = {"full-copies", "new"};
  request.request_id = "new";
  Answer answer;
  documents_->Create(request, Number(1), answer.Callback());
  ASSERT_THAT(answer.Wait(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const Keyspace keyspace : {Keyspace::kTransactions, Keyspace::kLeases, Keyspace::kFeed,
                                  Keyspace::kQueues, Keyspace::kMessages, Keyspace::kQueueIndex}) {
    const bool used = keyspace == Keyspace::kTransactions && GetParam().of_transactions > 0;
    EXPECT_EQ(has(keyspace), used);
    store::WriteBatch batch;
    batch.Insert(keyspace, "key", TransactionRecord().Encode());
    ASSERT_TRUE(test_support::AwaitCommit(*store_, std::move(batch)).committed);
    EXPECT_TRUE(has(keyspace));
    ASSERT_NO_FATAL_FAILURE(Open());
    const auto found = store_->Get(keyspace, "key");
    ASSERT_THAT(found, IsOk());
    EXPECT_TRUE(found->has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FormatsTest,
                         ::testing::Values(OldDirectory{"3", 8, 0},
                                           OldDirectory{"3-without-transactions", 5, 0},
                                           OldDirectory{"3-without-leases", 5, 60}));

// Opens a database with another format record, or with one keyspace more.
class UnknownFormatTest : public ::testing::Test {
 protected:
  absl::Status OpenWith(const std::string& format, const std::string& keyspace = "") {
    const std::string data = directory_.Join("data");
    fs::remove_all(data);
    EXPECT_THAT(engines::OpenEngine("rocksdb", OptionsFor(data)), IsOk());
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies({}, data, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    if (!keyspace.empty()) families.emplace_back(keyspace, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    rocksdb::DBOptions options;
    options.create_missing_column_families = true;
    EXPECT_TRUE(rocksdb::DB::Open(options, data, families, &handles, &db).ok());
    EXPECT_TRUE(db->Put({}, "format", format).ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
    return engines::OpenEngine("rocksdb", OptionsFor(data)).status();
  }

  test_support::TemporaryDirectory directory_;
};

TEST_F(UnknownFormatTest, IsRefusedByName) {
  EXPECT_THAT(OpenWith("3"), IsOk());
  for (const auto& [format, name] : std::map<std::string, std::string>{
           {"1", "format 1"},
           {"2", "format 2, and this one reads format 3"},
           {"4", "format 4"},
           {"3 stubs", "the feature stubs"},
           {"three", "cannot be read"},
           {"", "cannot be read"},
       }) {
    const absl::Status refused = OpenWith(format);
    EXPECT_THAT(refused, HasReason(ErrorReason::kStoreUnavailable));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(name));
  }
  const absl::Status refused = OpenWith("3", "views");
  EXPECT_THAT(refused, HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the keyspace views"));
}

}  // namespace
}  // namespace strata::versioning::testing
