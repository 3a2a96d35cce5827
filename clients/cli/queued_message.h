// What the commands that push have in common, and how messages of queues are printed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/render.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/transaction_service.pb.h"

namespace CLI {
class App;
}

namespace strata::cli {

// What a message is pushed with besides its payload.
struct PushedOptions {
  int32_t priority = 0;
  std::string key;
  std::vector<std::string> headers;
  int64_t sequence_number = 0;  // 0: none

  void AddTo(CLI::App& command);
  // A usage error for headers that are not K=V.
  absl::Status Fill(v1::PushedMessage& message) const;
};

// Adds --header, for `headers`.
void AddHeaderOption(CLI::App& command, std::vector<std::string>& headers);
// "K=V" each. A usage error for what is not.
absl::Status FillHeaders(const std::vector<std::string>& texts,
                         google::protobuf::Map<std::string, std::string>& headers);

// "QUEUE=JSON", the payload also as @FILE.
absl::StatusOr<v1::QueuePush> QueuePushArgument(const std::string& text);

// "1m", "1500ms"; "-" if unset.
std::string DurationCell(bool is_set, const google::protobuf::Duration& duration);

Table MessageTable(const Palette& palette);
// `whole`: with headers and payload beneath.
void AddMessageRow(const v1::QueueMessage& message, bool whole, Table& table);

}  // namespace strata::cli
