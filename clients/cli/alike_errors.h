// Errors of which there may be as many as a file has lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "clients/cli/session.h"
#include "clients/cpp/refusal.h"

namespace strata::cli {

// Says the first ten errors for each reason, and of the others how many there were: a million
// lines of the same would hide what else there is to see. Programs (--json) are told all.
class AlikeErrors {
 public:
  explicit AlikeErrors(Session& session) : session_(session) {}
  // As Session::Report.
  void Report(const client::Refusal& refusal, const std::string& where);
  // What was not said. At the end.
  void PrintOthers();

 private:
  Session& session_;
  std::map<std::string, int64_t> seen_;  // by reason, or code where there is none
};

}  // namespace strata::cli
