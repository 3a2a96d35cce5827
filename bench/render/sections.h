// The sections of the document, each of what one program measures. Those that have nothing to show
// are empty.
#pragma once

#include <vector>

#include "bench/render/document.h"
#include "bench/render/figures.h"

namespace strata::bench {

// All of them.
Document MakeDocument(const Figures& figures);

// strata_load and strata_peers.
std::vector<Section> LoadSections(const Figures& figures);
// strategy_report.
std::vector<Section> StrategySections(const Figures& figures);
// strata_growth.
std::vector<Section> GrowthSections(const Figures& figures);
// strata_withstand.
std::vector<Section> WithstandSections(const Figures& figures);
// strata_access.
std::vector<Section> AccessSections(const Figures& figures);
// strata_feed_load, and strata_peers at the same.
std::vector<Section> FeedSections(const Figures& figures);
// strata_queue_load, and strata_peers at the same.
std::vector<Section> QueueSections(const Figures& figures);
// strata_client_load.
std::vector<Section> ClientSections(const Figures& figures);
// What any of them measured, held against what it is to be.
std::vector<Section> GoalSections(const Figures& figures);

}  // namespace strata::bench
