// list_histories FILE [STRATEGY…]: real histories in the real server, and 30 filters, now and at 10
// moments, whose answers must be those of a plain evaluation of the file. Prints the time a
// document examined. Exit status 0: all equal.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "strata/v1/document_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/fault/version_lines.h"
#include "tests/long/plain_filter.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

constexpr int kFilters = 30;
constexpr int kMoments = 10;

// The contents of each document's versions as trees; a deletion is missing.
using Trees = std::map<std::string, std::vector<Json>>;

Json Text(const std::string& text) {
  Json json;
  json.kind = Json::Kind::kString;
  json.text = text;
  return json;
}
Json Number(double number) {
  Json json;
  json.kind = Json::Kind::kNumber;
  json.number = number;
  return json;
}
Json Bool(bool value) {
  Json json;
  json.kind = Json::Kind::kBool;
  json.boolean = value;
  return json;
}
Json Object(const std::string& name, Json value) {
  Json json;
  json.kind = Json::Kind::kObject;
  json.members.emplace_back(name, std::move(value));
  return json;
}
Json Array(std::vector<Json> elements) {
  Json json;
  json.kind = Json::Kind::kArray;
  for (Json& element : elements) json.members.emplace_back("", std::move(element));
  return json;
}

// A place in some version of some document.
struct Place {
  std::string path;
  Json value;
  std::string top;  // the first segment
};

// Makes filters about what is in the documents, or was.
class FilterMaker {
 public:
  FilterMaker(const Trees& trees, uint64_t seed) : random_(seed) {
    for (const auto& [id, versions] : trees) {
      for (const Json& version : versions) {
        if (version.kind == Json::Kind::kObject && !version.members.empty()) {
          documents_.push_back(&version);
        }
      }
    }
  }

  // Filter `index`: ten forms in turn.
  Json Make(int index) {
    switch (index % 10) {
      case 0:
        return AnyOf(12);
      case 1: {
        Json both = Object(Scalar().top, Object("$exists", Bool(true)));
        const Place place = Scalar();
        both.members.emplace_back(place.path, Object("$ne", place.value));
        return both;
      }
      case 2: {
        static const char* const kOperators[] = {"$gt", "$gte", "$lt", "$lte"};
        std::vector<Json> all;
        for (const char* operation : kOperators) all.push_back(Compared(operation));
        return Object("$or", Array(std::move(all)));
      }
      case 3:
        return Object("$nor", Array({AnyOf(8), AnyOf(8)}));
      case 4:
        return Object(Scalar().top, Object("$exists", Bool(Below(2) == 0)));
      case 5: {
        std::vector<Json> all;
        for (int i = 0; i < 8; ++i) all.push_back(WithText());
        return Object("$or", Array(std::move(all)));
      }
      case 6: {
        std::vector<Json> all;
        for (int i = 0; i < 12; ++i) {
          static const char* const kTypes[] = {"string", "bool", "array", "object", "null"};
          all.push_back(Object(Any().path, Object("$type", Text(kTypes[Below(5)]))));
        }
        return Object("$or", Array(std::move(all)));
      }
      case 7: {
        std::vector<Json> all;
        for (int i = 0; i < 8; ++i) {
          const Place place = Scalar();
          std::vector<Json> values = {place.value};
          for (int more = 0; more < 5; ++more) values.push_back(Scalar().value);
          all.push_back(Object(place.path, Object(i % 2 == 0 ? "$in" : "$nin", Array(values))));
        }
        return Object(index < 20 ? "$or" : "$and", Array(std::move(all)));
      }
      case 8: {
        std::vector<Json> all;
        for (int i = 0; i < 10; ++i) all.push_back(OfArray(i));
        return Object("$or", Array(std::move(all)));
      }
      default: {
        const Place place = Scalar();
        Json filter = Object(place.top, Object("$exists", Bool(true)));
        filter.members.emplace_back(Scalar().path, Object("$not", Object("$gt", Text("1"))));
        return filter;
      }
    }
  }

 private:
  size_t Below(size_t count) { return static_cast<size_t>(random_() % count); }

  // Walks down from a random version's root to a random place.
  Place Any() {
    for (;;) {
      const Json* at = documents_[Below(documents_.size())];
      std::vector<std::string> segments;
      while (!at->members.empty() && (segments.empty() || Below(8) != 0)) {
        const size_t index = Below(at->members.size());
        const bool array = at->kind == Json::Kind::kArray;
        const auto& [name, value] = at->members[index];
        // A path may also leave the index out, if an object follows.
        if (!array) {
          segments.push_back(name);
        } else if (value.kind != Json::Kind::kObject || Below(2) == 0) {
          segments.push_back(std::to_string(index));
        }
        at = &value;
      }
      if (!segments.empty()) return {PathOf(segments), *at, PathOf({segments[0]})};
    }
  }
  Place Scalar() {
    for (;;) {
      Place place = Any();
      if (place.value.kind == Json::Kind::kString || place.value.kind == Json::Kind::kBool) {
        return place;
      }
    }
  }
  Place OfKind(Json::Kind kind) {
    for (;;) {
      Place place = Any();
      if (place.value.kind == kind) return place;
    }
  }

  Json AnyOf(int count) {
    std::vector<Json> all;
    for (int i = 0; i < count; ++i) {
      Place place = Scalar();
      all.push_back(Object(place.path, std::move(place.value)));
    }
    return Object("$or", Array(std::move(all)));
  }
  Json Compared(const char* operation) {
    Place place = OfKind(Json::Kind::kString);
    return Object(place.path, Object(operation, Text(place.value.text.substr(0, 2))));
  }
  Json WithText() {
    const Place place = OfKind(Json::Kind::kString);
    std::string literal;
    for (const char c : place.value.text) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!plain || literal.size() == 4) break;
      literal += c;
    }
    return Object(place.path, Object("$regex", Text((Below(2) == 0 ? "^" : "") + literal)));
  }
  Json OfArray(int form) {
    Place place = OfKind(Json::Kind::kArray);
    while (place.value.members.empty()) place = OfKind(Json::Kind::kArray);
    const Json& element = place.value.members[Below(place.value.members.size())].second;
    if (form % 3 == 0) {
      return Object(place.path,
                    Object("$size", Number(static_cast<double>(place.value.members.size()))));
    }
    if (element.kind == Json::Kind::kObject) {
      if (element.members.empty()) return Object(place.path, Object("$type", Text("array")));
      const auto& [name, value] = element.members[Below(element.members.size())];
      return Object(place.path, Object("$elemMatch", Object(PathOf({name}), Object("$eq", value))));
    }
    if (form % 3 == 1) return Object(place.path, Object("$all", Array({element})));
    return Object(place.path, Object("$elemMatch", Object("$eq", element)));
  }

  // Dotted or as a JSON Pointer, which names with dots need.
  std::string PathOf(const std::vector<std::string>& segments) {
    bool pointer = Below(2) == 0;
    for (const std::string& segment : segments) {
      pointer = pointer || segment.empty() || segment.find('.') != std::string::npos ||
                segment[0] == '$' || segment[0] == '/';
    }
    std::string path;
    for (const std::string& segment : segments) {
      if (pointer || !path.empty()) path += pointer ? '/' : '.';
      for (const char c : segment) {
        if (pointer && (c == '~' || c == '/')) {
          path += c == '~' ? "~0" : "~1";
        } else {
          path += c;
        }
      }
    }
    return path;
  }

  std::mt19937_64 random_;
  std::vector<const Json*> documents_;
};

struct Question {
  Json filter;
  std::string text;
  // Whether each version of each document matches, by the plain evaluation.
  std::map<std::string, std::vector<bool>> matches;
};

using Answer = std::map<std::string, int64_t>;  // id -> version

struct Time {
  int64_t examined = 0;
  std::chrono::nanoseconds spent{0};
  double micros() const {
    return std::chrono::duration<double, std::micro>(spent).count() /
           static_cast<double>(std::max<int64_t>(1, examined));
  }
};

class Trial {
 public:
  Trial(const std::string& file, const std::vector<Question>& questions, std::string strategy)
      : file_(file), questions_(questions), strategy_(std::move(strategy)) {}

  bool Run() {
    ServerProcess server(settings_);
    const Finished imported =
        RunToEnd({StrataBinary(), "--json", "--server", server.address(), "import", file_,
                  "--collection", "trial", "--strategy", strategy_},
                 settings_.log);
    Expect(imported.status == 0, "the import ends with " + std::to_string(imported.status));
    documents_ = v1::DocumentService::NewStub(server.Connect());
    ReadTimes();
    int64_t listed = 0;
    int64_t trapped = 0;
    for (const Question& question : questions_) {
      for (int moment = 0; moment <= kMoments && equal_; ++moment) {
        const int64_t time = moment < kMoments ? moments_[static_cast<size_t>(moment)] : 0;
        const Answer answer = List(question, time);
        const Answer expected = PlainAnswer(question, time, trapped);
        listed += static_cast<int64_t>(answer.size());
        Expect(answer == expected, question.text + " at " + std::to_string(time) + ": " +
                                       std::to_string(answer.size()) + " documents instead of " +
                                       std::to_string(expected.size()));
      }
    }
    Expect(listed > 0 && trapped > 0, "the filters ask nothing");
    Expect(server.Stop() == 0, "the server stops");
    std::printf("%-18s %7zu %10lld %10lld %12.2f %12.2f %s\n", strategy_.c_str(),
                questions_.size() * (kMoments + 1), static_cast<long long>(listed),
                static_cast<long long>(trapped), now_.micros(), then_.micros(),
                equal_ ? "equal" : "DIFFERENT");
    std::fflush(stdout);
    return equal_;
  }

 private:
  // When each version was committed, and ten moments in between.
  void ReadTimes() {
    std::vector<int64_t> all;
    v1::AuditRequest request;
    request.set_collection("trial");
    request.set_page_size(1000);
    do {
      grpc::ClientContext context;
      v1::AuditResponse response;
      const grpc::Status status = documents_->Audit(&context, request, &response);
      Expect(status.ok(), status.error_message());
      for (const v1::AuditEntry& entry : response.entries()) {
        const auto& time = entry.version().commit_time();
        all.push_back(time.seconds() * 1'000'000 + time.nanos() / 1000);
        times_[entry.id()].push_back(all.back());
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty() && equal_);
    std::sort(all.begin(), all.end());
    for (size_t i = 1; i <= kMoments; ++i) moments_.push_back(all[all.size() * i / (kMoments + 1)]);
  }

  // `time` 0: now.
  Answer List(const Question& question, int64_t time) {
    v1::ListRequest request;
    request.set_collection("trial");
    request.set_page_size(1000);
    request.set_encoding(v1::ENCODING_BSON);
    request.add_fields("/");  // the content is not looked at
    if (!google::protobuf::util::JsonStringToMessage(question.text, request.mutable_filter())
             .ok()) {
      Expect(false, "not JSON: " + question.text);
    }
    if (time != 0) {
      request.mutable_at_time()->set_seconds(time / 1'000'000);
      request.mutable_at_time()->set_nanos(static_cast<int32_t>(time % 1'000'000 * 1000));
    }
    Answer answer;
    Time& spent = time == 0 ? now_ : then_;
    do {
      grpc::ClientContext context;
      v1::ListResponse response;
      const auto begin = std::chrono::steady_clock::now();
      const grpc::Status status = documents_->List(&context, request, &response);
      spent.spent += std::chrono::steady_clock::now() - begin;
      spent.examined += response.examined();
      Expect(status.ok(), status.error_message() + ": " + question.text);
      for (const v1::Document& document : response.documents()) {
        answer.emplace(document.id(), document.version());
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty() && equal_);
    return answer;
  }

  // Counts in `trapped` the documents of which only an older version matches.
  Answer PlainAnswer(const Question& question, int64_t time, int64_t& trapped) {
    Answer answer;
    for (const auto& [id, times] : times_) {
      const auto behind =
          time == 0 ? times.end() : std::upper_bound(times.begin(), times.end(), time);
      if (behind == times.begin()) continue;
      const auto version = behind - times.begin();
      const std::vector<bool>& matches = question.matches.at(id);
      if (matches[static_cast<size_t>(version - 1)]) {
        answer.emplace(id, version);
      } else if (std::find(matches.begin(), matches.begin() + version, true) !=
                 matches.begin() + version) {
        ++trapped;
      }
    }
    return answer;
  }

  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    equal_ = false;
    std::cerr << strategy_ << ": " << what << "\n";
  }

  const std::string& file_;
  const std::vector<Question>& questions_;
  const std::string strategy_;
  test_support::TemporaryDirectory directory_;
  ServerSettings settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}};
  std::unique_ptr<v1::DocumentService::Stub> documents_;
  std::map<std::string, std::vector<int64_t>> times_;
  std::vector<int64_t> moments_;
  Time now_;
  Time then_;
  bool equal_ = true;
};

std::vector<Question> MakeQuestions(const Trees& trees, uint64_t seed) {
  FilterMaker maker(trees, seed);
  std::vector<Question> questions;
  for (int i = 0; i < kFilters; ++i) {
    Question question;
    question.filter = maker.Make(i);
    SortMembers(question.filter);
    question.text = TextOf(question.filter);
    for (const auto& [id, versions] : trees) {
      std::vector<bool>& matches = question.matches[id];
      for (const Json& version : versions) {
        matches.push_back(version.kind == Json::Kind::kObject &&
                          PlainlyMatches(question.filter, version));
      }
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << "usage: list_histories FILE [STRATEGY...]\n";
    return 2;
  }
  std::vector<std::string> strategies(arguments.begin() + 1, arguments.end());
  if (strategies.empty()) {
    strategies = {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"};
  }
  const char* const given = std::getenv("STRATA_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  Trees trees;
  for (const auto& [id, versions] : ReadVersionLines(arguments[0])) {
    for (const VersionLine& version : versions) {
      trees[id].push_back(version.deleted ? Json() : JsonOf(version.content));
    }
  }
  const std::vector<Question> questions = MakeQuestions(trees, seed);
  std::printf("%zu documents, %d filters, now and at %d moments, seed %llu\n", trees.size(),
              kFilters, kMoments, static_cast<unsigned long long>(seed));
  std::printf("%-18s %7s %10s %10s %12s %12s\n", "strategy", "lists", "documents", "only older",
              "us/doc now", "us/doc then");
  bool equal = true;
  for (const std::string& strategy : strategies) {
    equal = Trial(arguments[0], questions, strategy).Run() && equal;
  }
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  return strata::fault::Main(std::vector<std::string>(argv + 1, argv + argc));
}
