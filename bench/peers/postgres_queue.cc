// PostgreSQL as a queue: messages are rows of one table, those that wait are in a partial index,
// and consumers skip rows that another one has locked. A message is deleted when it is
// acknowledged. One connection for each call in flight, as for documents, and statements that are
// prepared once; those of one call are sent together.
#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/peers/postgres_queue_statements.h"
#include "bench/peers/postgres_server.h"
#include "bench/peers/queue_peer.h"
#include "bench/peers/server_program.h"

namespace strata::bench {
namespace {

constexpr int kPostgresPatienceMs = 100;
constexpr uint32_t kByteaOid = 17;

// The values of one call: they are kept until it is sent.
class Values {
 public:
  void AddText(std::string text) { Add(std::move(text), 0); }
  void AddBinary(std::string bytes) { Add(std::move(bytes), 1); }
  void AddNumber(int64_t number) {
    const uint64_t bytes = htobe64(static_cast<uint64_t>(number));
    AddBinary(std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes));
  }
  // The binary form of jsonb: the form's version, then text.
  void AddJson(std::string_view json) { AddBinary("\1" + std::string(json)); }

  bool Send(PGconn* connection, const PostgresStatement& statement) const {
    std::array<const char*, kMost> values{};
    std::array<int, kMost> lengths{};
    for (size_t i = 0; i < count_; ++i) {
      values[i] = values_[i].data();
      lengths[i] = static_cast<int>(values_[i].size());
    }
    return PQsendQueryPrepared(connection, statement.name, static_cast<int>(count_), values.data(),
                               lengths.data(), formats_.data(), 1) == 1;
  }

 private:
  static constexpr size_t kMost = 6;

  void Add(std::string bytes, int format) {
    formats_[count_] = format;
    values_[count_++] = std::move(bytes);
  }

  size_t count_ = 0;
  std::array<std::string, kMost> values_;
  std::array<int, kMost> formats_{};
};

// The binary form of an array with one dimension.
std::string ByteaArray(const std::vector<std::string_view>& elements) {
  std::string bytes;
  const auto add = [&](size_t number) {
    const uint32_t big = htobe32(static_cast<uint32_t>(number));
    bytes.append(reinterpret_cast<const char*>(&big), sizeof big);
  };
  for (const size_t number :
       {size_t{1}, size_t{0}, size_t{kByteaOid}, elements.size(), size_t{1}}) {
    add(number);  // dimensions, whether there are nulls, what of, how many, counted from
  }
  for (const std::string_view one : elements) {
    add(one.size());
    bytes += one;
  }
  return bytes;
}

std::string TextArray(const std::vector<MessageId>& messages) {
  std::string text;
  for (const MessageId& one : messages)
    text += (text.empty() ? "{" : ",") + std::to_string(one.low);
  return text + "}";
}

std::string DocumentId(int64_t document) { return "document-" + std::to_string(document); }

class PostgresQueue final : public QueuePeer {
 public:
  explicit PostgresQueue(PostgresReservation reservation);
  ~PostgresQueue() override { close(poll_); }

  pid_t server() const override { return server_.pid(); }
  void OpenQueue(const std::string& name) override;
  void Send(int slot, const QueueCall& call) override;
  void Receive(const std::function<void(int, QueueAnswer&)>& answered) override;
  int64_t CountMessages() override;
  // What autovacuum would do in its own time.
  void Loaded() override { Run("VACUUM ANALYZE"); }
  bool commits() const override { return true; }
  void MakeDocuments(const std::vector<std::string_view>& bodies) override;

 private:
  struct Connection {
    PostgresConnection connection{nullptr, &PQfinish};
    bool is_busy = false;
    bool is_holding = false;  // a transaction, whose locks are reservations
    int64_t rows = 0;         // that the call in flight must change or return; 0: any number
  };

  void Open(Connection& slot);
  // By the owner's connection. Its only value, if it has any.
  std::string Run(const char* statement);
  // Whoever holds messages gives them back.
  void LetGo();
  static void AppendPush(Connection& slot, const std::string& queue, const QueueCall& call);
  void AppendReserve(Connection& slot, const QueueCall& call);
  static void AppendAcknowledge(Connection& slot, const QueueCall& call);
  static void AppendCommit(Connection& slot, const std::string& into, const QueueCall& call);
  static void Append(Connection& slot, const PostgresStatement& statement,
                     const Values& values = {});
  // Sends what was appended: one call.
  static void Flush(Connection& slot);
  // Sends it and waits for the answer, which must be right.
  void Finish(Connection& slot);
  // Whether the call in flight is answered, and answer_ holds it.
  bool Consume(Connection& slot);
  // The number of rows.
  int64_t Take(const PGresult* result);

  const PostgresReservation reservation_;
  PostgresServer server_;
  const int poll_;
  const PostgresConnection owner_;
  std::array<Connection, kQueueSlots> slots_;
  std::string queue_;
  QueueAnswer answer_;
};

PostgresQueue::PostgresQueue(PostgresReservation reservation)
    : reservation_(reservation),
      server_(FreePorts(1)[0]),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      owner_(server_.Connect()) {
  Run(kQueueTables);
  for (Connection& slot : slots_) {
    slot.connection = server_.Connect();
    Open(slot);
  }
}

void PostgresQueue::Open(Connection& slot) {
  PGconn* const connection = slot.connection.get();
  for (const PostgresStatement* one : kQueueStatements) {
    PGresult* const result = PQprepare(connection, one->name, one->text, 0, nullptr);
    const bool is_prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!is_prepared) FailPostgres(connection);
  }
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1) {
    FailPostgres(connection);
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(&slot - slots_.data());
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, PQsocket(connection), &event) != 0) {
    throw std::runtime_error("epoll_ctl");
  }
}

std::string PostgresQueue::Run(const char* statement) {
  PGresult* const result = PQexec(owner_.get(), statement);
  const ExecStatusType status = PQresultStatus(result);
  std::string value;
  if (status == PGRES_TUPLES_OK && PQntuples(result) == 1) value = PQgetvalue(result, 0, 0);
  PQclear(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) FailPostgres(owner_.get());
  return value;
}

void PostgresQueue::LetGo() {
  for (Connection& slot : slots_) {
    if (!std::exchange(slot.is_holding, false)) continue;
    slot.rows = 0;
    Append(slot, kEnd);
    Finish(slot);
  }
}

void PostgresQueue::OpenQueue(const std::string& name) {
  LetGo();
  Run("TRUNCATE messages, documents, history");
  queue_ = name;
}

int64_t PostgresQueue::CountMessages() {
  LetGo();
  return std::stoll(Run("SELECT count(*) FROM messages"));
}

// So many together that neither side waits for the other to read.
void PostgresQueue::MakeDocuments(const std::vector<std::string_view>& bodies) {
  constexpr size_t kTogether = 100;
  Connection& slot = slots_[0];
  for (size_t i = 0; i < bodies.size();) {
    const size_t end = std::min(i + kTogether, bodies.size());
    slot.rows = static_cast<int64_t>(end - i);
    for (; i < end; ++i) {
      Values values;
      values.AddText(DocumentId(static_cast<int64_t>(i)));
      values.AddJson(bodies[i]);
      Append(slot, kInsertDocument, values);
    }
    Finish(slot);
  }
}

void PostgresQueue::Send(int slot_number, const QueueCall& call) {
  Connection& slot = slots_[static_cast<size_t>(slot_number)];
  switch (call.operation) {
    case QueueOperation::kPush:
      AppendPush(slot, queue_, call);
      break;
    case QueueOperation::kReserve:
    case QueueOperation::kReceive:
    case QueueOperation::kReserveAhead:
      AppendReserve(slot, call);
      break;
    case QueueOperation::kAcknowledge:
      AppendAcknowledge(slot, call);
      break;
    case QueueOperation::kCommit:
      AppendCommit(slot, queue_ + "-out", call);
      break;
  }
  Flush(slot);
}

void PostgresQueue::AppendPush(Connection& slot, const std::string& queue, const QueueCall& call) {
  Values values;
  values.AddText(queue);
  slot.rows = static_cast<int64_t>(call.payloads.size());
  if (slot.rows == 1) {
    values.AddBinary(std::string(call.payloads[0]));
    return Append(slot, kPushOne, values);
  }
  values.AddBinary(ByteaArray(call.payloads));
  Append(slot, kPushMany, values);
}

// A transaction that found nothing ends: its time stands still.
void PostgresQueue::AppendReserve(Connection& slot, const QueueCall& call) {
  Values values;
  values.AddText(queue_);
  values.AddNumber(call.count);
  slot.rows = 0;
  if (reservation_ == PostgresReservation::kWritten ||
      call.operation == QueueOperation::kReserveAhead) {
    return Append(slot, kReserveRows, values);
  }
  if (slot.is_holding) Append(slot, kEnd);
  Append(slot, kBegin);
  Append(slot, kLockRows, values);
  slot.is_holding = true;
}

void PostgresQueue::AppendAcknowledge(Connection& slot, const QueueCall& call) {
  Values values;
  slot.rows = static_cast<int64_t>(call.messages.size());
  if (slot.rows == 1) {
    values.AddNumber(static_cast<int64_t>(call.messages[0].low));
  } else {
    values.AddText(TextArray(call.messages));
  }
  Append(slot, slot.rows == 1 ? kDeleteOne : kDeleteMany, values);
  if (std::exchange(slot.is_holding, false)) Append(slot, kEnd);
}

void PostgresQueue::AppendCommit(Connection& slot, const std::string& into, const QueueCall& call) {
  Values values;
  values.AddNumber(static_cast<int64_t>(call.messages[0].low));
  values.AddText(DocumentId(call.document));
  values.AddNumber(call.version);
  values.AddJson(call.body);
  values.AddText(into);
  values.AddBinary(std::string(call.payloads[0]));
  slot.rows = 1;
  Append(slot, kProcess, values);
}

void PostgresQueue::Append(Connection& slot, const PostgresStatement& statement,
                           const Values& values) {
  if (!values.Send(slot.connection.get(), statement)) FailPostgres(slot.connection.get());
}

// The socket's buffer is empty, so this seldom waits.
void PostgresQueue::Flush(Connection& slot) {
  PGconn* const connection = slot.connection.get();
  if (PQpipelineSync(connection) != 1) FailPostgres(connection);
  slot.is_busy = true;
  for (int left = PQflush(connection); left != 0; left = PQflush(connection)) {
    if (left < 0) FailPostgres(connection);
    pollfd writable = {PQsocket(connection), POLLOUT, 0};
    poll(&writable, 1, kPostgresPatienceMs);
  }
}

void PostgresQueue::Finish(Connection& slot) {
  Flush(slot);
  while (!Consume(slot)) {
    pollfd readable = {PQsocket(slot.connection.get()), POLLIN, 0};
    poll(&readable, 1, kPostgresPatienceMs);
  }
  if (!answer_.is_done) throw std::runtime_error(answer_.error);
}

void PostgresQueue::Receive(const std::function<void(int, QueueAnswer&)>& answered) {
  std::array<epoll_event, kQueueSlots> events;
  const int count = epoll_wait(poll_, events.data(), kQueueSlots, kPostgresPatienceMs);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(events[static_cast<size_t>(i)].data.u64);
    if (Consume(slots_[index])) answered(static_cast<int>(index), answer_);
  }
}

bool PostgresQueue::Consume(Connection& slot) {
  PGconn* const connection = slot.connection.get();
  if (PQconsumeInput(connection) != 1) FailPostgres(connection);
  if (!slot.is_busy || PQisBusy(connection) == 1) return false;
  // All results of a call come together, and a sign of their end.
  answer_ = QueueAnswer();
  int64_t rows = 0;
  for (bool has_ended = false; !has_ended;) {
    PGresult* const result = PQgetResult(connection);
    if (result == nullptr) continue;  // the end of one statement's results
    has_ended = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
    if (!has_ended) rows += Take(result);
    PQclear(result);
  }
  slot.is_busy = false;
  if (answer_.error.empty() && slot.rows > 0 && rows != slot.rows) {
    answer_.error = "postgresql: " + std::to_string(rows) + " rows";
  }
  answer_.is_done = answer_.error.empty();
  return true;
}

int64_t PostgresQueue::Take(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    answer_.error += PQresultErrorMessage(result);
    if (answer_.error.empty()) answer_.error = "postgresql: connection lost";
    return 0;
  }
  const int64_t rows = std::atoll(PQcmdTuples(const_cast<PGresult*>(result)));
  if (PQnfields(result) != 2) return rows;
  for (int row = 0; row < PQntuples(result); ++row) {
    uint64_t id = 0;
    std::memcpy(&id, PQgetvalue(result, row, 0), sizeof id);
    answer_.messages.push_back({{0, be64toh(id)},
                                std::string(PQgetvalue(result, row, 1),
                                            static_cast<size_t>(PQgetlength(result, row, 1)))});
  }
  return rows;
}

}  // namespace

std::unique_ptr<QueuePeer> StartPostgresQueue(PostgresReservation reservation) {
  return std::make_unique<PostgresQueue>(reservation);
}

}  // namespace strata::bench
