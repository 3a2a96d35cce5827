// How long the server takes to start, and its size then.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

constexpr int kStarts = 5;
constexpr int64_t kFullBytes = 1'100'000'000;
constexpr size_t kDocumentsBeforeKill = 20'000;
constexpr size_t kLargeStartBytes = 100'000;
constexpr std::chrono::seconds kStartFillMax{90};
constexpr std::chrono::seconds kStartQuietMax{10};
constexpr int kFillRoundsMax = 5;

int64_t BytesIn(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    std::error_code error;  // files go while one looks
    const auto size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// Bytes that no engine makes smaller.
std::string Noise(std::mt19937_64& random) {
  constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  std::string text(kLargeStartBytes, ' ');
  for (char& c : text) c = kDigits[random() % 64];
  return text;
}

// Writes large documents, as many bytes in all. False: the time was over before.
bool WriteNoise(const std::string& folder, int64_t bytes, int round, Steady::time_point end) {
  Served served(folder);
  const std::string collection = "noise-" + std::to_string(round);
  served.MakePopulation(collection, "deltas");
  const auto stub = v1::DocumentService::NewStub(served.channel());
  std::mt19937_64 random(static_cast<uint64_t>(round));
  for (int64_t written = 0; written < bytes; written += static_cast<int64_t>(kLargeStartBytes)) {
    if (Steady::now() > end) return false;
    v1::UpdateRequest request;
    request.set_collection(collection);
    request.set_id(std::to_string(written));
    request.set_allow_missing(true);
    request.set_omit_content(true);
    (*request.mutable_replace()->mutable_json()->mutable_fields())["noise"].set_string_value(
        Noise(random));
    v1::UpdateResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->Update(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("cannot fill: " + status.error_message());
  }
  AwaitQuiet(served.pid(), kStartQuietMax);
  served.Stop();
  return true;
}

// Until the directory has a gigabyte. Logs and what is compressed go again, so it may take more
// than once.
void FillUp(const std::string& folder) {
  const Steady::time_point end = Steady::now() + kStartFillMax;
  for (int round = 0; round < kFillRoundsMax; ++round) {
    const int64_t missing = kFullBytes - BytesIn(folder + "/data");
    if (missing <= 0 || !WriteNoise(folder, missing, round, end)) return;
  }
}

// Leaves a log that the next start has to read.
void WriteAndKill(const std::string& folder, int round) {
  Served served(folder);
  Population population = served.MakePopulation("killed-" + std::to_string(round), "deltas");
  population.versions.resize(kDocumentsBeforeKill);
  Prepare(served.channel(), *Fill(population));
}

enum class Before { kNothing, kOrderlyEnd, kKill };

// From exec to the line that says so.
void Measure(const std::string& what, const std::string& folder, Before before,
             FigureLines& lines) {
  std::vector<double> times_us;
  int64_t resident_bytes = 0;
  int64_t directory_bytes = 0;
  for (int i = 0; i < kStarts; ++i) {
    const std::string its_folder = before == Before::kNothing ? folder + std::to_string(i) : folder;
    if (before == Before::kKill) WriteAndKill(its_folder, i);
    const Steady::time_point start = Steady::now();
    Served served(its_folder);
    times_us.push_back(std::chrono::duration<double, std::micro>(Steady::now() - start).count());
    resident_bytes = std::max(resident_bytes, served.resident_bytes());
    directory_bytes = BytesIn(its_folder + "/data");
    served.Stop();
  }
  std::sort(times_us.begin(), times_us.end());
  const Parameters start_on = {{"start_on", what}};
  lines.Number("serving", start_on, times_us[times_us.size() / 2], Unit::kMicroseconds,
               Spread{times_us.front(), times_us.back(), kStarts});
  lines.Number("serving_max", start_on, times_us.back(), Unit::kMicroseconds);
  lines.Number("resident_memory", start_on, static_cast<double>(resident_bytes), Unit::kBytes);
  lines.Number("directory", start_on, static_cast<double>(directory_bytes), Unit::kBytes);
  std::cerr << "." << std::flush;
}

}  // namespace

void MeasureStarts(const GrowthSettings& settings, FigureLines& lines) {
  const std::string folder = settings.folder + "/documents";
  Measure("an empty directory", settings.folder + "/start", Before::kNothing, lines);
  if (settings.full) FillUp(folder);
  Measure("a filled directory", folder, Before::kOrderlyEnd, lines);
  Measure("the same, 20,000 writes and a kill -9 later", folder, Before::kKill, lines);
}

}  // namespace strata::bench
