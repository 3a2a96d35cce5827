// The measurements, each on servers of its own, which it stops again. They write what they measure
// into `lines`.
#pragma once

#include <chrono>
#include <string>

#include "bench/support/figure_lines.h"

namespace strata::bench {

inline constexpr int kInFlight = 64;

struct FeedSettings {
  std::string folder;    // for data and logs
  std::string baseline;  // another server program that W1 is held against; empty: none
  std::chrono::milliseconds duration{1000};  // of each round
  int rounds = 3;
  // What so many documents, watchers and leases are multiplied by; 1 in every run that is to give
  // figures.
  double scale = 1;
  bool full = false;  // longer, and ten times as many entries

  // At least 100, so that all that is in flight finds a document of its own.
  int64_t Scaled(int64_t count) const;
  // Where `turns` rounds are made for each of other measurements. A single one is none.
  int Rounds(int turns) const { return rounds > 1 ? rounds * turns : 1; }
};

// W1 while nobody follows, one does, a thousand wait for something else; with a baseline, beside it
// in turns.
void MeasureBeside(const FeedSettings& settings, FigureLines& lines);
// How long after an update its event is there, with one update in flight; and what an idle server
// with a thousand watchers does.
void MeasureDelivery(const FeedSettings& settings, FigureLines& lines);
// Events a second to 1 and 100 watchers of everything under W1.
void MeasureEvents(const FeedSettings& settings, FigureLines& lines);
// Events a second from the beginning, headers alone and with contents.
void MeasureCatchUp(const FeedSettings& settings, FigureLines& lines);
// Of watchers that wait, and of those that take a message a second under W1.
void MeasureMemory(const FeedSettings& settings, FigureLines& lines);

// Renew, and updates that are fenced, beside W1.
void MeasureLeases(const FeedSettings& settings, FigureLines& lines);
// Two consumers take a subscription from its beginning to its end.
void MeasureConsume(const FeedSettings& settings, FigureLines& lines);
// Updates that are fenced with their deliveries, beside as many updates in flight.
void MeasureExactlyOnce(const FeedSettings& settings, FigureLines& lines);

// All of it on a new server and on one with a long ledger.
void MeasureFeedGrowth(const FeedSettings& settings, FigureLines& lines);

}  // namespace strata::bench
