// The table of goals, with what was reached beside each.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/goals.h"
#include "bench/render/numbers.h"
#include "bench/render/sections.h"

namespace strata::bench {
namespace {

// What any of its figures was measured for. The rest may be missing, such as the peers.
bool IsTouched(const Goal& goal, const Figures& figures) {
  const auto is_there = [&](const Measured& one) {
    return figures.Find(one.figure, one.parameters) != nullptr;
  };
  return is_there(goal.figure) || std::any_of(goal.by.begin(), goal.by.end(), is_there);
}

std::string BoundOf(const Goal& goal) {
  if (goal.bound == Bound::kNone) return "";
  const char* const sign = goal.bound == Bound::kAtLeast ? ">= " : "<= ";
  return absl::StrCat(sign, WithUnit(goal.limit, goal.unit));
}

std::vector<Cell> Row(const Goal& goal, const std::optional<double>& reached) {
  std::vector<Cell> row = {goal.what, BoundOf(goal), "", "not measured"};
  if (!reached) return row;
  row[2] = WithUnit(*reached, goal.unit);
  const std::optional<bool> met = IsMet(goal, *reached);
  if (!met) {
    row[3] = "to look at";
    return row;
  }
  row[3] = *met ? "met" : "missed";
  row[3].judgement = *met ? Cell::Judgement::kGood : Cell::Judgement::kBad;
  return row;
}

}  // namespace

std::vector<Section> GoalSections(const Figures& figures) {
  Table table{.heading = {"goal", "bound", "reached", ""}, .rows = {}, .folded = ""};
  for (const Goal& goal : AllGoals()) {
    if (IsTouched(goal, figures)) table.rows.push_back(Row(goal, Reached(goal, figures)));
  }
  if (table.rows.empty()) return {};
  Section section;
  section.title = "Goals";
  section.tables.push_back(std::move(table));
  return {section};
}

}  // namespace strata::bench
