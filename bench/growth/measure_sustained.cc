// What updates at random write to the disk while they go on and on: bytes for each byte of new
// content, by keyspace, the room that is in use meanwhile, and the calls that had to wait for it.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <thread>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSustainedDocuments = 1'000'000;
constexpr std::chrono::seconds kBrief{60};
constexpr std::chrono::seconds kFull{600};
constexpr std::chrono::seconds kSustainedQuietMax{120};
constexpr std::chrono::milliseconds kLook{500};
// Directly before the last: a call is counted by the time that it took.
constexpr double kAlmostAll = 0.9999;

// What the directory takes on the disk: logs are longer than what is in them.
int64_t DiskBytes(const std::string& directory) {
  int64_t bytes = 0;
  std::error_code error;  // files go while one looks
  for (const auto& entry : fs::recursive_directory_iterator(directory, error)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0) bytes += int64_t{status.st_blocks} * 512;
  }
  return bytes;
}

// Looks at the directory again and again, and keeps the most that it took.
class DiskWatcher {
 public:
  explicit DiskWatcher(const std::string& directory)
      : thread_([this, directory] {
          while (!ended_) {
            most_ = std::max<int64_t>(most_, DiskBytes(directory));
            std::this_thread::sleep_for(kLook);
          }
        }) {}
  ~DiskWatcher() { End(); }
  int64_t End() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    return most_;
  }

 private:
  std::atomic<bool> ended_ = false;
  std::atomic<int64_t> most_ = 0;
  std::thread thread_;
};

// That the process has had written to the disk, by the kernel's account.
int64_t WrittenBytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/io");
  std::string name;
  for (int64_t bytes = 0; file >> name >> bytes;) {
    if (name == "write_bytes:") return bytes;
  }
  return 0;
}

// Bytes of tables by keyspace, as the server tells when it ends.
std::map<std::string, int64_t> TablesWritten(const std::string& log) {
  const std::regex line(
      "tables written.*keyspace=(\\w+) flushed_bytes=(\\d+) compacted_bytes=(\\d+)");
  std::map<std::string, int64_t> written;
  std::ifstream file(log);
  std::smatch found;
  for (std::string text; std::getline(file, text);) {
    if (!std::regex_search(text, found, line)) continue;
    written[found[1]] += std::stoll(found[2]) + std::stoll(found[3]);
  }
  return written;
}

int64_t DiskBytesWhenCompacted(const std::string& directory) {
  {
    engines::rocks::RocksDbOptions options;
    options.directory = directory;
    const auto store = engines::rocks::RocksDbStore::Open(options);
    if (!store.ok()) throw std::runtime_error(store.status().ToString());
    const absl::Status compacted = (*store)->CompactAll();
    if (!compacted.ok()) throw std::runtime_error(compacted.ToString());
  }
  return DiskBytes(directory);
}

}  // namespace

void MeasureSustained(const GrowthSettings& settings, FigureLines& lines) {
  const std::string folder = settings.folder + "/sustained";
  Population population;
  {
    Served served(folder);
    population = served.MakePopulation("documents", "deltas");
    population.versions.resize(kSustainedDocuments);
    Prepare(served.channel(), *Fill(population));
    AwaitQuiet(served.pid(), kSustainedQuietMax);
    if (served.Stop() != 0) lines.Wrong("sustained: the server did not end well");
  }
  // A server anew, so that what the documents cost before is not counted.
  const std::string log = folder + ".log";
  std::ofstream(log, std::ios::trunc);
  Served served(folder);
  AwaitQuiet(served.pid(), kSustainedQuietMax);
  const int64_t written_before = WrittenBytes(served.pid());
  const auto cpu_before = CpuTime(served.pid());
  DiskWatcher disk(folder + "/data");
  LoopSettings loop;
  loop.in_flight = kInFlight;
  loop.warm_up = std::chrono::milliseconds(0);
  loop.duration = settings.full || settings.longest ? kFull : kBrief;
  loop.server = served.pid();
  Measurement measured = RunLoop(served.channel(), *UpdateAtRandom(population, 1), loop);
  Check(measured, "sustained", lines);
  AwaitQuiet(served.pid(), kSustainedQuietMax);
  measured.server_cpu = CpuTime(served.pid()) - cpu_before;
  const int64_t most = disk.End();
  const int64_t written = WrittenBytes(served.pid()) - written_before;
  const int64_t resident = served.resident_bytes();
  if (served.Stop() != 0) lines.Wrong("sustained: the server did not end well");

  const Parameters all = {{"sustained", "Update"}};
  const double content =
      static_cast<double>(measured.calls) * static_cast<double>(population.form.bytes);
  const auto per_byte = [&](const std::string& what, int64_t bytes) {
    lines.Number("written_per_byte", {{"sustained", "Update"}, {"what", what}},
                 static_cast<double>(bytes) / content, Unit::kRatio);
  };
  Write(all, measured, lines);
  lines.Number("latency_p9999", all,
               static_cast<double>(measured.latencies.Quantile(kAlmostAll).count()) / 1e3,
               Unit::kMicroseconds);
  lines.Number("latency_max", all,
               static_cast<double>(measured.latencies.Quantile(1).count()) / 1e3,
               Unit::kMicroseconds);
  lines.Number("resident_memory", all, static_cast<double>(resident), Unit::kBytes);
  per_byte("all", written);
  int64_t others = written;
  for (const auto& [keyspace, bytes] : TablesWritten(log)) {
    per_byte(keyspace, bytes);
    others -= bytes;
  }
  per_byte("the log, and what is no table", others);
  const int64_t compacted = DiskBytesWhenCompacted(folder + "/data");
  lines.Number("disk_most", all, static_cast<double>(most), Unit::kBytes);
  lines.Number("disk_compacted", all, static_cast<double>(compacted), Unit::kBytes);
  lines.Number("disk_ratio", all, static_cast<double>(most) / static_cast<double>(compacted),
               Unit::kRatio);
  std::cerr << "." << std::flush;
}

}  // namespace strata::bench
