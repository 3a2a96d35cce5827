// Errors go to standard error in one form for people and one for machines.
#include "clients/cli/session.h"

#include <chrono>

#include "clients/cpp/extended_json.h"
#include "clients/cpp/refusal.h"
#include "clients/cpp/target.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

void AppendMember(std::string_view name, std::string_view text, std::string& json) {
  if (json.size() > 1) json += ',';
  client::AppendJsonString(name, json);
  json += ':';
  client::AppendJsonString(text, json);
}

}  // namespace

std::string RefusalJson(const client::Refusal& refusal, const std::string& where) {
  std::string json = "{";
  AppendMember("code", client::CodeName(refusal.code), json);
  AppendMember("reason", refusal.reason, json);
  AppendMember("message", refusal.message, json);
  std::string metadata = "{";
  for (const auto& [name, value] : refusal.metadata) AppendMember(name, value, metadata);
  json += ",\"metadata\":" + metadata + "}";
  if (refusal.retry_delay_ms.has_value()) {
    json += ",\"retry_delay_ms\":" + std::to_string(*refusal.retry_delay_ms);
  }
  if (!where.empty()) AppendMember("where", where, json);
  return json + "}";
}

absl::Status Session::Prepare() {
  if (!timeout.empty()) {
    const absl::StatusOr<int64_t> milliseconds = client::ParseDurationMs(timeout);
    if (!milliseconds.ok()) return milliseconds.status();
    timeout_ms_ = *milliseconds;
  }
  // Names in gRPC's own forms stay as they are.
  const bool is_plain =
      !server.starts_with("dns:") && !server.starts_with("ipv4:") && !server.starts_with("ipv6:");
  absl::StatusOr<std::string> target = is_plain ? client::TargetOf(server) : server;
  if (!target.ok()) {
    const bool tls = server.starts_with("https://");
    return absl::InvalidArgumentError("--server: " + std::string(target.status().message()) +
                                      (tls ? "; for TLS, --tls-ca with a file or system" : ""));
  }
  server = *std::move(target);
  absl::StatusOr<client::Credentials> credentials =
      client::ReadCredentials(credential_files, server);
  if (credentials.ok()) credentials_ = *std::move(credentials);
  return credentials.status();
}

bool Session::OutputIsRead() {
  if (out() && terminal_.reader_is_gone && terminal_.reader_is_gone()) {
    out().setstate(std::ios::badbit);
  }
  return static_cast<bool>(out());
}

client::Connection& Session::connection() {
  if (connection_ == nullptr) {
    connection_ = std::make_unique<client::Connection>(client::Connect(server, credentials_));
  }
  return *connection_;
}

void Session::SetDeadline(grpc::ClientContext& context) const {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms_));
}

void Session::SetLongDeadline(grpc::ClientContext& context) const {
  if (!timeout.empty()) SetDeadline(context);
}

int Session::Refuse(const grpc::Status& status, const std::string& where) {
  return Refuse(client::RefusalOf(status), where);
}

int Session::Refuse(const client::Refusal& refusal, const std::string& where) {
  Report(refusal, where);
  const std::string advice = refusal.Advice();
  if (!json && !advice.empty()) err() << advice << "\n";
  return kExitRefused;
}

void Session::Report(const client::Refusal& refusal, const std::string& where) {
  if (json) {
    err() << "{\"error\":" << RefusalJson(refusal, where) << "}\n";
    return;
  }
  if (!where.empty()) err() << where << ": ";
  err() << refusal.ToString() << "\n";
}

int Session::Fail(const std::string& message) {
  client::Refusal refusal;
  refusal.code = grpc::StatusCode::INTERNAL;
  refusal.message = message;
  if (json) return Refuse(refusal);
  err() << "strata: " << message << "\n";
  return kExitRefused;
}

int Session::Usage(const std::string& message) {
  err() << "strata: " << message << "\n";
  return kExitUsage;
}

}  // namespace strata::cli
