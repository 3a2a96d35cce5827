#include "bench/peers/postgres_followers.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace strata::bench {

// A sequence alone is no position: numbers are drawn before the commit, so that one who has read
// number 8 would never see a 7 that is committed later. A transaction's number is not one either,
// for the same reason, but PostgreSQL tells below which of them all have ended. Rows in the order
// of both, only of such transactions, are all there is and stay all there is: nothing can come to
// lie between them. The price is that a transaction that takes long holds all followers up.
const char* const kAddPositions =
    "ALTER TABLE versions "
    "ADD xid xid8 NOT NULL DEFAULT pg_current_xact_id(), "
    "ADD number bigint GENERATED ALWAYS AS IDENTITY;"
    "CREATE UNIQUE INDEX ON versions (xid, number)";

const char* const kNotify =
    "CREATE FUNCTION notify() RETURNS trigger LANGUAGE plpgsql AS $$ "
    "BEGIN PERFORM pg_notify('versions', ''); RETURN NULL; END $$;"
    "CREATE TRIGGER notify AFTER INSERT ON versions FOR EACH STATEMENT EXECUTE FUNCTION notify()";

namespace {

constexpr int kPage = 1000;  // as the statement below has it
constexpr char kRead[] =
    "SELECT xid, number, id, version, body FROM versions "
    "WHERE (xid, number) > ($1, $2) AND xid < pg_snapshot_xmin(pg_current_snapshot()) "
    "AND NOT pg_visible_in_snapshot(xid, $3) ORDER BY xid, number LIMIT 1000";
// Where to begin: the row after which to read, and what has been committed by then.
constexpr char kBeginning[] = "SELECT '0'::xid8, 0::bigint, '1:1:'::pg_snapshot";
constexpr char kNow[] =
    "SELECT pg_snapshot_xmin(now), 0::bigint, now FROM pg_current_snapshot() AS now";

// A transaction that held followers up and is then rolled back wakes nobody.
constexpr std::chrono::milliseconds kPollAtLeast{100};
constexpr int kLookMs = 20;
constexpr int kBinary = 1;

using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

std::string Bytes(const PGresult* rows, int row, int column) {
  return {PQgetvalue(rows, row, column), static_cast<size_t>(PQgetlength(rows, row, column))};
}

void Require(PGconn* connection, const Result& result, ExecStatusType wanted) {
  if (PQresultStatus(result.get()) == wanted) return;
  throw std::runtime_error(std::string("postgresql: ") + PQerrorMessage(connection));
}

}  // namespace

PostgresFollowers::PostgresFollowers(std::vector<PostgresConnection> connections,
                                     bool from_beginning)
    : Followers("postgresql", static_cast<int64_t>(connections.size())),
      poll_(epoll_create1(EPOLL_CLOEXEC)) {
  followers_.reserve(connections.size());
  for (PostgresConnection& connection : connections) {
    Begin(followers_.emplace_back(Follower{.connection = std::move(connection)}), from_beginning);
  }
  thread_ = std::thread([this] { Run(); });
}

PostgresFollowers::~PostgresFollowers() {
  stopping_ = true;
  thread_.join();
  close(poll_);
}

// It listens before it looks, so nothing is committed in between unheard.
void PostgresFollowers::Begin(Follower& follower, bool from_beginning) {
  PGconn* const connection = follower.connection.get();
  const Result listening(PQexec(connection, "LISTEN versions"), &PQclear);
  Require(connection, listening, PGRES_COMMAND_OK);
  const Result prepared(PQprepare(connection, "read", kRead, 0, nullptr), &PQclear);
  Require(connection, prepared, PGRES_COMMAND_OK);
  const Result place(PQexecParams(connection, from_beginning ? kBeginning : kNow, 0, nullptr,
                                  nullptr, nullptr, nullptr, kBinary),
                     &PQclear);
  Require(connection, place, PGRES_TUPLES_OK);
  follower.xid = Bytes(place.get(), 0, 0);
  follower.number = Bytes(place.get(), 0, 1);
  follower.seen = Bytes(place.get(), 0, 2);
  PQsetnonblocking(connection, 1);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(&follower - followers_.data());
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, PQsocket(connection), &event) != 0) {
    throw std::runtime_error("epoll_ctl");
  }
}

void PostgresFollowers::Run() {
  constexpr int kEventsMax = 100;
  std::array<epoll_event, kEventsMax> events;
  for (Follower& follower : followers_) Ask(follower);
  while (!stopping_) {
    const int count = epoll_wait(poll_, events.data(), kEventsMax, kLookMs);
    for (int i = 0; i < count; ++i) {
      Receive(static_cast<size_t>(events[static_cast<size_t>(i)].data.u64));
    }
    const Clock::time_point now = Clock::now();
    for (Follower& follower : followers_) {
      if (!follower.is_asking && now - follower.asked >= kPollAtLeast) Ask(follower);
    }
  }
}

void PostgresFollowers::Ask(Follower& follower) {
  if (follower.has_ended) return;
  const std::array<const char*, 3> values = {follower.xid.data(), follower.number.data(),
                                             follower.seen.data()};
  const std::array<int, 3> lengths = {static_cast<int>(follower.xid.size()),
                                      static_cast<int>(follower.number.size()),
                                      static_cast<int>(follower.seen.size())};
  const std::array<int, 3> formats = {kBinary, kBinary, kBinary};
  PGconn* const connection = follower.connection.get();
  follower.is_asking = true;
  follower.is_woken = false;
  follower.asked = Clock::now();
  // Sent whole: it is small, and nothing else is on its way.
  if (PQsendQueryPrepared(connection, "read", 3, values.data(), lengths.data(), formats.data(),
                          kBinary) != 1 ||
      PQflush(connection) != 0) {
    End(follower, PQerrorMessage(connection));
  }
}

void PostgresFollowers::Receive(size_t index) {
  Follower& follower = followers_[index];
  PGconn* const connection = follower.connection.get();
  if (PQconsumeInput(connection) != 1) return End(follower, PQerrorMessage(connection));
  bool is_more = false;
  if (follower.is_asking) {
    if (PQisBusy(connection) == 1) return;
    while (PGresult* const result = PQgetResult(connection)) {
      is_more |= Take(index, Result(result, &PQclear).get());
    }
    follower.is_asking = false;
  }
  // Last, as the answer may have brought some of them with it.
  while (PGnotify* const told = PQnotifies(connection)) {
    follower.is_woken = true;
    PQfreemem(told);
  }
  if (is_more || follower.is_woken) Ask(follower);
}

bool PostgresFollowers::Take(size_t index, const PGresult* rows) {
  Follower& follower = followers_[index];
  if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
    End(follower, PQresultErrorMessage(rows));
    return false;
  }
  const int count = PQntuples(rows);
  if (count == 0) return false;
  follower.xid = Bytes(rows, count - 1, 0);
  follower.number = Bytes(rows, count - 1, 1);
  Count(index, count, Clock::now());
  return count == kPage;
}

void PostgresFollowers::End(Follower& follower, const std::string& why) {
  epoll_ctl(poll_, EPOLL_CTL_DEL, PQsocket(follower.connection.get()), nullptr);
  follower.has_ended = true;
  Followers::End(why);
}

}  // namespace strata::bench
