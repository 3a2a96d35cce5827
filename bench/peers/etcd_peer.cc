// etcd: the document is a key, its versions are the key's, its history is what etcd keeps of a key
// until it is compacted, which it never is here.
//
// A version other than the current one is had only by the revision of the whole store at which it
// was written, and etcd does not list a key's revisions. So this client keeps them, which is more
// than another process could do. What it reads that way cannot change any more, so the member may
// answer without asking the others (`serializable`); the current version it may not.
#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "bench/load/watchers.h"
#include "bench/peers/etcd.grpc.pb.h"
#include "bench/peers/peer.h"
#include "bench/peers/server_program.h"
#include "tests/fault/child_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

namespace pb = etcdserverpb;

constexpr std::chrono::seconds kStartPatience{30};
constexpr std::chrono::milliseconds kReceivePatience{100};
constexpr size_t kNewest = 10;

// Durable as it comes: a member answers once its log is synced, and its database follows later.
std::vector<std::string> Arguments(const std::string& data, int client_port, int peer_port) {
  const std::string client_url = "http://127.0.0.1:" + std::to_string(client_port);
  const std::string peer_url = "http://127.0.0.1:" + std::to_string(peer_port);
  return {FindProgram("etcd", {"/usr/bin/etcd", "/usr/local/bin/etcd"}),
          "--data-dir=" + data,
          "--name=bench",
          "--listen-client-urls=" + client_url,
          "--advertise-client-urls=" + client_url,
          "--listen-peer-urls=" + peer_url,
          "--initial-advertise-peer-urls=" + peer_url,
          "--initial-cluster=bench=" + peer_url,
          "--quota-backend-bytes=" + std::to_string(int64_t{8} << 30),  // the most etcd advises
          "--auto-compaction-retention=0",
          "--logger=zap",
          "--log-level=warn"};
}

class EtcdPeer final : public Peer {
 public:
  EtcdPeer(int client_port, int peer_port);
  ~EtcdPeer() override;

  pid_t server() const override { return process_.pid(); }
  void Send(int slot, const Call& call) override;
  void Receive(const std::function<void(int, const Answer&)>& answered) override;
  std::unique_ptr<Followers> Follow(int64_t count, bool from_beginning) override;

 private:
  template <typename Response>
  using Reader = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>>;

  struct Slot {
    std::optional<grpc::ClientContext> context;  // while the call is in flight
    grpc::Status status;
    Call call;
    pb::RangeResponse range;
    pb::PutResponse put;
    pb::TxnResponse txn;
    Reader<pb::RangeResponse> range_reader;
    Reader<pb::PutResponse> put_reader;
    Reader<pb::TxnResponse> txn_reader;
  };

  void SendRange(size_t index, int64_t revision);
  void SendPut(size_t index);
  void SendUpdate(size_t index);
  void SendTransfer(size_t index);
  void AddUpdate(int64_t document, int64_t version, std::string_view body);
  void SendNewestTen(size_t index);
  void SendTxn(size_t index);
  void Take(Slot& slot);
  void TakeUpdate(const Slot& slot);
  void TakeUpdated(const Slot& slot, int64_t document, int64_t version);
  void AddVersions(const pb::RangeResponse& range);

  const test_support::TemporaryDirectory folder_;
  fault::ChildProcess process_;
  const std::string address_;
  std::unique_ptr<pb::KV::Stub> stub_;
  grpc::CompletionQueue queue_;
  std::array<Slot, kSlots> slots_;
  pb::RangeRequest range_;
  pb::PutRequest put_;
  pb::TxnRequest txn_;
  Answer answer_;
  // By document: the store's revision that each of its versions was written at, from version 1 on.
  std::unordered_map<int64_t, std::vector<int64_t>> revisions_;
};

std::string KeyOf(int64_t document) { return "document-" + std::to_string(document); }
// All of them, and the key behind.
constexpr char kKeys[] = "document-";
constexpr char kKeysEnd[] = "document.";
constexpr std::chrono::seconds kGreetingPatience{30};

EtcdPeer::EtcdPeer(int client_port, int peer_port)
    : process_(Arguments(folder_.Join("data"), client_port, peer_port), folder_.Join("log")),
      address_("ipv4:127.0.0.1:" + std::to_string(client_port)) {
  RequireDisk(folder_.path().string());
  // A connection for each try: one that was refused once takes its time until it tries again.
  AwaitServer("etcd", folder_.Join("log"), kStartPatience, [&] {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // as in Connect
    stub_ = pb::KV::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    range_.set_key("any");
    pb::RangeResponse response;
    return stub_->Range(&context, range_, &response).ok();
  });
}

EtcdPeer::~EtcdPeer() {
  process_.Signal(SIGKILL);
  for (Slot& slot : slots_) {
    if (slot.context.has_value()) slot.context->TryCancel();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
  }
}

void EtcdPeer::Send(int slot_number, const Call& call) {
  const auto index = static_cast<size_t>(slot_number);
  Slot& slot = slots_[index];
  slot.context.emplace();
  slot.call = call;
  switch (call.operation) {
    case Operation::kGet:
      return SendRange(index, 0);
    case Operation::kGetVersion:
      return SendRange(index, revisions_[call.document].at(static_cast<size_t>(call.version) - 1));
    case Operation::kOverwrite:
      return SendPut(index);
    case Operation::kUpdate:
      return SendUpdate(index);
    case Operation::kTransfer:
      return SendTransfer(index);
    case Operation::kNewestTen:
      return SendNewestTen(index);
  }
}

void EtcdPeer::SendRange(size_t index, int64_t revision) {
  Slot& slot = slots_[index];
  range_.set_key(KeyOf(slot.call.document));
  range_.set_revision(revision);
  range_.set_serializable(revision != 0);
  slot.range_reader = stub_->AsyncRange(&*slot.context, range_, &queue_);
  slot.range_reader->Finish(&slot.range, &slot.status, reinterpret_cast<void*>(index));
}

void EtcdPeer::SendPut(size_t index) {
  Slot& slot = slots_[index];
  put_.set_key(KeyOf(slot.call.document));
  put_.set_value(std::string(slot.call.body));
  slot.put_reader = stub_->AsyncPut(&*slot.context, put_, &queue_);
  slot.put_reader->Finish(&slot.put, &slot.status, reinterpret_cast<void*>(index));
}

// A conflict brings the key as it is, in the same round trip.
void EtcdPeer::AddUpdate(int64_t document, int64_t version, std::string_view body) {
  pb::Compare& compare = *txn_.add_compare();
  compare.set_target(pb::Compare::VERSION);
  compare.set_key(KeyOf(document));
  compare.set_version(version);
  pb::PutRequest& put = *txn_.add_success()->mutable_request_put();
  put.set_key(compare.key());
  put.set_value(std::string(body));
}

void EtcdPeer::SendUpdate(size_t index) {
  const Call& call = slots_[index].call;
  txn_.Clear();
  AddUpdate(call.document, call.version, call.body);
  txn_.add_failure()->mutable_request_range()->set_key(KeyOf(call.document));
  SendTxn(index);
}

void EtcdPeer::SendTransfer(size_t index) {
  const Call& call = slots_[index].call;
  txn_.Clear();
  AddUpdate(call.document, call.version, call.body);
  AddUpdate(call.other_document, call.other_version, call.other_body);
  txn_.add_failure()->mutable_request_range()->set_key(KeyOf(call.document));
  SendTxn(index);
}

// The fairest that etcd offers to one who knows the revisions: one call, and reads do not go
// through its log. Who does not know them needs ten calls, one after the other, each at the
// revision before the one that the last brought.
void EtcdPeer::SendNewestTen(size_t index) {
  const Call& call = slots_[index].call;
  const std::vector<int64_t>& revisions = revisions_[call.document];
  txn_.Clear();
  for (size_t i = 1; i <= std::min(kNewest, revisions.size()); ++i) {
    pb::RangeRequest& range = *txn_.add_success()->mutable_request_range();
    range.set_key(KeyOf(call.document));
    range.set_revision(revisions[revisions.size() - i]);
    range.set_serializable(true);
  }
  SendTxn(index);
}

void EtcdPeer::SendTxn(size_t index) {
  Slot& slot = slots_[index];
  slot.txn_reader = stub_->AsyncTxn(&*slot.context, txn_, &queue_);
  slot.txn_reader->Finish(&slot.txn, &slot.status, reinterpret_cast<void*>(index));
}

void EtcdPeer::Receive(const std::function<void(int, const Answer&)>& answered) {
  void* tag = nullptr;
  bool ok = false;
  const auto deadline = std::chrono::system_clock::now() + kReceivePatience;
  if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return;
  const auto index = reinterpret_cast<size_t>(tag);
  Slot& slot = slots_[index];
  Take(slot);
  slot.range_reader.reset();
  slot.put_reader.reset();
  slot.txn_reader.reset();
  slot.context.reset();
  answered(static_cast<int>(index), answer_);
}

void EtcdPeer::Take(Slot& slot) {
  answer_.versions.clear();
  answer_.error.clear();
  if (!slot.status.ok()) {
    answer_.outcome = Answer::Outcome::kFailed;
    answer_.error = slot.status.error_message();
    return;
  }
  answer_.outcome = Answer::Outcome::kDone;
  switch (slot.call.operation) {
    case Operation::kGet:
    case Operation::kGetVersion:
      return AddVersions(slot.range);
    case Operation::kOverwrite:
      return;
    case Operation::kUpdate:
    case Operation::kTransfer:
      return TakeUpdate(slot);
    case Operation::kNewestTen:
      for (const pb::ResponseOp& one : slot.txn.responses()) AddVersions(one.response_range());
  }
}

void EtcdPeer::TakeUpdate(const Slot& slot) {
  if (!slot.txn.succeeded()) {
    answer_.outcome = Answer::Outcome::kConflict;
    if (slot.txn.responses_size() == 1) AddVersions(slot.txn.responses(0).response_range());
    return;
  }
  // The comparisons held, so these are the next ones.
  TakeUpdated(slot, slot.call.document, slot.call.version + 1);
  if (slot.call.operation == Operation::kTransfer) {
    TakeUpdated(slot, slot.call.other_document, slot.call.other_version + 1);
  }
}

void EtcdPeer::TakeUpdated(const Slot& slot, int64_t document, int64_t version) {
  answer_.versions.push_back({version, 0});
  std::vector<int64_t>& revisions = revisions_[document];
  if (revisions.size() < static_cast<size_t>(version)) {
    revisions.resize(static_cast<size_t>(version));
  }
  revisions[static_cast<size_t>(version) - 1] = slot.txn.header().revision();
}

// Each on a stream of its own, as so many processes would.
std::unique_ptr<Followers> EtcdPeer::Follow(int64_t count, bool from_beginning) {
  pb::WatchRequest request;
  pb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(kKeys);
  create.set_range_end(kKeysEnd);
  create.set_start_revision(from_beginning ? 1 : 0);
  auto watchers = std::make_unique<Watchers>(
      WatchersSettings{.address = address_,
                       .method = "/etcdserverpb.Watch/Watch",
                       .request = request.SerializeAsString(),
                       .events_field = pb::WatchResponse::kEventsFieldNumber,
                       .half_close = false,
                       .count = count});
  watchers->AwaitGreeted(kGreetingPatience);
  return watchers;
}

void EtcdPeer::AddVersions(const pb::RangeResponse& range) {
  for (const pb::KeyValue& one : range.kvs()) {
    answer_.versions.push_back({one.version(), one.value().size()});
  }
}

}  // namespace

std::unique_ptr<Peer> StartEtcd() {
  const std::vector<int> ports = FreePorts(2);
  return std::make_unique<EtcdPeer>(ports[0], ports[1]);
}

}  // namespace strata::bench
