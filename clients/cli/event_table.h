// Events as lines: what watch and consume print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clients/cli/session.h"
#include "strata/v1/feed_service.pb.h"

namespace strata::cli {

// Lines of one output, a table for people or JSON for machines.
class EventTable {
 public:
  explicit EventTable(Session& session);

  // `notes` stand beneath it, for people.
  void Add(const v1::Event& event, std::vector<std::string> notes = {});
  // A document of a copy, as of the commit.
  void Add(const v1::Document& document, int64_t position);
  // Prints what was added, all of it.
  void Flush();

 private:
  Session& session_;
  Table table_;
};

}  // namespace strata::cli
