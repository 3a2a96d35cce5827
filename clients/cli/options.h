// Options that several commands share.
#pragma once

#include <google/protobuf/duration.pb.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/arguments.h"
#include "strata/v1/collection_service.pb.h"
#include "strata/v1/document.pb.h"

namespace strata::cli {

// COLLECTION and ID, the first two arguments of most commands.
struct Target {
  std::string collection;
  std::string id;
  void AddTo(CLI::App& command);
};

// Who changes and why.
struct ChangeOptions {
  std::string actor;
  std::string on_behalf_of;
  std::string reason;
  std::vector<std::string> labels;

  void AddTo(CLI::App& command);
  // A usage error for labels that are not KEY=VALUE.
  absl::Status Fill(v1::ChangeInfo& change) const;
};

// The lease that a write needs.
struct LeaseOption {
  std::string token;  // empty: none

  void AddTo(CLI::App& command);

  // A usage error for what is no LeaseToken. One that the request has already stays.
  template <typename Request>
  absl::Status FillRequest(Request& request) const {
    if (token.empty() || request.has_lease()) return absl::OkStatus();
    return FillLease(token, *request.mutable_lease());
  }
  static absl::Status FillLease(const std::string& token, v1::LeaseToken& lease);
};

// Who changes and why, for as long as they may, and how a write is repeated safely.
struct WriteOptions : ChangeOptions {
  LeaseOption lease;
  std::string request_id;
  bool validate_only = false;
  bool show = false;

  // `with_content`: the answer has content that --show prints.
  void AddTo(CLI::App& command, bool with_content);

  // Fills the fields that every write request has.
  template <typename Request>
  absl::Status FillRequest(Request& request) const {
    request.set_request_id(request_id);
    request.set_validate_only(validate_only);
    const absl::Status leased = lease.FillRequest(request);
    return leased.ok() ? Fill(*request.mutable_change()) : leased;
  }
};

// How collections are made: --strategy, and a flag for each field of v1.CollectionOptions.
struct StrategyChoice {
  std::string strategy;  // empty: the server's default
  v1::CollectionOptions options;

  // `words` tell of --strategy.
  void AddTo(CLI::App& command, const std::string& words);
  // A usage error for a strategy that there is not.
  absl::Status Fill(v1::CreateCollectionRequest& request) const;
};

// The options that are set, as one would write them: "keyframe-interval=32".
std::string OptionsCell(const v1::CollectionOptions& options);

// Where a set inside documents is: the students' collection, and the member.
struct SetOptions {
  std::string collection;
  std::string set;
  void AddTo(CLI::App& command);

  template <typename Request>
  void Fill(Request& request) const {
    request.set_collection(collection);
    request.set_set(set);
  }
};

// Conditions on documents or versions.
struct FilterOption {
  std::vector<std::string> conditions;

  // `name`: "--where"; `what`: what has to match.
  void AddTo(CLI::App& command, const std::string& name, const std::string& what);
  bool given() const { return !conditions.empty(); }
  // All conditions together. A usage error for what is none.
  absl::Status Fill(google::protobuf::Struct& filter) const;
};

// Reads a time given as an option into a protobuf timestamp; `option` names it in the usage error.
absl::Status FillTime(const std::string& option, const std::string& text,
                      google::protobuf::Timestamp* time);

// Which events, and from where on.
struct EventOptions {
  std::vector<std::string> kinds;
  FilterOption filter;
  std::optional<int64_t> from;
  bool beginning = false;
  std::string since;

  void AddTo(CLI::App& command);
  // How many of the options that say where to begin are given; more than one make no sense.
  int starts() const;
  // A usage error for a kind, a filter or a time that is none.
  template <typename Request>
  absl::Status FillRequest(Request& request) const {
    for (const std::string& name : kinds) {
      const auto kind = ParseKind(name);
      if (!kind.ok()) return kind.status();
      request.add_kinds(*kind);
    }
    if (filter.given()) {
      const absl::Status status = filter.Fill(*request.mutable_filter());
      if (!status.ok()) return status;
    }
    if (from) request.set_after_position(*from);
    if (beginning) request.set_after_position(0);
    if (since.empty()) return absl::OkStatus();
    return FillTime("--since", since, request.mutable_start_time());
  }
};

// What must hold, and how often the server tries.
struct PreconditionOptions {
  int64_t if_version = 0;
  CLI::Option* if_version_option = nullptr;
  bool if_exists = false;
  bool if_missing = false;
  FilterOption filter;
  std::string newer;
  int32_t max_attempts = 0;

  void AddTo(CLI::App& command, bool with_if_missing);
  // Of commands that take it; after AddTo.
  void AddNewerTo(CLI::App& command);

  template <typename Request>
  absl::Status FillRequest(Request& request) const {
    request.set_max_attempts(max_attempts);
    if (if_version_option->count() > 0) request.mutable_precondition()->set_version(if_version);
    if (if_exists || if_missing) request.mutable_precondition()->set_exists(if_exists);
    if (!newer.empty()) {
      absl::StatusOr<v1::Newer> parsed = NewerProto(newer);
      if (!parsed.ok()) return parsed.status();
      *request.mutable_precondition()->mutable_newer() = *std::move(parsed);
    }
    if (!filter.given()) return absl::OkStatus();
    return filter.Fill(*request.mutable_precondition()->mutable_filter());
  }
};

// For options that take a whole number: from `least` to `most`, in decimal digits.
CLI::Validator WholeNumber(int64_t least, int64_t most = std::numeric_limits<int64_t>::max());

// How many items of a listing are asked for in one call.
inline constexpr int32_t kPageSize = 500;

// A limit on how many lines are printed; 0: all.
struct LimitOption {
  int64_t limit = 0;
  void AddTo(CLI::App& command);
  // How many to ask for next, having printed `printed`; 0 when there are enough.
  int32_t NextPageSize(int64_t printed, int32_t largest) const;
};

// Adds a repeatable option that takes one value each time ("--label a=1 --label b=2").
CLI::Option* AddRepeated(CLI::App& command, const std::string& name,
                         std::vector<std::string>& values, const std::string& help);

// Reads a duration given as an option into a protobuf duration; `option` names it in the usage
// error.
absl::Status FillDuration(const std::string& option, const std::string& text,
                          google::protobuf::Duration* duration);

// The same for one that may be 0, or years: "30d".
absl::Status FillLongDuration(const std::string& option, const std::string& text,
                              google::protobuf::Duration* duration);

// A request id that nobody else has.
std::string DrawnId();

// Help texts that more than one command needs.
inline constexpr char kConditionsHelp[] =
    "Conditions: PATH=VALUE, also with != < <= > >=, PATH~REGEX, PATH (is there), !PATH (is not), "
    "or a "
    "filter\nof MongoDB's query language: '{\"stock\": {\"$in\": [1, 2]}}'. PATH is dotted or a "
    "JSON "
    "Pointer; blanks around the sign and at the ends do not count.";
inline constexpr char kTimesHelp[] =
    "Times: 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00:00+02:00; UTC unless a zone is named; "
    "or "
    "by\nthis machine's clock: now, '5m ago', '2 days ago', 'in 1h'.";

}  // namespace strata::cli
