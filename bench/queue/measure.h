// The measurements, each on servers of its own, which it stops again. They write what they measure
// into `lines`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/support/figure_lines.h"

namespace strata::bench {

inline constexpr int kTurns = 2;  // rounds in turns for each of other measurements

// How many messages wait where many do.
struct Depth {
  int64_t messages = 100'000;
  const char* name = "10^5";  // as figures name it
};

struct QueueLoadSettings {
  std::string folder;    // for data and logs
  std::string baseline;  // another server program that W1 to W3 are held against; empty: none
  std::chrono::milliseconds duration{1000};  // of each round
  int rounds = 3;
  // What so many documents and messages are multiplied by; 1 in every run that is to give figures.
  double scale = 1;
  std::vector<Depth> depths = {{}};
  int64_t through = 100'000;  // messages that go through a queue before it is measured again

  // At least 200, so that all that is in flight finds one of its own.
  int64_t Scaled(int64_t count) const;
};

// Q1: Push beside W1, and in batches of a hundred, in turns.
void MeasurePush(const QueueLoadSettings& settings, FigureLines& lines);
// Q2: messages that are pushed, reserved and acknowledged by 64 at once.
void MeasureCycle(const QueueLoadSettings& settings, FigureLines& lines);
// Q3: streams take a filled queue to its end, and one that is pushed to meanwhile.
void MeasureReceive(const QueueLoadSettings& settings, FigureLines& lines);
// Q5: acknowledgement, update and push in one commit, beside W1 in turns.
void MeasureCommit(const QueueLoadSettings& settings, FigureLines& lines);
// Q6: from a push to the answer of a Reserve that waits, beside W1 with one in flight.
void MeasureWait(const QueueLoadSettings& settings, FigureLines& lines);

// Q4: Q2 with few and with many messages that wait, in turns.
void MeasureDepth(const QueueLoadSettings& settings, FigureLines& lines);
// Q4: Q2 on a queue that many messages have gone through, beside a new one in turns, and the disk.
void MeasureThrough(const QueueLoadSettings& settings, FigureLines& lines);
// What messages that wait take of memory, and what they do to a start.
void MeasureWaiting(const QueueLoadSettings& settings, FigureLines& lines);

// W1 to W3, with queues unused, beside the baseline in turns; nothing without one.
void MeasureBaseline(const QueueLoadSettings& settings, FigureLines& lines);

}  // namespace strata::bench
