#include "tests/support/places.h"

namespace strata::test_support {

std::string SourcePath(std::string_view path) {
  return std::string(STRATA_SOURCE_DIR "/").append(path);
}

std::string BuiltPath(std::string_view path) {
  return std::string(STRATA_BUILD_DIR "/").append(path);
}

}  // namespace strata::test_support
