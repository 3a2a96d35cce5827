// `man strata`, made of what help says.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace strata::cli {

// The manual of `app` and all its commands, for man (troff with the macros of man(7)).
std::string Manual(const CLI::App& app, const std::string& version);

}  // namespace strata::cli
