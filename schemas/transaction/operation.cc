#include "schemas/transaction/operation.h"

#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/enrollment/enrollments.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/mutators.h"

namespace strata::transaction {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using document::Content;
using document::Patch;
using versioning::CurrentState;
using versioning::Mutation;
using versioning::Mutator;

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// The member of a Write that such an operation comes in.
std::string_view FieldOf(const Operation& operation) {
  return std::visit(Overloaded{[](const Create&) -> std::string_view { return "create"; },
                               [](const Update&) -> std::string_view { return "update"; },
                               [](const Delete&) -> std::string_view { return "delete"; },
                               [](const Restore&) -> std::string_view { return "restore"; },
                               [](const Enroll& enroll) -> std::string_view {
                                 return enroll.message.operation == enrollment::Operation::kEnroll
                                            ? "enroll"
                                            : "unenroll";
                               }},
                    operation.what);
}

// A patch that turns out wrong when it meets the content names its own operation only.
Mutator InPatch(Mutator mutate) {
  return [mutate = std::move(mutate)](const CurrentState& current) -> absl::StatusOr<Mutation> {
    absl::StatusOr<Mutation> mutation = mutate(current);
    const std::optional<ErrorReason> reason = ReasonOf(mutation.status());
    if (reason == ErrorReason::kInvalidPatch || reason == ErrorReason::kInvalidContent ||
        reason == ErrorReason::kDocumentTooLarge) {
      return InField(mutation.status(), "update.patch");
    }
    return mutation;
  };
}

// What is wrong with a number turns out when it meets the content.
Mutator InNewer(std::string_view field, Mutator mutate) {
  return
      [field, mutate = std::move(mutate)](const CurrentState& current) -> absl::StatusOr<Mutation> {
        absl::StatusOr<Mutation> mutation = mutate(current);
        const std::optional<ErrorReason> reason = ReasonOf(mutation.status());
        if (reason == ErrorReason::kInvalidPath) return InField(mutation.status(), field);
        if (reason == ErrorReason::kNumberExpected) {
          return InField(mutation.status(), std::string(field) + ".precondition.newer");
        }
        return mutation;
      };
}

Mutator MutatorOf(const Operation& operation, const document::Limits& limits) {
  const DocumentName& name = operation.name;
  const std::optional<versioning::Newer>& newer = operation.precondition.newer;
  return std::visit(
      Overloaded{
          [&](const Create& create) { return versioning::CreateMutator(name, create.content); },
          [&](const Update& update) {
            Mutator mutate =
                versioning::UpdateMutator(name, update.new_content, update.allow_missing, limits);
            if (std::holds_alternative<Patch>(update.new_content)) {
              mutate = InPatch(std::move(mutate));
            }
            if (!newer) return mutate;
            return InNewer("update",
                           versioning::NewerUpdateMutator(name, *newer, std::move(mutate), limits));
          },
          [&](const Delete&) {
            if (!newer) return versioning::DeleteMutator(name);
            return InNewer("delete", versioning::NewerDeleteMutator(name, *newer));
          },
          [&](const Restore& restore) { return versioning::RestoreMutator(name, restore.version); },
          [&](const Enroll& enroll) {
            return enrollment::MessageMutator(name, enroll.message, limits, /*outcome=*/nullptr);
          }},
      operation.what);
}

// The numbers are part of the stored format.
enum class Kind : int32_t {
  kCreate = 1,
  kReplace = 2,
  kPatch = 3,
  kDelete = 4,
  kRestore = 5,
  kMessage = 6,
};

std::string EncodeOperations(const std::vector<document::Operation>& operations) {
  BsonBuilder array;
  for (size_t i = 0; i < operations.size(); ++i) {
    const document::Operation& operation = operations[i];
    BsonBuilder element;
    element.String("path", operation.path.ToString())
        .Int32("kind", static_cast<int32_t>(operation.kind))
        .Int32("type", operation.operand.type)
        .Binary("operand", operation.operand.bytes);
    array.Document(std::to_string(i), element.Take());
  }
  return array.Take();
}

void EncodeWhat(const Create& create, BsonBuilder& builder) {
  builder.Int32("kind", static_cast<int32_t>(Kind::kCreate))
      .Document("content", create.content.bytes());
}

void EncodeWhat(const Update& update, BsonBuilder& builder) {
  if (const auto* const content = std::get_if<Content>(&update.new_content)) {
    builder.Int32("kind", static_cast<int32_t>(Kind::kReplace))
        .Document("content", content->bytes());
  } else {
    const Patch& patch = std::get<Patch>(update.new_content);
    builder.Int32("kind", static_cast<int32_t>(Kind::kPatch));
    if (patch.merge) builder.Document("merge", patch.merge->bytes());
    builder.Array("operations", EncodeOperations(patch.operations));
  }
  if (update.allow_missing) builder.Bool("allow_missing", true);
}

void EncodeWhat(const Delete&, BsonBuilder& builder) {
  builder.Int32("kind", static_cast<int32_t>(Kind::kDelete));
}

void EncodeWhat(const Restore& restore, BsonBuilder& builder) {
  builder.Int32("kind", static_cast<int32_t>(Kind::kRestore)).Int64("version", restore.version);
}

void EncodeWhat(const Enroll& enroll, BsonBuilder& builder) {
  const enrollment::Message& message = enroll.message;
  builder.Int32("kind", static_cast<int32_t>(Kind::kMessage))
      .String("set", message.set)
      .String("class", message.class_name)
      .Int64("sequence", message.sequence_number);
  if (message.operation == enrollment::Operation::kEnroll) builder.Bool("enroll", true);
}

absl::Status Corrupt() {
  return Error(ErrorReason::kRecordCorrupt, "a write of a transaction record");
}

absl::StatusOr<document::Operation> DecodePatchOperation(std::string_view bytes) {
  document::Operation operation;
  BsonReader reader(bytes);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "path") {
      absl::StatusOr<document::Path> path = document::Path::Parse(reader.String());
      if (!path.ok()) return Corrupt();
      operation.path = *std::move(path);
    } else if (name == "kind") {
      const int64_t kind = reader.Int64();
      if (kind < 0 || kind > static_cast<int64_t>(document::OperationKind::kRemoveAll)) {
        return Corrupt();
      }
      operation.kind = static_cast<document::OperationKind>(kind);
    } else if (name == "type") {
      operation.operand.type = static_cast<uint8_t>(reader.Int64());
    } else if (name == "operand") {
      operation.operand.bytes = reader.Binary();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt()) return Corrupt();
  return operation;
}

// What an encoded operation says, whatever its kind.
struct Decoded {
  int64_t kind = 0;
  Content content;
  Patch patch;
  bool allow_missing = false;
  int64_t version = 0;
  enrollment::Message message;
  bool enroll = false;
};

Content ToContent(std::string_view bytes) { return Content::FromTrusted(std::string(bytes)); }

// A member that tells what is to be done; false if it is no such member.
absl::StatusOr<bool> DecodeWhat(BsonReader& reader, Decoded& decoded) {
  const std::string_view name = reader.name();
  if (name == "kind") {
    decoded.kind = reader.Int64();
  } else if (name == "content") {
    decoded.content = ToContent(reader.Document());
  } else if (name == "merge") {
    decoded.patch.merge = ToContent(reader.Document());
  } else if (name == "operations") {
    BsonReader elements(reader.Document());
    while (elements.Next()) {
      ASSIGN_OR_RETURN(document::Operation operation, DecodePatchOperation(elements.Document()));
      decoded.patch.operations.push_back(std::move(operation));
    }
    if (elements.corrupt()) return Corrupt();
  } else if (name == "allow_missing") {
    decoded.allow_missing = reader.Bool();
  } else if (name == "version") {
    decoded.version = reader.Int64();
  } else if (name == "set") {
    decoded.message.set = reader.String();
  } else if (name == "class") {
    decoded.message.class_name = reader.String();
  } else if (name == "sequence") {
    decoded.message.sequence_number = reader.Int64();
  } else if (name == "enroll") {
    decoded.enroll = reader.Bool();
  } else {
    return false;
  }
  return true;
}

// A member that every kind may have; false if it is no such member.
absl::StatusOr<bool> DecodeCommon(BsonReader& reader, Operation& operation) {
  const std::string_view name = reader.name();
  if (name == "collection") {
    operation.name.collection = reader.String();
  } else if (name == "id") {
    operation.name.id = reader.String();
  } else if (name == "if_version") {
    operation.precondition.version = reader.Int64();
  } else if (name == "if_exists") {
    operation.precondition.exists = reader.Bool();
  } else if (name == "if_matches") {
    absl::StatusOr<document::Filter> filter =
        document::Filter::Compile(ToContent(reader.Document()));
    if (!filter.ok()) return Corrupt();
    operation.precondition.filter = *std::move(filter);
  } else if (name == "newer") {
    auto made = versioning::Newer::Make(reader.String(), 0);
    if (!made.ok()) return Corrupt();
    operation.precondition.newer = *std::move(made);
  } else if (name == "newer_value") {
    if (!operation.precondition.newer) return Corrupt();
    operation.precondition.newer->value = reader.Int64();
  } else if (name == "actor") {
    operation.change.actor = reader.String();
  } else if (name == "for") {
    operation.change.on_behalf_of = reader.String();
  } else if (name == "reason") {
    operation.change.reason = reader.String();
  } else if (name == "labels") {
    BsonReader labels(reader.Document());
    while (labels.Next()) {
      std::string label(labels.name());
      operation.change.labels.emplace(std::move(label), labels.String());
    }
    if (labels.corrupt()) return Corrupt();
  } else if (name == "keep") {
    operation.keep_unchanged = reader.Bool();
  } else {
    return false;
  }
  return true;
}

absl::Status SetWhat(Decoded decoded, Operation& operation) {
  switch (static_cast<Kind>(decoded.kind)) {
    case Kind::kCreate:
      operation.what = Create{std::move(decoded.content)};
      return absl::OkStatus();
    case Kind::kReplace:
      operation.what = Update{std::move(decoded.content), decoded.allow_missing};
      return absl::OkStatus();
    case Kind::kPatch:
      operation.what = Update{std::move(decoded.patch), decoded.allow_missing};
      return absl::OkStatus();
    case Kind::kDelete:
      operation.what = Delete{};
      return absl::OkStatus();
    case Kind::kRestore:
      operation.what = Restore{decoded.version};
      return absl::OkStatus();
    case Kind::kMessage:
      decoded.message.operation =
          decoded.enroll ? enrollment::Operation::kEnroll : enrollment::Operation::kUnenroll;
      operation.what = Enroll{std::move(decoded.message)};
      return absl::OkStatus();
  }
  return Corrupt();
}

absl::Status ValidatePrecondition(const Operation& operation) {
  const versioning::Precondition& precondition = operation.precondition;
  const bool takes_newer = std::holds_alternative<Update>(operation.what) ||
                           std::holds_alternative<Delete>(operation.what);
  if (precondition.newer && !takes_newer) return versioning::NewerRefused();
  if (precondition.version) return CheckLeast("precondition.version", *precondition.version, 0);
  return absl::OkStatus();
}

absl::Status ValidateParts(const Operation& operation) {
  const auto* const enroll = std::get_if<Enroll>(&operation.what);
  if (enroll != nullptr) {
    RETURN_IF_ERROR(ValidateName("collection", operation.name.collection));
    RETURN_IF_ERROR(enrollment::ValidateMessage(operation.name.id, enroll->message));
  } else {
    RETURN_IF_ERROR(ValidateName(operation.name));
  }
  RETURN_IF_ERROR(versioning::ValidateChange(operation.change));
  return ValidatePrecondition(operation);
}

}  // namespace

versioning::Change ToChange(const Operation& operation, const document::Limits& limits) {
  versioning::Change change;
  change.request.name = operation.name;
  change.request.change = operation.change;
  change.request.precondition = operation.precondition;
  change.request.keep_unchanged = operation.keep_unchanged;
  change.request.removal =
      std::holds_alternative<Delete>(operation.what) && !operation.precondition.newer;
  change.mutate = MutatorOf(operation, limits);
  return change;
}

absl::Status Validate(const Operation& operation) {
  const absl::Status valid = ValidateParts(operation);
  return valid.ok() ? valid : InField(valid, FieldOf(operation));
}

std::string Encode(const Operation& operation) {
  BsonBuilder builder;
  builder.String("collection", operation.name.collection).String("id", operation.name.id);
  std::visit([&](const auto& what) { EncodeWhat(what, builder); }, operation.what);
  const versioning::Precondition& precondition = operation.precondition;
  if (precondition.version) builder.Int64("if_version", *precondition.version);
  if (precondition.exists) builder.Bool("if_exists", *precondition.exists);
  if (precondition.filter) builder.Document("if_matches", precondition.filter->bytes());
  if (precondition.newer) {
    builder.String("newer", precondition.newer->path.ToString())
        .Int64("newer_value", precondition.newer->value);
  }
  const versioning::ChangeInfo& change = operation.change;
  if (!change.actor.empty()) builder.String("actor", change.actor);
  if (!change.on_behalf_of.empty()) builder.String("for", change.on_behalf_of);
  if (!change.reason.empty()) builder.String("reason", change.reason);
  if (!change.labels.empty()) {
    BsonBuilder labels;
    for (const auto& [name, value] : change.labels) labels.String(name, value);
    builder.Document("labels", labels.Take());
  }
  if (operation.keep_unchanged) builder.Bool("keep", true);
  return builder.Take();
}

absl::StatusOr<Operation> Decode(std::string_view bytes) {
  Operation operation;
  Decoded decoded;
  BsonReader reader(bytes);
  while (reader.Next()) {
    ASSIGN_OR_RETURN(bool known, DecodeWhat(reader, decoded));
    if (!known) {
      ASSIGN_OR_RETURN(known, DecodeCommon(reader, operation));
    }
    if (!known) return Corrupt();
  }
  if (reader.corrupt() || operation.name.collection.empty() || operation.name.id.empty()) {
    return Corrupt();
  }
  RETURN_IF_ERROR(SetWhat(std::move(decoded), operation));
  return operation;
}

}  // namespace strata::transaction
