#include "service/server/flood_watch.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace strata::server {
namespace {

struct FreeText {
  void operator()(char* text) const { gpr_free(text); }
};
// JSON without blanks, as gRPC writes it, whose numbers are strings. Null: there is no such thing.
using Text = std::unique_ptr<char, FreeText>;

std::string_view View(const Text& text) { return text ? text.get() : std::string_view(); }

// The string that follows `key`, of which `rest` keeps what comes behind; nullopt: there is none.
std::optional<std::string_view> TakeString(std::string_view key, std::string_view& rest) {
  const std::string opening = "\"" + std::string(key) + "\":\"";
  const size_t begin = rest.find(opening);
  if (begin == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(begin + opening.size());
  const std::string_view found = rest.substr(0, rest.find('"'));
  rest.remove_prefix(found.size());
  return found;
}

// Zero, which gRPC does not write, if there is none.
int64_t Number(std::string_view key, std::string_view json) {
  const std::string_view digits = TakeString(key, json).value_or("0");
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

int64_t LastServer() {
  const Text servers(grpc_channelz_get_servers(0));
  std::string_view rest = View(servers);
  int64_t last = 0;
  while (const auto id = TakeString("serverId", rest)) {
    int64_t number = 0;
    std::from_chars(id->data(), id->data() + id->size(), number);
    last = std::max(last, number);
  }
  return last;
}

}  // namespace

FloodWatch::FloodWatch() : server_(LastServer()) {}

std::vector<std::string> FloodWatch::Look(Time now) {
  const Calls before = std::exchange(calls_, Count());
  idle_ = calls_.begun == before.begun;
  if (calls_.unanswered - before.unanswered > kSuspicious) suspect_until_ = now + kSuspicion;
  if (now < suspect_until_) {
    idle_ = false;
    return LookAtConnections(now);
  }
  seen_.clear();
  next_ = 0;
  round_ = 0;
  return {};
}

FloodWatch::Calls FloodWatch::Count() const {
  const Text server(grpc_channelz_get_server(server_));
  const int64_t begun = Number("callsStarted", View(server));
  return {begun, begun - Number("callsSucceeded", View(server))};
}

std::vector<std::string> FloodWatch::LookAtConnections(Time now) {
  constexpr std::string_view kKind = "chttp2 ";  // which a connection's name begins with
  if (next_ == 0) round_before_began_ = std::exchange(round_began_, now);
  const Text sockets(grpc_channelz_get_server_sockets(server_, next_, kLooksMax));
  std::vector<std::string> floods;
  int looks = 0;
  for (std::string_view rest = View(sockets);; ++looks) {
    std::optional<std::string_view> name = TakeString("name", rest);
    const int64_t socket = Number("socketId", rest);
    if (!name || socket == 0) break;
    next_ = socket + 1;
    if (!Floods(socket, now)) continue;
    if (name->starts_with(kKind)) name->remove_prefix(kKind.size());
    floods.emplace_back(*name);
  }
  if (looks < kLooksMax) EndRound();
  return floods;
}

bool FloodWatch::Floods(int64_t socket, Time now) {
  const Text text(grpc_channelz_get_socket(socket));
  const int64_t failed = Number("streamsFailed", View(text));
  const int64_t open =
      Number("streamsStarted", View(text)) - Number("streamsSucceeded", View(text)) - failed;
  if (open > kOpenMax) return true;
  // What failed before anything was suspicious may have taken days; one that is new after the first
  // round has come since the round before.
  Seen& seen =
      seen_
          .try_emplace(socket, round_ == 0 ? Seen{failed, now} : Seen{.since = round_before_began_})
          .first->second;
  seen.round = round_;
  const auto windows = std::max<int64_t>(1, (now - seen.since) / kWindow);
  if (failed - seen.failed > kFailedMax * windows) return true;
  if (now - seen.since >= kWindow) seen = {failed, now, round_};
  return false;
}

// Forgets those that are gone.
void FloodWatch::EndRound() {
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.round != round_; });
  next_ = 0;
  ++round_;
}

}  // namespace strata::server
