# Writes OUTPUT, a source file that defines strata::app::kBuildCommit, anew if the commit is another one. Run by each build.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "service/app/build_commit.h"

namespace strata::app {

const std::string_view kBuildCommit = "@commit@";

}  // namespace strata::app
]] @ONLY)
