// Plays every case of clients/conformance with this library; README.md there says what a case is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "clients/cpp/extended_json.h"
#include "strata/client/client.h"
#include "strata/client/testing.h"
#include "tests/client/operations.h"
#include "tests/support/places.h"

namespace strata::client {
namespace {

std::string TextOf(const Value& value) {
  const auto bson = ToBson(Object{{"v", value}});
  if (!bson.ok()) return std::string(bson.status().message());
  return JsonFromBsonValue(*bson, JsonStyle::kExact).value_or("?");
}

Value Parsed(const std::string& json) {
  const auto bson = BsonFromJsonValue(json);
  if (!bson.ok()) {
    ADD_FAILURE() << bson.status() << " in " << json.substr(0, 200);
    return {};
  }
  const Value document = FromBson(*bson).value_or(Value());
  return document["v"];
}

const std::string& Text(const Value& value) {
  static const std::string kNone;
  const auto* text = value.As<std::string>();
  return text == nullptr ? kNone : *text;
}

const Array& Elements(const Value& value) {
  static const Array kNone;
  const auto* array = value.As<Array>();
  return array == nullptr ? kNone : *array;
}

// The server that fails at will, on its pipes.
class ScriptedServer {
 public:
  explicit ScriptedServer(const std::vector<std::string>& files) {
    int to[2];
    int from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
    std::vector<std::string> arguments = {
        "/usr/bin/python3", test_support::SourcePath("clients/conformance/fake_server.py")};
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(),
                     {"--descriptors", test_support::BuiltPath("tests/client/strata.binpb")});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = fdopen(from[0], "r");
    port_ = ReadLine()["port"].AsInteger().value_or(0);
  }
  ~ScriptedServer() {
    close(in_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::fclose(out_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  Value Tell(const Value& order) {
    const std::string line = TextOf(order) + "\n";
    if (write(in_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return {};
    return ReadLine();
  }

 private:
  Value ReadLine() {
    char* line = nullptr;
    size_t size = 0;
    const ssize_t count = getline(&line, &size, out_);
    const std::string text(line, count < 0 ? 0 : static_cast<size_t>(count));
    std::free(line);
    if (text.empty()) {
      ADD_FAILURE() << "the scripted server says nothing";
      return {};
    }
    return Parsed(text);
  }

  pid_t pid_ = -1;
  int in_ = -1;
  FILE* out_ = nullptr;
  int64_t port_ = 0;
};

bool IsDefault(const Value& value) {
  if (value.is_null() || value == Value(false) || value == Value("") || value == Value("0")) {
    return true;
  }
  if (value.AsDouble() == 0) return true;
  const auto* object = value.As<Object>();
  const auto* array = value.As<Array>();
  return (object != nullptr && object->empty()) || (array != nullptr && array->empty());
}

// Contents are compared exactly: types, member order and all.
bool IsContent(const std::string& name) {
  return name == "content" || name == "before" || name == "after" || name == "payload";
}

// Where `actual` is not what is expected; empty: nowhere. With `part` it may have more members.
// What JSON leaves out and what has its default are the same.
std::string Difference(const Value& expected, const Value& actual, bool part,
                       const std::string& path = "") {
  const auto* object = expected.As<Object>();
  if (object != nullptr && actual.As<Object>() != nullptr) {
    for (const Member& member : *object) {
      const Value& there = std::as_const(actual)[member.name];
      const std::string inner = path + "/" + member.name;
      if (IsContent(member.name)) {
        Arguments reader{Value()};
        Value content;
        reader.Read(member.value, content);
        if (!(content == there)) return inner + " is " + TextOf(there);
        continue;
      }
      if (there.is_null() && IsDefault(member.value)) continue;
      const std::string difference = Difference(member.value, there, part, inner);
      if (!difference.empty()) return difference;
    }
    if (part) return "";
    for (const Member& member : *actual.As<Object>()) {
      if (object->Find(member.name) == nullptr && !IsDefault(member.value)) {
        return path + "/" + member.name + " is there: " + TextOf(member.value);
      }
    }
    return "";
  }
  const auto* array = expected.As<Array>();
  if (array != nullptr && actual.As<Array>() != nullptr) {
    const Array& there = *actual.As<Array>();
    if (array->size() != there.size()) {
      return path + " has " + std::to_string(there.size()) + " elements, not " +
             std::to_string(array->size()) + ": " + TextOf(actual);
    }
    for (size_t i = 0; i < array->size(); ++i) {
      const std::string difference =
          Difference((*array)[i], there[i], part, path + "/" + std::to_string(i));
      if (!difference.empty()) return difference;
    }
    return "";
  }
  if (expected == actual) return "";
  // int64 as a number and as a text, in requests and answers.
  const auto number = expected.AsDouble();
  if (number.has_value() && number == actual.AsDouble()) return "";
  const auto whole = expected.AsInteger();
  if (whole.has_value() && actual == Value(std::to_string(*whole))) return "";
  if (actual.AsInteger().has_value() && expected == Value(std::to_string(*actual.AsInteger()))) {
    return "";
  }
  return path + " is " + TextOf(actual) + ", not " + TextOf(expected);
}

// What stands here for a class of each reason is an enumerator of each: "VERSION_CONFLICT", which
// is Reason::kVersionConflict, is called VersionConflict.
std::string ClassOf(const Error& error) {
  if (error.reason == Reason::kNone) return "Error";
  std::string name;
  bool begins = true;
  for (const char c : ReasonName(error.reason)) {
    if (c != '_') name += begins ? c : static_cast<char>(std::tolower(c));
    begins = c == '_';
  }
  return name;
}

Value DescribeError(const absl::Status& status) {
  const Error error = ErrorOf(status);
  Object described{{"class", ClassOf(error)},
                   {"reason", error.reason_name},
                   {"code", absl::StatusCodeToString(error.code)},
                   {"message", error.message},
                   {"outcome_unknown", error.outcome_unknown},
                   {"metadata", Describe(error.metadata)},
                   {"request_id", error.request_id}};
  if (error.retry_delay.has_value()) {
    described.Append("retry_delay_ms", absl::ToInt64Milliseconds(*error.retry_delay));
  }
  return described;
}

// Empty: the outcome is what the case expects.
std::string Check(const Value& expect, const Outcome& outcome) {
  if (const auto* path = expect["refused_at"].As<std::string>()) {
    if (outcome.status.ok()) return "was not refused";
    const Error error = ErrorOf(outcome.status);
    const auto there = error.metadata.find("path");
    if (there == error.metadata.end()) return "was refused with " + error.ToString();
    return there->second == *path ? "" : "was refused at " + there->second;
  }
  if (!expect["error"].is_null()) {
    if (outcome.status.ok()) return "there was no error";
    Value expected = expect["error"];
    const Value described = DescribeError(outcome.status);
    if (expected.As<Object>()->Find("reason") != nullptr && expected["reason"].is_null()) {
      expected["reason"] = "";
    }
    std::string difference = Difference(expected, described, /*part=*/true);
    if (difference.empty() && !expect["list"].is_null() && outcome.items.has_value()) {
      difference = Difference(expect["list"], *outcome.items, /*part=*/true);
    }
    return difference;
  }
  if (!outcome.status.ok()) return "failed: " + ErrorOf(outcome.status).ToString();
  if (expect["missing"] == Value(true)) return outcome.missing ? "" : "was there";
  if (outcome.missing) return "was missing";
  if (const auto* list = expect["list"].As<Array>()) {
    const Value items =
        outcome.items.has_value() ? Value(*outcome.items) : outcome.value.value_or(Value());
    return Difference(*list, items, /*part=*/true);
  }
  const Value actual =
      outcome.value.has_value() ? *outcome.value : Value(outcome.items.value_or(Array()));
  const auto* object = expect.As<Object>();
  if (object != nullptr && object->Find("part") != nullptr) {
    return Difference(expect["part"], actual, /*part=*/true);
  }
  if (object != nullptr && object->Find("value") != nullptr) {
    return Difference(expect["value"], actual, /*part=*/false);
  }
  return object == nullptr || object->empty() ? "" : "the runner does not know " + TextOf(expect);
}

std::string RequestIdOf(const Value& call) {
  const Value& request = call["request"];
  for (const char* name : {"request_id", "requestId"}) {
    if (!Text(request[name]).empty()) return Text(request[name]);
  }
  const Array& messages = Elements(request["messages"]);
  return messages.empty() ? "" : Text(std::as_const(messages[0])["request_id"]);
}

// What the scripted server saw. Empty: what it had to see.
std::string CheckCalls(const Value& test, const Value& report) {
  for (const Value& problem : Elements(report["problems"])) return TextOf(problem);
  const Array& seen = Elements(report["calls"]);
  if (!test["calls"].is_null()) {
    const Array& calls = Elements(test["calls"]);
    if (calls.size() != seen.size()) {
      return "saw " + std::to_string(seen.size()) + " calls: " + TextOf(report["calls"]);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::string difference =
          Difference(calls[i], seen[i], /*part=*/true, "call " + std::to_string(i));
      if (!difference.empty()) return difference;
    }
  }
  std::set<std::string> ids;
  for (const Value& group : Elements(test["same_request_id"])) {
    std::optional<std::string> id;
    for (const Value& index : Elements(group)) {
      const auto at = static_cast<size_t>(index.AsInteger().value_or(0));
      if (at >= seen.size()) return "there is no call " + std::to_string(at);
      const std::string its = RequestIdOf(seen[at]);
      if (its.empty()) return "call " + std::to_string(at) + " has no request id";
      if (id.has_value() && *id != its) return "request ids differ in a group";
      id = its;
    }
    if (id.has_value() && !ids.insert(*id).second) return "groups share a request id";
  }
  const Array& gaps = Elements(test["gaps_ms"]);
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].is_null()) continue;
    if (i + 1 >= seen.size()) return "there is no gap " + std::to_string(i);
    const double gap = *std::as_const(seen[i + 1])["at_ms"].AsDouble() -
                       *std::as_const(seen[i])["at_ms"].AsDouble();
    const Array& bounds = Elements(gaps[i]);
    if (gap < bounds.at(0).AsDouble() || gap > bounds.at(1).AsDouble()) {
      return "gap " + std::to_string(i) + " is " + std::to_string(gap) + " ms";
    }
  }
  return "";
}

ClientOptions OptionsOf(const Value& test) {
  ClientOptions options;
  const Value& given = test["client"];
  if (const auto ms = given["retry_for_ms"].AsInteger())
    options.retry_for = absl::Milliseconds(*ms);
  if (const auto ms = given["timeout_ms"].AsInteger()) options.timeout = absl::Milliseconds(*ms);
  options.actor = Text(given["actor"]);
  return options;
}

// The steps of a case. Empty: all as expected.
std::string Play(const Value& test, Scene& scene) {
  int number = 0;
  for (const Value& step : Elements(test["do"])) {
    const std::string& operation = Text(step["op"]);
    Arguments arguments(step["args"]);
    const std::string where = "step " + std::to_string(number++) + ", " + operation + ": ";
    // What this language cannot even write needs no refusal.
    if (!arguments.possible()) continue;
    const std::optional<Outcome> outcome = Perform(operation, scene, arguments);
    if (!outcome.has_value()) return where + "there is no such operation";
    if (const std::string untaken = arguments.Untaken(); !untaken.empty()) {
      return where + "arguments that are not known:" + untaken;
    }
    const std::string problem = Check(step["expect"], *outcome);
    if (!problem.empty()) return where + problem;
  }
  return "";
}

class Conformance : public ::testing::Test {
 protected:
  static std::vector<std::string> Files() {
    std::vector<std::string> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(test_support::SourcePath("clients/conformance"))) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

std::string RunCase(const Value& test, ScriptedServer& scripted) {
  ClientOptions options = OptionsOf(test);
  if (Text(test["server"]) == "real") {
    const auto server = testing::Server::Start({.program = test_support::ServerProgram()});
    if (!server.ok()) return server.status().ToString();
    options.target = server->target();
    Scene scene{*Client::Connect(options), "c"};
    const auto made = scene.client.collections().Create("c");
    if (!made.ok()) return made.status().ToString();
    return Play(test, scene);
  }
  scripted.Tell(Object{{"begin", test["name"]}});
  std::string problem;
  {
    options.target = scripted.target();
    Scene scene{*Client::Connect(options), "c"};
    problem = Play(test, scene);
  }
  const Value report = scripted.Tell(Object{{"end", true}});
  const std::string of_calls = CheckCalls(test, report);
  return problem.empty() ? of_calls : problem + (of_calls.empty() ? "" : "; " + of_calls);
}

// STRATA_CASE names one of them.
TEST_F(Conformance, EveryCaseEndsAsItSays) {
  const std::vector<std::string> files = Files();
  ASSERT_FALSE(files.empty());
  ScriptedServer scripted(files);
  const char* const only = std::getenv("STRATA_CASE");
  int played = 0;
  int excepted = 0;
  std::set<std::string> names;
  for (const std::string& file : files) {
    std::ifstream in(file);
    const Value parsed = Parsed({std::istreambuf_iterator<char>(in), {}});
    const Value& cases = parsed.As<Array>() != nullptr ? parsed : std::as_const(parsed)["cases"];
    EXPECT_FALSE(Elements(cases).empty()) << file;
    for (const Value& test : Elements(cases)) {
      const std::string& name = Text(test["name"]);
      EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
      if (only != nullptr && name != only) continue;
      if (!test["except"]["cpp"].is_null()) {
        ++excepted;
        std::cout << name << " is excepted: " << Text(test["except"]["cpp"]) << std::endl;
        continue;
      }
      const std::string problem = RunCase(test, scripted);
      EXPECT_EQ(problem, "") << file << ": " << name;
      ++played;
    }
  }
  std::cout << played << " cases played, " << excepted << " excepted" << std::endl;
}

}  // namespace
}  // namespace strata::client
