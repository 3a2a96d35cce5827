// strata create, update, delete, restore.
#include <memory>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

using v1::DocumentService;

// Prints what a write did: one line, or the answer as JSON; then the content, if the answer has it.
template <typename Response>
int PrintWritten(Session& session, std::string_view verb, bool validate_only,
                 const Response& response) {
  if (session.json) {
    session.out() << MessageJson(response) << "\n";
    return kExitOk;
  }
  const v1::Document& document = response.document();
  std::string line(verb);
  bool stale = false;
  if constexpr (requires { response.stale(); }) stale = response.stale();
  if (stale) {
    line = "stale";
  } else if (validate_only) {
    line = "valid, not written:";
  } else if (!response.changed()) {
    line = "unchanged";
  }
  line += " " + document.collection() + " " + document.id() + ", version " +
          std::to_string(document.version());
  if (response.replayed()) line += " (by an earlier call with this request id)";
  session.out() << client::Printable(line) << "\n";
  if (document.content().has_bson()) {
    const auto json =
        client::JsonFromBson(document.content().bson(), client::JsonStyle::kRelaxed, 2);
    if (!json.ok()) return session.Fail(std::string(json.status().message()));
    session.out() << *json << "\n";
  }
  return kExitOk;
}

// Answers with content only if somebody wants to see it.
template <typename Request>
void AskForContent(const WriteOptions& options, Request& request) {
  request.set_encoding(v1::ENCODING_BSON);
  request.set_omit_content(!options.show);
}

struct CreateOptions {
  std::string collection;
  std::string id_or_content;
  std::string content;
  CLI::Option* content_option = nullptr;
  WriteOptions write;
};

int RunCreate(Session& session, const CreateOptions& options) {
  v1::CreateRequest request;
  request.set_collection(options.collection);
  const bool has_id = options.content_option->count() > 0;
  if (has_id) {
    // On the wire that would ask for a new id: a document that nobody knows how to find.
    if (options.id_or_content.empty()) {
      return session.Usage(
          absl::InvalidArgumentError("ID is empty; leave it out to let the server make one"));
    }
    request.set_id(options.id_or_content);
  }
  const auto content =
      ContentArgument(has_id ? options.content : options.id_or_content, session.in());
  if (!content.ok()) return session.Usage(content.status());
  *request.mutable_content() = *content;
  const absl::Status filled = options.write.FillRequest(request);
  if (!filled.ok()) return session.Usage(filled);
  AskForContent(options.write, request);
  v1::CreateResponse response;
  const grpc::Status status = session.Call(&DocumentService::Stub::Create, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintWritten(session, "created", options.write.validate_only, response);
}

void AddCreate(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("create", "Create a document");
  auto options = std::make_shared<CreateOptions>();
  command
      .add_option("COLLECTION", options->collection,
                  "Made with the server's default strategy if new")
      ->required();
  command.add_option("ID", options->id_or_content, "Left out: the server makes one")->required();
  options->content_option =
      command.add_option("CONTENT", options->content, "JSON object, @FILE or - (standard input)");
  options->write.AddTo(command, true);
  command.footer(
      "Examples:\n"
      "  strata create books moby '{\"title\": \"Moby Dick\", \"stock\": 3}' --reason catalogue\n"
      "  strata create books @book.json\n"
      "Refused with DOCUMENT_EXISTS if there is one; strata update --allow-missing writes either "
      "way.\n"
      "Members keep their order; 1 and 1.0 are different numbers.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunCreate(session, *options); };
  });
}

struct UpdateOptions {
  Target target;
  std::string content;
  std::string merge;
  // Values of --set, --unset, --increment and so on. Their order among each other is in
  // `operations`.
  std::vector<std::string> values[6];
  std::vector<std::pair<size_t, std::string>> operations;
  bool allow_missing = false;
  bool keep_unchanged = false;
  CLI::Option* content_option = nullptr;
  CLI::Option* merge_option = nullptr;
  WriteOptions write;
  PreconditionOptions precondition;
};

struct OperationOption {
  const char* name;
  const char* type;
  const char* help;
};

enum OperationIndex { kSet, kUnset, kIncrement, kAppend, kAppendMissing, kRemoveAll };

constexpr OperationOption kOperations[] = {
    {"--set", "/PATH=VALUE", "Set a member, over any old value"},
    {"--unset", "/PATH", "Remove a member"},
    {"--increment", "/PATH=N", "Add a number; an absent member starts at zero"},
    {"--append", "/PATH=VALUE", "Append one value to an array"},
    {"--append-missing", "/PATH=VALUE", "The same, unless an element equals it"},
    {"--remove-all", "/PATH=VALUE", "Remove every element that equals the value"}};

absl::Status FillOperation(size_t index, const std::string& text, v1::Operation& operation) {
  if (index == kUnset) {
    operation.set_path(text);
    operation.set_unset(true);
    return absl::OkStatus();
  }
  const auto parts = SplitPathValue(text);
  if (!parts.ok()) return parts.status();
  operation.set_path(parts->path);
  auto value = index == kIncrement ? NumberProto(parts->value) : ValueProto(parts->value);
  if (!value.ok()) return value.status();
  switch (index) {
    case kSet:
      *operation.mutable_set() = *std::move(value);
      break;
    case kIncrement:
      *operation.mutable_increment() = *std::move(value);
      break;
    case kAppend:
      *operation.mutable_append()->add_values() = *std::move(value);
      break;
    case kAppendMissing:
      *operation.mutable_append_missing()->add_values() = *std::move(value);
      break;
    default:
      *operation.mutable_remove_all()->add_values() = *std::move(value);
  }
  return absl::OkStatus();
}

absl::Status FillPatch(Session& session, const UpdateOptions& options, v1::Patch& patch) {
  if (options.merge_option->count() > 0) {
    const auto merge = ContentArgument(options.merge, session.in());
    if (!merge.ok()) return merge.status();
    *patch.mutable_merge() = *merge;
  }
  for (const auto& [index, text] : options.operations) {
    const absl::Status status = FillOperation(index, text, *patch.add_operations());
    if (!status.ok()) {
      return absl::InvalidArgumentError(std::string(kOperations[index].name) + ": " +
                                        std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status FillUpdate(Session& session, const UpdateOptions& options,
                        v1::UpdateRequest& request) {
  request.set_collection(options.target.collection);
  request.set_id(options.target.id);
  request.set_allow_missing(options.allow_missing);
  request.set_keep_unchanged(options.keep_unchanged);
  const bool replaces = options.content_option->count() > 0;
  const bool patches = options.merge_option->count() > 0 || !options.operations.empty();
  if (replaces == patches) {
    return absl::InvalidArgumentError(
        replaces ? "either the whole new content or changes of members, not both"
                 : "needs the new content, or changes: --set, --unset, --increment, --append, "
                   "--append-missing, --remove-all, --merge");
  }
  if (replaces) {
    auto content = ContentArgument(options.content, session.in());
    if (!content.ok()) return content.status();
    *request.mutable_replace() = *std::move(content);
  } else {
    const absl::Status status = FillPatch(session, options, *request.mutable_patch());
    if (!status.ok()) return status;
  }
  const absl::Status precondition = options.precondition.FillRequest(request);
  if (!precondition.ok()) return precondition;
  AskForContent(options.write, request);
  return options.write.FillRequest(request);
}

int RunUpdate(Session& session, const UpdateOptions& options) {
  v1::UpdateRequest request;
  const absl::Status filled = FillUpdate(session, options, request);
  if (!filled.ok()) return session.Usage(filled);
  v1::UpdateResponse response;
  const grpc::Status status = session.Call(&DocumentService::Stub::Update, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintWritten(session, "updated", options.write.validate_only, response);
}

// The operations in the order of the command line, which each option alone does not know.
void CollectOperations(const CLI::App& command, const std::vector<CLI::Option*>& operation_options,
                       UpdateOptions& options) {
  size_t used[std::size(kOperations)] = {};
  for (const CLI::Option* parsed : command.parse_order()) {
    for (size_t i = 0; i < operation_options.size(); ++i) {
      if (operation_options[i] == parsed) {
        options.operations.emplace_back(i, options.values[i][used[i]++]);
      }
    }
  }
}

constexpr char kUpdateFooter[] =
    R"(Examples:
  strata update books moby --set /stock=2 --if-version 1 --reason sold
  strata update books moby --increment /stock=-1 --append /tags=whale
  strata update books moby @moby.json --allow-missing
  strata update books moby --merge '{"price": 12.5, "draft": null}'
  strata update books moby --increment /stock=-1 --if 'stock>0'
  strata update books moby @moby.json --allow-missing --newer /version=7

PATH is a JSON Pointer: /authors/0/name; ~1 stands for / and ~0 for ~ in a name, - for the end of
an array. It ends at the first =. VALUE is JSON, or a string if it is not JSON: --set /n=2 sets a
number, --set '/n="2"' a string, --set /title=Moby a string. An object as VALUE gets its members
sorted; --merge and whole contents keep their order. --merge comes first, then the others in their
order; all of them take effect, or none.)";

void AddUpdate(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("update", "Replace a document's content, or change members");
  auto options = std::make_shared<UpdateOptions>();
  options->target.AddTo(command);
  options->content_option = command.add_option("CONTENT", options->content,
                                               "The whole new content: JSON object, @FILE or -");
  std::vector<CLI::Option*> operation_options;
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    const OperationOption& operation = kOperations[i];
    CLI::Option* option = AddRepeated(command, operation.name, options->values[i], operation.help);
    option->type_name(operation.type)->group("Changes of members (each may be repeated)");
    operation_options.push_back(option);
  }
  options->merge_option = command.add_option(
      "--merge", options->merge, "Merge an object: null removes, objects merge, all else replaces");
  options->merge_option->type_name("JSON")->group("Changes of members (each may be repeated)");
  command.add_flag("--allow-missing", options->allow_missing,
                   "Create the document if it is missing");
  command.add_flag("--keep-unchanged", options->keep_unchanged,
                   "Write a version even if nothing changes");
  options->precondition.AddTo(command, true);
  options->precondition.AddNewerTo(command);
  options->write.AddTo(command, true);
  command.footer(kUpdateFooter);
  command.callback([&session, &command, options, operation_options] {
    CollectOperations(command, operation_options, *options);
    session.run = [&session, options] { return RunUpdate(session, *options); };
  });
}

struct DeleteOptions {
  Target target;
  WriteOptions write;
  PreconditionOptions precondition;
};

int RunDelete(Session& session, const DeleteOptions& options) {
  v1::DeleteRequest request;
  request.set_collection(options.target.collection);
  request.set_id(options.target.id);
  absl::Status filled = options.precondition.FillRequest(request);
  if (filled.ok()) filled = options.write.FillRequest(request);
  if (!filled.ok()) return session.Usage(filled);
  v1::DeleteResponse response;
  const grpc::Status status = session.Call(&DocumentService::Stub::Delete, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintWritten(session, "deleted", options.write.validate_only, response);
}

void AddDelete(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("delete", "Delete a document; its history stays readable");
  auto options = std::make_shared<DeleteOptions>();
  options->target.AddTo(command);
  options->precondition.AddTo(command, false);
  options->precondition.AddNewerTo(command);
  options->write.AddTo(command, false);
  command.footer(
      "Example:\n"
      "  strata delete books moby --if-version 3 --reason 'out of print'\n"
      "The deletion is a version of its own; strata restore brings an older one back. With "
      "--newer\n"
      "it keeps N, so that a late update does not bring the document back.");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunDelete(session, *options); };
  });
}

struct RestoreOptions {
  Target target;
  int64_t version = 0;
  bool keep_unchanged = false;
  WriteOptions write;
  PreconditionOptions precondition;
};

int RunRestore(Session& session, const RestoreOptions& options) {
  v1::RestoreRequest request;
  request.set_collection(options.target.collection);
  request.set_id(options.target.id);
  request.set_version(options.version);
  request.set_keep_unchanged(options.keep_unchanged);
  AskForContent(options.write, request);
  absl::Status filled = options.precondition.FillRequest(request);
  if (filled.ok()) filled = options.write.FillRequest(request);
  if (!filled.ok()) return session.Usage(filled);
  v1::RestoreResponse response;
  const grpc::Status status = session.Call(&DocumentService::Stub::Restore, request, &response);
  if (!status.ok()) return session.Refuse(status);
  return PrintWritten(session, "restored", options.write.validate_only, response);
}

void AddRestore(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand(
      "restore", "Make the content of an old version the newest: undelete, undo");
  auto options = std::make_shared<RestoreOptions>();
  options->target.AddTo(command);
  command.add_option("--version", options->version, "The version whose content comes back")
      ->required()
      ->check(WholeNumber(1))
      ->type_name("N");
  command.add_flag("--keep-unchanged", options->keep_unchanged,
                   "Write a version even if nothing changes");
  options->precondition.AddTo(command, true);
  options->write.AddTo(command, true);
  command.footer("Example:\n  strata restore books moby --version 1 --reason 'sold by mistake'");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunRestore(session, *options); };
  });
}

}  // namespace

void AddWriteCommands(CLI::App& app, Session& session) {
  AddCreate(app, session);
  AddUpdate(app, session);
  AddDelete(app, session);
  AddRestore(app, session);
}

}  // namespace strata::cli
