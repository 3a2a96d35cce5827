// One attack on a server of its own, and the honest caller beside it.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "bench/support/figure_lines.h"
#include "tests/withstand/attacks.h"
#include "tests/withstand/documents.h"

namespace strata::bench {

struct TrialSettings {
  std::string folder;  // for data and logs
  std::chrono::seconds duration{8};
};

// What the honest caller does all the while, at even times.
enum class Honest { kGets, kLists };

struct Trial {
  std::string name;    // by which it is asked for; several may share one
  std::string attack;  // in words, as the figures name it
  int event_loops = 1;
  std::vector<std::string> flags{};
  Honest honest = Honest::kGets;
  // Documents that the attack needs; the honest caller's are there.
  std::function<grpc::Status(const withstand::Documents& documents)> prepare{};
  // Goes on until it is stopped.
  std::function<void(int port, std::stop_token stop, withstand::AttackCounts& counts)> run{};
};

// The honest caller before the attack and beside it, and the server's memory. An honest call that
// fails is a figure, and not wrong.
void Measure(const Trial& trial, const TrialSettings& settings, FigureLines& lines);

// What is to be withstood, which the tests hold, and then what gRPC by itself does not resist.
std::vector<Trial> AllTrials();

// As many idle connections as the system lets this process and a server have, up to 15,000: a fresh
// call beside them, and the server's memory.
void MeasureIdle(const TrialSettings& settings, FigureLines& lines);

}  // namespace strata::bench
