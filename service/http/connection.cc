#include "service/http/connection.h"

#include <httplib.h>
#include <strata/v1/server_service.pb.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "service/http/connect_protocol.h"
#include "service/http/own_calls.h"
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
constexpr size_t kOutBytesMax = size_t{64} << 10;
// What is taken in and dropped of a request that was refused, so that its sender reads why.
constexpr size_t kLingerBytesMax = size_t{16} << 20;
constexpr std::chrono::milliseconds kLingerTime{2'000};

// With every answer. No Strict-Transport-Security: it would hold for the whole host, all other
// ports on it, and the port is often on "localhost".
constexpr std::pair<const char*, const char*> kSecurityHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

// How a call's messages are written.
struct Encoding {
  bool json = true;
  bool stream = false;

  std::string_view content_type() const {
    if (stream) return json ? "application/connect+json" : "application/connect+proto";
    return json ? kJson : "application/proto";
  }
};

// What is said to one request. A stream's body is said while it comes about.
struct Answer {
  int status = 200;
  std::string_view content_type = kJson;
  std::string body{};
  httplib::Headers headers{};
  std::function<bool(const OwnCalls::Take& send)> stream{};
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

// What httplib reads and writes. It is given a head of our own making, so that it neither
// understands a request in another way than RequestReader nor does anything for headers that nobody
// here has looked at: ranges, compression, encoded values.
class Wire final : public httplib::Stream {
 public:
  Wire(Socket& socket, const Limits& limits) : socket_(socket), limits_(limits) {}

  void Offer(const std::string& method) {
    head_ = method + " / HTTP/1.1\r\n\r\n";
    StartWaiting();
  }
  // From now on what is written has its time.
  void StartWaiting() { deadline_ = Clock::now() + limits_.answer; }
  // Whether everything has been taken by the other end, or at least by the kernel for it.
  bool Flush() {
    if (!broken_ && !out_.empty()) {
      broken_ = socket_.Write(out_, deadline_) != Socket::Ended::kNo;
    }
    out_.clear();
    return !broken_;
  }
  bool broken() const { return broken_; }

  bool is_readable() const override { return !head_.empty(); }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* to, size_t size) override {
    size = std::min(size, head_.size());
    std::copy_n(head_.begin(), size, to);
    head_.erase(0, size);
    return static_cast<ssize_t>(size);
  }
  // Small pieces go together, as each would be a packet, or a record of TLS, of its own.
  ssize_t write(const char* bytes, size_t size) override {
    out_.append(bytes, size);
    if (out_.size() >= kOutBytesMax && !Flush()) return -1;
    return broken_ ? -1 : static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  // Which httplib only holds against what select() could wait for.
  socket_t socket() const override { return 0; }

 private:
  Socket& socket_;
  const Limits& limits_;
  std::string head_;
  std::string out_;
  Clock::time_point deadline_;
  bool broken_ = false;
};

class Connection final : private httplib::Server {
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
        wire_(socket, limits_),
        calls_(state.parts.channel, state.parts.introduction_key,
               [&socket] { return socket.IsGone(); }),
        share_(state.budget) {
    svr_sock_ = 0;  // the state of httplib's own listener, without which it writes no stream
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      Fill(answer_, response);
      return HandlerResponse::Handled;
    });
    set_post_routing_handler(
        [this](const httplib::Request&, httplib::Response& response) { Finish(response); });
  }

  void Serve() {
    while (ServeOne()) continue;
    if (!reader_.at_request_end() && !wire_.broken()) {
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
    std::string method = "GET";
    closes_ = false;
    if (const Refusal* const refusal = std::get_if<Refusal>(&read)) {
      closes_ = true;
      answer_ = Refuse(*refusal);
    } else {
      head_ = std::get<RequestHead>(std::move(read));
      if (head_.method == "HEAD") method = head_.method;
      answer_ = HasSlot() ? Guarded() : Full();
    }
    Write(method);
    answer_ = Answer();
    share_.SetTo(0);
    return !closes_ && !wire_.broken();
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

  void Write(const std::string& method) {
    if (caller_gone_) {
      closes_ = true;
      return;
    }
    wire_.Offer(method);
    bool closed = false;
    const bool written = ProcessRequest(*this, wire_, closed);
    if (!wire_.Flush() || !written) closes_ = true;
  }

  // Reads what was offered and writes the answer. From 0.14 on httplib takes addresses too, for
  // headers that this port does not use.
  template <typename Self>
  static bool ProcessRequest(Self& self, Wire& wire, bool& closed) {
    if constexpr (requires { self.process_request(wire, false, closed, nullptr); }) {
      return self.process_request(wire, false, closed, nullptr);
    } else {
      return self.process_request(wire, "", 0, "", 0, false, closed, nullptr);
    }
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
    CallMetadata metadata;
    bool has = false;
    const Clock::time_point until = Clock::now() + kDoorTime;
    if (route != nullptr && route->is_call() && !FillMetadata(metadata)) {
      const server::Welcome welcome = Welcome(*route, metadata);
      has = slot_.Introduce(welcome.caller, welcome.is_principal, until);
    } else {
      has = slot_.Introduce(std::string(slot_.caller()), false, until);
    }
    if (has) limits_ = state_.options.limits;
    return has;
  }

  server::Welcome Welcome(const Route& route, const CallMetadata& metadata) const {
    return state_.parts.admit(PathOf(*route.method), metadata.introduction, metadata.authorization);
  }

  Answer Full() {
    closes_ = true;
    Answer answer{
        .status = 503,
        .body = ErrorJson("unavailable",
                          "the port has as many connections as it serves, or as it serves of one "
                          "caller, and a Watch keeps one; repeat it a little later")};
    answer.headers.emplace("Retry-After", "1");
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
    answer.headers.emplace("Allow",
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
    answer.headers.emplace("ETag", route.entity_tag);
    answer.headers.emplace("Cache-Control", "no-cache");
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
    CallMetadata metadata;
    if (!FillMetadata(metadata) && calls_.Unary(kServerInfo, metadata, "", bytes).ok() &&
        info.ParseFromString(bytes)) {
      Answer answer{.body = R"({"version":)"};
      AppendJsonText(info.version(), answer.body);
      answer.body += R"(,"commit":)";
      AppendJsonText(info.commit(), answer.body);
      answer.body += R"(,"storageFormat":)" + std::to_string(info.storage_format());
      answer.body += R"(,"engine":)";
      AppendJsonText(info.engine(), answer.body);
      answer.body += '}';
      return answer;
    }
    Answer answer{.body = R"({"version":)"};
    AppendJsonText(state_.parts.version, answer.body);
    answer.body += R"(,"commit":)";
    AppendJsonText(state_.parts.commit, answer.body);
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
    CallMetadata metadata;
    if (auto refusal = FillMetadata(metadata)) return Refuse(*refusal);
    if (const auto version = head.headers.Find("connect-protocol-version");
        version && *version != "1") {
      return Refuse({400, "invalid_argument", "Connect-Protocol-Version may only be 1"});
    }
    if (const auto timeout = head.headers.Find("connect-timeout-ms")) {
      const std::optional<int64_t> millis = ParseTimeoutMillis(*timeout);
      if (!millis) {
        return Refuse({400, "invalid_argument",
                       "Connect-Timeout-Ms is no number of milliseconds of up to 10 digits"});
      }
      metadata.timeout = std::chrono::milliseconds(*millis);
    }
    const server::Welcome welcome = Welcome(route, metadata);
    if (!slot_.Introduce(welcome.caller, welcome.is_principal)) return Full();
    if (!welcome.refusal.ok()) return Refused(welcome.refusal, *encoding);
    share_.BelongTo(welcome.caller);
    auto body = reader_.ReadBody(head, share_);
    if (const Refusal* const refusal = std::get_if<Refusal>(&body)) return Refuse(*refusal);
    auto& request = std::get<std::string>(body);
    return stream ? ServerStream(*route.method, *encoding, metadata, std::move(request))
                  : Unary(*route.method, *encoding, metadata, std::move(request));
  }

  static Answer WrongType(bool stream) {
    const std::string types = stream ? "application/connect+json, application/connect+proto"
                                     : "application/json, application/proto";
    Answer answer = Refuse({415, "invalid_argument", "the Content-Type may be " + types});
    answer.headers.emplace("Accept-Post", types);
    return answer;
  }

  std::optional<Refusal> FillMetadata(CallMetadata& metadata) const {
    metadata.introduction = {.peer = socket_.peer(),
                             .uris = names_.uris,
                             .dns_names = names_.dns_names,
                             .reads_only = state_.options.reads_only};
    for (const std::string_view value : head_.headers.All("authorization")) {
      if (!IsPrintable(value)) {
        return Refusal{400, "invalid_argument",
                       "the Authorization header has other bytes than printable ASCII"};
      }
      metadata.authorization.emplace_back(value);
    }
    const auto trace = head_.headers.Find("traceparent");
    if (trace && IsPrintable(*trace)) metadata.traceparent = *trace;
    return std::nullopt;
  }

  static std::string PathOf(const google::protobuf::MethodDescriptor& method) {
    return "/" + method.service()->full_name() + "/" + method.name();
  }

  Answer Failed(const grpc::Status& status) const {
    Answer answer{.status = HttpStatusOf(status.error_code()),
                  .body = ErrorJson(status, state_.codec)};
    if (answer.status == 401) answer.headers.emplace("WWW-Authenticate", "Bearer");
    return answer;
  }

  // As the call would be answered.
  Answer Refused(const absl::Status& refusal, const Encoding& encoding) {
    const grpc::Status status = server::ToGrpc(refusal);
    if (!encoding.stream) return Failed(status);
    Answer answer{.content_type = encoding.content_type()};
    answer.stream = [this, status](const OwnCalls::Take& send) { return SendEnd(status, send); };
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

  Answer Unary(const google::protobuf::MethodDescriptor& method, const Encoding& encoding,
               const CallMetadata& metadata, std::string text) {
    const absl::StatusOr<std::string> request = ToBytes(method, encoding, std::move(text));
    if (!request.ok()) return Failed(server::ToGrpc(request.status()));
    std::string response;
    const grpc::Status status = calls_.Unary(PathOf(method), metadata, *request, response);
    if (!status.ok()) {
      caller_gone_ = status.error_code() == grpc::StatusCode::CANCELLED && socket_.IsGone();
      return Failed(status);
    }
    absl::StatusOr<std::string> said = ToText(method, encoding, std::move(response));
    if (!said.ok()) return Failed(Unsayable(said.status()));
    share_.SetTo(said->size());
    return {.content_type = encoding.content_type(), .body = *std::move(said)};
  }

  Answer ServerStream(const google::protobuf::MethodDescriptor& method, const Encoding& encoding,
                      const CallMetadata& metadata, std::string body) {
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
    answer.stream = [this, &method, encoding, metadata, health_watch,
                     request = std::move(request)](const OwnCalls::Take& send) {
      if (!request.ok()) return SendEnd(server::ToGrpc(request.status()), send);
      std::optional<grpc::Status> unsayable;
      const grpc::Status status =
          calls_.ServerStream(PathOf(method), metadata, *request, [&](std::string message) {
            const absl::StatusOr<std::string> said = ToText(method, encoding, std::move(message));
            if (!said.ok()) unsayable = Unsayable(said.status());
            return said.ok() && send(Envelope(0, *said));
          });
      if (wire_.broken() || socket_.IsGone()) return false;
      return SendEnd(unsayable.value_or(status), send);
    };
    return answer;
  }

  bool SendEnd(const grpc::Status& status, const OwnCalls::Take& send) const {
    return send(Envelope(kEndOfStreamFlag, EndOfStreamJson(status, state_.codec)));
  }

  // Of a body that holds one message in its envelope.
  static absl::StatusOr<std::string> OnlyMessage(std::string body) {
    const auto refuse = [](const std::string& problem) {
      return Error(ErrorReason::kInvalidMessage, "the body " + problem);
    };
    if (body.size() < kEnvelopeHeadBytes) {
      return refuse("has no message: send one, after a byte of flags and four of its length");
    }
    uint32_t size = 0;
    for (size_t i = 1; i < kEnvelopeHeadBytes; ++i) {
      size = size << 8 | static_cast<unsigned char>(body[i]);
    }
    if (static_cast<uint8_t>(body[0]) == kCompressedFlag) {
      return refuse("has a compressed message; send it as it is");
    }
    if (body[0] != 0) {
      return refuse(
          "does not begin with a byte of flags that is 0; four of the message's length "
          "and the message follow it");
    }
    if (size != body.size() - kEnvelopeHeadBytes) {
      return refuse("has " + std::to_string(body.size() - kEnvelopeHeadBytes) +
                    " bytes after a length of " + std::to_string(size) +
                    "; send one message, whole");
    }
    return body.substr(kEnvelopeHeadBytes);
  }

  // Hands the answer to httplib.
  void Fill(Answer& answer, httplib::Response& response) {
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    if (answer.stream == nullptr) {
      response.body = std::move(answer.body);
      if (answer.status != 304) {
        response.set_header("Content-Type", std::string(answer.content_type));
      }
      return;
    }
    const std::string type(answer.content_type);
    auto write = [this, stream = std::move(answer.stream)](size_t /*offset*/,
                                                           httplib::DataSink& sink) {
      const auto send = [&](const std::string& bytes) {
        wire_.StartWaiting();
        return sink.write(bytes.data(), bytes.size()) && wire_.Flush();
      };
      // The head first: it may be long before there is a message.
      if (!wire_.Flush() || !stream(send)) return false;
      sink.done();
      return true;
    };
    // HTTP/1.0 has no chunks: the end of the connection ends the answer there.
    if (head_.http_1_0) {
      response.set_content_provider(type, std::move(write));
    } else {
      response.set_chunked_content_provider(type, std::move(write));
    }
  }

  // The headers that every answer has, and whether another request may follow it.
  void Finish(httplib::Response& response) {
    for (const auto& [name, value] : kSecurityHeaders) response.set_header(name, value);
    if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
    for (const char* const name : {"Keep-Alive", "Accept-Ranges"}) response.headers.erase(name);
    if (response.status == 304) response.headers.erase("Content-Length");
    if (!reader_.at_request_end() || state_.draining || ClosesAfter(head_)) closes_ = true;
    if (closes_) response.set_header("Connection", "close");
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
  Wire wire_;
  OwnCalls calls_;
  Budget::Share share_;
  RequestHead head_;
  Answer answer_;
  bool closes_ = false;
  bool caller_gone_ = false;
};

}  // namespace

void ServeConnection(PortState& state, Socket& socket, const Limits& limits, Slots::Slot& slot,
                     std::atomic<bool>& idle) {
  Connection(state, socket, limits, slot, idle).Serve();
}

}  // namespace strata::http
