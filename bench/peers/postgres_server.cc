#include "bench/peers/postgres_server.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "bench/peers/server_program.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kPostgresStartPatience{60};
constexpr char kUser[] = "postgres";  // the package's, and the name of the database's owner

// The folder with PostgreSQL's programs, of the newest version that is installed.
std::string ProgramFolder() {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (const auto& one : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    found.emplace_back(std::atoi(one.path().filename().c_str()), one.path() / "bin/");
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> programs;
  for (const auto& one : found) programs.push_back(one.second + "postgres");
  const std::string first = FindProgram("postgresql", programs);
  return first.substr(0, first.rfind('/') + 1);
}

}  // namespace

void FailPostgres(PGconn* connection) {
  throw std::runtime_error(std::string("postgresql: ") + PQerrorMessage(connection));
}

PostgresServer::PostgresServer(int port)
    : port_(std::to_string(port)), password_(PrepareData()), process_(Arguments(), log_) {
  AwaitServer("postgresql", log_, kPostgresStartPatience, [&] {
    const std::array<const char*, 3> keys = {"host", "port", nullptr};
    const std::array<const char*, 3> values = {"127.0.0.1", port_.c_str(), nullptr};
    return PQpingParams(keys.data(), values.data(), 0) == PQPING_OK;
  });
}

// Its own immediate shutdown: it ends its workers and gives back its shared memory.
PostgresServer::~PostgresServer() {
  process_.Signal(SIGQUIT);
  process_.Wait();
}

// PostgreSQL refuses to run as root. Changing the user forgets the signal at the parent's death,
// so setpriv asks for it again; each step replaces the one before, so the process stays the same.
std::vector<std::string> PostgresServer::InUsersName(
    const std::vector<std::string>& arguments) const {
  std::vector<std::string> all = {"/usr/bin/env", "-C", folder_.path().string(), "/usr/bin/setpriv",
                                  "--pdeathsig=QUIT"};
  if (getuid() == 0) {
    const std::string user = kUser;
    all.insert(all.end(), {"--reuid=" + user, "--regid=" + user, "--init-groups"});
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::string PostgresServer::PrepareData() const {
  RequireDisk(folder_.path().string());
  std::string password = RandomPassword();
  const std::string password_file = folder_.Join("password");
  std::ofstream(password_file) << password << "\n";
  if (getuid() == 0) {
    const passwd* const user = getpwnam(kUser);
    if (user == nullptr) throw std::runtime_error("there is no user postgres");
    for (const std::string& path : {folder_.path().string(), password_file}) {
      if (chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
        throw std::runtime_error("cannot give " + path + " to the user postgres");
      }
    }
  }
  const fault::Finished made = fault::RunToEnd(
      InUsersName({ProgramFolder() + "initdb", "--pgdata=" + folder_.Join("data"),
                   std::string("--username=") + kUser, "--pwfile=" + password_file,
                   "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"}),
      log_);
  std::filesystem::remove(password_file);
  if (Interrupted()) throw InterruptedError();
  if (made.status != 0) throw std::runtime_error("initdb:\n" + LastLines(log_));
  return password;
}

// As it comes, but for the memory, which is small for any machine of today, for plans, which are
// made once instead of being thought about at each call, and for room for those who follow.
std::vector<std::string> PostgresServer::Arguments() const {
  std::vector<std::string> arguments = {ProgramFolder() + "postgres", "-D", folder_.Join("data")};
  for (const std::string& setting :
       {std::string("listen_addresses=127.0.0.1"), "port=" + port_,
        std::string("unix_socket_directories="), std::string("shared_buffers=256MB"),
        std::string("fsync=on"), std::string("synchronous_commit=on"),
        std::string("max_connections=200"), std::string("plan_cache_mode=force_generic_plan")}) {
    arguments.insert(arguments.end(), {"-c", setting});
  }
  return InUsersName(arguments);
}

PostgresConnection PostgresServer::Connect() const {
  const std::array<std::pair<const char*, const char*>, 8> parameters = {{
      {"host", "127.0.0.1"},
      {"port", port_.c_str()},
      {"user", kUser},
      {"password", password_.c_str()},
      {"dbname", "postgres"},
      {"sslmode", "disable"},
      {"gssencmode", "disable"},
      {"connect_timeout", "10"},
  }};
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : parameters) {
    keys.push_back(key);
    values.push_back(value);
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  PostgresConnection connection(PQconnectdbParams(keys.data(), values.data(), 0), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) FailPostgres(connection.get());
  return connection;
}

}  // namespace strata::bench
