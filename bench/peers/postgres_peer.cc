// PostgreSQL: documents are rows, their bodies jsonb. One connection for each call in flight, since
// a connection carries out one statement at a time, and statements that are prepared once.
//
// Each connection has a process of the server, which lives as long as the peer, so that its CPU is
// counted. That of autovacuum's workers is not if they come and go within one measurement.
#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "bench/peers/peer.h"
#include "bench/peers/postgres_followers.h"
#include "bench/peers/postgres_server.h"
#include "bench/peers/server_program.h"

namespace strata::bench {
namespace {

constexpr int kReceivePatienceMs = 100;

struct Statement {
  const char* name;
  const char* text;
  // What $1, the document, is followed by.
  bool takes_version;
  bool takes_body;
  bool takes_other = false;  // and then the other document, its version and body
};

struct Statements {
  const char* tables;
  Statement insert;
  Statement update;
  Statement overwrite;
  Statement get;
  Statement get_version;
  Statement newest_ten;
  Statement transfer = {"transfer", "SELECT * FROM transfer($1, $2, $3, $4, $5, $6)", true, true,
                        true};
};

// The two kinds of update differ in how they find the row that they replace. A compare-and-swap
// only succeeds on the row that its snapshot holds, which a part of the same statement therefore
// still sees. An update without precondition goes by what it finds once it has the lock.
//
// A transfer is a function, so that it takes one round trip and one commit: two updates of that
// kind. If the first is too late nothing has been written, and the row as it is now is the answer;
// if the second is, an error takes the first back. Version 0 of the first stands for the one that
// is there once the row is locked.
constexpr Statements kHistoryTable = {
    .tables =
        "CREATE TABLE documents (id text PRIMARY KEY, version bigint NOT NULL, "
        "body jsonb NOT NULL);"
        "CREATE TABLE history (id text, version bigint, body jsonb NOT NULL, "
        "PRIMARY KEY (id, version));"
        "CREATE FUNCTION transfer(id_1 text, version_1 bigint, body_1 jsonb, "
        "id_2 text, version_2 bigint, body_2 jsonb) RETURNS SETOF bigint LANGUAGE plpgsql AS $$ "
        "BEGIN "
        "IF version_1 = 0 THEN "
        "SELECT version INTO version_1 FROM documents WHERE id = id_1 FOR UPDATE; END IF; "
        "WITH updated AS (UPDATE documents SET version = version + 1, body = body_1 "
        "WHERE id = id_1 AND version = version_1 RETURNING version) "
        "INSERT INTO history SELECT id, version, body FROM documents "
        "WHERE id = id_1 AND version = version_1 AND EXISTS (SELECT FROM updated); "
        "IF NOT FOUND THEN "
        "RETURN QUERY SELECT version FROM documents WHERE id = id_1; RETURN; END IF; "
        "WITH updated AS (UPDATE documents SET version = version + 1, body = body_2 "
        "WHERE id = id_2 AND version = version_2 RETURNING version) "
        "INSERT INTO history SELECT id, version, body FROM documents "
        "WHERE id = id_2 AND version = version_2 AND EXISTS (SELECT FROM updated); "
        "IF NOT FOUND THEN RAISE serialization_failure; END IF; "
        "RETURN NEXT version_1 + 1; RETURN NEXT version_2 + 1; "
        "END $$",
    .insert = {"insert", "INSERT INTO documents VALUES ($1, 1, $2) RETURNING version", false, true},
    .update = {"update",
               "WITH updated AS (UPDATE documents SET version = version + 1, body = $3 "
               "WHERE id = $1 AND version = $2 RETURNING version), "
               "kept AS (INSERT INTO history SELECT id, version, body FROM documents "
               "WHERE id = $1 AND version = $2 AND EXISTS (SELECT FROM updated)) "
               "SELECT version FROM updated",
               true, true},
    .overwrite = {"overwrite",
                  "WITH replaced AS (SELECT id, version, body FROM documents WHERE id = $1 "
                  "FOR UPDATE), "
                  "kept AS (INSERT INTO history SELECT id, version, body FROM replaced) "
                  "UPDATE documents SET version = replaced.version + 1, body = $2 FROM replaced "
                  "WHERE documents.id = replaced.id RETURNING documents.version",
                  false, true},
    .get = {"get", "SELECT version, body FROM documents WHERE id = $1", false, false},
    .get_version = {"get_version",
                    "SELECT version, body FROM history WHERE id = $1 AND version = $2", true,
                    false},
    .newest_ten = {"newest_ten",
                   "SELECT version, body FROM documents WHERE id = $1 UNION ALL "
                   "(SELECT version, body FROM history WHERE id = $1 ORDER BY version DESC "
                   "LIMIT 9)",
                   false, false},
};

// The primary key is the comparison: only one row can be a document's version 8.
constexpr Statements kFullCopies = {
    .tables =
        "CREATE TABLE versions (id text, version bigint, body jsonb NOT NULL, "
        "PRIMARY KEY (id, version));"
        "CREATE FUNCTION transfer(id_1 text, version_1 bigint, body_1 jsonb, "
        "id_2 text, version_2 bigint, body_2 jsonb) RETURNS SETOF bigint LANGUAGE plpgsql AS $$ "
        "BEGIN "
        "INSERT INTO versions VALUES (id_1, version_1 + 1, body_1) ON CONFLICT DO NOTHING; "
        "IF NOT FOUND THEN RETURN QUERY SELECT version FROM versions WHERE id = id_1 "
        "ORDER BY version DESC LIMIT 1; RETURN; END IF; "
        "INSERT INTO versions VALUES (id_2, version_2 + 1, body_2) ON CONFLICT DO NOTHING; "
        "IF NOT FOUND THEN RAISE serialization_failure; END IF; "
        "RETURN NEXT version_1 + 1; RETURN NEXT version_2 + 1; "
        "END $$",
    .insert = {"insert",
               "INSERT INTO versions VALUES ($1, 1, $2) ON CONFLICT DO NOTHING RETURNING version",
               false, true},
    .update = {"update",
               "INSERT INTO versions VALUES ($1, $2::bigint + 1, $3) ON CONFLICT DO NOTHING "
               "RETURNING version",
               true, true},
    .overwrite = {"overwrite",
                  "INSERT INTO versions VALUES ($1, (SELECT version + 1 FROM versions "
                  "WHERE id = $1 ORDER BY version DESC LIMIT 1), $2) ON CONFLICT DO NOTHING "
                  "RETURNING version",
                  false, true},
    .get = {"get", "SELECT version, body FROM versions WHERE id = $1 ORDER BY version DESC LIMIT 1",
            false, false},
    .get_version = {"get_version",
                    "SELECT version, body FROM versions WHERE id = $1 AND version = $2", true,
                    false},
    .newest_ten = {"newest_ten",
                   "SELECT version, body FROM versions WHERE id = $1 ORDER BY version DESC "
                   "LIMIT 10",
                   false, false},
};

class PostgresPeer final : public Peer {
 public:
  explicit PostgresPeer(TableLayout layout);
  ~PostgresPeer() override;

  pid_t server() const override { return server_.pid(); }
  bool locks() const override { return layout_ == TableLayout::kHistoryTable; }
  void Send(int slot, const Call& call) override;
  void Receive(const std::function<void(int, const Answer&)>& answered) override;
  std::unique_ptr<Followers> Follow(int64_t count, bool from_beginning) override;
  // What autovacuum would do in its own time: the statistics that plans are made by. And what
  // writers tell those who follow, as nobody has by now.
  void Loaded() override;

 private:
  struct Connection {
    PostgresConnection connection{nullptr, &PQfinish};
    bool is_busy = false;
    int rows_written = 0;  // by the call in flight, if it finds what it expects
  };

  void Open(Connection& slot);
  void Run(const char* statement);
  const Statement& StatementOf(const Call& call) const;
  // Whether the call in flight is answered, and answer_ holds it.
  bool Consume(Connection& slot);
  void Take(const Connection& slot, const PGresult* result);

  const TableLayout layout_;
  const Statements& statements_;
  PostgresServer server_;
  const int poll_;
  std::array<Connection, kSlots> slots_;
  Answer answer_;
  std::string body_;
  std::string other_body_;
};

PostgresPeer::PostgresPeer(TableLayout layout)
    : layout_(layout),
      statements_(layout == TableLayout::kHistoryTable ? kHistoryTable : kFullCopies),
      server_(FreePorts(1)[0]),
      poll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (Connection& slot : slots_) slot.connection = server_.Connect();
  Run(statements_.tables);
  if (layout == TableLayout::kFollowedCopies) Run(kAddPositions);
  for (Connection& slot : slots_) Open(slot);
}

PostgresPeer::~PostgresPeer() { close(poll_); }

void PostgresPeer::Open(Connection& slot) {
  PGconn* const connection = slot.connection.get();
  for (const Statement* one :
       {&statements_.insert, &statements_.update, &statements_.overwrite, &statements_.get,
        &statements_.get_version, &statements_.newest_ten, &statements_.transfer}) {
    PGresult* const result = PQprepare(connection, one->name, one->text, 0, nullptr);
    const bool is_prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!is_prepared) FailPostgres(connection);
  }
  PQsetnonblocking(connection, 1);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(&slot - slots_.data());
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, PQsocket(connection), &event) != 0) {
    throw std::runtime_error("epoll_ctl");
  }
}

void PostgresPeer::Run(const char* statement) {
  PGconn* const connection = slots_[0].connection.get();
  PGresult* const result = PQexec(connection, statement);
  const bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  if (!is_done) FailPostgres(connection);
}

void PostgresPeer::Loaded() {
  if (layout_ == TableLayout::kFollowedCopies) Run(kNotify);
  Run("VACUUM ANALYZE");
}

std::unique_ptr<Followers> PostgresPeer::Follow(int64_t count, bool from_beginning) {
  std::vector<PostgresConnection> connections;
  for (int64_t i = 0; i < count; ++i) connections.push_back(server_.Connect());
  return std::make_unique<PostgresFollowers>(std::move(connections), from_beginning);
}

const Statement& PostgresPeer::StatementOf(const Call& call) const {
  switch (call.operation) {
    case Operation::kUpdate:
      return call.version == 0 ? statements_.insert : statements_.update;
    case Operation::kOverwrite:
      return statements_.overwrite;
    case Operation::kGetVersion:
      return statements_.get_version;
    case Operation::kNewestTen:
      return statements_.newest_ten;
    case Operation::kTransfer:
      return statements_.transfer;
    case Operation::kGet:
      break;
  }
  return statements_.get;
}

std::string IdOf(int64_t document) { return "document-" + std::to_string(document); }

int RowsWritten(Operation operation) {
  if (operation == Operation::kTransfer) return 2;
  return operation == Operation::kUpdate || operation == Operation::kOverwrite ? 1 : 0;
}

void PostgresPeer::Send(int slot_number, const Call& call) {
  Connection& slot = slots_[static_cast<size_t>(slot_number)];
  PGconn* const connection = slot.connection.get();
  const Statement& statement = StatementOf(call);
  constexpr size_t kParametersMax = 6;
  std::array<const char*, kParametersMax> values{};
  std::array<int, kParametersMax> lengths{};
  std::array<int, kParametersMax> formats{};
  int count = 0;
  const std::string id = IdOf(call.document);
  const std::string other_id = IdOf(call.other_document);
  const auto add_text = [&](const std::string& text) {
    values[static_cast<size_t>(count++)] = text.c_str();
  };
  const auto add_binary = [&](const char* bytes, size_t size) {
    const auto at = static_cast<size_t>(count++);
    values[at] = bytes;
    lengths[at] = static_cast<int>(size);
    formats[at] = 1;
  };
  const auto add_version = [&](const uint64_t& version) {
    add_binary(reinterpret_cast<const char*>(&version), sizeof version);
  };
  const auto add_body = [&](std::string_view json, std::string& binary) {
    binary = '\1';  // the binary form of jsonb: the form's version, then text
    binary += json;
    add_binary(binary.data(), binary.size());
  };
  const uint64_t version = htobe64(static_cast<uint64_t>(call.version));
  const uint64_t other_version = htobe64(static_cast<uint64_t>(call.other_version));
  add_text(id);
  if (statement.takes_version) add_version(version);
  if (statement.takes_body) add_body(call.body, body_);
  if (statement.takes_other) {
    add_text(other_id);
    add_version(other_version);
    add_body(call.other_body, other_body_);
  }
  if (PQsendQueryPrepared(connection, statement.name, count, values.data(), lengths.data(),
                          formats.data(), 1) != 1) {
    FailPostgres(connection);
  }
  slot.is_busy = true;
  slot.rows_written = RowsWritten(call.operation);
  // A statement is small and the socket's buffer empty, so this waits for nothing.
  for (int left = PQflush(connection); left != 0; left = PQflush(connection)) {
    if (left < 0) FailPostgres(connection);
    pollfd writable = {PQsocket(connection), POLLOUT, 0};
    poll(&writable, 1, kReceivePatienceMs);
  }
}

void PostgresPeer::Receive(const std::function<void(int, const Answer&)>& answered) {
  std::array<epoll_event, kSlots> events;
  const int count = epoll_wait(poll_, events.data(), kSlots, kReceivePatienceMs);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(events[static_cast<size_t>(i)].data.u64);
    if (!Consume(slots_[index])) continue;
    slots_[index].is_busy = false;
    answered(static_cast<int>(index), answer_);
  }
}

bool PostgresPeer::Consume(Connection& slot) {
  PGconn* const connection = slot.connection.get();
  if (PQconsumeInput(connection) != 1) FailPostgres(connection);
  if (!slot.is_busy || PQisBusy(connection) == 1) return false;
  // A statement has one result, and all of it has come once the connection is no longer busy but
  // for the sign that the next statement can be sent, which is awaited with it: they come together.
  answer_.versions.clear();
  answer_.error.clear();
  answer_.outcome = Answer::Outcome::kFailed;
  while (PGresult* const result = PQgetResult(connection)) {
    Take(slot, result);
    PQclear(result);
  }
  return true;
}

void PostgresPeer::Take(const Connection& slot, const PGresult* result) {
  if (PQresultStatus(result) != PGRES_TUPLES_OK) {
    answer_.error = PQresultErrorMessage(result);
    return;
  }
  const int rows = PQntuples(result);
  answer_.outcome = rows < slot.rows_written ? Answer::Outcome::kConflict : Answer::Outcome::kDone;
  for (int row = 0; row < rows; ++row) {
    uint64_t version = 0;
    if (PQgetlength(result, row, 0) != sizeof version) continue;
    std::memcpy(&version, PQgetvalue(result, row, 0), sizeof version);
    const int bytes = PQnfields(result) > 1 ? PQgetlength(result, row, 1) : 0;
    answer_.versions.push_back(
        {static_cast<int64_t>(be64toh(version)), static_cast<size_t>(bytes)});
  }
}

}  // namespace

std::unique_ptr<Peer> StartPostgres(TableLayout layout) {
  return std::make_unique<PostgresPeer>(layout);
}

}  // namespace strata::bench
