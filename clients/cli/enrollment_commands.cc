// strata enroll, unenroll, enrollments, roster, purge-tombstones.
#include <algorithm>
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::EnrollmentService;

struct MessageOptions {
  SetOptions set;
  std::string student;
  std::string class_name;
  int64_t sequence_number = 0;
  ChangeOptions change;
};

template <typename Response>
int PrintResult(Session& session, const MessageOptions& options, const Response& response) {
  const bool refused = response.result() == v1::ENROLLMENT_RESULT_BELOW_FLOOR;
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return refused ? kExitRefused : kExitOk;
  }
  const std::string line = ResultName(response.result()) + ": " + options.student +
                           (response.enrolled() ? " is enrolled in " : " is not enrolled in ") +
                           options.class_name + ", version " + std::to_string(response.version());
  session.out() << client::Printable(line) << "\n";
  if (!refused) return kExitOk;
  session.err() << "Refused: tombstones were purged beyond this number, so the message may be a "
                   "late duplicate; if it is not, send it with a new number.\n";
  return kExitRefused;
}

// One message: Enroll or Unenroll, whose requests and answers have the same fields.
template <typename Request, typename Response, typename Method>
int RunMessage(Session& session, const MessageOptions& options, Method method) {
  Request request;
  options.set.Fill(request);
  request.set_student_id(options.student);
  request.set_class_name(options.class_name);
  request.set_sequence_number(options.sequence_number);
  const absl::Status filled = options.change.Fill(*request.mutable_change());
  if (!filled.ok()) return session.Usage(filled);
  Response response;
  const grpc::Status status = session.Call(method, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintResult(session, options, response);
}

constexpr char kMessageFooter[] =
    R"(SEQUENCE grows in the intended order of a student's messages. They may arrive in any order and
any number of times: the last one in the intended order counts for each class, so repeating is
safe:
  applied      the newest of its class: a version was written
  superseded   a newer one came before; nothing was written
  duplicate    it came before; nothing was written
  conflict     an enroll and an unenroll have the same number; unenroll counts
  below-floor  refused: not above what strata purge-tombstones forgot (exit status 1))";

std::shared_ptr<MessageOptions> AddMessageOptions(CLI::App& command) {
  auto options = std::make_shared<MessageOptions>();
  command.add_option("STUDENT", options->student, "The id of the student's document")->required();
  command.add_option("CLASS", options->class_name, "The class")->required();
  command.add_option("SEQUENCE", options->sequence_number, "The message's number, from 1")
      ->required()
      ->check(WholeNumber(1));
  options->set.AddTo(command);
  options->change.AddTo(command);
  return options;
}

void AddEnroll(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("enroll", "Enroll a student in a class");
  const auto options = AddMessageOptions(command);
  command.footer(std::string("Examples:\n"
                             "  strata enroll 1 'CS 101' 1000 --actor ann --reason 'add period'\n"
                             "  strata enroll ann news 7 --collection accounts --set lists\n") +
                 kMessageFooter);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return RunMessage<v1::EnrollRequest, v1::EnrollResponse>(session, *options,
                                                               &EnrollmentService::Stub::Enroll);
    };
  });
}

void AddUnenroll(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("unenroll", "Unenroll a student from a class");
  const auto options = AddMessageOptions(command);
  command.footer(
      std::string("Example:\n"
                  "  strata unenroll 1 'CS 101' 1001 --reason dropped\n"
                  "Unenrolling from a class that the student is not in leaves a note for an\n"
                  "enroll with a smaller number that arrives later.\n") +
      kMessageFooter);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return RunMessage<v1::UnenrollRequest, v1::UnenrollResponse>(
          session, *options, &EnrollmentService::Stub::Unenroll);
    };
  });
}

struct EnrollmentsOptions {
  SetOptions set;
  std::string student;
  bool tombstones = false;
};

int RunEnrollments(Session& session, const EnrollmentsOptions& options) {
  v1::GetEnrollmentsRequest request;
  options.set.Fill(request);
  request.set_student_id(options.student);
  request.set_include_tombstones(options.tombstones);
  v1::GetEnrollmentsResponse response;
  const grpc::Status status =
      session.Call(&EnrollmentService::Stub::GetEnrollments, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return kExitOk;
  }
  std::vector<std::string> header = {"CLASS", "SEQUENCE"};
  if (options.tombstones) header.push_back("STATE");
  Table table(header, session.palette());
  table.AlignRight(1);
  for (const v1::Enrollment& enrollment : response.enrollments()) {
    table.AddRow({enrollment.class_name(), std::to_string(enrollment.sequence_number()),
                  enrollment.enrolled() ? "enrolled" : "unenrolled"});
  }
  table.Flush(session.out());
  if (response.enrollments().empty()) {
    session.err() << client::Printable(options.student)
                  << (response.version() == 0 ? " has no document\n" : " has no enrollments\n");
  }
  return kExitOk;
}

void AddEnrollments(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("enrollments", "List the classes that a student is enrolled in");
  auto options = std::make_shared<EnrollmentsOptions>();
  command.add_option("STUDENT", options->student, "The id of the student's document")->required();
  command.add_flag(
      "--tombstones", options->tombstones,
      "Also the classes that the student was unenrolled from, with the number of that message");
  options->set.AddTo(command);
  command.footer(
      "Examples:\n"
      "  strata enrollments 1\n"
      "  strata enrollments 1 --tombstones --json | jq '.enrollments[] | .class_name'\n"
      "SEQUENCE is the number of the last message about the class; 0: the document is older than\n"
      "the numbers. For the changes over time: strata history students 1 --changes.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunEnrollments(session, *options); };
  });
}

struct RosterOptions {
  SetOptions set;
  std::string class_name;
  std::string at_time;
  LimitOption limit;
};

int RunRoster(Session& session, const RosterOptions& options) {
  v1::ListRosterRequest request;
  options.set.Fill(request);
  request.set_class_name(options.class_name);
  if (!options.at_time.empty()) {
    const absl::Status status = FillTime("--at", options.at_time, request.mutable_at_time());
    if (!status.ok()) return session.Usage(status);
  }
  Table table({"STUDENT", "SEQUENCE", "VERSION"}, session.palette());
  table.AlignRight(1);
  table.AlignRight(2);
  int64_t printed = 0;
  while (true) {
    request.set_page_size(options.limit.NextPageSize(printed, kPageSize));
    v1::ListRosterResponse response;
    const grpc::Status status =
        session.Call(&EnrollmentService::Stub::ListRoster, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::RosterEntry& entry : response.students()) {
      ++printed;
      if (session.json) {
        session.out() << MessageJson(entry) << "\n";
      } else {
        table.AddRow({entry.student_id(), std::to_string(entry.sequence_number()),
                      std::to_string(entry.version())});
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
    if (request.page_token().empty() || options.limit.NextPageSize(printed, 1) == 0) break;
    if (!session.out()) break;
  }
  return kExitOk;
}

void AddRoster(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("roster", "List the students of a class");
  auto options = std::make_shared<RosterOptions>();
  command.add_option("CLASS", options->class_name, "The class")->required();
  command.add_option("--at", options->at_time, "The students that it had then")->type_name("TIME");
  options->limit.AddTo(command);
  options->set.AddTo(command);
  command.footer(
      std::string("Examples:\n"
                  "  strata roster 'CS 101'\n"
                  "  strata roster 'CS 101' --at 2026-01-31 --json | jq -r .student_id\n") +
      kTimesHelp + "\nIn the byte order of the ids.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunRoster(session, *options); };
  });
}

struct PurgeOptions {
  SetOptions set;
  std::string student;
  int64_t through = 0;
  std::vector<std::string> queues;
  ChangeOptions change;
};

// Adds what one call did.
void Add(const v1::PurgeTombstonesResponse& page, v1::PurgeTombstonesResponse& sum) {
  const bool is_first = sum.examined() == 0;
  sum.set_through_sequence_number(
      is_first ? page.through_sequence_number()
               : std::min(sum.through_sequence_number(), page.through_sequence_number()));
  sum.set_examined(sum.examined() + page.examined());
  sum.set_purged_students(sum.purged_students() + page.purged_students());
  sum.set_purged_tombstones(sum.purged_tombstones() + page.purged_tombstones());
  sum.set_next_page_token(page.next_page_token());
  sum.mutable_refused_student_ids()->MergeFrom(page.refused_student_ids());
}

// `by_queues`: queues had a say in what went.
void PrintPurged(Session& session, const v1::PurgeTombstonesResponse& sum, bool by_queues) {
  if (session.json) {
    session.out() << MessageJson(sum) << "\n";
    return;
  }
  const int refused = sum.refused_student_ids_size();
  session.out() << "purged " << WithCommas(sum.purged_tombstones()) << " tombstones of "
                << WithCommas(sum.purged_students()) << " students; looked at "
                << WithCommas(sum.examined()) << ", refused " << WithCommas(refused);
  if (by_queues) session.out() << "; up to " << sum.through_sequence_number();
  session.out() << "\n";
  if (by_queues && sum.through_sequence_number() == 0) {
    session.err() << "Nothing may go yet: a queue holds a message with the first number. Run it "
                     "again later.\n";
  }
  for (const std::string& id : sum.refused_student_ids()) {
    session.err() << "refused: " << client::Printable(id)
                  << ": the document's member has another shape than enrollments\n";
  }
}

int RunPurge(Session& session, const PurgeOptions& options) {
  v1::PurgeTombstonesRequest request;
  options.set.Fill(request);
  request.set_student_id(options.student);
  request.set_through_sequence_number(options.through);
  for (const std::string& queue : options.queues) request.add_queues(queue);
  const absl::Status filled = options.change.Fill(*request.mutable_change());
  if (!filled.ok()) return session.Usage(filled);
  Progress progress(session.err(), session.terminal().err_is_terminal && !session.json);
  v1::PurgeTombstonesResponse sum;
  grpc::Status status;
  do {
    v1::PurgeTombstonesResponse page;
    status = session.Call(&EnrollmentService::Stub::PurgeTombstones, request, &page);
    if (!status.ok()) break;
    Add(page, sum);
    request.set_page_token(page.next_page_token());
    progress.Show(sum.examined(), "students", 0);
  } while (!request.page_token().empty());
  progress.Clear();
  if (status.ok() || sum.examined() > 0) {
    PrintPurged(session, sum, !options.queues.empty());
  }
  if (status.ok()) return sum.refused_student_ids().empty() ? kExitOk : kExitRefused;
  session.out().flush();
  session.Refuse(status);
  if (sum.examined() > 0 && !session.json) {
    session.err()
        << "The purge stopped there. Run it again to continue; purged tombstones stay purged.\n";
  }
  return kExitRefused;
}

void AddPurge(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("purge-tombstones", "Forget unenrollments up to a number");
  auto options = std::make_shared<PurgeOptions>();
  command
      .add_option("THROUGH", options->through, "Tombstones with this number or a smaller one go")
      ->required()
      ->check(WholeNumber(1));
  command.add_option("STUDENT", options->student, "Only this student; all unless given");
  AddRepeated(command, "--queue", options->queues,
              "A queue that the messages come through, its dead letter queue too: only tombstones "
              "below the numbers still in it go; may be repeated")
      ->type_name("NAME");
  options->set.AddTo(command);
  options->change.AddTo(command);
  command.footer(
      "Examples:\n"
      "  strata purge-tombstones 250000 --reason 'queue drained'\n"
      "  strata purge-tombstones 1001 1\n"
      "  strata purge-tombstones 250000 --queue changes --queue dead-changes\n"
      "Safe only when no message up to THROUGH can still arrive for the first time: the queue has\n"
      "been drained beyond it, as --queue sees to once all up to THROUGH are pushed. Late "
      "duplicates are refused from then on. Students whose documents\n"
      "are not understood stay as they are and make exit status 1; of each thousand students "
      "looked\n"
      "at, the server names the first ten.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunPurge(session, *options); };
  });
}

}  // namespace

void AddEnrollmentCommands(CLI::App& app, Session& session) {
  AddEnroll(app, session);
  AddUnenroll(app, session);
  AddEnrollments(app, session);
  AddRoster(app, session);
  AddPurge(app, session);
}

}  // namespace strata::cli
