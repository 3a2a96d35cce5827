// NATS JetStream: a document is a subject, its versions are the subject's messages in one stream,
// kept in files. It is written to and followed, and nothing else: it has no documents to read.
//
// A message is answered once the server has written it to its file. The server leaves syncing to a
// clock of two minutes, and NATS 2.9 has no setting for it. So where each write is to be durable,
// the files get the attribute by which the file system syncs each write before it returns, which is
// what later versions do if they are told "sync_interval: always".
#include <fcntl.h>
#include <linux/fs.h>
#include <nats/nats.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "bench/peers/peer.h"
#include "bench/peers/server_program.h"
#include "tests/fault/child_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kNatsStartPatience{30};
constexpr int64_t kNatsPatienceMs = 100;
constexpr char kStream[] = "documents";
constexpr char kSubjects[] = "documents.>";
constexpr char kSubjectPrefix[] = "documents.";
constexpr char kExpectedHeader[] = "Nats-Expected-Last-Subject-Sequence";
constexpr std::string_view kWrongLastSequence = "\"err_code\":10071";

void Require(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  throw std::runtime_error(std::string("nats: ") + what + ": " + natsStatus_GetText(status));
}

// What the library makes, by what destroys it.
template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* one) const { destroy(one); }
};
template <typename T, void (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;
using NatsConnection = Owned<natsConnection, natsConnection_Destroy>;
using NatsSubscription = Owned<natsSubscription, natsSubscription_Destroy>;
using NatsMessage = Owned<natsMsg, natsMsg_Destroy>;
using NatsOptions = Owned<natsOptions, natsOptions_Destroy>;
using JetStream = Owned<jsCtx, jsCtx_Destroy>;

NatsOptions OptionsFor(const std::string& url) {
  natsOptions* made = nullptr;
  Require(natsOptions_Create(&made), "options");
  NatsOptions options(made);
  Require(natsOptions_SetURL(made, url.c_str()), "URL");
  Require(natsOptions_SetAllowReconnect(made, false), "options");
  return options;
}

NatsConnection Connect(const NatsOptions& options) {
  natsConnection* connection = nullptr;
  Require(natsConnection_Connect(&connection, options.get()), "connect");
  return NatsConnection(connection);
}

JetStream JetStreamOf(const NatsConnection& connection) {
  jsCtx* context = nullptr;
  Require(natsConnection_JetStream(&context, connection.get(), nullptr), "JetStream");
  return JetStream(context);
}

// Ordered consumers over one connection, as etcd's watches are streams of one. The library has a
// thread that reads the connection, and one that hands all of their messages over.
class NatsFollowers final : public Followers {
 public:
  NatsFollowers(const std::string& url, int64_t count, bool from_beginning);
  ~NatsFollowers() override;

 private:
  struct Follower {
    NatsFollowers* all = nullptr;
    size_t number = 0;
    NatsSubscription subscription{};
  };

  void Begin(jsCtx* context, Follower& follower, bool from_beginning);
  void EndAll();

  const NatsConnection connection_;
  std::vector<Follower> followers_;
  absl::BlockingCounter open_;  // those that messages may still come to
};

NatsConnection ConnectFollowers(const std::string& url) {
  const NatsOptions options = OptionsFor(url);
  Require(natsOptions_UseGlobalMessageDelivery(options.get(), true), "options");
  return Connect(options);
}

NatsFollowers::NatsFollowers(const std::string& url, int64_t count, bool from_beginning)
    : Followers("nats", count),
      connection_(ConnectFollowers(url)),
      followers_(static_cast<size_t>(count)),
      open_(static_cast<int>(count)) {
  const JetStream context = JetStreamOf(connection_);
  try {
    for (size_t i = 0; i < followers_.size(); ++i) {
      followers_[i].all = this;
      followers_[i].number = i;
      Begin(context.get(), followers_[i], from_beginning);
    }
  } catch (const std::runtime_error&) {
    EndAll();
    throw;
  }
}

NatsFollowers::~NatsFollowers() { EndAll(); }

void NatsFollowers::Begin(jsCtx* context, Follower& follower, bool from_beginning) {
  jsSubOptions options;
  Require(jsSubOptions_Init(&options), "options");
  options.Stream = kStream;
  options.Ordered = true;
  options.Config.DeliverPolicy = from_beginning ? js_DeliverAll : js_DeliverNew;
  // The client knows where it is; so the server need not write it down.
  options.Config.MemoryStorage = true;
  // The heartbeats are the library's own, each 5 s: it is by them that a consumer that waits for a
  // lost answer to its flow control goes on.
  const auto take = [](natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    const NatsMessage taken(message);
    const auto& its = *static_cast<Follower*>(closure);
    its.all->Count(its.number, 1, Clock::now());
  };
  const auto ended = [](void* closure) {
    static_cast<absl::BlockingCounter*>(closure)->DecrementCount();
  };
  natsSubscription* made = nullptr;
  Require(js_Subscribe(&made, context, kSubjects, take, &follower, nullptr, &options, nullptr),
          "subscribe");
  NatsSubscription subscription(made);
  Require(natsSubscription_SetOnCompleteCB(made, ended, &open_), "subscribe");
  follower.subscription = std::move(subscription);
  // The server holds back what a follower has not taken; the library shall not drop it.
  Require(natsSubscription_SetPendingLimits(made, -1, -1), "limits");
}

// A message may be on its way to one that is no more, so the last of each is awaited.
void NatsFollowers::EndAll() {
  for (const Follower& one : followers_) {
    if (one.subscription == nullptr) {
      open_.DecrementCount();
    } else {
      natsSubscription_Unsubscribe(one.subscription.get());
    }
  }
  open_.Wait();
}

class NatsPeer final : public Peer {
 public:
  NatsPeer(int port, bool syncs);
  ~NatsPeer() override;

  pid_t server() const override { return process_.pid(); }
  void Send(int slot, const Call& call) override;
  void Receive(const std::function<void(int, const Answer&)>& answered) override;
  std::unique_ptr<Followers> Follow(int64_t count, bool from_beginning) override;
  void Loaded() override;

 private:
  void AddStream();
  void Take(const Call& call, std::string_view answer);

  const bool syncs_;
  const test_support::TemporaryDirectory folder_;
  const std::string data_ = folder_.Join("data");
  const std::string url_;
  fault::ChildProcess process_;
  NatsConnection connection_;
  std::string inbox_;
  NatsSubscription answers_;  // to all slots; the last part of its subject is the slot
  std::array<Call, kSlots> calls_;
  Answer answer_;
  // By document: the place in the stream of its last message, 0 for none.
  std::unordered_map<int64_t, uint64_t> sequences_;
};

std::vector<std::string> Arguments(int port, const std::string& data) {
  return {
      FindProgram("nats-server",
                  {"/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"}),
      "--addr=127.0.0.1", "--port=" + std::to_string(port), "--jetstream", "--store_dir=" + data};
}

NatsPeer::NatsPeer(int port, bool syncs)
    : syncs_(syncs),
      url_("nats://127.0.0.1:" + std::to_string(port)),
      process_(Arguments(port, data_), folder_.Join("log")) {
  RequireDisk(folder_.path().string());
  const NatsOptions options = OptionsFor(url_);
  AwaitServer("nats-server", folder_.Join("log"), kNatsStartPatience, [&] {
    natsConnection* connection = nullptr;
    if (natsConnection_Connect(&connection, options.get()) != NATS_OK) return false;
    connection_.reset(connection);
    return true;
  });
  AddStream();
  natsInbox* inbox = nullptr;
  Require(natsInbox_Create(&inbox), "inbox");
  inbox_ = std::string(inbox) + ".";
  natsInbox_Destroy(inbox);
  natsSubscription* answers = nullptr;
  Require(natsConnection_SubscribeSync(&answers, connection_.get(), (inbox_ + "*").c_str()),
          "subscribe");
  answers_.reset(answers);
}

NatsPeer::~NatsPeer() { process_.Signal(SIGKILL); }

// As it comes: in files, without limits.
void NatsPeer::AddStream() {
  jsStreamConfig config;
  Require(jsStreamConfig_Init(&config), "stream");
  std::array<const char*, 1> subjects = {kSubjects};
  config.Name = kStream;
  config.Subjects = subjects.data();
  config.SubjectsLen = static_cast<int>(subjects.size());
  config.Storage = js_FileStorage;
  Require(js_AddStream(nullptr, JetStreamOf(connection_).get(), &config, nullptr, nullptr),
          "stream");
}

void SyncEachWrite(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int flags = 0;
  bool is_set = file >= 0 && ioctl(file, FS_IOC_GETFLAGS, &flags) == 0;
  flags |= FS_SYNC_FL;
  is_set = is_set && ioctl(file, FS_IOC_SETFLAGS, &flags) == 0 && fsync(file) == 0;
  if (file >= 0) close(file);
  if (!is_set) {
    throw std::runtime_error(path.string() +
                             ": the file system cannot be told to sync each write (chattr +S): set "
                             "TMPDIR to a folder on one that can, such as ext4");
  }
}

// What was loaded is synced once. Files that are made later have the attribute of their folder.
void NatsPeer::Loaded() {
  if (!syncs_) return;
  SyncEachWrite(data_);
  for (const auto& one : std::filesystem::recursive_directory_iterator(data_)) {
    if (one.is_directory() || one.is_regular_file()) SyncEachWrite(one.path());
  }
}

void NatsPeer::Send(int slot, const Call& call) {
  if (call.operation != Operation::kUpdate) throw std::runtime_error("nats: nothing but updates");
  calls_[static_cast<size_t>(slot)] = call;
  natsMsg* made = nullptr;
  Require(natsMsg_Create(&made, (kSubjectPrefix + std::to_string(call.document)).c_str(),
                         (inbox_ + std::to_string(slot)).c_str(), call.body.data(),
                         static_cast<int>(call.body.size())),
          "message");
  const NatsMessage message(made);
  const std::string expected = std::to_string(sequences_[call.document]);
  Require(natsMsgHeader_Set(made, kExpectedHeader, expected.c_str()), "header");
  Require(natsConnection_PublishMsg(connection_.get(), made), "publish");
}

void NatsPeer::Receive(const std::function<void(int, const Answer&)>& answered) {
  natsMsg* got = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&got, answers_.get(), kNatsPatienceMs);
  if (status == NATS_TIMEOUT) return;
  Require(status, "answer");
  const NatsMessage message(got);
  const int slot = std::atoi(natsMsg_GetSubject(got) + inbox_.size());
  Take(calls_[static_cast<size_t>(slot)],
       {natsMsg_GetData(got), static_cast<size_t>(natsMsg_GetDataLength(got))});
  answered(slot, answer_);
}

// {"stream":"documents", "seq":8}, or with an "error" first.
void NatsPeer::Take(const Call& call, std::string_view answer) {
  constexpr std::string_view kSequence = "\"seq\":";
  answer_.versions.clear();
  answer_.error.clear();
  const size_t at = answer.find(kSequence);
  if (answer.find("\"error\"") != std::string_view::npos || at == std::string_view::npos) {
    answer_.outcome = answer.find(kWrongLastSequence) == std::string_view::npos
                          ? Answer::Outcome::kFailed
                          : Answer::Outcome::kConflict;
    answer_.error = answer.empty() ? "nobody answers" : answer;
    return;
  }
  const char* const digits = answer.data() + at + kSequence.size();
  std::from_chars(digits, answer.data() + answer.size(), sequences_[call.document]);
  // The comparison held, so this is the next one.
  answer_.outcome = Answer::Outcome::kDone;
  answer_.versions.push_back({call.version + 1, 0});
}

std::unique_ptr<Followers> NatsPeer::Follow(int64_t count, bool from_beginning) {
  return std::make_unique<NatsFollowers>(url_, count, from_beginning);
}

}  // namespace

std::unique_ptr<Peer> StartNats(bool syncs) {
  return std::make_unique<NatsPeer>(FreePorts(1)[0], syncs);
}

}  // namespace strata::bench
