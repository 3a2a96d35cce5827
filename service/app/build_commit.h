// Which state of the sources this is.
#pragma once

#include <string_view>

namespace strata::app {

// The abbreviated hash of the commit that was built, with "-dirty" where the tree had changes.
// Empty: it was not built from a repository.
extern const std::string_view kBuildCommit;

}  // namespace strata::app
