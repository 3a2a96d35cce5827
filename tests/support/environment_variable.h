// The environment as a test wants it.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

namespace strata::test_support {

// A variable of the environment, while it lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~EnvironmentVariable() { unsetenv(name_.c_str()); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const std::string name_;
};

}  // namespace strata::test_support
