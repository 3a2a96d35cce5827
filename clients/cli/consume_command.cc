// strata consume: the events of a subscription, each until it is done.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cli/commands.h"
#include "clients/cli/deliveries.h"
#include "clients/cli/event_command.h"
#include "clients/cli/event_table.h"
#include "clients/cli/interruption.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/repetition.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

using ConsumeStream = grpc::ClientReaderWriter<v1::ConsumeRequest, v1::ConsumeResponse>;

struct ConsumeOptions {
  std::string subscription;
  std::vector<std::string> command;
  std::string consumer;
  int32_t window = 0;
  bool content = false;
  bool changes = false;
  int64_t count = 0;  // 0: for ever
  std::string retry_for = "60s";
  bool waits_for_server = false;
};

std::string ThisProcess() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  return client::Printable(host) + "/" + std::to_string(getpid());
}

v1::ConsumeRequest OpenRequest(const ConsumeOptions& options) {
  v1::ConsumeRequest request;
  v1::ConsumeRequest::Open& open = *request.mutable_open();
  open.set_subscription(options.subscription);
  open.set_consumer(options.consumer.empty() ? ThisProcess() : options.consumer);
  // Commands run one at a time, and what waits for its turn does so against ack_timeout.
  open.set_window(options.window == 0 && !options.command.empty() ? 1 : options.window);
  open.set_include_content(options.content);
  open.set_include_changes(options.changes);
  open.set_encoding(v1::ENCODING_BSON);
  return request;
}

// A subscription's events over as many streams as it takes.
class Consuming {
 public:
  Consuming(Session& session, const ConsumeOptions& options, int64_t retry_ms)
      : session_(session),
        open_(OpenRequest(options)),
        left_(options.count),
        endless_(options.count == 0),
        repetition_(retry_ms),
        table_(session),
        tries_again_(options.waits_for_server) {
    if (!options.command.empty()) command_.emplace(options.command, session.err());
  }

  int Run() {
    const Interruption interruption([this](int) { Interrupt(); });
    grpc::Status status = OneStream();
    while (!deliveries_.stopped() && IsBroken(status) && tries_again_ && AwaitNextTry(status)) {
      status = OneStream();
    }
    if (!failure_.empty()) return session_.Fail(failure_);
    // What a server that went away had not stored yet comes again, which is no trouble to whoever
    // wanted to end.
    if (status.ok() || (interruptions_ > 0 && IsBroken(status))) return kExitOk;
    return session_.Refuse(status);
  }

 private:
  using Taken = Deliveries::Taken;

  static constexpr size_t kPrintedAtOnce = 100;
  // For the server to take the partitions back and to say so.
  static constexpr std::chrono::seconds kLeavePatience{15};

  // A server that ends may end its calls so too, and one that has no room for more has some later.
  static bool IsBroken(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::CANCELLED ||
           status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }

  // What is under way is finished, and the partitions are given back; the second time not even
  // that, and from the third on a command that does not end by itself is ended.
  void Interrupt() {
    const int before = interruptions_.fetch_add(1);
    deliveries_.Stop();
    if (before == 0) return;
    if (command_) before == 1 ? command_->Terminate() : command_->Kill();
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  // Until the stream ends, however it does, or enough has come.
  grpc::Status OneStream() {
    grpc::ClientContext context;
    session_.SetLongDeadline(context);
    SetContext(&context);
    deliveries_.Begin();
    const auto stream = session_.connection().feed->Consume(&context);
    stream->Write(open_);
    std::thread reader([&] { Listen(*stream); });
    Work(*stream);
    stream->WritesDone();
    if (!deliveries_.AwaitEnd(kLeavePatience)) context.TryCancel();
    reader.join();
    const grpc::Status status = stream->Finish();
    SetContext(nullptr);
    return status;
  }

  void SetContext(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
  }

  void Listen(ConsumeStream& stream) {
    v1::ConsumeResponse response;
    while (stream.Read(&response)) {
      {
        const std::lock_guard lock(mutex_);
        tries_again_ = true;
        attempts_ = 0;
      }
      deliveries_.Add(response);
    }
    deliveries_.End();
  }

  // False: it has been tried for long enough without hearing anything.
  bool AwaitNextTry(const grpc::Status& status) {
    if (attempts_++ == 0) trouble_since_ = client::Repetition::Clock::now();
    const auto next = repetition_.Next(client::RefusalOf(status), attempts_, trouble_since_);
    if (next) std::this_thread::sleep_until(*next);
    return next.has_value();
  }

  void Work(ConsumeStream& stream) {
    const size_t at_once = command_ ? 1 : kPrintedAtOnce;
    for (;;) {
      if (!endless_ && left_ == 0) return deliveries_.Stop();
      const size_t most = endless_ ? at_once : std::min(at_once, static_cast<size_t>(left_));
      const std::vector<Taken> taken = deliveries_.Await(most);
      if (taken.empty()) return;
      if (!(command_ ? RunCommand(taken.front(), stream) : Print(taken, stream))) {
        return deliveries_.Stop();
      }
      left_ -= static_cast<int64_t>(taken.size());
    }
  }

  // Lines that are out are done. False: they cannot be printed.
  bool Print(const std::vector<Taken>& taken, ConsumeStream& stream) {
    for (const Taken& each : taken) {
      std::vector<std::string> notes;
      if (each.delivery.attempt() > 1) {
        notes.push_back("(attempt " + std::to_string(each.delivery.attempt()) + ")");
      }
      if (each.delivery.replay()) notes.emplace_back("(was parked)");
      table_.Add(each.delivery.event(), std::move(notes));
    }
    table_.Flush();
    if (!session_.OutputIsRead()) return false;
    std::map<int32_t, const Taken*> last;  // all up to it is done
    for (const Taken& each : taken) {
      if (!deliveries_.Holds(each)) continue;
      if (each.delivery.replay()) {
        Acknowledge(each, stream);
      } else {
        last[each.partition] = &each;
      }
    }
    for (const auto& [partition, each] : last) Acknowledge(*each, stream);
    return true;
  }

  // False: it cannot be run.
  bool RunCommand(const Taken& taken, ConsumeStream& stream) {
    const auto ended =
        command_->Run(MessageJson(taken.delivery.event()) + "\n",
                      {{"STRATA_LEASE", MessageJson(taken.delivery.lease())},
                       {"STRATA_ATTEMPT", std::to_string(taken.delivery.attempt())}});
    if (!ended.ok()) {
      failure_ = std::string(ended.status().message());
      return false;
    }
    if (!deliveries_.Holds(taken)) return true;
    if (ended->well) {
      Acknowledge(taken, stream);
      return true;
    }
    // It wrote to somebody who went away, which is no fault of the event's.
    if (!session_.OutputIsRead()) return false;
    if (!taken.delivery.replay()) deliveries_.Fail(taken);
    v1::ConsumeRequest request;
    v1::ConsumeRequest::Nack& nack = *request.mutable_nack();
    nack.set_partition(taken.partition);
    nack.set_position(taken.place().position);
    nack.set_index(taken.place().index);
    nack.set_reason(AsReason(ended->reason()));
    stream.Write(request);
    return true;
  }

  // What a stream that has broken is not told any more comes again.
  static void Acknowledge(const Taken& taken, ConsumeStream& stream) {
    v1::ConsumeRequest request;
    v1::ConsumeRequest::Ack& ack = *request.mutable_ack();
    ack.set_partition(taken.partition);
    ack.set_position(taken.place().position);
    ack.set_index(taken.place().index);
    stream.Write(request);
  }

  Session& session_;
  const v1::ConsumeRequest open_;
  int64_t left_;  // events, unless endless
  const bool endless_;
  client::Repetition repetition_;
  EventTable table_;
  std::optional<EventCommand> command_;
  Deliveries deliveries_;
  std::string failure_;  // of the command, before it began
  std::atomic<int> interruptions_ = 0;
  client::Repetition::Clock::time_point trouble_since_;

  std::mutex mutex_;  // guards what follows, while a stream is open
  bool tries_again_;  // the server is there, as it answered something, or will be
  int attempts_ = 0;  // since the last message
  grpc::ClientContext* context_ = nullptr;  // of the stream that is open
};

int RunConsume(Session& session, const ConsumeOptions& options) {
  const absl::StatusOr<int64_t> retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return session.Usage(retry_ms.status());
  return Consuming(session, options, *retry_ms).Run();
}

}  // namespace

void AddConsumeCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("consume", "Process the events of a subscription");
  auto options = std::make_shared<ConsumeOptions>();
  command.add_option("NAME", options->subscription, "The subscription")->required();
  AddRepeated(command, "COMMAND", options->command,
              "After --: the command to run for each event, which it reads on standard input")
      ->expected(-1);
  command.add_option(
      "--consumer", options->consumer,
      "The consumer's name, shown to operators; this machine and process unless given");
  command
      .add_option("--window", options->window,
                  "Maximum number of unacknowledged events of each partition; 100, with COMMAND 1, "
                  "unless given")
      ->check(WholeNumber(1))
      ->type_name("N");
  command.add_flag("--content", options->content, "With the content of each version");
  command.add_flag("--changes", options->changes, "With the changes of each version");
  command.add_option("--count", options->count, "End after this number of events")
      ->check(WholeNumber(1))
      ->type_name("N");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long to try to resume a broken stream, 60s unless given; if given, also\n"
                  "to reach a server that is not up yet")
      ->each([options](const std::string&) { options->waits_for_server = true; })
      ->type_name("TIME");
  command.footer(
      "COMMAND gets the event as one line of JSON, and in its environment STRATA_ATTEMPT, from 1,\n"
      "and STRATA_LEASE, which one write of strata's takes so that it takes effect once: a second\n"
      "one for the same event is refused, so several writes go into one strata commit. Exit\n"
      "status 0: the event is done; else it has failed, with the last line of standard error as\n"
      "reason, and comes again. Commands run one at a time, each partition in its turn: the\n"
      "subscription's ack_timeout has to be longer than a command for each of them takes. Without\n"
      "COMMAND events are lines, done when they are printed. Ctrl-C lets the command under way\n"
      "end, then gives the partitions back; a second one asks it to end, a third one ends it. "
      "When\n"
      "the reader of the output ends, as head does, the partitions are given back too.\n"
      "Examples:\n"
      "  strata consume mail -- ./send-mail\n"
      "  strata consume sums -- strata update sums all --allow-missing --increment /orders=1\n"
      "  strata consume mail --json --count 10");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunConsume(session, *options); };
  });
}

}  // namespace strata::cli
