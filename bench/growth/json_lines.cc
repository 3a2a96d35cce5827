// The report for programs.
#include <bson/bson.h>

#include <string>

#include "bench/growth/writers.h"

namespace strata::bench {
namespace {

// An object that is written as one line.
class Object {
 public:
  explicit Object(const std::string& kind) { Add("kind", kind); }
  ~Object() { bson_destroy(&object_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Object& Add(const char* name, const std::string& value) {
    bson_append_utf8(&object_, name, -1, value.c_str(), -1);
    return *this;
  }
  Object& Add(const char* name, int64_t value) {
    bson_append_int64(&object_, name, -1, value);
    return *this;
  }
  Object& Add(const char* name, double value) {
    bson_append_double(&object_, name, -1, value);
    return *this;
  }
  Object& Add(const Measurement& measured) {
    Add("in_flight", int64_t{measured.in_flight}).Add("calls", measured.calls);
    Add("failures", measured.failures).Add("calls_per_second", measured.calls_per_second());
    Add("server_cpu_us", measured.server_cpu_us()).Add("client_cpu_us", measured.client_cpu_us());
    return Add("p50_ms", measured.latency_ms(0.5)).Add("p99_ms", measured.latency_ms(0.99));
  }
  std::string Line() const {
    char* const text = bson_as_relaxed_extended_json(&object_, nullptr);
    std::string line = text;
    bson_free(text);
    return line + "\n";
  }

 private:
  bson_t object_ = BSON_INITIALIZER;
};

std::string Line(const IdleResult& idle) {
  Object object("idle");
  object.Add("what", idle.what).Add("asked", idle.asked).Add("open", idle.open);
  object.Add("opening_seconds", idle.opening_seconds).Add("kib_each", idle.kib_each());
  object.Add("resident_bytes_before", idle.before.resident_bytes);
  object.Add("resident_bytes_with", idle.with.resident_bytes);
  object.Add("resident_bytes_after", idle.after.resident_bytes);
  object.Add("open_files_before", idle.before.open_files);
  object.Add("open_files_with", idle.with.open_files);
  object.Add("open_files_after", idle.after.open_files);
  object.Add("get_per_second_before", idle.get_before.calls_per_second());
  object.Add("get_per_second_beside", idle.get_beside.calls_per_second());
  object.Add("get_p99_ms_before", idle.get_before.latency_ms(0.99));
  object.Add("get_p99_ms_beside", idle.get_beside.latency_ms(0.99));
  return object.Line();
}

std::string Line(const BurstResult& burst) {
  Object object("burst");
  object.Add("calls", burst.calls)
      .Add("at_once", burst.at_once)
      .Add("stalled", int64_t{burst.stalled})
      .Add("connections", int64_t{burst.connections});
  object.Add("in_flight_mib_max", burst.in_flight_mib_max).Add("sent_bytes", burst.sent_bytes);
  object.Add("accepted", burst.accepted).Add("refused", burst.refused);
  object.Add("cut_off", burst.cut_off);
  object.Add("others", burst.others).Add("seconds", burst.seconds);
  object.Add("resident_bytes_before", burst.resident_before);
  object.Add("resident_bytes_peak", burst.resident_peak);
  object.Add("resident_bytes_after", burst.resident_after);
  return object.Add("get_ms", burst.get_ms).Line();
}

}  // namespace

std::string JsonLines(const Figures& figures) {
  std::string lines;
  for (const DocumentsPoint& point : figures.documents) {
    for (size_t i = 0; i < kOperationNames.size(); ++i) {
      Object object("documents");
      object.Add("documents", point.documents).Add("call", std::string(kOperationNames[i]));
      object.Add("resident_bytes", point.resident_bytes);
      lines += object.Add(point.costs.operations[i]).Line();
    }
  }
  for (const VersionsPoint& point : figures.versions) {
    for (size_t i = 0; i < kOperationNames.size(); ++i) {
      Object object("versions");
      object.Add("strategy", point.strategy).Add("versions", point.versions);
      object.Add("documents", point.documents).Add("call", std::string(kOperationNames[i]));
      lines += object.Add(point.costs.operations[i]).Line();
    }
  }
  for (const StrategyEnd& end : figures.ends) {
    lines += Object("end").Add("strategy", end.strategy).Add("why", end.why).Line();
  }
  for (const IdleResult& idle : figures.idle) lines += Line(idle);
  for (const BurstResult& burst : figures.bursts) lines += Line(burst);
  for (const StartResult& start : figures.starts) {
    Object object("start");
    object.Add("on", start.what).Add("directory_bytes", start.directory_bytes);
    object.Add("serving_ms", start.serving_ms).Add("serving_ms_max", start.serving_ms_max);
    lines += object.Add("resident_bytes", start.resident_bytes).Line();
  }
  for (const std::string& wrong : figures.wrong) lines += Object("wrong").Add("what", wrong).Line();
  return lines;
}

}  // namespace strata::bench
