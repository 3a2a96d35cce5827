#include "clients/cli/version_cells.h"

#include <algorithm>

#include "clients/cli/arguments.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

std::string ActorCell(const v1::ChangeInfo& change) {
  if (change.on_behalf_of().empty()) return change.actor();
  return change.actor() + " for " + change.on_behalf_of();
}

}  // namespace

std::vector<std::string> VersionCells(const v1::Version& version) {
  return {std::to_string(version.version()), KindName(version.kind()),
          CommitTimeCell(version.has_commit_time(), version.commit_time()),
          ActorCell(version.change()), version.change().reason()};
}

std::string PlaceCell(int64_t position, int32_t index) {
  const std::string place = std::to_string(position);
  return index == 0 ? place : place + "." + std::to_string(index);
}

std::vector<std::string> TransactionNote(const v1::Version& version) {
  if (version.transaction_id().empty()) return {};
  return {"in transaction " + client::Printable(version.transaction_id())};
}

std::vector<std::string> ChangeNotes(const v1::Version& version, const Palette& palette) {
  std::vector<std::string> lines = ChangeLines(version.changes(), palette);
  if (version.changes_truncated()) lines.emplace_back("(and more: strata diff shows all of them)");
  return lines;
}

std::vector<std::string> ContentLines(const v1::Version& version) {
  std::vector<std::string> lines;
  if (!version.content().has_bson()) return lines;
  const std::string json =
      client::JsonFromBson(version.content().bson(), client::JsonStyle::kRelaxed, 2)
          .value_or("damaged");
  size_t begin = 0;
  while (begin <= json.size()) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    lines.push_back(json.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace strata::cli
