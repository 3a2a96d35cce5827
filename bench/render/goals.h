// Which figure is to be how large: the one table of goals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/render/figures.h"

namespace strata::bench {

struct Measured {
  std::string figure;
  Where parameters;
};

enum class Bound {
  kAtLeast,
  kAtMost,
  kNone,  // only to be looked at
};

struct Goal {
  std::string what;
  Bound bound = Bound::kAtMost;
  double limit = 0;
  Unit unit = Unit::kRatio;  // of the limit
  // What is held against the limit: the figure, divided by the sum of others if there are any.
  Measured figure;
  std::vector<Measured> by;
};

std::vector<Goal> AllGoals();
// Those of queues among them.
std::vector<Goal> QueueGoals();
// Those of cost against the number of documents.
std::vector<Goal> ScaleGoals();
// Those of the port for people.
std::vector<Goal> HttpGoals();

// Nothing if a figure is missing.
std::optional<double> Reached(const Goal& goal, const Figures& figures);

// Nothing if it has no bound.
std::optional<bool> IsMet(const Goal& goal, double reached);

}  // namespace strata::bench
