// strata edit: a document in an editor, written only if nobody else has changed it meanwhile.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/draft.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/refusal.h"
#include "clients/cpp/repetition.h"

namespace strata::cli {
namespace {

using v1::DocumentService;

// A connection may have been idle for as long as the editor was open, or the server be another.
constexpr int64_t kRetryMs = 10'000;

struct EditOptions {
  Target target;
  bool create = false;
  ChangeOptions change;
  LeaseOption lease;
};

class Editing {
 public:
  Editing(Session& session, const EditOptions& options) : session_(session), options_(options) {}

  int Run() {
    if (const int exit = FillChange(); exit != kExitOk) return exit;
    if (const int exit = ReadDocument(); exit != kExitOk) return exit;
    const auto text = client::JsonFromBson(before_, client::JsonStyle::kExact, /*indent=*/2);
    if (!text.ok()) return session_.Fail(std::string(text.status().message()));
    const absl::StatusOr<Draft> draft = Draft::Write(*text + "\n");
    if (!draft.ok()) return session_.Fail(std::string(draft.status().message()));
    draft_ = draft->path();
    cancellation_.LendTerminal(true);
    const EditorEnd end = draft->Edit();
    cancellation_.LendTerminal(false);
    return Finish(*draft, *text + "\n", end);
  }

 private:
  // Before there is anything to lose by a wrong label.
  int FillChange() {
    request_.set_collection(options_.target.collection);
    request_.set_id(options_.target.id);
    absl::Status filled = options_.change.Fill(*request_.mutable_change());
    if (filled.ok()) filled = options_.lease.FillRequest(request_);
    return filled.ok() ? kExitOk : session_.Usage(filled);
  }

  int ReadDocument() {
    v1::GetRequest request;
    request.set_collection(options_.target.collection);
    request.set_id(options_.target.id);
    request.set_encoding(v1::ENCODING_BSON);
    v1::GetResponse response;
    const grpc::Status status = CallOnce(&DocumentService::Stub::Get, request, response);
    if (cancellation_.asked()) return cancellation_.exit_status();
    if (status.ok()) {
      version_ = response.document().version();
      before_ = response.document().content().bson();
      return kExitOk;
    }
    const client::Refusal refusal = client::RefusalOf(status);
    is_new_ = status.error_code() == grpc::StatusCode::NOT_FOUND;
    if (!is_new_ || !options_.create) {
      const int exit = session_.Refuse(refusal);
      if (is_new_ && !session_.json) {
        session_.err() << "--create begins it with an empty object.\n";
      }
      return exit;
    }
    // That of the deletion, if there was one.
    const auto deletion = refusal.metadata.find("version");
    if (deletion != refusal.metadata.end()) version_ = std::atoll(deletion->second.c_str());
    before_ = client::BsonFromJson("{}").value();
    return kExitOk;
  }

  // What becomes of the text, when the editor has ended.
  int Finish(const Draft& draft, const std::string& text_before, const EditorEnd& end) {
    const absl::StatusOr<std::string> text = draft.Read();
    if (!text.ok()) {
      return session_.Fail(std::string(text.status().message()) + "; nothing was written");
    }
    const bool edited = *text != text_before;
    if (!end.well()) {
      if (!edited) draft.Remove();
      return EditorFailed(draft, end, edited);
    }
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
      draft.Remove();
      return session_.Fail("the text is empty; nothing was written");
    }
    absl::StatusOr<std::string> after = client::BsonFromJson(*text);
    if (!after.ok()) {
      session_.Fail(draft.path() +
                    " is not a JSON object: " + std::string(after.status().message()));
      SayHowToGoOn("Nothing was written; your text stays there. Correct it, then:",
                   UpdateCommand(draft, version_));
      return kExitRefused;
    }
    if (!edited || *after == before_) {
      draft.Remove();
      if (!session_.json) session_.err() << Named("unchanged", version_);
      return kExitOk;
    }
    request_.mutable_replace()->set_bson(*std::move(after));
    return Save(draft);
  }

  int EditorFailed(const Draft& draft, const EditorEnd& end, bool edited) {
    session_.Fail("the editor ended with exit status " + std::to_string(end.exit_status) +
                  (end.exit_status == 127 ? " (is there such a program? $VISUAL, $EDITOR)" : "") +
                  "; nothing was written");
    if (edited) {
      SayHowToGoOn("Your text is kept. To write it all the same:", UpdateCommand(draft, version_));
    }
    constexpr int kInterrupted = 130;
    return end.exit_status == kInterrupted ? kInterrupted : kExitRefused;
  }

  int Save(const Draft& draft) {
    request_.mutable_precondition()->set_version(version_);
    request_.set_allow_missing(is_new_);
    request_.set_omit_content(true);
    request_.set_request_id(DrawnId());
    v1::UpdateResponse response;
    const grpc::Status status = CallUpdate(response);
    if (status.ok()) {
      draft.Remove();
      if (session_.json) {
        session_.out() << MessageJson(response) << "\n";
      } else {
        session_.out() << Named(!response.changed() ? "unchanged"
                                : is_new_           ? "created"
                                                    : "updated",
                                response.document().version());
      }
      return kExitOk;
    }
    return NotSaved(draft, client::RefusalOf(status));
  }

  template <typename Method, typename Request, typename Response>
  grpc::Status CallOnce(Method method, const Request& request, Response& response) {
    grpc::ClientContext context;
    session_.SetDeadline(context);
    const Cancellation::Call call(cancellation_, context);
    return (*session_.connection().documents.*method)(&context, request, &response);
  }

  // Repeated for a while under its request id.
  grpc::Status CallUpdate(v1::UpdateResponse& response) {
    client::Repetition repetition(kRetryMs);
    const auto first = client::Repetition::Clock::now();
    for (int attempts = 1;; ++attempts) {
      const grpc::Status status = CallOnce(&DocumentService::Stub::Update, request_, response);
      const client::Refusal refusal = client::RefusalOf(status);
      if (status.ok() || !refusal.IsRetryable()) return status;
      const auto next = repetition.Next(refusal, attempts, first);
      if (!next || !cancellation_.SleepUntil(*next)) return status;
    }
  }

  int NotSaved(const Draft& draft, const client::Refusal& refusal) {
    const bool conflict = refusal.reason == "VERSION_CONFLICT";
    // Of what no Strata server explained, it is not known either what became of it.
    const bool unknown = refusal.reason.empty() || refusal.reason == "OUTCOME_UNKNOWN" ||
                         refusal.reason == "DEADLINE_EXCEEDED";
    if (session_.json) {
      session_.Report(refusal, draft.path());
    } else if (conflict) {
      session_.Report(refusal, "");
      SayHowToGoOnAfterConflict(draft, refusal);
    } else {
      session_.Refuse(refusal);
      const std::string known = unknown ? "It may or may not be written." : "Nothing was written.";
      SayHowToGoOn(known + " Your text is in " + draft.path() + ". To try again:",
                   UpdateCommand(draft, version_) +
                       (unknown ? " --request-id " + request_.request_id() : ""));
    }
    return cancellation_.asked() ? cancellation_.exit_status() : kExitRefused;
  }

  void SayHowToGoOnAfterConflict(const Draft& draft, const client::Refusal& refusal) {
    const auto metadata = refusal.metadata.find("actual");
    const std::string actual = metadata == refusal.metadata.end() ? "N" : metadata->second;
    const std::string document =
        ShellWord(options_.target.collection) + " " + ShellWord(options_.target.id);
    session_.err()
        << "Another writer has changed it meanwhile. Nothing was written; your text is in "
        << draft.path() << ".\nTo see what they changed:\n  strata "
        << (version_ == 0 ? "get " + document
                          : "diff " + document + " " + std::to_string(version_) + " " + actual)
        << GlobalOptions() << "\nTo write your text over version " << actual << " all the same:\n  "
        << UpdateCommand(draft, std::atoll(actual.c_str())) << "\n";
  }

  void SayHowToGoOn(const std::string& what, const std::string& command) {
    if (!session_.json) session_.err() << what << "\n  " << command << "\n";
  }

  std::string UpdateCommand(const Draft& draft, int64_t version) const {
    std::string command = "strata update " + ShellWord(options_.target.collection) + " " +
                          ShellWord(options_.target.id) + " " + ShellWord("@" + draft.path()) +
                          " --if-version " + std::to_string(version);
    if (is_new_) command += " --allow-missing";
    const auto add = [&command](const char* option, const std::string& value) {
      if (!value.empty()) command += std::string(" ") + option + " " + ShellWord(value);
    };
    add("--reason", options_.change.reason);
    add("--actor", options_.change.actor);
    add("--on-behalf-of", options_.change.on_behalf_of);
    for (const std::string& label : options_.change.labels) add("--label", label);
    if (std::getenv("STRATA_LEASE") == nullptr) add("--lease", options_.lease.token);
    return command + GlobalOptions();
  }

  // Those that the environment does not bring to the next command by itself.
  std::string GlobalOptions() const {
    std::string options;
    const auto add = [&options](const char* option, const char* variable, const std::string& value,
                                const char* otherwise) {
      const char* const set = std::getenv(variable);
      if (value == (set == nullptr ? otherwise : set)) return;
      options += std::string(" ") + option + " " + ShellWord(value);
    };
    const client::CredentialFiles& files = session_.credential_files;
    add("--server", "STRATA_SERVER", session_.server, Session::kDefaultServer);
    add("--tls-ca", "STRATA_TLS_CA", files.tls_ca, "");
    add("--tls-certificate", "STRATA_TLS_CERTIFICATE", files.tls_certificate, "");
    add("--tls-key", "STRATA_TLS_KEY", files.tls_key, "");
    add("--token-file", "STRATA_TOKEN_FILE", files.token_file, "");
    return options;
  }

  std::string Named(const std::string& what, int64_t version) const {
    return client::Printable(what + " " + options_.target.collection + " " + options_.target.id +
                             ", version " + std::to_string(version)) +
           "\n";
  }

  Session& session_;
  const EditOptions& options_;
  v1::UpdateRequest request_;
  bool is_new_ = false;
  int64_t version_ = 0;  // the one that was read; of a deletion; 0: it was never written
  std::string before_;   // its content, BSON
  std::string draft_;    // its path, before the editor has it
  Cancellation cancellation_{nullptr, [this] {
                               if (draft_.empty()) return;
                               session_.err() << "your text is in " << draft_ << "\n" << std::flush;
                             }};
};

constexpr char kEditFooter[] =
    R"(Examples:
  strata edit books moby --reason 'typing error'
  EDITOR='code --wait' strata edit books moby

The editor is $VISUAL, else $EDITOR, else vi. It gets the content as JSON that keeps every type:
{"$numberLong": "5"} stays an integer of 64 bits. When it ends well, the changed text becomes
the next version if no other writer has made one meanwhile. Otherwise, and if the text cannot be
written, it is kept, and standard error says how to continue. Nothing is written if nothing changes,
if the text is empty, or if the editor ends with another exit status than 0 (of vi: ":cq").)";

}  // namespace

void AddEditCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("edit", "Change a document in your editor");
  auto options = std::make_shared<EditOptions>();
  options->target.AddTo(command);
  command.add_flag("--create", options->create,
                   "Begin with an empty object if the document is missing or deleted");
  options->change.AddTo(command);
  options->lease.AddTo(command);
  command.footer(kEditFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return Editing(session, *options).Run(); };
  });
}

}  // namespace strata::cli
