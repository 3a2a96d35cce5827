#include "service/observability/access_log.h"

#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "service/observability/log.h"

namespace strata::observability {
namespace {

LogLevel LevelOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return LogLevel::kDebug;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kDeadlineExceeded:
      return LogLevel::kWarning;
    case absl::StatusCode::kResourceExhausted:
      return ReasonOf(status) == ErrorReason::kOverloaded ? LogLevel::kWarning : LogLevel::kInfo;
    default:
      return ReasonOf(status) ? LogLevel::kInfo : LogLevel::kWarning;
  }
}

}  // namespace

bool AccessLog::MayTell(CallEnd::Time now) {
  int64_t untold = 0;
  {
    const std::lock_guard lock(mutex_);
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      told_ = 0;
      untold = std::exchange(untold_, 0);
    }
    if (told_ == kFailuresASecondMax) {
      ++untold_;
      return false;
    }
    ++told_;
  }
  if (untold > 0) Log(LogLevel::kWarning, "failed calls were not logged", {{"calls", untold}});
  return true;
}

void AccessLog::OnEnd(const CallEnd& end) {
  const LogLevel level = LevelOf(end.status);
  if (!LogsAt(level)) return;
  if (!end.status.ok() && !MayTell(end.end)) return;
  const std::string code = absl::StatusCodeToString(end.status.code());
  const std::optional<ErrorReason> reason = ReasonOf(end.status);
  // The message stays out: it may name a path or an id, or be a driver's.
  const std::string_view why = reason ? ReasonName(*reason) : end.status.ok() ? "-" : "(none)";
  Log(level, "call",
      {{"method", end.method},
       {"code", code},
       {"reason", why},
       {"duration_us", int64_t{end.duration().count()}},
       {"request_bytes", static_cast<int64_t>(end.request_bytes)},
       {"response_bytes", static_cast<int64_t>(end.response_bytes)}});
}

}  // namespace strata::observability
