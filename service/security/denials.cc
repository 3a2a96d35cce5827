#include "service/security/denials.h"

#include <utility>

#include "schemas/base/strings.h"
#include "service/observability/log.h"

namespace strata::security {

using observability::Log;
using observability::LogLevel;

namespace {

constexpr std::chrono::seconds kSecond{1};

}  // namespace

void Denials::Tell(const Denial& denial, Time now) {
  // Of the caller's making, so it is information, as of any failed call.
  if (!observability::LogsAt(LogLevel::kInfo)) return;
  const std::string_view principal = denial.principal.empty() ? "-" : denial.principal;
  int64_t untold = 0;
  if (!MayTell(denial.principal.empty() ? denial.peer : denial.principal, now, untold)) return;
  if (untold > 0) {
    Log(LogLevel::kInfo, "denials were not logged",
        {{"principal", principal}, {"denials", untold}});
  }
  Log(LogLevel::kInfo, "denied",
      {{"principal", principal},
       {"permission", denial.permission},
       {"resource", denial.resource},
       {"peer", denial.peer},
       {"reason", denial.reason}});
}

bool Denials::MayTell(std::string_view caller, Time now, int64_t& untold) {
  const std::lock_guard lock(mutex_);
  Told& told = ToldOf(caller, now);
  if (now - told.second >= kSecond) {
    told.second = now;
    told.lines = 0;
    untold = std::exchange(told.untold, 0);
  }
  if (told.lines == kLinesASecondMax) {
    ++told.untold;
    return false;
  }
  ++told.lines;
  return true;
}

Denials::Told& Denials::ToldOf(std::string_view caller, Time now) {
  const auto found = callers_.find(ToAbsl(caller));
  if (found != callers_.end()) return found->second;
  if (callers_.size() >= kCallersMax && now - forgot_ >= kSecond) {
    forgot_ = now;
    // What was not told of them is told of the others.
    absl::erase_if(callers_, [&](const auto& each) {
      const bool is_over = now - each.second.second >= kSecond;
      if (is_over) others_.untold += each.second.untold;
      return is_over;
    });
  }
  if (callers_.size() >= kCallersMax) return others_;
  return callers_[std::string(caller)];
}

size_t Denials::size() {
  const std::lock_guard lock(mutex_);
  return callers_.size();
}

}  // namespace strata::security
