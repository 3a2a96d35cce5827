// Who may include whom: the folders and their borders, as a table and the test that reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/form/source_tree.h"

namespace strata::form {
namespace {

// What a folder's files may include besides the standard library. A folder of the project stands
// for the headers directly in it, a header of the project for itself; anything else is the
// beginning of a header's name. "." is the folder itself, "posix" the system's own headers.
struct Rule {
  std::string_view folder;
  std::string_view allowed;
};

constexpr Rule kRules[] = {
    // The domain: no gRPC, no driver, no system call.
    {"schemas/base", ". absl/ openssl/ strata/error_reasons.def"},
    {"schemas/document", ". absl/ bson/ openssl/ re2/ schemas/base schemas/document/extended_json"},
    // The rules that client and server share.
    {"schemas/document/extended_json",
     ". absl/ bson/ schemas/base/hex.h schemas/base/strings.h schemas/document/bson_view.h"},
    // What stands before protobuf's reader of JSON, at the server's doors and the command line's.
    {"schemas/json", ". absl/ google/protobuf/descriptor.h schemas/base"},
    {"schemas/store", ". absl/ schemas/base"},
    {"schemas/versioning", ". absl/ bson/ openssl/ schemas/base schemas/document schemas/store"},

    {"schemas/enrollment", ". absl/ schemas/base schemas/document schemas/versioning"},
    {"schemas/transaction",
     ". absl/ schemas/base schemas/document schemas/store schemas/versioning schemas/enrollment"},
    {"schemas/lease", ". absl/ schemas/base schemas/document/bson_builder.h schemas/store"},
    {"schemas/feed",
     ". absl/ schemas/base schemas/document schemas/store schemas/versioning schemas/lease"},
    {"schemas/queue",
     ". absl/ schemas/base schemas/document schemas/store schemas/versioning schemas/enrollment"},

    // The disk ends here; an engine knows the port, no other engine and no strategy.
    {"service/engines", ". absl/ posix schemas/base schemas/store"},
    {"service/engines/memory", ". absl/ bson/ schemas/base schemas/store service/engines"},
    {"service/engines/rocksdb",
     ". absl/ bson/ rocksdb/ posix zlib.h schemas/base schemas/store service/engines "
     "service/observability"},

    // Who may do what: knows no gRPC and no store.
    {"service/security",
     ". absl/ google/protobuf/ openssl/ posix schemas/base schemas/json "
     "service/observability"},

    // gRPC ends here: the transport knows methods, no service and no store.
    {"service/server",
     ". absl/ google/protobuf/ google/rpc/ grpc/ grpcpp/ posix schemas/base schemas/document "
     "schemas/store/cooperative.h service/observability service/security"},

    // The wire ends here; handlers know no engine, and of the transport what has no gRPC in it.
    {"service/rpc",
     ". absl/ bson/ google/ strata/ grpc/health/ grpc/reflection/ schemas/base schemas/document "
     "schemas/versioning schemas/enrollment schemas/transaction schemas/lease schemas/feed "
     "schemas/queue service/observability service/security service/server/call.h "
     "service/server/method.h"},
    // Not the store: what of it is spoken of has a name.
    {"service/rpc/handlers",
     ". absl/ bson/ google/ strata/ grpc/health/ grpc/reflection/ schemas/base schemas/document "
     "schemas/store/record.h schemas/versioning schemas/enrollment schemas/transaction "
     "schemas/lease schemas/feed schemas/queue service/observability service/rpc "
     "service/rpc/handlers "
     "service/security"},

    // HTTP ends here: the port knows calls and descriptors, no handler and no store.
    {"service/http",
     ". absl/ google/protobuf/ google/rpc/ grpcpp/ openssl/ posix strata/v1/ "
     "schemas/base schemas/json service/observability service/security service/server/call_life.h "
     "service/server/listener.h service/server/loop_state.h service/server/status_mapping.h "
     "service/server/stream_call.h service/server/tls_credentials.h service/server/unary_call.h"},

    {"service/observability", ". absl/ posix spdlog/ schemas/base"},
    {"service/app",
     ". absl/ CLI/ grpc/ grpcpp/ posix spdlog/ schemas/base schemas/document schemas/store "
     "schemas/versioning schemas/enrollment schemas/transaction schemas/lease schemas/feed "
     "schemas/queue service/engines service/http service/observability service/rpc "
     "service/security service/server"},

    // A client knows the contract and nothing of the server. The rules of Extended JSON are part of
    // the contract, and only its JSON needs them.
    {"clients/cpp",
     ". absl/ bson/ google/ grpc/ grpcpp/ openssl/ posix strata/v1/ strata/client/ "
     "strata/error_reasons.def schemas/document/extended_json schemas/document/bson_view.h"},
    // What is installed: whoever includes it needs neither Protobuf nor gRPC.
    {"clients/cpp/include/strata/client", "absl/ strata/client/"},
    {"clients/cli",
     ". absl/ bson/ CLI/ google/ grpc/ grpcpp/ openssl/ posix strata/v1/ strata/client/ zstd.h "
     "clients/cpp schemas/base/hex.h schemas/json"},
};

// May include everything.
constexpr std::string_view kUnbound[] = {"bench", "tests"};

constexpr std::string_view kTopFolders[] = {"proto/",   "schemas/", "service/",
                                            "clients/", "bench/",   "tests/"};

constexpr std::string_view kPosix[] = {"arpa/",    "dirent.h", "fcntl.h",   "netdb.h",
                                       "netinet/", "poll.h",   "pthread.h", "signal.h",
                                       "spawn.h",  "sys/",     "termios.h", "unistd.h"};

bool IsUnder(std::string_view folder, std::string_view top) {
  return folder == top || (folder.starts_with(top) && folder[top.size()] == '/');
}

// The rule of the folder itself or of the nearest one above it.
const Rule* RuleOf(std::string_view folder) {
  const Rule* nearest = nullptr;
  for (const Rule& rule : kRules) {
    if (IsUnder(folder, rule.folder) &&
        (nearest == nullptr || rule.folder.size() > nearest->folder.size())) {
      nearest = &rule;
    }
  }
  return nearest;
}

bool IsStandard(std::string_view header) {
  return header.find_first_of("/.") == std::string_view::npos;
}

bool StartsWithAny(std::string_view text, auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool IsAllowed(const Rule& rule, std::string_view folder, std::string_view header) {
  if (IsStandard(header)) return true;
  const bool ours = StartsWithAny(header, kTopFolders);
  const std::string_view header_folder = header.substr(0, header.find_last_of('/'));
  const std::vector<std::string> allowed = absl::StrSplit(std::string(rule.allowed), ' ');
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& entry) {
    if (entry == ".") return ours && (header_folder == folder || header_folder == rule.folder);
    if (entry == "posix") return !ours && StartsWithAny(header, kPosix);
    return ours ? header_folder == entry || header == entry : header.starts_with(entry);
  });
}

bool IsUnbound(std::string_view folder) {
  return std::any_of(std::begin(kUnbound), std::end(kUnbound),
                     [&](std::string_view top) { return IsUnder(folder, top); });
}

TEST(IncludeRules, EveryIncludeIsAllowed) {
  for (const SourceFile& file : Sources()) {
    if (file.extension() != ".h" && file.extension() != ".cc") continue;
    if (IsUnbound(file.folder())) continue;
    const Rule* rule = RuleOf(file.folder());
    ASSERT_NE(rule, nullptr) << "no rule for " << file.folder();
    for (const Include& include : IncludesOf(file)) {
      EXPECT_TRUE(IsAllowed(*rule, file.folder(), include.header))
          << file.path << ":" << include.line << " includes " << include.header;
    }
  }
}

// What of the transport a handler sees leads to no gRPC either, however many headers away.
TEST(IncludeRules, HandlersReachNoGrpc) {
  std::set<std::string> seen;
  std::vector<std::string> ahead;
  for (const SourceFile& file : Sources()) {
    if (IsUnder(file.folder(), "service/rpc")) ahead.push_back(file.path);
  }
  ASSERT_FALSE(ahead.empty());
  while (!ahead.empty()) {
    const std::string path = ahead.back();
    ahead.pop_back();
    if (!seen.insert(path).second) continue;
    for (const Include& include : IncludesOf(ReadSource(path))) {
      if (StartsWithAny(include.header, kTopFolders)) ahead.push_back(include.header);
      const bool messages =
          include.header.ends_with(".pb.h") && !include.header.ends_with(".grpc.pb.h");
      EXPECT_FALSE(include.header.starts_with("grpc") && !messages)
          << path << ":" << include.line << " includes " << include.header;
    }
  }
}

// The table must bite: each of these is what it exists to prevent.
TEST(IncludeRules, WhatTheyPreventIsSeen) {
  const std::pair<std::string_view, std::string_view> forbidden[] = {
      {"schemas/document", "schemas/store/store.h"},
      {"schemas/document", "schemas/versioning/version.h"},
      {"schemas/document/extended_json", "schemas/document/content.h"},
      {"schemas/document/extended_json", "schemas/base/error.h"},
      {"schemas/store", "schemas/document/content.h"},
      {"schemas/versioning", "service/engines/engines.h"},
      {"schemas/versioning", "strata/v1/document.pb.h"},
      {"schemas/base", "unistd.h"},
      {"schemas/base", "grpcpp/grpcpp.h"},
      {"service/engines", "rocksdb/db.h"},
      {"service/engines/memory", "service/engines/rocksdb/driver.h"},
      {"service/engines/rocksdb", "schemas/versioning/strategy.h"},
      {"service/server", "service/rpc/context.h"},
      {"service/server", "service/rpc/handlers/write_answer.h"},
      {"service/server", "schemas/versioning/documents.h"},
      {"service/server", "schemas/store/store.h"},
      {"service/server", "strata/wire/v1/document.pb.h"},
      {"service/rpc", "service/engines/engines.h"},
      {"service/rpc", "grpcpp/grpcpp.h"},
      {"service/rpc", "service/server/event_queue.h"},
      {"service/rpc/handlers/document", "grpcpp/support/status.h"},
      {"service/rpc/handlers/document", "rocksdb/db.h"},
      {"service/rpc/handlers/document", "schemas/store/store.h"},
      {"service/rpc", "schemas/store/store.h"},
      {"service/http", "service/server/event_queue.h"},
      {"service/http", "service/rpc/registry.h"},
      {"service/http", "schemas/versioning/documents.h"},
      {"service/server", "service/http/calls.h"},
      {"service/observability", "strata/v1/document.pb.h"},
      {"service/app", "tests/support/manual_clock.h"},
      {"clients/cli", "schemas/document/content.h"},
      {"clients/cli", "schemas/document/extended_json/wrapper.h"},
      {"clients/cpp", "schemas/document/content.h"},
      {"clients/cpp/include/strata/client", "strata/v1/document.pb.h"},
      {"clients/cpp/include/strata/client", "grpcpp/grpcpp.h"},
      {"clients/cpp/include/strata/client", "clients/cpp/core.h"},
      {"clients/cli", "strata/wire/v1/document.pb.h"},
  };
  for (const auto& [folder, header] : forbidden) {
    const Rule* rule = RuleOf(folder);
    ASSERT_NE(rule, nullptr) << folder;
    EXPECT_FALSE(IsAllowed(*rule, folder, header)) << folder << " including " << header;
  }
}

}  // namespace
}  // namespace strata::form
