#include "tests/rpc/watcher_check.h"

#include <algorithm>

namespace strata::rpc_test {

WatcherCheck::WatcherCheck(const Got& got, const Numbers& numbers, int64_t end)
    : got_(got), numbers_(numbers), end_(end) {
  // Whoever ended early also misses events, which says less.
  if (!got_.failure.empty()) Fail(got_.failure);
  got_.events->Rewind();
  Move();
}

void WatcherCheck::See(const Told& entry, UnixMicros time) {
  if (!failure_.empty()) return;
  if (got_.wish.start == Wish::Start::kTime) SeeBeginning(entry, time);
  if (got_.wish.start == Wish::Start::kCopy) SeeCopied(entry);
  if (entry.position > got_.began && got_.wish.Selects(entry)) SeeEvent(entry);
}

std::string WatcherCheck::Finish() {
  CheckBeginning();
  if (got_.wish.start == Wish::Start::kCopy) CheckCopy();
  if (told_) Fail("event ", events_, ", ", *told_, ", comes twice or out of order");
  return failure_;
}

// To the next event; those behind the end are of no interest.
void WatcherCheck::Move() {
  if (told_) ++events_;
  told_ = got_.events->Next();
  if (told_ && told_->position > end_) told_.reset();
}

// Times need not grow with positions: what counts is the first of that time or later, with all of
// its commit.
void WatcherCheck::SeeBeginning(const Told& entry, UnixMicros time) {
  if (entry.position <= got_.began) {
    if (time >= got_.asked_for) Fail("began behind ", entry, ", which is of the time");
    return;
  }
  if (first_position_ < 0) first_position_ = entry.position;
  if (entry.position == first_position_) first_latest_ = std::max(first_latest_, time);
}

void WatcherCheck::CheckBeginning() {
  if (got_.wish.start == Wish::Start::kTime) {
    if (first_position_ < 0 || first_position_ > got_.least) return;
    if (first_latest_ < got_.asked_for) Fail("begins at ", first_position_, ", too early");
  } else if (got_.asked_for >= 0) {
    if (got_.began != got_.asked_for) {
      Fail("began at ", got_.began, " instead of ", got_.asked_for);
    }
  } else if (got_.began < got_.least || got_.began > got_.most) {
    Fail("began at ", got_.began, ", not from ", got_.least, " to ", got_.most);
  }
}

void WatcherCheck::SeeCopied(const Told& entry) {
  if (entry.version > 0) {
    if (entry.position > got_.began) return;
    expected_[entry.document] = entry;
    if (entry.kind == v1::VERSION_KIND_DELETED) expected_.erase(entry.document);
  } else if (entry.position > got_.began) {
    deleted_since_.insert(CollectionOf(entry.document));
  } else {
    std::erase_if(expected_, [&](const auto& each) {
      return CollectionOf(each.first) == CollectionOf(entry.document);
    });
  }
}

// Each document is as the ledger has it as of the position; those of collections that were deleted
// since may be missing.
void WatcherCheck::CheckCopy() {
  for (int32_t document = 0; document < numbers_.end(); ++document) {
    const auto wanted = expected_.find(document);
    const auto copied = got_.copy.find(document);
    const bool is_wanted = wanted != expected_.end() && got_.wish.NamesDocument(wanted->second) &&
                           (!got_.wish.at_least ||
                            numbers_.Of(document, wanted->second.version) >= *got_.wish.at_least);
    const std::string name = CollectionOf(document) + "/" + IdOf(document);
    if (copied == got_.copy.end()) {
      if (deleted_since_.contains(CollectionOf(document))) continue;
      if (is_wanted) Fail(name, " is not in the copy as of ", got_.began);
      continue;
    }
    if (!is_wanted) {
      Fail(name, " is in the copy as of ", got_.began);
    } else if (copied->second.version != wanted->second.version) {
      Fail(name, " is copied as version ", copied->second.version, " instead of ",
           wanted->second.version);
    } else if (copied->second.number != numbers_.Of(document, wanted->second.version)) {
      Fail(name, " is copied with ", copied->second.number, " instead of ",
           numbers_.Of(document, wanted->second.version));
    }
  }
}

// Of a collection that is gone no filter is asked: what it would not have passed may come too, with
// its contents missing.
void WatcherCheck::SeeEvent(const Told& expected) {
  const bool matches = got_.wish.Matches(expected, numbers_);
  if (!told_ || !(*told_ == expected)) {
    if (!matches) return;
    if (told_) return Fail("event ", events_, " should be ", expected, " and is ", *told_);
    return Fail("event ", events_, " should be ", expected, " and is missing");
  }
  if (!matches && told_->number != kGone) {
    Fail(*told_, " is not wanted");
  } else if (told_->number == kGone) {
    if (!IsPassing(told_->document)) Fail(*told_, " is without its content");
  } else if (expected.version > 0 && got_.wish.content &&
             told_->number != numbers_.Of(told_->document, told_->version)) {
    Fail(*told_, " has ", told_->number, " instead of ",
         numbers_.Of(told_->document, told_->version));
  }
  Move();
}

}  // namespace strata::rpc_test
