// Redis as a queue: a stream with one consumer group. A message that was acknowledged is deleted as
// well, so that the stream does not grow. What one call sends goes out together; several calls
// share a connection, whose answers come in order.
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <deque>
#include <fstream>
#include <stdexcept>

#include "bench/peers/queue_peer.h"
#include "bench/peers/server_program.h"
#include "tests/fault/child_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kRedisStartPatience{30};
constexpr int kRedisPatienceMs = 100;
// Redis reads 16 KiB of a connection before it writes its log and syncs. So calls of many messages
// have a connection each; others share a few, which costs less.
constexpr size_t kConnections = 64;
constexpr size_t kSharedConnections = 4;
constexpr char kGroup[] = "consumers";

using RedisContext = std::unique_ptr<redisContext, decltype(&redisFree)>;
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeReply>;

std::string TextOf(const redisReply& reply) { return std::string(reply.str, reply.len); }

class RedisServer {
 public:
  explicit RedisServer(int port);
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  pid_t pid() const { return process_.pid(); }
  // Throws std::runtime_error if it is refused.
  RedisContext Connect() const;

 private:
  std::string WriteSettings() const;
  RedisContext TryToConnect() const;

  const test_support::TemporaryDirectory folder_;
  const std::string log_ = folder_.Join("log");
  const int port_;
  const std::string password_ = RandomPassword();
  fault::ChildProcess process_;
};

RedisServer::RedisServer(int port)
    : port_(port),
      process_({FindProgram("redis-server", {"/usr/bin/redis-server"}), WriteSettings()}, log_) {
  AwaitServer("redis", log_, kRedisStartPatience, [&] { return TryToConnect() != nullptr; });
}

// As it comes, but for what makes each write durable before it is answered, and for snapshots,
// which the log makes unnecessary.
std::string RedisServer::WriteSettings() const {
  RequireDisk(folder_.path().string());
  std::string path = folder_.Join("settings");
  std::ofstream settings(path);
  settings << "bind 127.0.0.1\nport " << port_ << "\nrequirepass " << password_ << "\ndir "
           << folder_.path().string() << "\nlogfile " << log_
           << "\nappendonly yes\nappendfsync always\nsave \"\"\n";
  return path;
}

RedisContext RedisServer::TryToConnect() const {
  RedisContext context(redisConnect("127.0.0.1", port_), &redisFree);
  if (context == nullptr || context->err != 0) return {nullptr, &redisFree};
  const RedisReply reply(
      static_cast<redisReply*>(redisCommand(context.get(), "AUTH %s", password_.c_str())));
  if (reply == nullptr || reply->type != REDIS_REPLY_STATUS) return {nullptr, &redisFree};
  return context;
}

RedisContext RedisServer::Connect() const {
  RedisContext context = TryToConnect();
  if (context == nullptr) throw std::runtime_error("redis: cannot connect");
  return context;
}

class RedisQueue final : public QueuePeer {
 public:
  RedisQueue();
  ~RedisQueue() override { close(poll_); }

  pid_t server() const override { return server_.pid(); }
  void OpenQueue(const std::string& name) override;
  void Send(int slot, const QueueCall& call) override;
  void Receive(const std::function<void(int, QueueAnswer&)>& answered) override;
  int64_t CountMessages() override;

 private:
  struct Pending {
    int slot = 0;
    size_t replies = 1;   // that have not come
    int64_t removed = 0;  // messages, if they are all there
    QueueAnswer answer{};
  };
  struct Connection {
    RedisContext context{nullptr, &redisFree};
    std::deque<Pending> pending;
    bool is_written = true;
  };

  RedisReply Run(const std::vector<std::string>& words);
  void Append(const Connection& connection, const std::vector<std::string_view>& words) const;
  void AppendRemovals(const Connection& connection, const std::vector<MessageId>& messages) const;
  void Read(Connection& connection, const std::function<void(int, QueueAnswer&)>& answered);
  static void Take(const redisReply& reply, Pending& pending);
  static void TakeMessages(const redisReply& reply, QueueAnswer& answer);

  RedisServer server_;
  const int poll_;
  std::array<Connection, kConnections> connections_;
  RedisContext control_;
  std::string queue_;
};

RedisQueue::RedisQueue()
    : server_(FreePorts(1)[0]), poll_(epoll_create1(EPOLL_CLOEXEC)), control_(server_.Connect()) {
  for (size_t i = 0; i < kConnections; ++i) {
    connections_[i].context = server_.Connect();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(poll_, EPOLL_CTL_ADD, connections_[i].context->fd, &event) != 0) {
      throw std::runtime_error("epoll_ctl");
    }
  }
}

RedisReply RedisQueue::Run(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  for (const std::string& one : words) texts.push_back(one.c_str());
  RedisReply reply(static_cast<redisReply*>(
      redisCommandArgv(control_.get(), static_cast<int>(texts.size()), texts.data(), nullptr)));
  if (reply == nullptr) throw std::runtime_error(std::string("redis: ") + control_->errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error("redis: " + TextOf(*reply));
  return reply;
}

void RedisQueue::OpenQueue(const std::string& name) {
  if (!queue_.empty()) Run({"DEL", queue_});
  queue_ = name;
  Run({"XGROUP", "CREATE", queue_, kGroup, "0", "MKSTREAM"});
}

int64_t RedisQueue::CountMessages() { return Run({"XLEN", queue_})->integer; }

void RedisQueue::Append(const Connection& connection,
                        const std::vector<std::string_view>& words) const {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string_view one : words) {
    texts.push_back(one.data());
    sizes.push_back(one.size());
  }
  redisAppendCommandArgv(connection.context.get(), static_cast<int>(texts.size()), texts.data(),
                         sizes.data());
}

void RedisQueue::AppendRemovals(const Connection& connection,
                                const std::vector<MessageId>& messages) const {
  std::vector<std::string> ids;
  for (const MessageId& one : messages) {
    ids.push_back(std::to_string(one.high) + "-" + std::to_string(one.low));
  }
  std::vector<std::string_view> acknowledge = {"XACK", queue_, kGroup};
  std::vector<std::string_view> remove = {"XDEL", queue_};
  for (std::vector<std::string_view>* const words : {&acknowledge, &remove}) {
    words->insert(words->end(), ids.begin(), ids.end());
    Append(connection, *words);
  }
}

void RedisQueue::Send(int slot, const QueueCall& call) {
  const size_t shared = call.payloads.size() > 1 ? kConnections : kSharedConnections;
  Connection& connection = connections_[static_cast<size_t>(slot) % shared];
  Pending pending;
  pending.slot = slot;
  switch (call.operation) {
    case QueueOperation::kPush:
      pending.replies = call.payloads.size();
      for (const std::string_view one : call.payloads) {
        Append(connection, {"XADD", queue_, "*", "payload", one});
      }
      break;
    case QueueOperation::kReserve:
    case QueueOperation::kReceive:
      Append(connection, {"XREADGROUP", "GROUP", kGroup, "consumer-" + std::to_string(slot),
                          "COUNT", std::to_string(call.count), "STREAMS", queue_, ">"});
      break;
    case QueueOperation::kAcknowledge:
      pending.replies = 2;
      pending.removed = static_cast<int64_t>(call.messages.size());
      AppendRemovals(connection, call.messages);
      break;
    case QueueOperation::kReserveAhead:
    case QueueOperation::kCommit:
      throw std::runtime_error("redis: has no commits");
  }
  connection.pending.push_back(std::move(pending));
  connection.is_written = false;
}

// What was sent since the last time goes out together.
void RedisQueue::Receive(const std::function<void(int, QueueAnswer&)>& answered) {
  for (Connection& one : connections_) {
    while (!one.is_written) {
      int is_done = 0;
      if (redisBufferWrite(one.context.get(), &is_done) != REDIS_OK) {
        throw std::runtime_error(std::string("redis: ") + one.context->errstr);
      }
      one.is_written = is_done == 1;
    }
  }
  std::array<epoll_event, kConnections> events;
  const int count = epoll_wait(poll_, events.data(), kConnections, kRedisPatienceMs);
  for (int i = 0; i < count; ++i) {
    Read(connections_[static_cast<size_t>(events[static_cast<size_t>(i)].data.u64)], answered);
  }
}

void RedisQueue::Read(Connection& connection,
                      const std::function<void(int, QueueAnswer&)>& answered) {
  redisContext* const context = connection.context.get();
  if (redisBufferRead(context) != REDIS_OK) {
    throw std::runtime_error(std::string("redis: ") + context->errstr);
  }
  while (true) {
    void* read = nullptr;
    if (redisGetReplyFromReader(context, &read) != REDIS_OK) {
      throw std::runtime_error(std::string("redis: ") + context->errstr);
    }
    if (read == nullptr) return;
    const RedisReply reply(static_cast<redisReply*>(read));
    if (connection.pending.empty()) throw std::runtime_error("redis: an answer to nothing");
    Pending& pending = connection.pending.front();
    Take(*reply, pending);
    if (--pending.replies > 0) continue;
    Pending done = std::move(pending);
    connection.pending.pop_front();
    done.answer.is_done = done.answer.error.empty();
    answered(done.slot, done.answer);
  }
}

void RedisQueue::Take(const redisReply& reply, Pending& pending) {
  QueueAnswer& answer = pending.answer;
  switch (reply.type) {
    case REDIS_REPLY_ERROR:
      answer.error = "redis: " + TextOf(reply);
      break;
    case REDIS_REPLY_INTEGER:
      if (reply.integer != pending.removed) answer.error = "redis: a message was not there";
      break;
    case REDIS_REPLY_ARRAY:
      TakeMessages(reply, answer);
      break;
    default:
      break;
  }
}

// Of one stream: its name and its messages, each with its id, a field's name and its value.
void RedisQueue::TakeMessages(const redisReply& reply, QueueAnswer& answer) {
  if (reply.elements != 1 || reply.element[0]->elements != 2) {
    answer.error = "redis: not one stream";
    return;
  }
  const redisReply& messages = *reply.element[0]->element[1];
  for (size_t i = 0; i < messages.elements; ++i) {
    const redisReply& message = *messages.element[i];
    if (message.elements != 2 || message.element[1]->elements != 2) {
      answer.error = "redis: not one field";
      return;
    }
    const redisReply& id = *message.element[0];
    const char* const end = id.str + id.len;
    QueueAnswer::Message taken;
    const auto high = std::from_chars(id.str, end, taken.id.high);
    if (high.ptr != end) std::from_chars(high.ptr + 1, end, taken.id.low);
    taken.payload = TextOf(*message.element[1]->element[1]);
    answer.messages.push_back(std::move(taken));
  }
}

}  // namespace

std::unique_ptr<QueuePeer> StartRedisQueue() { return std::make_unique<RedisQueue>(); }

}  // namespace strata::bench
