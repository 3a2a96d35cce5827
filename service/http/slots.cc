#include "service/http/slots.h"

#include <algorithm>
#include <utility>

namespace strata::http {
namespace {

constexpr int kShareMin = 16;

int CountOf(const std::map<std::string, int>& counts, const std::string& caller) {
  const auto found = counts.find(caller);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

std::optional<Slots::Slot> Slots::Take(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const bool at_door = !HasRoomFor(address, false);
  if (at_door && (waiting_ >= door_ || CountOf(waiting_of_callers_, address) >= (door_ + 1) / 2)) {
    return std::nullopt;
  }
  Count(address, false, at_door, 1);
  return Slot(*this, address, at_door);
}

bool Slots::HasRoomFor(const std::string& caller, bool is_principal) const {
  if (taken_ >= most_ || (!is_principal && strangers_ >= strangers_most_)) return false;
  return taken_ < most_ / 2 || CountOf(of_callers_, caller) < std::max(kShareMin, most_ / 8);
}

void Slots::Count(const std::string& caller, bool is_principal, bool at_door, int change) {
  auto& counts = at_door ? waiting_of_callers_ : of_callers_;
  (at_door ? waiting_ : taken_) += change;
  if (!at_door && !is_principal) strangers_ += change;
  const auto entry = counts.try_emplace(caller).first;
  if ((entry->second += change) == 0) counts.erase(entry);
}

Slots::Slot::Slot(Slots& slots, std::string caller, bool at_door)
    : slots_(&slots), caller_(std::move(caller)), at_door_(at_door) {}

Slots::Slot::Slot(Slot&& other) noexcept
    : slots_(std::exchange(other.slots_, nullptr)),
      caller_(std::move(other.caller_)),
      is_principal_(other.is_principal_),
      at_door_(other.at_door_) {}

Slots::Slot::~Slot() {
  if (slots_ == nullptr) return;
  const std::lock_guard lock(slots_->mutex_);
  slots_->Count(caller_, is_principal_, at_door_, -1);
  slots_->freed_.notify_all();
}

bool Slots::Slot::Introduce(const std::string& caller, bool is_principal, Time until) {
  if (!at_door_ && is_principal == is_principal_ && caller == caller_) return true;
  std::unique_lock lock(slots_->mutex_);
  // Without its own slot, which the new caller may have no share for.
  const auto has_room = [&] {
    if (!at_door_) slots_->Count(caller_, is_principal_, at_door_, -1);
    const bool has = slots_->HasRoomFor(caller, is_principal);
    if (!at_door_) slots_->Count(caller_, is_principal_, at_door_, 1);
    return has;
  };
  if (!has_room() && !(at_door_ && slots_->freed_.wait_until(lock, until, has_room))) return false;
  slots_->Count(caller_, is_principal_, at_door_, -1);
  caller_ = caller;
  is_principal_ = is_principal;
  at_door_ = false;
  slots_->Count(caller_, is_principal_, at_door_, 1);
  return true;
}

int Slots::Slot::of_caller() const {
  const std::lock_guard lock(slots_->mutex_);
  return at_door_ ? 0 : CountOf(slots_->of_callers_, caller_);
}

}  // namespace strata::http
