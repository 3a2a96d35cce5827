// Strategies that are wrong on purpose: designs that the article or we considered and rejected.
// Tests show that the checkers see each.
#pragma once

#include <memory>

#include "tests/versioning/strategy_subject.h"

namespace strata::versioning::checks {

// SHADOW_COLLECTION, but the head is replaced before the copy is made: a crash loses a version.
std::unique_ptr<StrategySubject> MakeCurrentFirst();
// SHADOW_COLLECTION, but the copy is inserted, not ensured: what a crash left blocks the document.
std::unique_ptr<StrategySubject> MakeInsertForEnsure();
// SHADOW_COLLECTION, but a copy of the current version is removed as an orphan before an update.
std::unique_ptr<StrategySubject> MakeOrphanCleaner();
// SHADOW_COLLECTION, but a copy counts only once a third write marked it as done.
std::unique_ptr<StrategySubject> MakeDoneMark();
// SHADOW_COLLECTION, but the copy overwrites whatever is there: it revives what was erased.
std::unique_ptr<StrategySubject> MakeUnconditionalOverwrite();
// SHADOW_COLLECTION, but a history is the head and all copies of another version, not below it.
std::unique_ptr<StrategySubject> MakeReadUnequal();
// DELTAS, but the record of a version leads back to it from its successor.
std::unique_ptr<StrategySubject> MakeReverseDeltas();
// CURRENT_FLAG, but flags are cleared before the new record stands.
std::unique_ptr<StrategySubject> MakeClearFlagFirst();
// SHADOW_COLLECTION, but Confirm adds nothing.
std::unique_ptr<StrategySubject> MakeConfirmNothing();
// FULL_COPIES, but Confirm checks that the current version's record is as it was.
std::unique_ptr<StrategySubject> MakeConfirmOwnRecord();
// SHADOW_COLLECTION, but Confirm checks that the current version has no copy yet.
std::unique_ptr<StrategySubject> MakeConfirmNoCopy();

}  // namespace strata::versioning::checks
