// Where the sources of this build lie, and the programs that it made. One object of every build
// knows them, so that all others are the same in each clone, and come from the cache there.
#pragma once

#include <string>
#include <string_view>

namespace strata::test_support {

// A path below the source folder.
std::string SourcePath(std::string_view path);

// A path below the build folder.
std::string BuiltPath(std::string_view path);

inline std::string ServerProgram() { return BuiltPath("service/stratad"); }
inline std::string CommandLineProgram() { return BuiltPath("clients/cli/strata"); }

}  // namespace strata::test_support
