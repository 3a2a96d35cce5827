#include "bench/goals/results.h"

#include <bson/bson.h>

#include <fstream>
#include <utility>

namespace strata::bench {
namespace {

double NumberIn(const bson_t& object, const char* name) {
  bson_iter_t member;
  return bson_iter_init_find(&member, &object, name) ? bson_iter_as_double(&member) : 0;
}

std::string TextIn(const bson_t& object, const char* name) {
  bson_iter_t member;
  if (!bson_iter_init_find(&member, &object, name) || !BSON_ITER_HOLDS_UTF8(&member)) return {};
  return bson_iter_utf8(&member, nullptr);
}

}  // namespace

std::optional<Results> Results::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file.is_open()) return std::nullopt;
  Results made;
  for (std::string line; std::getline(file, line);) {
    bson_t object;
    if (!bson_init_from_json(&object, line.data(), static_cast<ssize_t>(line.size()), nullptr)) {
      return std::nullopt;
    }
    const std::tuple key(TextIn(object, "system"), TextIn(object, "workload"),
                         static_cast<int>(NumberIn(object, "in_flight")));
    made.results_[key] = {.calls_per_second = NumberIn(object, "calls_per_second"),
                          .server_cpu_us = NumberIn(object, "server_cpu_us"),
                          .attempts_per_call = NumberIn(object, "attempts_per_call"),
                          .p50_ms = NumberIn(object, "p50_ms"),
                          .p99_ms = NumberIn(object, "p99_ms"),
                          .empty_calls_per_second = NumberIn(object, "empty_calls_per_second"),
                          .empty_server_cpu_us = NumberIn(object, "empty_server_cpu_us"),
                          .empty_p50_ms = NumberIn(object, "empty_p50_ms")};
    bson_destroy(&object);
  }
  return made;
}

const Result* Results::Find(const std::string& system, const std::string& workload,
                            int in_flight) const {
  const auto found = results_.find({system, workload, in_flight});
  return found == results_.end() ? nullptr : &found->second;
}

}  // namespace strata::bench
