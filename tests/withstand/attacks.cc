#include "tests/withstand/attacks.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace strata::withstand {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kAttacker[] = "127.0.0.2";
constexpr char kGet[] = "/strata.v1.DocumentService/Get";
// So that what is sent next is there when the kernel takes it, and no more.
constexpr size_t kQueuedMin = size_t{64} << 10;
// How long a stop may go unheard.
constexpr milliseconds kStep{50};

std::string SourceOf(int64_t caller) {
  const int64_t number = 2 + caller;
  return "127.0." + std::to_string(number / 256) + "." + std::to_string(number % 256);
}

// Keeps the socket full of what `next` makes, or so full that it is sent `per_second` times;
// connects again when the server has closed.
template <typename Next>
void Flood(int port, int64_t per_second, const std::stop_token& stop, AttackCounts& counts,
           const Next& next) {
  const ConnectionSettings settings{.port = port, .source = kAttacker};
  const Clock::time_point start = Clock::now();
  std::optional<RawConnection> connection;
  while (!stop.stop_requested()) {
    if (!connection || connection->closed()) {
      connection.emplace(settings);
      ++counts.connections;
    }
    const auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    const int64_t due =
        per_second == 0 ? std::numeric_limits<int64_t>::max() : per_second * passed.count() / 1000;
    while (connection->unsent() < kQueuedMin && counts.sent < due) {
      connection->Send(next(*connection));
      ++counts.sent;
    }
    Advance({&*connection}, per_second == 0 ? kStep : milliseconds(1));
  }
}

}  // namespace

void RapidReset(int port, int64_t per_second, std::stop_token stop, AttackCounts& counts) {
  const std::string headers = CallHeaders(kGet);
  Flood(port, per_second, stop, counts, [&](RawConnection& connection) {
    const uint32_t stream = connection.NextStream();
    return HeaderFrames(stream, headers) + Reset(stream);
  });
}

void Repeat(int port, const RepeatedCall& call, std::stop_token stop, AttackCounts& counts) {
  const std::string headers = CallHeaders(call.method, call.metadata);
  std::vector<std::unique_ptr<RawConnection>> callers;
  std::vector<std::vector<uint32_t>> calls(static_cast<size_t>(call.callers));
  for (int i = 0; i < call.callers; ++i) {
    callers.push_back(
        std::make_unique<RawConnection>(ConnectionSettings{.port = port, .source = SourceOf(i)}));
    ++counts.connections;
  }
  std::vector<RawConnection*> all;
  for (const auto& caller : callers) all.push_back(caller.get());
  while (!stop.stop_requested()) {
    for (size_t i = 0; i < callers.size(); ++i) {
      RawConnection& connection = *callers[i];
      counts.ended += static_cast<int64_t>(std::erase_if(calls[i], [&](uint32_t stream) {
        if (!connection.over(stream)) return false;
        connection.Cancel(stream);  // forgets it
        return true;
      }));
      while (calls[i].size() < static_cast<size_t>(call.at_once) && !connection.closed()) {
        calls[i].push_back(connection.Begin(headers, call.message));
        ++counts.sent;
      }
    }
    Advance(all, kStep);
  }
}

void TooManyStreams(int port, int64_t streams, std::stop_token stop, AttackCounts& counts) {
  const std::string headers = CallHeaders(kGet, {{"padding", std::string(6'500, 'x')}});
  RawConnection connection({.port = port, .source = kAttacker, .acknowledges = false});
  ++counts.connections;
  while (!stop.stop_requested() && !connection.closed()) {
    while (counts.sent < streams && connection.unsent() < kQueuedMin) {
      connection.Send(HeaderFrames(connection.NextStream(), headers));
      ++counts.sent;
    }
    Advance({&connection}, kStep);
  }
}

void HugeHeaders(int port, size_t bytes, std::stop_token stop, AttackCounts& counts) {
  const std::string headers = CallHeaders(kGet, {{"padding", std::string(bytes, 'x')}});
  Flood(port, 0, stop, counts,
        [&](RawConnection& connection) { return HeaderFrames(connection.NextStream(), headers); });
}

void SettingsFlood(int port, std::stop_token stop, AttackCounts& counts) {
  const std::string settings = Frame(FrameType::kSettings, 0, 0, "");
  Flood(port, 0, stop, counts, [&](RawConnection&) { return settings; });
}

bool IdleConnections::Open(int64_t count, milliseconds patience) {
  constexpr int64_t kFromOneAddress = 1'000;
  constexpr int64_t kAtOnce = 200;
  const Clock::time_point end = Clock::now() + patience;
  while (count > 0) {
    std::vector<RawConnection*> opening;
    for (; count > 0 && static_cast<int64_t>(opening.size()) < kAtOnce; --count) {
      const auto address = static_cast<int64_t>(connections_.size()) / kFromOneAddress;
      connections_.push_back(std::make_unique<RawConnection>(
          ConnectionSettings{.port = port_, .source = SourceOf(address)}));
      opening.push_back(connections_.back().get());
    }
    const bool opened =
        AdvanceUntil(opening, std::chrono::duration_cast<milliseconds>(end - Clock::now()), [&] {
          return std::all_of(opening.begin(), opening.end(), [](const RawConnection* connection) {
            return connection->greeted() || connection->closed();
          });
        });
    if (!opened) return false;
  }
  return true;
}

void IdleConnections::Look() {
  for (const auto& connection : connections_) connection->Advance();
}

int64_t IdleConnections::greeted() const {
  return std::count_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection->greeted() && !connection->closed();
  });
}

int64_t IdleConnections::refused() const {
  return std::count_if(connections_.begin(), connections_.end(),
                       [](const auto& connection) { return connection->closed(); });
}

}  // namespace strata::withstand
