// The texts of the shared options stand here once, so that commands cannot drift apart.
#include "clients/cli/options.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <random>

#include "clients/cli/arguments.h"
#include "clients/cpp/time_text.h"
#include "schemas/json/message_json.h"

namespace strata::cli {

void Target::AddTo(CLI::App& command) {
  command.add_option("COLLECTION", collection, "The document's collection")->required();
  command.add_option("ID", id, "The document's id")->required();
}

void ChangeOptions::AddTo(CLI::App& command) {
  command.add_option("--reason", reason, "Reason; kept with the version")
      ->group("Actor and reason");
  command.add_option("--actor", actor, "Author of the change")->group("Actor and reason");
  command
      .add_option("--on-behalf-of", on_behalf_of, "The person or program that the actor acts for")
      ->group("Actor and reason");
  AddRepeated(command, "--label", labels, "KEY=VALUE, kept with the version; may be repeated")
      ->group("Actor and reason");
}

void LeaseOption::AddTo(CLI::App& command) {
  command
      .add_option("--lease", token,
                  "Only while this lease is held: a LeaseToken as JSON, as strata lease acquire "
                  "prints it; or STRATA_LEASE")
      ->envname("STRATA_LEASE")
      ->type_name("LEASE")
      ->group("Only if");
}

absl::Status LeaseOption::FillLease(const std::string& token, v1::LeaseToken& lease) {
  if (json::CheckMessageJson(token, *v1::LeaseToken::descriptor()).ok() &&
      google::protobuf::util::JsonStringToMessage(token, &lease).ok()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("LEASE is no LeaseToken: " + token +
                                    "; such as {\"name\": \"jobs\", \"token\": \"17\"}");
}

void WriteOptions::AddTo(CLI::App& command, bool with_content) {
  ChangeOptions::AddTo(command);
  lease.AddTo(command);
  command.add_option("--request-id", request_id,
                     "Makes repeating the command safe: within 24 hours the same id takes effect "
                     "once");
  command.add_flag("--validate-only", validate_only, "Check everything, write nothing");
  if (with_content) command.add_flag("--show", show, "Print the document's content afterwards");
}

absl::Status ChangeOptions::Fill(v1::ChangeInfo& change) const {
  change.set_actor(actor);
  change.set_on_behalf_of(on_behalf_of);
  change.set_reason(reason);
  for (const std::string& label : labels) {
    const auto entry = SplitLabel(label);
    if (!entry.ok()) return entry.status();
    (*change.mutable_labels())[entry->first] = entry->second;
  }
  return absl::OkStatus();
}

namespace {

std::string FlagOf(const google::protobuf::FieldDescriptor& field) {
  std::string name = field.name();
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string StrategyNames() {
  std::string names;
  const google::protobuf::EnumDescriptor& strategies = *v1::Strategy_descriptor();
  for (int i = 1; i < strategies.value_count(); ++i) {
    if (!names.empty()) names += ", ";
    names += StrategyName(static_cast<v1::Strategy>(strategies.value(i)->number()));
  }
  return names;
}

}  // namespace

void StrategyChoice::AddTo(CLI::App& command, const std::string& words) {
  command.add_option("--strategy", strategy, words + ": " + StrategyNames())->type_name("STRATEGY");
  const google::protobuf::Descriptor& fields = *v1::CollectionOptions::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = fields.field(i);
    const auto set = [this, field](const int32_t& value) {
      options.GetReflection()->SetInt32(&options, field, value);
    };
    command
        .add_option_function<int32_t>("--" + FlagOf(*field), set,
                                      "An option of the strategy, as strata.v1.CollectionOptions "
                                      "says; its default unless given")
        ->check(WholeNumber(1))
        ->type_name("N");
  }
}

absl::Status StrategyChoice::Fill(v1::CreateCollectionRequest& request) const {
  *request.mutable_options() = options;
  if (strategy.empty()) return absl::OkStatus();
  const auto parsed = ParseStrategy(strategy);
  if (parsed.ok()) request.set_strategy(*parsed);
  return parsed.status();
}

std::string OptionsCell(const v1::CollectionOptions& options) {
  std::string cell;
  std::vector<const google::protobuf::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  for (const auto* const field : set) {
    if (!cell.empty()) cell += " ";
    const int32_t value = options.GetReflection()->GetInt32(options, field);
    cell += FlagOf(*field) + "=" + std::to_string(value);
  }
  return cell;
}

void SetOptions::AddTo(CLI::App& command) {
  command.add_option("--collection", collection, "The students' collection; students unless given")
      ->type_name("NAME");
  command.add_option("--set", set, "The member that holds the set; classes unless given")
      ->type_name("NAME");
}

void FilterOption::AddTo(CLI::App& command, const std::string& name, const std::string& what) {
  AddRepeated(command, name, conditions, what + " this condition; may be repeated, all must hold")
      ->type_name("CONDITION");
}

absl::Status FilterOption::Fill(google::protobuf::Struct& filter) const {
  google::protobuf::ListValue all;
  for (const std::string& condition : conditions) {
    absl::StatusOr<google::protobuf::Struct> parsed = FilterProto(condition);
    if (!parsed.ok()) return parsed.status();
    *all.add_values()->mutable_struct_value() = *std::move(parsed);
  }
  if (all.values_size() == 1) {
    filter = all.values(0).struct_value();
  } else if (all.values_size() > 1) {
    *(*filter.mutable_fields())["$and"].mutable_list_value() = std::move(all);
  }
  return absl::OkStatus();
}

void EventOptions::AddTo(CLI::App& command) {
  command.add_option("--from", from, "Begin after this commit")
      ->check(WholeNumber(0))
      ->type_name("N");
  command.add_flag("--beginning", beginning, "Begin with the first commit");
  command.add_option("--since", since, "Begin with the first commit of this time or later")
      ->type_name("TIME");
  AddRepeated(command, "--kind", kinds,
              "Only created, updated, deleted or restored; may be repeated")
      ->type_name("KIND");
  filter.AddTo(command, "--where", "Only events where the content, or the one before, meets");
}

int EventOptions::starts() const {
  return (from ? 1 : 0) + (beginning ? 1 : 0) + (since.empty() ? 0 : 1);
}

void PreconditionOptions::AddTo(CLI::App& command, bool with_if_missing) {
  if_version_option = command.add_option("--if-version", if_version,
                                         "Only if this is the document's current version");
  if_version_option->check(WholeNumber(0))->type_name("N")->group("Only if");
  CLI::Option* exists = command.add_flag("--if-exists", if_exists, "Only if the document exists");
  exists->excludes(if_version_option)->group("Only if");
  if (with_if_missing) {
    command
        .add_flag("--if-missing", if_missing, "Only if there is no such document, or it is deleted")
        ->excludes(if_version_option)
        ->excludes(exists)
        ->group("Only if");
  }
  filter.AddTo(command, "--if", "Only if the document meets");
  command.get_option("--if")->excludes(if_version_option)->excludes(exists)->group("Only if");
  if (with_if_missing) command.get_option("--if")->excludes(command.get_option("--if-missing"));
  command
      .add_option("--max-attempts", max_attempts,
                  "How often the server tries when other writers are faster; 16 unless given")
      ->check(WholeNumber(1, 100))
      ->type_name("N");
}

void PreconditionOptions::AddNewerTo(CLI::App& command) {
  CLI::Option& option = *command.add_option(
      "--newer", newer, "Only if the integer there is below N, then it becomes N; else: stale");
  for (const char* const other : {"--if-version", "--if-exists", "--if-missing", "--if"}) {
    CLI::Option* const known = command.get_option_no_throw(other);
    if (known != nullptr) option.excludes(known);
  }
  option.type_name("/PATH=N")->group("Only if");
}

CLI::Validator WholeNumber(int64_t least, int64_t most) {
  const auto check = [least, most](std::string& text) -> std::string {
    const bool plus = text.starts_with('+') && !text.starts_with("+-");
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const std::from_chars_result read = std::from_chars(text.data() + (plus ? 1 : 0), end, value);
    if (read.ptr != end || read.ec == std::errc::invalid_argument) {
      return "'" + text + "' is not a number";
    }
    const bool is_whole = read.ec == std::errc();  // Else it has more than 64 bits.
    if (is_whole && value >= least && value <= most) {
      text = std::to_string(value);  // CLI11 would take 010 for eight.
      return "";
    }
    if (most != std::numeric_limits<int64_t>::max()) {
      return text + " is not from " + std::to_string(least) + " to " + std::to_string(most);
    }
    const bool is_small = is_whole || text.starts_with('-');
    return text + " is too " +
           (is_small ? "small, the least is " + std::to_string(least) : "large");
  };
  return CLI::Validator(check, "");
}

void LimitOption::AddTo(CLI::App& command) {
  command.add_option("--limit", limit, "At most this many lines; all unless given")
      ->check(WholeNumber(1))
      ->type_name("N");
}

int32_t LimitOption::NextPageSize(int64_t printed, int32_t largest) const {
  if (limit == 0) return largest;
  return static_cast<int32_t>(std::min<int64_t>(largest, limit - printed));
}

CLI::Option* AddRepeated(CLI::App& command, const std::string& name,
                         std::vector<std::string>& values, const std::string& help) {
  // Without extra arguments: otherwise one option would swallow the arguments after it, and values
  // in brackets would be taken for lists.
  return command.add_option(name, values, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

namespace {

absl::Status FillMilliseconds(const std::string& option, const absl::StatusOr<int64_t>& time_ms,
                              google::protobuf::Duration* duration) {
  if (!time_ms.ok()) {
    return absl::InvalidArgumentError(option + ": " + std::string(time_ms.status().message()));
  }
  duration->set_seconds(*time_ms / 1000);
  duration->set_nanos(static_cast<int32_t>(*time_ms % 1000) * 1'000'000);
  return absl::OkStatus();
}

}  // namespace

absl::Status FillDuration(const std::string& option, const std::string& text,
                          google::protobuf::Duration* duration) {
  return FillMilliseconds(option, client::ParseDurationMs(text), duration);
}

absl::Status FillLongDuration(const std::string& option, const std::string& text,
                              google::protobuf::Duration* duration) {
  return FillMilliseconds(option, client::ParseLongDurationMs(text), duration);
}

std::string DrawnId() {
  std::random_device random;
  char id[33];
  std::snprintf(id, sizeof id, "%08x%08x%08x%08x", random(), random(), random(), random());
  return id;
}

absl::Status FillTime(const std::string& option, const std::string& text,
                      google::protobuf::Timestamp* time) {
  using std::chrono::floor;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto second = floor<std::chrono::seconds>(now);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - second);
  const absl::StatusOr<client::Instant> instant =
      client::ParseTimeFrom(text, {second.count(), static_cast<int32_t>(rest.count())});
  if (!instant.ok()) {
    return absl::InvalidArgumentError(option + ": " + std::string(instant.status().message()));
  }
  time->set_seconds(instant->seconds);
  time->set_nanos(instant->nanos);
  return absl::OkStatus();
}

}  // namespace strata::cli
