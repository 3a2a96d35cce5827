// The report for programs: one JSON object, with a result a line.
#include <bson/bson.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/strategies/article.h"
#include "bench/strategies/summary.h"
#include "bench/strategies/writers.h"

namespace strata::bench {
namespace {

// One object under construction.
class Object {
 public:
  Object() { bson_init(&bson_); }
  ~Object() { bson_destroy(&bson_); }
  Object(const Object& other) { bson_copy_to(&other.bson_, &bson_); }
  Object& operator=(const Object&) = delete;

  Object& Add(std::string_view name, double value) {
    bson_append_double(&bson_, name.data(), Size(name), value);
    return *this;
  }
  Object& Add(std::string_view name, int64_t value) {
    bson_append_int64(&bson_, name.data(), Size(name), value);
    return *this;
  }
  Object& Add(std::string_view name, int value) { return Add(name, int64_t{value}); }
  Object& Add(std::string_view name, bool value) {
    bson_append_bool(&bson_, name.data(), Size(name), value);
    return *this;
  }
  Object& Add(std::string_view name, std::string_view value) {
    bson_append_utf8(&bson_, name.data(), Size(name), value.data(), Size(value));
    return *this;
  }
  Object& Add(std::string_view name, const char* value) {
    return Add(name, std::string_view(value));
  }
  Object& Add(std::string_view name, const std::string& value) {
    return Add(name, std::string_view(value));
  }
  Object& Add(std::string_view name, const Object& value) {
    bson_append_document(&bson_, name.data(), Size(name), &value.bson_);
    return *this;
  }
  Object& Add(std::string_view name, const std::vector<Object>& values) {
    Object array;
    for (size_t i = 0; i < values.size(); ++i) array.Add(std::to_string(i), values[i]);
    bson_append_array(&bson_, name.data(), Size(name), &array.bson_);
    return *this;
  }

  std::string Text() const {
    char* const text = bson_as_relaxed_extended_json(&bson_, nullptr);
    const std::string copy = text;
    bson_free(text);
    return copy;
  }

 private:
  static int Size(std::string_view text) { return static_cast<int>(text.size()); }
  bson_t bson_;
};

Object ToObject(const Costs& costs) {
  Object object;
  for (const OperationName& name : kOperations) {
    const auto& cost = costs[static_cast<size_t>(name.operation)];
    if (!cost) continue;
    object.Add(name.key, Object()
                             .Add("p50_us", cost->p50_us)
                             .Add("p99_us", cost->p99_us)
                             .Add("repetitions", cost->repetitions));
  }
  return object;
}

Object ToObject(const StoredBytes& bytes) {
  return Object()
      .Add("heads", bytes.heads)
      .Add("versions", bytes.versions)
      .Add("requests", bytes.requests)
      .Add("ledger", bytes.ledger)
      .Add("other", bytes.other)
      .Add("total", bytes.total());
}

Object ToObject(const Recovery& recovery) {
  return Object()
      .Add("open_ms", recovery.open_ms)
      .Add("first_read_ms", recovery.first_read_ms)
      .Add("log_bytes", recovery.log_bytes);
}

Object ToObject(const Point& point) {
  Object object;
  object.Add("versions", point.versions).Add("documents", point.documents);
  object.Add("latency", ToObject(point.costs)).Add("bytes", ToObject(point.bytes));
  object.Add("bytes_per_version", point.bytes_per_version());
  if (point.sync_us > 0) object.Add("fdatasync_us", point.sync_us);
  if (point.recovery) object.Add("recovery", ToObject(*point.recovery));
  return object;
}

Object ToObject(const Result& result) {
  Object object;
  object.Add("strategy", result.strategy).Add("engine", result.engine);
  object.Add("durable", result.durable).Add("latency", ToObject(result.costs));
  object.Add("bytes", ToObject(result.bytes));
  object.Add("bytes_without_contents", ToObject(result.bare));
  if (result.sync_us > 0) object.Add("fdatasync_us", result.sync_us);
  if (result.recovery) object.Add("recovery", ToObject(*result.recovery));
  std::vector<Object> growth;
  for (const Point& point : result.growth) growth.push_back(ToObject(point));
  object.Add("growth", growth);
  if (result.limit) {
    object.Add(
        "limit",
        Object().Add("versions", result.limit->versions).Add("reason", result.limit->reason));
  }
  return object;
}

Object ToObject(const CrashResult& crash) {
  std::vector<Object> points;
  for (const CrashPoint& point : crash.points) {
    Object object;
    object.Add("writes", point.writes).Add("version_read", point.version_read);
    object.Add("findings", static_cast<int64_t>(point.findings.size()));
    if (!point.findings.empty()) object.Add("finding", point.findings.front());
    object.Add("next_update_succeeded", point.next_update_succeeded);
    object.Add("findings_after_next_update", point.findings_after);
    points.push_back(object);
  }
  const ArticleWords words = ArticleOn(crash.strategy);
  return Object()
      .Add("strategy", crash.strategy)
      .Add("article_choice", words.choice)
      .Add("article_fetch_one", words.fetch_one)
      .Add("article_fetch_many", words.fetch_many)
      .Add("article_update", words.update)
      .Add("article_recover", words.recover)
      .Add("crash_words", words.crash)
      .Add("crash_points", points);
}

Object Facts(const Report& report) {
  const Machine& machine = report.machine;
  Object object;
  object.Add("date", report.date).Add("commit", report.commit);
  object.Add("processor", machine.processor).Add("cores", machine.cores);
  object.Add("memory_bytes", machine.memory_bytes).Add("system", machine.system);
  object.Add("compiler", machine.compiler).Add("rocksdb", machine.rocksdb);
  object.Add("libbson", machine.libbson).Add("fdatasync_us", machine.sync_us);
  object.Add("file", report.file).Add("documents", report.documents);
  object.Add("versions", report.versions).Add("deletions", report.deletions);
  object.Add("longest_history", report.history_max).Add("json_bytes", report.json_bytes);
  object.Add("bson_bytes", report.bson_bytes).Add("repeated_document", report.repeated_id);
  object.Add("repeated_versions", report.repeated_versions);
  object.Add("repeated_version_bytes", report.repeated_bytes);
  object.Add("seconds", report.seconds);
  return object;
}

std::string Lines(const std::vector<Object>& objects) {
  std::string text = "[\n";
  for (size_t i = 0; i < objects.size(); ++i) {
    text += objects[i].Text() + (i + 1 < objects.size() ? ",\n" : "\n");
  }
  return text + "]";
}

}  // namespace

std::string JsonReport(const Report& report) {
  std::vector<Object> engines;
  for (const EngineFacts& facts : report.engines) {
    engines.push_back(Object()
                          .Add("engine", facts.engine)
                          .Add("durable", facts.durable)
                          .Add("raw_contents_bytes", facts.raw_bytes));
  }
  std::vector<Object> crashes;
  for (const CrashResult& crash : report.crashes) crashes.push_back(ToObject(crash));
  std::vector<Object> results;
  for (const Result& result : report.results) results.push_back(ToObject(result));
  std::vector<Object> goals;
  for (const Goal& goal : StorageGoals(report)) {
    goals.push_back(
        Object().Add("goal", goal.goal).Add("measured", goal.measured).Add("met", goal.met));
  }
  return "{\"facts\": " + Facts(report).Text() + ",\n\"engines\": " + Lines(engines) +
         ",\n\"strategies\": " + Lines(crashes) + ",\n\"results\": " + Lines(results) +
         ",\n\"storage_goals\": " + Lines(goals) + "}\n";
}

}  // namespace strata::bench
