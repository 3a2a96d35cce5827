// The checker of Strategy::Confirm: it fails exactly when the document has another head.
#pragma once

#include <string>

#include "schemas/store/store.h"
#include "tests/versioning/strategy_subject.h"

namespace strata::versioning::checks {

// Of documents without a head, with one version, with many, deleted and made anew; beside writes of
// their neighbours, crashes at each write of an update, what those leave, and its repair. Empty, or
// the first violation. `base` has atomic batches.
std::string CheckConfirm(StrategySubject& subject, store::Store& base);

}  // namespace strata::versioning::checks
