// strata status.
#include <algorithm>
#include <chrono>
#include <vector>

#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

using v1::ServerService;

// "3 d 4 h", by this machine's clock, which may differ from the server's.
std::string Uptime(const google::protobuf::Timestamp& start) {
  using namespace std::chrono;
  const int64_t now = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
  const int64_t up = std::max<int64_t>(0, now - start.seconds());
  const auto two = [](int64_t large, const char* one, int64_t small, const char* other) {
    return WithCommas(large) + " " + one + " " + std::to_string(small) + " " + other;
  };
  if (up < 60) return std::to_string(up) + " s";
  if (up < 3600) return two(up / 60, "min", up % 60, "s");
  if (up < 86'400) return two(up / 3600, "h", up / 60 % 60, "min");
  return two(up / 86'400, "d", up / 3600 % 24, "h");
}

std::vector<std::string> LimitLines(const v1::ServerLimits& limits) {
  const auto bytes = [](int64_t number) { return WithCommas(number) + " bytes"; };
  return {
      "document: " + bytes(limits.document_bytes()) + ", " + WithCommas(limits.document_depth()) +
          " levels, " + WithCommas(limits.document_nodes()) + " members and elements",
      "request: " + bytes(limits.message_bytes()) + ", " + WithCommas(limits.batch_size()) + " ids",
      "page: " + WithCommas(limits.page_size()) + " items",
      "call: " + WithCommas(limits.deadline().seconds()) + " s"};
}

void PrintInfo(Session& session, const v1::GetServerInfoResponse& info) {
  // Lines of names and values; more lines of the same name stand beneath the first.
  const auto row = [&session](std::string_view name, const std::string& value) {
    constexpr size_t kWidth = 11;
    std::string cell(name);
    cell.resize(kWidth, ' ');
    session.out() << session.palette().Bold(cell) << client::Printable(value) << "\n";
  };
  row("server", session.server);
  row("version", info.version() + (info.commit().empty() ? "" : " (" + info.commit() + ")"));
  row("engine", info.engine());
  row("format", info.storage_format() == 0 ? "-" : std::to_string(info.storage_format()));
  row("started", TimeCell(info.has_start_time(), info.start_time()) +
                     (info.has_start_time() ? ", " + Uptime(info.start_time()) + " ago" : ""));
  row("writable", info.writable() ? "yes" : "no: writes are refused at present");
  std::string_view name = "limits";
  for (const std::string& line : LimitLines(info.limits())) {
    row(std::exchange(name, ""), line);
  }
  name = "services";
  for (const std::string& service : info.services()) row(std::exchange(name, ""), service);
}

int RunStatus(Session& session) {
  v1::GetServerInfoResponse info;
  const grpc::Status status = session.Call(&ServerService::Stub::GetServerInfo, {}, &info);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(info) << "\n";
  } else {
    PrintInfo(session, info);
  }
  return kExitOk;
}

}  // namespace

void AddStatusCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("status", "Print the server's version, engine, start time and limits");
  command.footer(
      "Examples:\n"
      "  strata status\n"
      "  strata status --json | jq -r .version\n"
      "Exit status 0: it answers, even if it refuses writes at present.");
  command.callback([&session] { session.run = [&session] { return RunStatus(session); }; });
}

}  // namespace strata::cli
