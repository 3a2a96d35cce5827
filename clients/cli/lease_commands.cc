// strata lease acquire, renew, release, get, list.
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::LeaseService;

// "900", "900, event 3"; "-" for none.
std::string PlaceCell(const v1::Lease& lease) {
  if (lease.position() == 0) return "-";
  std::string cell = std::to_string(lease.position());
  if (lease.has_index()) cell += ", event " + std::to_string(lease.index());
  return cell;
}

std::vector<std::string> LeaseCells(const v1::Lease& lease) {
  return {lease.name(), lease.holder().empty() ? "-" : lease.holder(),
          std::to_string(lease.token()), TimeCell(lease.has_expire_time(), lease.expire_time()),
          PlaceCell(lease)};
}

Table LeaseTable(const Session& session) {
  Table table({"NAME", "HOLDER", "TOKEN", "EXPIRES", "POSITION"}, session.palette());
  table.AlignRight(2);
  return table;
}

int PrintLease(Session& session, const v1::Lease& lease) {
  if (session.json) {
    session.out() << MessageJson(lease) << "\n";
    return kExitOk;
  }
  Table table = LeaseTable(session);
  table.AddRow(LeaseCells(lease));
  std::vector<std::string> notes;
  for (const auto& [name, value] : lease.metadata()) {
    notes.push_back(client::Printable(name + "=" + value));
  }
  if (!notes.empty()) table.AddNote(std::move(notes));
  table.Flush(session.out());
  return kExitOk;
}

// One call about one lease, which is what it answers.
template <typename Response, typename Request, typename Method>
int RunAbout(Session& session, const Request& request, Method method) {
  Response response;
  const grpc::Status status = session.Call(method, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintLease(session, response.lease());
}

struct AcquireOptions {
  std::string name;
  std::string holder;
  std::string ttl;
  std::string wait;
  std::vector<std::string> metadata;
};

// Prints what the options of writes take, so that a shell keeps it in a variable.
int RunAcquire(Session& session, const AcquireOptions& options) {
  v1::AcquireRequest request;
  request.set_name(options.name);
  request.set_holder(options.holder);
  absl::Status filled;
  if (!options.ttl.empty()) filled = FillDuration("--ttl", options.ttl, request.mutable_ttl());
  if (filled.ok() && !options.wait.empty()) {
    filled = FillDuration("--wait", options.wait, request.mutable_wait());
  }
  if (!filled.ok()) return session.Usage(filled);
  for (const std::string& text : options.metadata) {
    const auto entry = SplitLabel(text);
    if (!entry.ok()) return session.Usage(entry.status());
    (*request.mutable_metadata())[entry->first] = entry->second;
  }
  v1::AcquireResponse response;
  const grpc::Status status = session.Call(&LeaseService::Stub::Acquire, request, &response);
  if (!status.ok()) return session.Refuse(status);
  if (session.json) return PrintLease(session, response.lease());
  v1::LeaseToken token;
  token.set_name(response.lease().name());
  token.set_token(response.lease().token());
  session.out() << MessageJson(token) << "\n";
  return kExitOk;
}

void AddAcquire(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("acquire", "Take a lease, and print its token");
  auto options = std::make_shared<AcquireOptions>();
  command.add_option("NAME", options->name, "The lease")->required();
  command.add_option("HOLDER", options->holder, "The holder; each needs its own name")->required();
  command.add_option("--ttl", options->ttl, "How long it lasts unless renewed; 10s unless given")
      ->type_name("TIME");
  command
      .add_option(
          "--wait", options->wait,
          "How long to wait while another holder has it, up to 25s; not at all unless given")
      ->type_name("TIME");
  AddRepeated(command, "--metadata", options->metadata,
              "KEY=VALUE, shown to readers of the lease; may be repeated");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunAcquire(session, *options); };
  });
}

// LEASE, as acquire prints it.
void AddLeaseArgument(CLI::App& command, std::string& lease) {
  command.add_option("LEASE", lease, "Its token, as acquire prints it; or STRATA_LEASE")
      ->envname("STRATA_LEASE")
      ->required();
}

struct RenewOptions {
  std::string lease;
  std::string ttl;
  int64_t position = 0;
};

int RunRenew(Session& session, const RenewOptions& options) {
  v1::LeaseToken token;
  absl::Status filled = LeaseOption::FillLease(options.lease, token);
  v1::RenewRequest request;
  request.set_name(token.name());
  request.set_token(token.token());
  request.set_position(options.position);
  if (filled.ok() && !options.ttl.empty()) {
    filled = FillDuration("--ttl", options.ttl, request.mutable_ttl());
  }
  if (!filled.ok()) return session.Usage(filled);
  return RunAbout<v1::RenewResponse>(session, request, &LeaseService::Stub::Renew);
}

void AddRenew(CLI::App& parent, Session& session) {
  CLI::App& command =
      *parent.add_subcommand("renew", "Keep a lease, and store the position reached");
  auto options = std::make_shared<RenewOptions>();
  AddLeaseArgument(command, options->lease);
  command.add_option("--ttl", options->ttl, "How long from now on; as before unless given")
      ->type_name("TIME");
  command.add_option("--position", options->position, "All up to this commit is done")
      ->check(WholeNumber(1))
      ->type_name("N");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunRenew(session, *options); };
  });
}

void AddRelease(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("release", "Give a lease back");
  auto lease = std::make_shared<std::string>();
  AddLeaseArgument(command, *lease);
  command.callback([&session, lease] {
    session.run = [&session, lease] {
      v1::LeaseToken token;
      const absl::Status filled = LeaseOption::FillLease(*lease, token);
      if (!filled.ok()) return session.Usage(filled);
      v1::ReleaseRequest request;
      request.set_name(token.name());
      request.set_token(token.token());
      return RunAbout<v1::ReleaseResponse>(session, request, &LeaseService::Stub::Release);
    };
  });
}

void AddGet(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("get", "Print a lease");
  auto name = std::make_shared<std::string>();
  command.add_option("NAME", *name, "The lease")->required();
  command.callback([&session, name] {
    session.run = [&session, name] {
      v1::GetLeaseRequest request;
      request.set_name(*name);
      return RunAbout<v1::GetLeaseResponse>(session, request, &LeaseService::Stub::GetLease);
    };
  });
}

int RunListLeases(Session& session, const std::string& prefix) {
  v1::ListLeasesRequest request;
  request.set_prefix(prefix);
  request.set_page_size(kPageSize);
  Table table = LeaseTable(session);
  do {
    v1::ListLeasesResponse response;
    const grpc::Status status = session.Call(&LeaseService::Stub::ListLeases, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const v1::Lease& lease : response.leases()) {
      if (session.json) {
        session.out() << MessageJson(lease) << "\n";
      } else {
        table.AddRow(LeaseCells(lease));
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && session.out());
  return kExitOk;
}

void AddListLeases(CLI::App& parent, Session& session) {
  CLI::App& command = *parent.add_subcommand("list", "List leases");
  auto prefix = std::make_shared<std::string>();
  command.add_option("PREFIX", *prefix, "Only leases whose names begin with this");
  command.callback([&session, prefix] {
    session.run = [&session, prefix] { return RunListLeases(session, *prefix); };
  });
}

}  // namespace

void AddLeaseCommands(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("lease", "Take leases, keep them, give them back and list them");
  command.require_subcommand(1);
  AddAcquire(command, session);
  AddRenew(command, session);
  AddRelease(command, session);
  AddGet(command, session);
  AddListLeases(command, session);
  command.footer(
      "Examples:\n"
      "  export STRATA_LEASE=$(strata lease acquire nightly worker-1 --ttl 30s)\n"
      "  strata update reports today --set /state=running\n"
      "  strata lease renew\n"
      "  strata lease release\n"
      "A write with a lease (--lease, STRATA_LEASE) takes effect only as long as no other\n"
      "holder has taken the lease.");
}

}  // namespace strata::cli
