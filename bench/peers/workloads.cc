#include "bench/peers/workloads.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/peers/server_program.h"
#include "bench/support/process.h"
#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kSilenceMax{30};
constexpr std::array<int64_t, 2> kDepths = {100, 10'000};
constexpr int kWriters = 16;

// What is called next, and whether it is answered right. Called by one thread.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // The next call of a slot. False: there is none left.
  virtual bool Next(int slot, Call& call) = 0;

  enum class Outcome {
    kRight,
    kOnTheWay,  // a lost race, or what precedes an attempt: the slot has more to do for one result
    kWrong,
  };
  virtual Outcome Answered(int slot, const Answer& answer) = 0;
  // Of all calls so far; 0: not counted.
  virtual int64_t attempts() const { return 0; }
};

using Outcome = Workload::Outcome;

Outcome RightIf(bool right) { return right ? Outcome::kRight : Outcome::kWrong; }

bool IsDone(const Answer& answer) { return answer.outcome == Answer::Outcome::kDone; }

// JSON bodies, made ahead: making one costs the client about what sending it does.
class Bodies {
 public:
  Bodies() {
    for (int64_t i = 0; i < kVariants; ++i) bodies_.push_back(TenFieldsJson(i, i));
  }
  // Different from those of the numbers around it.
  std::string_view of(int64_t number) const {
    return bodies_[static_cast<size_t>(number % kVariants)];
  }

 private:
  static constexpr int64_t kVariants = 1009;  // prime, so that no stride meets the same again soon
  std::vector<std::string> bodies_;
};

// A body is not compared byte by byte: PostgreSQL writes the same JSON in a form of its own.
bool HasBody(const Answer::Version& version) { return version.bytes > 200; }

bool IsVersion(const Answer& answer, int64_t number) {
  return IsDone(answer) && answer.versions.size() == 1 && answer.versions[0].number == number &&
         HasBody(answer.versions[0]);
}

Call Update(const Bodies& bodies, int64_t document, int64_t version) {
  return {Operation::kUpdate, document, version, bodies.of(document + version)};
}

bool IsUpdated(const Answer& answer, int64_t version) {
  return IsDone(answer) && answer.versions.size() == 1 && answer.versions[0].number == version + 1;
}

// The documents 0, 1, … and their versions.
struct Population {
  Bodies bodies;
  std::vector<int64_t> versions;
};

class Fill final : public Workload {
 public:
  explicit Fill(Population& population) : population_(population) {}
  std::string name() const override { return "fill"; }
  bool Next(int /*slot*/, Call& call) override {
    if (next_ == population_.versions.size()) return false;
    call = Update(population_.bodies, static_cast<int64_t>(next_), 0);
    population_.versions[next_++] = 1;
    return true;
  }
  Outcome Answered(int /*slot*/, const Answer& answer) override {
    return RightIf(IsUpdated(answer, 0));
  }

 private:
  Population& population_;
  size_t next_ = 0;
};

// Round after round, until each document has so many versions. Documents must be more than calls in
// flight.
class Rewrite final : public Workload {
 public:
  Rewrite(Population& population, int64_t depth) : population_(population), depth_(depth) {}
  std::string name() const override { return "rewrite"; }
  bool Next(int slot, Call& call) override {
    const size_t documents = population_.versions.size();
    if (next_ == documents * static_cast<size_t>(depth_ - 1)) return false;
    const size_t document = next_++ % documents;
    slots_[static_cast<size_t>(slot)] = document;
    call =
        Update(population_.bodies, static_cast<int64_t>(document), population_.versions[document]);
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    int64_t& version = population_.versions[slots_[static_cast<size_t>(slot)]];
    return RightIf(IsUpdated(answer, version++));
  }

 private:
  Population& population_;
  const int64_t depth_;
  size_t next_ = 0;
  std::array<size_t, kSlots> slots_{};  // the document of each
};

// One document, version by version, so that each is known. One in flight.
class Deepen final : public Workload {
 public:
  Deepen(const Bodies& bodies, int64_t document, int64_t depth)
      : bodies_(bodies), document_(document), depth_(depth) {}
  std::string name() const override { return "deepen"; }
  bool Next(int /*slot*/, Call& call) override {
    if (version_ == depth_) return false;
    call = Update(bodies_, document_, version_);
    return true;
  }
  Outcome Answered(int /*slot*/, const Answer& answer) override {
    return RightIf(IsUpdated(answer, version_++));
  }

 private:
  const Bodies& bodies_;
  const int64_t document_;
  const int64_t depth_;
  int64_t version_ = 0;
};

class UpdateAtRandom final : public Workload {
 public:
  UpdateAtRandom(Population& population, uint64_t seed)
      : population_(population), random_(seed), busy_(population.versions.size()) {}
  std::string name() const override { return "W1 update"; }
  bool Next(int slot, Call& call) override {
    const size_t document = Choose();
    slots_[static_cast<size_t>(slot)] = document;
    call =
        Update(population_.bodies, static_cast<int64_t>(document), population_.versions[document]);
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    const size_t document = slots_[static_cast<size_t>(slot)];
    busy_[document] = false;
    return RightIf(IsUpdated(answer, population_.versions[document]++));
  }

 private:
  // Nobody else's at the moment, so that compare-and-swap succeeds.
  size_t Choose() {
    std::uniform_int_distribution<size_t> documents(0, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }

  Population& population_;
  std::mt19937_64 random_;
  std::vector<bool> busy_;
  std::array<size_t, kSlots> slots_{};  // the document of each
};

// All slots change one document.
class HotDocument : public Workload {
 public:
  HotDocument(const Bodies& bodies, int64_t document) : bodies_(bodies), document_(document) {}
  int64_t attempts() const override { return attempts_; }

  // Nobody's acknowledged update is lost, and nothing else was written.
  bool IsKept(const Answer& current, int64_t version_before) const {
    return IsVersion(current, version_before + acknowledged_);
  }
  int64_t document() const { return document_; }

 protected:
  Outcome Attempted(const Answer& answer) {
    ++attempts_;
    if (answer.outcome == Answer::Outcome::kConflict) return Outcome::kOnTheWay;
    if (!IsDone(answer)) return Outcome::kWrong;
    ++acknowledged_;
    return Outcome::kRight;
  }
  const Bodies& bodies_;
  const int64_t document_;

 private:
  int64_t attempts_ = 0;
  int64_t acknowledged_ = 0;
};

class HotOverwrite final : public HotDocument {
 public:
  using HotDocument::HotDocument;
  std::string name() const override { return "W2 hot document"; }
  bool Next(int /*slot*/, Call& call) override {
    call = {Operation::kOverwrite, document_, 0, bodies_.of(attempts())};
    return true;
  }
  Outcome Answered(int /*slot*/, const Answer& answer) override { return Attempted(answer); }
};

// Each slot is a writer that knows nothing of the others: its precondition is the version that it
// read or wrote last. After a conflict it reads, unless the conflict told what there is.
class HotCompareAndSwap final : public HotDocument {
 public:
  using HotDocument::HotDocument;
  std::string name() const override { return "W2 hot document, compare-and-swap by the client"; }
  bool Next(int slot, Call& call) override {
    const int64_t version = seen_[static_cast<size_t>(slot)];
    call = version == 0 ? Call{Operation::kGet, document_, 0, {}}
                        : Update(bodies_, document_, version);
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    int64_t& seen = seen_[static_cast<size_t>(slot)];
    const bool was_read = seen == 0;
    const int64_t before = std::exchange(seen, 0);
    if (answer.versions.size() == 1) seen = answer.versions[0].number;
    if (was_read) return seen > 0 ? Outcome::kOnTheWay : Outcome::kWrong;
    const Outcome outcome = Attempted(answer);
    return outcome == Outcome::kRight ? RightIf(seen == before + 1) : outcome;
  }

 private:
  std::array<int64_t, kSlots> seen_{};  // 0: must be read
};

// Two documents are updated together under compare-and-swap: two that nobody else has in hand, or
// one of them the hot one, which comes first, as accounts are locked in order. That one is locked
// where the store can, else each slot is a client that knows of it what it was told last.
class Transfer final : public Workload {
 public:
  enum class Hot { kNone, kLocked, kCompared };

  Transfer(Population& accounts, Hot hot, uint64_t seed)
      : accounts_(accounts),
        hot_(hot != Hot::kNone),
        locks_(hot == Hot::kLocked),
        random_(seed),
        busy_(accounts.versions.size()) {
    hot_versions_.fill(accounts.versions[kHot]);
  }
  std::string name() const override {
    if (!hot_) return "T1 transfer";
    return std::string("T2 transfer, hot account") +
           (locks_ ? "" : ", compare-and-swap by the client");
  }
  int64_t attempts() const override { return attempts_; }
  bool Next(int slot, Call& call) override {
    Parties& mine = slots_[static_cast<size_t>(slot)];
    if (!mine.on_the_way) {
      mine.first = hot_ ? kHot : Choose();
      mine.second = Choose();
      if (mine.second < mine.first) std::swap(mine.first, mine.second);
    }
    const int64_t version = FirstVersion(slot);
    const int64_t other_version = accounts_.versions[mine.second];
    call = Update(accounts_.bodies, static_cast<int64_t>(mine.first), version);
    call.operation = Operation::kTransfer;
    if (locks_) call.version = 0;
    call.other_document = static_cast<int64_t>(mine.second);
    call.other_version = other_version;
    call.other_body = accounts_.bodies.of(call.other_document + other_version);
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    Parties& mine = slots_[static_cast<size_t>(slot)];
    ++attempts_;
    int64_t& version = FirstVersion(slot);
    const bool told = !answer.versions.empty();
    mine.on_the_way = hot_ && told && answer.outcome == Answer::Outcome::kConflict;
    if (mine.on_the_way) {
      version = answer.versions[0].number;
      return Outcome::kOnTheWay;
    }
    busy_[mine.first] = busy_[mine.second] = false;
    if (!IsDone(answer) || answer.versions.size() != 2) return Outcome::kWrong;
    ++acknowledged_;
    version = locks_ ? answer.versions[0].number : version + 1;
    return RightIf(answer.versions[0].number == version &&
                   answer.versions[1].number == ++accounts_.versions[mine.second]);
  }

  // Nobody's acknowledged transfer through the hot account is lost, and nothing else was written.
  bool IsKept(const Answer& current) {
    if (!hot_) return true;
    accounts_.versions[kHot] += acknowledged_;
    return IsVersion(current, accounts_.versions[kHot]);
  }

  static constexpr size_t kHot = 0;

 private:
  struct Parties {
    size_t first = 0;
    size_t second = 0;
    bool on_the_way = false;
  };

  int64_t& FirstVersion(int slot) {
    return hot_ ? hot_versions_[static_cast<size_t>(slot)]
                : accounts_.versions[slots_[static_cast<size_t>(slot)].first];
  }
  size_t Choose() {
    std::uniform_int_distribution<size_t> documents(kHot + 1, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }

  Population& accounts_;
  const bool hot_;
  const bool locks_;
  std::mt19937_64 random_;
  std::vector<bool> busy_;
  std::array<Parties, kSlots> slots_{};
  std::array<int64_t, kSlots> hot_versions_{};
  int64_t attempts_ = 0;
  int64_t acknowledged_ = 0;
};

class GetAtRandom : public Workload {
 public:
  GetAtRandom(const Population& population, uint64_t seed)
      : population_(population), random_(seed), documents_(0, population.versions.size() - 1) {}
  std::string name() const override { return "W3 get"; }
  bool Next(int slot, Call& call) override {
    const size_t document = Choose();
    slots_[static_cast<size_t>(slot)] = document;
    call = {Operation::kGet, static_cast<int64_t>(document), 0, {}};
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    return RightIf(IsVersion(answer, population_.versions[slots_[static_cast<size_t>(slot)]]));
  }

 protected:
  virtual size_t Choose() { return documents_(random_); }

  const Population& population_;
  std::mt19937_64 random_;

 private:
  std::uniform_int_distribution<size_t> documents_;
  std::array<size_t, kSlots> slots_{};
};

// Nine of ten calls are for one of a hundred documents.
class GetMostlyFew final : public GetAtRandom {
 public:
  using GetAtRandom::GetAtRandom;
  std::string name() const override { return "W3 get, 90 % of 1 %"; }

 protected:
  size_t Choose() override {
    constexpr size_t kHundred = 100;
    if (random_() % 10 == 0) return GetAtRandom::Choose();
    std::uniform_int_distribution<size_t> few(0, (population_.versions.size() - 1) / kHundred);
    return few(random_) * kHundred;
  }
};

class GetOldVersion final : public Workload {
 public:
  GetOldVersion(int64_t document, int64_t depth, uint64_t seed)
      : document_(document), depth_(depth), random_(seed), versions_(1, depth - 1) {}
  std::string name() const override {
    return "W4 get one of " + std::to_string(depth_) + " versions";
  }
  bool Next(int slot, Call& call) override {
    const int64_t version = versions_(random_);
    slots_[static_cast<size_t>(slot)] = version;
    call = {Operation::kGetVersion, document_, version, {}};
    return true;
  }
  Outcome Answered(int slot, const Answer& answer) override {
    return RightIf(IsVersion(answer, slots_[static_cast<size_t>(slot)]));
  }

 private:
  const int64_t document_;
  const int64_t depth_;
  std::mt19937_64 random_;
  std::uniform_int_distribution<int64_t> versions_;
  std::array<int64_t, kSlots> slots_{};
};

class NewestTen final : public Workload {
 public:
  NewestTen(int64_t document, int64_t depth) : document_(document), depth_(depth) {}
  std::string name() const override {
    return "W5 newest ten of " + std::to_string(depth_) + " versions";
  }
  bool Next(int /*slot*/, Call& call) override {
    call = {Operation::kNewestTen, document_, 0, {}};
    return true;
  }
  Outcome Answered(int /*slot*/, const Answer& answer) override {
    if (!IsDone(answer) || answer.versions.size() != 10) return Outcome::kWrong;
    int64_t expected = depth_;
    return RightIf(
        std::all_of(answer.versions.begin(), answer.versions.end(),
                    [&](const auto& one) { return one.number == expected-- && HasBody(one); }));
  }

 private:
  const int64_t document_;
  const int64_t depth_;
};

class Loop {
 public:
  // With no duration, until the workload has no more calls.
  Loop(Peer& peer, Workload& workload, int in_flight, std::chrono::milliseconds warm_up,
       std::chrono::milliseconds duration)
      : peer_(peer),
        workload_(workload),
        warm_up_(warm_up),
        duration_(duration),
        slots_(static_cast<size_t>(in_flight)) {}

  Measurement Run();

 private:
  struct Slot {
    Steady::time_point begun;
    bool on_the_way = false;
  };

  void Send(int index);
  void Take(int index, const Answer& answer);
  void KeepTime();
  void Begin();
  void End();

  Peer& peer_;
  Workload& workload_;
  const std::chrono::milliseconds warm_up_;
  const std::chrono::milliseconds duration_;
  std::vector<Slot> slots_;
  int open_ = 0;
  bool measuring_ = false;
  bool sending_ = true;
  Steady::time_point start_;
  Steady::time_point begin_;
  Steady::time_point answered_;
  int64_t attempts_before_ = 0;
  Measurement result_;
};

void Loop::Send(int index) {
  Call call;
  if (!sending_ || !workload_.Next(index, call)) return;
  ++open_;
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (!slot.on_the_way) slot.begun = Steady::now();
  peer_.Send(index, call);
}

void Loop::Take(int index, const Answer& answer) {
  --open_;
  answered_ = Steady::now();
  Slot& slot = slots_[static_cast<size_t>(index)];
  const Outcome outcome = workload_.Answered(index, answer);
  slot.on_the_way = outcome == Outcome::kOnTheWay;
  if (outcome == Outcome::kWrong && result_.failures++ == 0) {
    std::cerr << workload_.name() << ": "
              << (answer.error.empty() ? "a wrong answer" : answer.error) << std::endl;
  }
  if (measuring_ && outcome == Outcome::kRight) {
    ++result_.calls;
    result_.latencies.Add(answered_ - slot.begun);
  }
}

// The CPU is read outside of the measured time: of a server with a process per connection, that
// takes a while.
void Loop::Begin() {
  result_.server_cpu = CpuTimeOfFamily(peer_.server());
  result_.client_cpu = CpuTime(getpid());
  attempts_before_ = workload_.attempts();
  begin_ = Steady::now();
  measuring_ = true;
}

void Loop::End() {
  measuring_ = false;
  sending_ = false;
  result_.duration = Steady::now() - begin_;
  result_.attempts = workload_.attempts() - attempts_before_;
  result_.client_cpu = CpuTime(getpid()) - result_.client_cpu;
  result_.server_cpu = CpuTimeOfFamily(peer_.server()) - result_.server_cpu;
}

void Loop::KeepTime() {
  if (duration_.count() == 0 || !sending_) return;
  if (!measuring_ && answered_ - start_ >= warm_up_) Begin();
  if (measuring_ && answered_ - begin_ >= duration_) End();
}

Measurement Loop::Run() {
  start_ = answered_ = Steady::now();
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) Send(i);
  while (open_ > 0) {
    peer_.Receive([this](int index, const Answer& answer) {
      Take(index, answer);
      KeepTime();
      Send(index);
    });
    if (Interrupted()) throw InterruptedError();
    if (Steady::now() - answered_ > kSilenceMax) {
      throw std::runtime_error(workload_.name() + ": no answer any more");
    }
  }
  result_.workload = workload_.name();
  result_.in_flight = static_cast<int>(slots_.size());
  return std::move(result_);
}

void Prepare(Peer& peer, Workload& workload, int in_flight) {
  using std::chrono::milliseconds;
  const Measurement done = Loop(peer, workload, in_flight, milliseconds(0), milliseconds(0)).Run();
  if (done.failures > 0) throw std::runtime_error("cannot prepare: " + workload.name());
}

// One call by itself.
Answer Ask(Peer& peer, const Call& call) {
  Answer result;
  bool is_answered = false;
  peer.Send(0, call);
  const Steady::time_point sent = Steady::now();
  while (!is_answered) {
    peer.Receive([&](int /*slot*/, const Answer& answer) {
      result = answer;
      is_answered = true;
    });
    if (Interrupted()) throw InterruptedError();
    if (Steady::now() - sent > kSilenceMax) throw std::runtime_error("no answer any more");
  }
  return result;
}

// After the population come the documents of W2, one each, then those of W4 and W5.
int64_t HotDocumentOf(const WorkloadSettings& settings) { return settings.documents; }
int64_t DeepDocumentOf(const WorkloadSettings& settings, size_t depth) {
  return settings.documents + 2 + static_cast<int64_t>(depth);
}

Population PreparePopulation(Peer& peer, const WorkloadSettings& settings) {
  Population population;
  population.versions.resize(static_cast<size_t>(DeepDocumentOf(settings, 0)));
  Fill fill(population);
  Prepare(peer, fill, kSlots);
  population.versions.resize(static_cast<size_t>(settings.documents));
  for (size_t i = 0; i < kDepths.size(); ++i) {
    Deepen deepen(population.bodies, DeepDocumentOf(settings, i), kDepths[i]);
    Prepare(peer, deepen, 1);
  }
  peer.Loaded();
  return population;
}

}  // namespace

void RunWorkloads(const std::string& system, Peer& peer, const WorkloadSettings& settings,
                  const std::function<void(const Measurement&)>& take) {
  Population population = PreparePopulation(peer, settings);
  const auto measure = [&](Workload& workload, int in_flight) {
    Measurement one = Loop(peer, workload, in_flight, settings.warm_up, settings.duration).Run();
    one.system = system;
    return one;
  };
  for (const int in_flight : {64, 16, 1}) {
    UpdateAtRandom updates(population, settings.seed + static_cast<uint64_t>(in_flight));
    take(measure(updates, in_flight));
  }

  for (const auto hot : {Transfer::Hot::kNone, Transfer::Hot::kLocked, Transfer::Hot::kCompared}) {
    if (hot == Transfer::Hot::kLocked && !peer.locks()) continue;
    Transfer transfers(population, hot, settings.seed);
    Measurement one = measure(transfers, kSlots);
    const auto account = static_cast<int64_t>(Transfer::kHot);
    if (!transfers.IsKept(Ask(peer, {Operation::kGet, account, 0, {}}))) {
      std::cerr << transfers.name() << ": acknowledged transfers and versions differ" << std::endl;
      ++one.failures;
    }
    take(one);
  }

  const auto measure_hot = [&](HotDocument& workload) {
    Measurement one = measure(workload, kWriters);
    const Answer current = Ask(peer, {Operation::kGet, workload.document(), 0, {}});
    if (!workload.IsKept(current, 1)) {
      std::cerr << workload.name() << ": acknowledged updates and versions differ" << std::endl;
      ++one.failures;
    }
    take(one);
  };
  HotOverwrite overwrite(population.bodies, HotDocumentOf(settings));
  measure_hot(overwrite);
  HotCompareAndSwap compare_and_swap(population.bodies, HotDocumentOf(settings) + 1);
  measure_hot(compare_and_swap);

  GetAtRandom gets(population, settings.seed);
  take(measure(gets, kSlots));
  GetMostlyFew mostly_few(population, settings.seed);
  take(measure(mostly_few, kSlots));
  for (size_t i = 0; i < kDepths.size(); ++i) {
    GetOldVersion old(DeepDocumentOf(settings, i), kDepths[i], settings.seed);
    take(measure(old, kSlots));
  }
  for (size_t i = 0; i < kDepths.size(); ++i) {
    NewestTen newest(DeepDocumentOf(settings, i), kDepths[i]);
    take(measure(newest, kSlots));
  }
}

void RunFeed(Peer& peer, const WorkloadSettings& settings,
             const std::function<void(const Followed&)>& take) {
  constexpr std::chrono::seconds kFollowPatience{60};
  constexpr int64_t kVersions = 10;
  using std::chrono::milliseconds;
  const auto seconds = [](Steady::duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  const auto await = [&](const Followers& followers, int64_t each) {
    if (!followers.AwaitEvents(each, kFollowPatience)) {
      throw std::runtime_error("of " + std::to_string(each) + " events some did not come");
    }
    followers.Check(each);
  };
  Population population;
  population.versions.resize(static_cast<size_t>(settings.documents));
  Fill fill(population);
  Prepare(peer, fill, kSlots);
  const auto entries = [&] {
    return std::accumulate(population.versions.begin(), population.versions.end(), int64_t{0});
  };
  Rewrite rewrite(population, kVersions);
  Prepare(peer, rewrite, kSlots);
  peer.Loaded();
  {
    const Steady::time_point begin = Steady::now();
    const std::unique_ptr<Followers> follower = peer.Follow(1, true);
    await(*follower, entries());
    take({"catch-up, with contents",
          static_cast<double>(entries()) / seconds(follower->last_arrival() - begin),
          std::nullopt});
  }
  for (const int64_t count : {1, 100}) {
    const std::unique_ptr<Followers> followers = peer.Follow(count, false);
    const int64_t before = entries();
    const Steady::time_point begin = Steady::now();
    UpdateAtRandom updates(population, settings.seed + static_cast<uint64_t>(count));
    const Measurement written =
        Loop(peer, updates, kSlots, settings.warm_up, settings.duration).Run();
    if (written.failures > 0) throw std::runtime_error("wrong answers to updates");
    const Steady::time_point end = Steady::now();
    await(*followers, entries() - before);
    const Steady::time_point last = followers->last_arrival();
    take({count == 1 ? "1 watcher of everything, under W1" : "100 watchers of everything, under W1",
          static_cast<double>(followers->events()) / seconds(last - begin),
          std::max(seconds(last - end), 0.0) * 1e6});
  }
}

}  // namespace strata::bench
