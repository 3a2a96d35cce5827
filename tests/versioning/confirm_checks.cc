#include "tests/versioning/confirm_checks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "schemas/store/key_codec.h"
#include "tests/support/await_commit.h"
#include "tests/support/single_record_store.h"

namespace strata::versioning::checks {
namespace {

using store::Keyspace;
using test_support::AwaitCommit;

class ConfirmCheck {
 public:
  ConfirmCheck(StrategySubject& subject, store::Store& base) : subject_(subject), base_(base) {}

  std::string Run() {
    std::string problem = Histories();
    for (const int versions : {0, 1, 2, 7}) {
      bool died = true;
      for (size_t crash = 0; died && problem.empty(); ++crash) {
        problem = Crash(versions, crash, died);
      }
    }
    return problem;
  }

 private:
  // A head as it was read, and the check that it is still the one.
  struct Confirmed {
    std::optional<Head> head;
    store::WriteBatch checks;
    std::string name;
  };

  const Strategy& strategy() const { return subject_.strategy(); }

  absl::StatusOr<Confirmed> Confirm(const std::string& id) const {
    Confirmed confirmed;
    const store::DocumentKey key = subject_.Key(id);
    absl::StatusOr<std::optional<Head>> head =
        strategy().ReadHead({base_, base_.capabilities()}, key);
    if (!head.ok()) return head.status();
    confirmed.head = *std::move(head);
    strategy().Confirm(key, confirmed.head ? &*confirmed.head : nullptr, confirmed.checks);
    confirmed.name = id + ", head " +
                     std::to_string(confirmed.head ? confirmed.head->version.header.version : 0);
    return confirmed;
  }

  // Commits the checks and, along with them, a version of another document: both or none.
  std::string Expect(const Confirmed& confirmed, bool holds) {
    const auto is_check = [](const store::Write& write) {
      return write.kind == store::WriteKind::kCheck;
    };
    const std::vector<store::Write>& checks = confirmed.checks.writes();
    if (!std::all_of(checks.begin(), checks.end(), is_check)) return "a confirmation writes";
    const std::string other = "other-" + std::to_string(++others_);
    const Operation create = Create("create", R"({"n": 1})");
    absl::StatusOr<store::WriteBatch> batch = subject_.PlanWrite(base_, other, {&create, 1});
    if (!batch.ok()) return "another document cannot be planned";
    const size_t planned = batch->writes().size();
    batch->Append(confirmed.checks);
    const store::CommitResult result = AwaitCommit(base_, *std::move(batch));
    if (!result.status.ok()) return confirmed.name + ": " + result.status.ToString();
    if (result.committed != holds) {
      return confirmed.name + (holds ? " is not confirmed" : " is confirmed after it changed");
    }
    if (!holds && result.refused && *result.refused < planned) return "another guard failed";
    const auto head = subject_.ReadHead(base_, other);
    if (!head.ok() || head->has_value() != holds) return "it commits and does not";
    return "";
  }

  std::string Write(const std::string& id, const Operation& operation) {
    const absl::Status status = subject_.Write(base_, id, {&operation, 1});
    return status.ok() ? "" : operation.name + ": " + status.ToString();
  }

  // Each head is confirmed until the next version, and never after it.
  std::string Histories() {
    const std::string id = "document";
    std::vector<Operation> operations = {Create("create", R"({"n": 1})"), Set("a", R"({"n": 2})"),
                                         Delete("delete"), Create("anew", R"({"n": 1})")};
    for (int i = 0; i < 9; ++i) operations.push_back(Set("more", R"({"m": 1})"));
    operations.push_back(Restore("restore", 2));
    operations.push_back(Delete("delete"));
    std::vector<Confirmed> past;
    for (size_t written = 0; written <= operations.size(); ++written) {
      absl::StatusOr<Confirmed> now = Confirm(id);
      if (!now.ok()) return now.status().ToString();
      std::string problem;
      // Whatever becomes of neighbours.
      for (const std::string neighbour : {"documen", "document/", "document!"}) {
        const Operation operation = written == 0 ? Create("create", "{}") : Set("n", R"({"n": 1})");
        if (problem.empty()) problem = Write(neighbour, operation);
      }
      for (int i = 0; i < 2 && problem.empty(); ++i) problem = Expect(*now, true);
      for (const Confirmed& before : past) {
        if (problem.empty()) problem = Expect(before, false);
      }
      if (problem.empty() && written < operations.size()) problem = Write(id, operations[written]);
      if (!problem.empty()) return problem;
      past.push_back(*std::move(now));
    }
    return "";
  }

  // A writer without atomic batches dies before its write `crash`.
  std::string Crash(int versions, size_t crash, bool& died) {
    const std::string id = "crash-" + std::to_string(versions) + "-" + std::to_string(crash);
    for (int i = 0; i < versions; ++i) {
      std::string problem = Write(id, i == 0 ? Create("create", R"({"n": 1})")
                                             : Set("set " + std::to_string(i), R"({"m": 1})"));
      if (!problem.empty()) return problem;
    }
    const absl::StatusOr<Confirmed> before = Confirm(id);
    if (!before.ok()) return before.status().ToString();
    test_support::SingleRecordStore dying(base_);
    dying.CrashAfter(crash);
    const Operation update =
        versions == 0 ? Create("create", R"({"n": 1})") : Set("late", R"({"n": 3})");
    subject_.Write(dying, id, {&update, 1}).IgnoreError();
    died = dying.crashed();
    const absl::StatusOr<Confirmed> after = Confirm(id);
    if (!after.ok()) return after.status().ToString();
    const auto version = [](const Confirmed& confirmed) {
      return confirmed.head ? confirmed.head->version.header.version : 0;
    };
    const bool same = version(*before) == version(*after);
    std::string problem = Expect(*before, same);
    if (problem.empty()) problem = Expect(*after, true);
    if (problem.empty()) problem = Repair(id, *after);
    if (problem.empty()) problem = Expect(*after, true);
    const Operation next = after->head ? Set("next", R"({"n": 4})") : Create("next", "{}");
    if (problem.empty()) problem = Write(id, next);
    if (problem.empty()) problem = Expect(*after, false);
    return problem.empty() ? Expect(*before, false) : problem;
  }

  // What Inspect finds to be put right.
  std::string Repair(const std::string& id, const Confirmed& confirmed) {
    if (!confirmed.head) return "";
    const store::DocumentKey key = subject_.Key(id);
    const ReadContext context{base_, base_.capabilities()};
    std::vector<store::WriteBatch> repairs;
    const auto cursor = strategy().Inspect(context, key, &*confirmed.head, 1, nullptr);
    while (cursor->Next()) {
      for (Finding& finding : cursor->item().findings) {
        if (!finding.repair.writes().empty()) repairs.push_back(std::move(finding.repair));
      }
    }
    if (!cursor->status().ok()) return cursor->status().ToString();
    for (store::WriteBatch& repair : repairs) {
      if (!AwaitCommit(base_, std::move(repair)).committed) return id + ": a repair is lost";
    }
    return "";
  }

  StrategySubject& subject_;
  store::Store& base_;
  int others_ = 0;
};

}  // namespace

std::string CheckConfirm(StrategySubject& subject, store::Store& base) {
  return ConfirmCheck(subject, base).Run();
}

}  // namespace strata::versioning::checks
