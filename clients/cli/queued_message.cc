#include "clients/cli/queued_message.h"

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "clients/cli/arguments.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/printable.h"

namespace strata::cli {

void PushedOptions::AddTo(CLI::App& command) {
  command.add_option("--priority", priority, "0 to 9, 9 is handed out first; 0 unless given")
      ->check(WholeNumber(0, 9))
      ->type_name("N");
  command.add_option("--key", key, "Messages of one key are handed out one after the other")
      ->type_name("KEY");
  AddHeaderOption(command, headers);
  command
      .add_option("--sequence", sequence_number,
                  "Your own number, for the queue's low watermark; none unless given")
      ->check(WholeNumber(1))
      ->type_name("N");
}

absl::Status PushedOptions::Fill(v1::PushedMessage& message) const {
  message.set_priority(priority);
  message.set_ordering_key(key);
  if (sequence_number > 0) message.set_sequence_number(sequence_number);
  return FillHeaders(headers, *message.mutable_headers());
}

void AddHeaderOption(CLI::App& command, std::vector<std::string>& headers) {
  AddRepeated(command, "--header", headers, "K=V, a fact about the message; may be repeated")
      ->type_name("K=V");
}

absl::Status FillHeaders(const std::vector<std::string>& texts,
                         google::protobuf::Map<std::string, std::string>& headers) {
  for (const std::string& text : texts) {
    const auto entry = SplitLabel(text);
    if (!entry.ok()) return entry.status();
    headers[entry->first] = entry->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::QueuePush> QueuePushArgument(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError("'" + text + "' is not QUEUE=JSON");
  }
  std::istringstream nothing;
  absl::StatusOr<v1::Content> payload = ContentArgument(text.substr(equals + 1), nothing);
  if (!payload.ok()) return payload.status();
  v1::QueuePush push;
  push.set_queue(text.substr(0, equals));
  *push.mutable_message()->mutable_payload() = *std::move(payload);
  return push;
}

std::string DurationCell(bool is_set, const google::protobuf::Duration& duration) {
  if (!is_set) return "-";
  const int64_t milliseconds = duration.seconds() * 1000 + duration.nanos() / 1'000'000;
  if (milliseconds == 0) return "0s";
  constexpr std::array<std::pair<int64_t, const char*>, 4> kUnits = {
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  for (const auto& [unit, name] : kUnits) {
    if (milliseconds % unit == 0) return std::to_string(milliseconds / unit) + name;
  }
  return std::to_string(milliseconds) + "ms";
}

Table MessageTable(const Palette& palette) {
  Table table({"ID", "STATE", "DUE", "PRIORITY", "TRIES", "DELIVERY", "KEY", "SEQUENCE"}, palette);
  for (const size_t numbers : {3, 4, 5, 7}) table.AlignRight(numbers);
  return table;
}

void AddMessageRow(const v1::QueueMessage& message, bool whole, Table& table) {
  table.AddRow({message.message_id(), MessageStateName(message.state()),
                TimeCell(message.has_due(), message.due()), std::to_string(message.priority()),
                std::to_string(message.tries()), std::to_string(message.delivery()),
                message.ordering_key().empty() ? "-" : message.ordering_key(),
                message.has_sequence_number() ? std::to_string(message.sequence_number()) : "-"});
  std::vector<std::string> notes;
  if (!message.reason().empty()) {
    notes.push_back("reason: " + client::Printable(message.reason()));
  }
  if (whole) {
    const std::map<std::string, std::string> headers(message.headers().begin(),
                                                     message.headers().end());
    for (const auto& [name, value] : headers) {
      notes.push_back(client::Printable(name + "=" + value));
    }
    notes.push_back(client::Printable(ContentText(message.payload())));
  }
  if (!notes.empty()) table.AddNote(std::move(notes));
}

}  // namespace strata::cli
