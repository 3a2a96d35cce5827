// What all members of the crowd do in the same way.
#include <cstdio>
#include <thread>
#include <utility>

#include "tests/long/crowd.h"

namespace strata::fault {

void Crowd::Break(const std::string& what) {
  constexpr int kToldMax = 50;
  const int told = ++broken_;
  if (told > kToldMax) return;
  std::printf("BROKEN: %s\n", what.c_str());
  std::fflush(stdout);
}

void Crowd::Count(const std::string& what, int64_t by) {
  const std::lock_guard lock(mutex_);
  counts_[what] += by;
}

void Crowd::Measure(const std::string& what, milliseconds time) {
  const std::lock_guard lock(mutex_);
  int64_t& longest = longest_[what];
  longest = std::max(longest, static_cast<int64_t>(time.count()));
}

std::string Crowd::Counts() {
  std::string text;
  const std::lock_guard lock(mutex_);
  for (const auto& [what, count] : counts_) text += ", " + what + " " + std::to_string(count);
  for (const auto& [what, longest] : std::exchange(longest_, {})) {
    text += "; " + what + " at most " + std::to_string(longest) + " ms";
  }
  return text.empty() ? text : text.substr(2);
}

void Crowd::Enter(Phase phase) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    if (phase == Phase::kOver) {
      for (grpc::ClientContext* const context : streams_) context->TryCancel();
    }
  }
  changed_.notify_all();
}

bool Crowd::MayWork(Phase last) {
  std::unique_lock lock(mutex_);
  ++idle_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return phase_ <= last || phase_ == Phase::kOver; });
  --idle_;
  return phase_ != Phase::kOver;
}

void Crowd::Pause(Phase last, milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return phase_ > last; });
}

bool Crowd::AllIdle(milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return idle_ == members_; });
}

void Crowd::Disturb(bool ended) {
  calm_at_ = ended ? (Steady::now() + kRecovery).time_since_epoch().count()
                   : std::numeric_limits<Steady::rep>::max();
}

std::mt19937_64 Crowd::Random(const std::string& member) const {
  uint64_t seed = seed_;
  for (const char letter : member) seed = seed * 1'099'511'628'211 + static_cast<uint8_t>(letter);
  return std::mt19937_64(seed);
}

void Crowd::Add(grpc::ClientContext& context) {
  const std::lock_guard lock(mutex_);
  streams_.insert(&context);
  if (phase_ == Phase::kOver) context.TryCancel();
}

void Crowd::Remove(grpc::ClientContext& context) {
  const std::lock_guard lock(mutex_);
  streams_.erase(&context);
}

namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Caller::Caller(Crowd& crowd, std::string name)
    : crowd_(crowd),
      name_(std::move(name)),
      authorization_("Bearer " + crowd.token(name_)),
      channel_(Connect(crowd.address())) {}

void Caller::Prepare(grpc::ClientContext& context) const {
  context.set_wait_for_ready(true);
  context.AddMetadata("authorization", authorization_);
}

void Caller::Judge(const char* call, const grpc::Status& status) const {
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return;
  crowd_.Break(name_ + " was refused: " + call + ": " + client::RefusalOf(status).ToString());
}

}  // namespace strata::fault
