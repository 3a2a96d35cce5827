#include "bench/render/document.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/sections.h"

namespace strata::bench {

Document MakeDocument(const Figures& figures) {
  Document document;
  document.title = "What Strata costs";
  for (const Figure& figure : figures.all()) {
    // A program that ran several times, with other parts, says it each time.
    const std::string fact = absl::StrCat(figure.program, ": ", figure.text);
    if (figure.name == "measured_on") document.facts.push_back(fact);
    if (figure.name == "wrong") document.wrong.push_back(fact);
  }
  for (const auto& make :
       {LoadSections, StrategySections, GrowthSections, WithstandSections, AccessSections,
        FeedSections, QueueSections, ClientSections, GoalSections}) {
    for (Section& section : make(figures)) document.sections.push_back(std::move(section));
  }
  return document;
}

}  // namespace strata::bench
