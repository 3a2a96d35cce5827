#include "service/http/connection.h"

#include <strata/v1/server_service.pb.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "service/http/answer.h"
#include "service/http/calls.h"
#include "service/http/connect_protocol.h"
#include "service/http/request_reader.h"
#include "service/observability/log.h"
#include "service/server/status_mapping.h"

namespace strata::http {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kServerInfo[] = "/strata.v1.ServerService/GetServerInfo";
constexpr char kHealthWatch[] = "grpc.health.v1.Health.Watch";
constexpr int kHealthWatchesMax = 4;
// For an idle connection to give way to one at the door.
constexpr std::chrono::milliseconds kDoorTime{500};
// What is taken in and dropped of a request that was refused, so that its sender reads why.
constexpr size_t kLingerBytesMax = size_t{16} << 20;
constexpr std::chrono::milliseconds kLingerTime{2'000};

// How a call's messages are written.
struct Encoding {
  bool json = true;
  bool stream = false;

  std::string_view content_type() const {
    if (stream) return json ? "application/connect+json" : "application/connect+proto";
    return json ? kJson : "application/proto";
  }
};

Answer Refuse(const Refusal& refusal) {
  return {.status = refusal.status, .body = ErrorJson(refusal.code, refusal.message)};
}

// "application/json; charset=utf-8" without its blanks. Nothing: another type, or another charset.
std::optional<Encoding> EncodingOf(std::string_view content_type) {
  std::string type = absl::AsciiStrToLower(ToAbsl(content_type));
  std::erase_if(type, [](char c) { return c == ' ' || c == '\t' || c == '"'; });
  for (const bool stream : {false, true}) {
    for (const bool json : {true, false}) {
      const Encoding encoding{json, stream};
      const std::string name(encoding.content_type());
      if (type == name || (json && type == name + ";charset=utf-8")) return encoding;
    }
  }
  return std::nullopt;
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Whether the caller's copy, by If-None-Match, is this one.
bool HasCopy(const RequestHead& head, std::string_view entity_tag) {
  for (const std::string_view tags : head.headers.All("if-none-match")) {
    if (tags == "*" || tags.find(entity_tag) != std::string_view::npos) return true;
  }
  return false;
}

class Connection {
 public:
  Connection(PortState& state, Socket& socket, const Limits& limits, Slots::Slot& slot,
             std::atomic<bool>& idle)
      : state_(state),
        socket_(socket),
        limits_(limits),
        slot_(slot),
        idle_(idle),
        names_(socket.peer_names()),
        reader_(socket, limits_),
        share_(state.budget) {}

  void Serve() {
    while (ServeOne()) continue;
    if (!reader_.at_request_end() && !broken_) {
      socket_.Linger(kLingerBytesMax, Clock::now() + kLingerTime);
    }
  }

 private:
  // Whether another request may follow.
  bool ServeOne() {
    idle_ = true;
    auto read = reader_.ReadHead();
    idle_ = false;
    if (std::holds_alternative<RequestReader::Nothing>(read)) return false;
    const Counted counted(state_);
    Answer answer;
    bool with_body = true;
    closes_ = false;
    if (const Refusal* const refusal = std::get_if<Refusal>(&read)) {
      closes_ = true;
      answer = Refuse(*refusal);
    } else {
      head_ = std::get<RequestHead>(std::move(read));
      with_body = head_.method != "HEAD";
      answer = HasSlot() ? Guarded() : Full();
    }
    if (!caller_gone_) Write(answer, with_body);
    share_.SetTo(0);
    return !closes_ && !caller_gone_ && !broken_;
  }

  // One more request under way, which whoever ends the server waits for.
  class Counted {
   public:
    explicit Counted(PortState& state) : state_(state) {
      const std::lock_guard lock(state_.mutex);
      ++state_.answers;
    }
    ~Counted() {
      const std::lock_guard lock(state_.mutex);
      if (--state_.answers == 0) state_.changed.notify_all();
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    PortState& state_;
  };

  void Write(Answer& answer, bool with_body) {
    if (!reader_.at_request_end() || state_.draining || ClosesAfter(head_)) closes_ = true;
    Clock::time_point deadline = Clock::now() + limits_.answer;
    const auto write = [&](std::string_view bytes) {
      broken_ = broken_ || socket_.Write(bytes, deadline) != Socket::Ended::kNo;
      return !broken_;
    };
    // HTTP/1.0 has no chunks: the end of the connection ends the answer there.
    const bool chunked = answer.stream != nullptr && !head_.http_1_0;
    std::string head = HeadOf(answer, chunked, closes_);
    if (answer.stream == nullptr) {
      // Together, as each would be a packet, or a record of TLS, of its own.
      if (with_body) head += std::exchange(answer.body, {});
      write(head);
      return;
    }
    const auto send = [&](std::string_view bytes) {
      deadline = Clock::now() + limits_.answer;
      return chunked ? write(Chunk(bytes)) : write(bytes);
    };
    // The head first: it may be long before there is a message.
    const bool whole = write(head) && answer.stream(send) && (!chunked || write(kLastChunk));
    if (!whole) closes_ = true;
  }

  // Memory may run out, for one.
  Answer Guarded() {
    try {
      return AnswerTo(head_);
    } catch (const std::exception& exception) {
      using observability::Log;
      using observability::LogLevel;
      Log(LogLevel::kError, "an HTTP request failed", {{"error", exception.what()}});
      closes_ = true;
      return {.status = 500, .body = ErrorJson("internal", "a bug in the server")};
    }
  }

  // A connection at the door gets a slot here if its caller has slots left: the credentials of a
  // call may show another caller than the address, and an idle connection may have given way.
  bool HasSlot() {
    if (!slot_.at_door()) return true;
    const Route* const route = state_.routes.Find(head_.path);
    bool has = false;
    const Clock::time_point until = Clock::now() + kDoorTime;
    if (route != nullptr && route->is_call() && !BadAuthorization()) {
      has = IntroduceCaller(Arrive().recognized, until);
    } else {
      has = slot_.Introduce(std::string(slot_.caller()), false, until);
    }
    if (has) limits_ = state_.options.limits;
    return has;
  }

  bool IntroduceCaller(const server::Recognized& recognized,
                       Clock::time_point until = Clock::time_point::min()) {
    return slot_.Introduce(recognized.caller->name(), !recognized.identity->principal.empty(),
                           until);
  }

  Answer Full() {
    closes_ = true;
    Answer answer{
        .status = 503,
        .body = ErrorJson("unavailable",
                          "the port has as many connections as it serves, or as it serves of one "
                          "caller, and a Watch keeps one; repeat it a little later")};
    answer.headers.emplace_back("Retry-After", "1");
    return answer;
  }

  // All that is asked before the body is read.
  Answer AnswerTo(const RequestHead& head) {
    if (!state_.hosts.Has(head.host, socket_.own_address())) {
      return Refuse({421, "invalid_argument",
                     "this port is not known by the name of the Host header; name it by "
                     "--http-host"});
    }
    const Route* const route = state_.routes.Find(head.path);
    const bool gets = head.method == "GET" || head.method == "HEAD";
    const bool navigates = gets && route != nullptr && route->kind == Route::Kind::kFile;
    if (const auto refusal = CheckOrigin(head, socket_.encrypted(), navigates)) {
      return Refuse(*refusal);
    }
    if (head.method == "OPTIONS") return WrongMethod(route);
    if (route == nullptr) return NotFound(head);
    if (route->is_call() ? head.method != "POST" : !gets) return WrongMethod(route);
    switch (route->kind) {
      case Route::Kind::kFile:
        return File(head, *route);
      case Route::Kind::kVersion:
        return Version();
      case Route::Kind::kUnary:
      case Route::Kind::kServerStream:
      case Route::Kind::kOtherStream:
        break;
    }
    return Call(head, *route);
  }

  static Answer WrongMethod(const Route* route) {
    Answer answer = Refuse({405, "unimplemented",
                            route == nullptr || !route->is_call()
                                ? "pages are read by GET and methods are called by POST"
                                : "methods are called by POST"});
    answer.headers.emplace_back("Allow",
                                std::string(route == nullptr ? "GET, HEAD, POST" : route->allow));
    return answer;
  }

  // As the gRPC port says it, with the status that people know.
  Answer NotFound(const RequestHead& head) const {
    if (head.method != "POST") return Refuse({404, "not_found", "there is no such page"});
    const absl::Status status = Error(ErrorReason::kUnknownMethod, "no method " + head.path)
                                    .With("method", std::string_view(head.path));
    return {.status = 404, .body = ErrorJson(server::ToGrpc(status), state_.codec)};
  }

  static Answer File(const RequestHead& head, const Route& route) {
    Answer answer{.content_type = route.content_type};
    answer.headers.emplace_back("ETag", route.entity_tag);
    answer.headers.emplace_back("Cache-Control", "no-cache");
    if (HasCopy(head, route.entity_tag)) {
      answer.status = 304;
    } else {
      answer.body = route.content;
    }
    return answer;
  }

  // Everybody may know what runs here; more is told to those who may ask for it.
  Answer Version() {
    strata::v1::GetServerInfoResponse info;
    std::string bytes;
    const Route* const route = state_.routes.Find(kServerInfo);
    if (route != nullptr && !BadAuthorization() &&
        CallUnary(state_.parts.calls, *route->endpoint, Arrive(), "", is_gone_, bytes).ok() &&
        info.ParseFromString(bytes)) {
      Answer answer = VersionAnswer(info.version(), info.commit());
      answer.body.pop_back();
      answer.body += R"(,"storageFormat":)" + std::to_string(info.storage_format());
      answer.body += R"(,"engine":)";
      AppendJsonText(info.engine(), answer.body);
      answer.body += '}';
      return answer;
    }
    return VersionAnswer(state_.parts.version, state_.parts.commit);
  }

  static Answer VersionAnswer(const std::string& version, const std::string& commit) {
    Answer answer{.body = R"({"version":)"};
    AppendJsonText(version, answer.body);
    answer.body += R"(,"commit":)";
    AppendJsonText(commit, answer.body);
    answer.body += '}';
    return answer;
  }

  Answer Call(const RequestHead& head, const Route& route) {
    if (route.kind == Route::Kind::kOtherStream) {
      return Refuse({501, "unimplemented",
                     route.method->full_name() +
                         " takes messages while it answers, which HTTP/1.1 cannot; call it by "
                         "gRPC"});
    }
    const bool stream = route.kind == Route::Kind::kServerStream;
    const auto types = head.headers.All("content-type");
    const std::optional<Encoding> encoding =
        types.size() == 1 ? EncodingOf(types.front()) : std::nullopt;
    if (!encoding || encoding->stream != stream) return WrongType(stream);
    const char* const coding = stream ? "connect-content-encoding" : "content-encoding";
    for (const char* const name : {"content-encoding", coding}) {
      const auto value = head.headers.Find(name);
      if (value && absl::AsciiStrToLower(ToAbsl(*value)) != "identity") {
        return Refuse(
            {415, "invalid_argument",
             "requests are taken as they are, not compressed (" + std::string(name) + ")"});
      }
    }
    if (auto refusal = BadAuthorization()) return Refuse(*refusal);
    if (const auto version = head.headers.Find("connect-protocol-version");
        version && *version != "1") {
      return Refuse({400, "invalid_argument", "Connect-Protocol-Version may only be 1"});
    }
    std::optional<int64_t> millis;
    if (const auto timeout = head.headers.Find("connect-timeout-ms")) {
      millis = ParseTimeoutMillis(*timeout);
      if (!millis) {
        return Refuse({400, "invalid_argument",
                       "Connect-Timeout-Ms is no number of milliseconds of up to 10 digits"});
      }
    }
    const server::Arrival ahead = Arrive();
    if (!IntroduceCaller(ahead.recognized)) return Full();
    const absl::Status admitted = CheckAhead(*state_.parts.calls, *route.endpoint, ahead);
    if (!admitted.ok()) return Refused(admitted, *encoding);
    share_.BelongTo(ahead.recognized.caller->name());
    auto body = reader_.ReadBody(head, share_);
    if (const Refusal* const refusal = std::get_if<Refusal>(&body)) return Refuse(*refusal);
    auto& request = std::get<std::string>(body);
    return stream ? ServerStream(route, *encoding, millis, std::move(request))
                  : Unary(route, *encoding, millis, std::move(request));
  }

  static Answer WrongType(bool stream) {
    const std::string types = stream ? "application/connect+json, application/connect+proto"
                                     : "application/json, application/proto";
    Answer answer = Refuse({415, "invalid_argument", "the Content-Type may be " + types});
    answer.headers.emplace_back("Accept-Post", types);
    return answer;
  }

  std::optional<Refusal> BadAuthorization() const {
    for (const std::string_view value : head_.headers.All("authorization")) {
      if (!IsPrintable(value)) {
        return Refusal{400, "invalid_argument",
                       "the Authorization header has other bytes than printable ASCII"};
      }
    }
    return std::nullopt;
  }

  // A call by the request that was read last, which is to end after so many milliseconds.
  server::Arrival Arrive(std::optional<int64_t> millis = std::nullopt) const {
    server::LoopState& calls = *state_.parts.calls;
    server::Arrival arrival{.peer = socket_.peer(), .reads_only = state_.options.reads_only};
    if (millis) arrival.deadline = Clock::now() + std::chrono::milliseconds(*millis);
    security::Credentials credentials;
    if (calls.parts.access.reads_tokens()) {
      credentials.authorization = head_.headers.All("authorization");
    }
    credentials.uris.assign(names_.uris.begin(), names_.uris.end());
    credentials.dns_names.assign(names_.dns_names.begin(), names_.dns_names.end());
    arrival.recognized = calls.Recognize(arrival.peer, credentials);
    return arrival;
  }

  Answer Failed(const grpc::Status& status) const {
    Answer answer{.status = HttpStatusOf(status.error_code()),
                  .body = ErrorJson(status, state_.codec)};
    if (answer.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }

  // As the call would be answered.
  Answer Refused(const absl::Status& refusal, const Encoding& encoding) {
    const grpc::Status status = server::ToGrpc(refusal);
    if (!encoding.stream) return Failed(status);
    Answer answer{.content_type = encoding.content_type()};
    answer.stream = [this, status](const Answer::Send& send) { return SendEnd(status, send); };
    return answer;
  }

  // The bytes of the request, of which the text is gone then.
  absl::StatusOr<std::string> ToBytes(const google::protobuf::MethodDescriptor& method,
                                      const Encoding& encoding, std::string text) {
    if (!encoding.json) return text;
    absl::StatusOr<std::string> bytes = state_.codec.ToBytes(
        *method.input_type(), text, [this](size_t size) { return share_.TryGrowTo(size); });
    if (bytes.ok()) share_.SetTo(bytes->size());
    return bytes;
  }

  // What is not said in JSON is not said as something else: the message says what to do instead.
  absl::StatusOr<std::string> ToText(const google::protobuf::MethodDescriptor& method,
                                     const Encoding& encoding, std::string bytes) {
    if (!encoding.json) return bytes;
    return state_.codec.ToJson(*method.output_type(), bytes);
  }

  static grpc::Status Unsayable(const absl::Status& status) {
    const grpc::Status generic = server::ToGrpc(status);
    return {generic.error_code(), std::string(ToStd(status.message())), generic.error_details()};
  }

  Answer Unary(const Route& route, const Encoding& encoding, std::optional<int64_t> millis,
               std::string text) {
    const google::protobuf::MethodDescriptor& method = *route.method;
    const absl::StatusOr<std::string> request = ToBytes(method, encoding, std::move(text));
    if (!request.ok()) return Failed(server::ToGrpc(request.status()));
    std::string response;
    const grpc::Status status = CallUnary(state_.parts.calls, *route.endpoint, Arrive(millis),
                                          *request, is_gone_, response);
    if (!status.ok()) {
      caller_gone_ = status.error_code() == grpc::StatusCode::CANCELLED && socket_.IsGone();
      return Failed(status);
    }
    absl::StatusOr<std::string> said = ToText(method, encoding, std::move(response));
    if (!said.ok()) return Failed(Unsayable(said.status()));
    share_.SetTo(said->size());
    return {.content_type = encoding.content_type(), .body = *std::move(said)};
  }

  Answer ServerStream(const Route& route, const Encoding& encoding, std::optional<int64_t> millis,
                      std::string body) {
    const google::protobuf::MethodDescriptor& method = *route.method;
    // It needs no right and lasts for as long as it likes.
    std::shared_ptr<void> health_watch;
    if (method.full_name() == kHealthWatch) {
      closes_ = true;  // and nothing comes after it
      health_watch = std::shared_ptr<void>(&state_, [this](void*) { --state_.health_watches; });
      if (++state_.health_watches > kHealthWatchesMax) {
        return Refused(Error(ErrorReason::kOverloaded,
                             "this port serves " + std::to_string(kHealthWatchesMax) +
                                 " health watches at a time; ask by Check, or watch by gRPC"),
                       encoding);
      }
    }
    Answer answer{.content_type = encoding.content_type()};
    absl::StatusOr<std::string> request = OnlyMessage(std::move(body));
    if (request.ok()) request = ToBytes(method, encoding, *std::move(request));
    answer.stream = [this, &route, encoding, millis, health_watch,
                     request = std::move(request)](const Answer::Send& send) {
      if (!request.ok()) return SendEnd(server::ToGrpc(request.status()), send);
      std::optional<grpc::Status> unsayable;
      const grpc::Status status = CallStream(state_.parts.calls, *route.endpoint, Arrive(millis),
                                             *request, is_gone_, [&](std::string message) {
                                               const absl::StatusOr<std::string> said = ToText(
                                                   *route.method, encoding, std::move(message));
                                               if (!said.ok()) unsayable = Unsayable(said.status());
                                               return said.ok() && send(Envelope(0, *said));
                                             });
      if (broken_ || socket_.IsGone()) return false;
      return SendEnd(unsayable.value_or(status), send);
    };
    return answer;
  }

  bool SendEnd(const grpc::Status& status, const Answer::Send& send) const {
    return send(Envelope(kEndOfStreamFlag, EndOfStreamJson(status, state_.codec)));
  }

  static bool ClosesAfter(const RequestHead& head) {
    if (head.http_1_0) return true;
    for (const std::string_view value : head.headers.All("connection")) {
      if (absl::AsciiStrToLower(ToAbsl(value)).find("close") != std::string::npos) return true;
    }
    return false;
  }

  PortState& state_;
  Socket& socket_;
  Limits limits_;
  Slots::Slot& slot_;
  std::atomic<bool>& idle_;
  const PeerNames names_;
  RequestReader reader_;
  Budget::Share share_;
  const IsGone is_gone_ = [this] { return socket_.IsGone(); };
  RequestHead head_;
  bool closes_ = false;
  bool broken_ = false;       // the other end does not take answers in
  bool caller_gone_ = false;  // before its answer was there
};

}  // namespace

void ServeConnection(PortState& state, Socket& socket, const Limits& limits, Slots::Slot& slot,
                     std::atomic<bool>& idle) {
  Connection(state, socket, limits, slot, idle).Serve();
}

}  // namespace strata::http
