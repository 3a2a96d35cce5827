#include "schemas/json/message_json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "schemas/base/error.h"
#include "schemas/base/utf8.h"
#include "schemas/json/json_reader.h"

namespace strata::json {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kPathBytesMax = 200;

// What the members of an object, or the elements of an array, say.
struct Meaning {
  enum class Kind {
    kMessage,  // members are fields of `message`
    kMap,      // members are entries, with values of `field`
    kFree,     // JSON of the caller's own: google.protobuf.Struct, Value and ListValue
    kPlain,    // a single value
  };
  Kind kind = Kind::kPlain;
  const Descriptor* message = nullptr;
  const FieldDescriptor* field = nullptr;  // of a map: its values
};

Meaning MeaningOf(const Descriptor& message) {
  const std::string& name = message.full_name();
  const bool free = name == "google.protobuf.Struct" || name == "google.protobuf.Value" ||
                    name == "google.protobuf.ListValue" || name == "google.protobuf.Any";
  return {free ? Meaning::Kind::kFree : Meaning::Kind::kMessage, &message};
}

// Of a value of the field, or of each of its values.
Meaning ValueOf(const FieldDescriptor& field) {
  if (field.message_type() == nullptr) return {};
  return MeaningOf(*field.message_type());
}

Meaning MeaningOf(const FieldDescriptor& field) {
  if (field.is_map()) return {Meaning::Kind::kMap, nullptr, field.message_type()->map_value()};
  return ValueOf(field);
}

const FieldDescriptor* FindField(const Descriptor& message, const std::string& name) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* const field = message.field(i);
    if (field->name() == name || field->json_name() == name) return field;
  }
  return nullptr;
}

class Check {
 public:
  Check(std::string_view text, const MessageLimits& limits)
      : limits_(limits), reader_(text, limits.depth_max) {}

  absl::StatusOr<size_t> Run(const Descriptor& type) {
    next_ = MeaningOf(type);
    for (;;) {
      switch (const Token token = reader_.Next()) {
        case Token::kEnd:
          return bytes_;
        case Token::kError:
          return Error(ErrorReason::kInvalidMessage,
                       "not a " + type.full_name() + " in JSON: " + reader_.problem());
        case Token::kObject:
        case Token::kArray:
          Open(token == Token::kArray);
          break;
        case Token::kObjectEnd:
        case Token::kArrayEnd:
          open_.pop_back();
          NextElement();
          break;
        case Token::kName:
          if (absl::Status status = Name(reader_.text()); !status.ok()) return status;
          break;
        default:
          if (absl::Status status = Value(token); !status.ok()) return status;
          NextElement();
      }
      if (bytes_ > limits_.message_bytes_max) return TooLarge();
    }
  }

 private:
  struct Level {
    Meaning meaning;
    bool array = false;
    size_t index = 0;      // of an array: how many elements came before
    std::string member{};  // of an object: the one that is read
    absl::flat_hash_set<std::string>
        names{};  // of an object: those that have come, of fields as the proto spells them
  };

  // An array is the value of a repeated field, or free.
  void Open(bool array) {
    const bool inner = !open_.empty() && open_.back().meaning.kind == Meaning::Kind::kFree;
    if (inner) bytes_ += 4;  // heads of the value and what it holds
    open_.push_back({.meaning = next_, .array = array});
  }

  // After a value within an array comes another of the same kind.
  void NextElement() {
    if (open_.empty() || !open_.back().array) return;
    ++open_.back().index;
    next_ = open_.back().meaning;
  }

  absl::Status Name(const std::string& name) {
    Level& level = open_.back();
    level.member = name;
    next_ = {};
    const FieldDescriptor* field = nullptr;
    switch (level.meaning.kind) {
      case Meaning::Kind::kMessage:
        field = FindField(*level.meaning.message, name);
        if (field != nullptr) next_ = MeaningOf(*field);
        break;
      case Meaning::Kind::kMap:
        bytes_ += name.size();
        next_ = ValueOf(*level.meaning.field);
        break;
      case Meaning::Kind::kFree:
        bytes_ += 4 + name.size();  // heads of the entry and its name
        next_ = level.meaning;
        break;
      case Meaning::Kind::kPlain:
        break;
    }
    if (level.names.insert(field == nullptr ? name : field->name()).second) return absl::OkStatus();
    if (field == nullptr || field->name() == field->json_name())
      return Refuse("stands there twice");
    return Refuse("stands there twice, as " + field->name() + " or " + field->json_name());
  }

  absl::Status Value(Token token) {
    const std::string& text = reader_.text();
    if (next_.kind == Meaning::Kind::kFree) {
      bytes_ += token == Token::kText ? 4 + text.size() : token == Token::kNumber ? 11 : 4;
      return absl::OkStatus();
    }
    if (token != Token::kText) return absl::OkStatus();
    bytes_ += text.size() / 4 * 3;  // as Base64
    if (next_.message == nullptr || next_.message->full_name() != "google.protobuf.FieldMask") {
      return absl::OkStatus();
    }
    if (text.size() > limits_.field_mask_bytes_max) {
      return Refuse("has " + std::to_string(text.size()) + " bytes, at most " +
                    std::to_string(limits_.field_mask_bytes_max) + " are allowed");
    }
    if (text.find_first_of("()") == std::string::npos) return absl::OkStatus();
    return Refuse("has a parenthesis; name fields with commas between them");
  }

  absl::Status TooLarge() const {
    return Error(ErrorReason::kInvalidMessage, "the message has more than " +
                                                   std::to_string(limits_.message_bytes_max) +
                                                   " bytes, which are allowed")
        .With("limit", static_cast<int64_t>(limits_.message_bytes_max));
  }

  absl::Status Refuse(const std::string& problem) const {
    std::string path;
    for (const Level& level : open_) {
      if (level.array) {
        path += "[" + std::to_string(level.index) + "]";
      } else {
        path += (path.empty() ? "" : ".") + level.member;
      }
      if (path.size() > kPathBytesMax) {
        path.resize(CutUtf8(path, kPathBytesMax).size());
        break;
      }
    }
    return Error(ErrorReason::kInvalidField, path + ": " + problem)
        .With("field", std::string_view(path));
  }

  const MessageLimits limits_;
  JsonReader reader_;
  std::vector<Level> open_;
  Meaning next_;  // what comes next
  size_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<size_t> CheckMessageJson(std::string_view text, const Descriptor& type,
                                        const MessageLimits& limits) {
  return Check(text, limits).Run(type);
}

}  // namespace strata::json
