// Protobuf's reflection does the work: a name is looked up for each member that is set, which costs
// little beside a call.
#include "clients/cpp/messages.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdlib>
#include <iostream>

#include "clients/cpp/error_status.h"
#include "clients/cpp/json_value.h"
#include "strata/v1/document.pb.h"

namespace strata::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A list of members that the protos do not know is a fault of this library.
[[noreturn]] void NoSuchField(const Message& message, const std::string& name) {
  std::cerr << message.GetDescriptor()->full_name() << " has no field " << name << std::endl;
  std::abort();
}

const FieldDescriptor* FindField(const Message& message, const std::string& name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

// What `if_version` and its kin are in a precondition; null: the name is none of them.
const char* ConditionOf(const std::string& name) {
  if (name == "if_version") return "version";
  if (name == "if_exists") return "exists";
  if (name == "if_matches") return "filter";
  if (name == "newer") return "newer";
  return nullptr;
}

}  // namespace

MessageWriter::Place MessageWriter::Find(const std::string& name) {
  const Place place = Locate(name);
  // A member of a oneof that is set forgets another one without a word.
  const auto* const oneof = place.field->real_containing_oneof();
  if (oneof == nullptr) return place;
  const auto* const other =
      place.message->GetReflection()->GetOneofFieldDescriptor(*place.message, oneof);
  if (other != nullptr && other != place.field) {
    status_.Update(RefusedField(name, "cannot go together with " + other->name()));
  }
  return place;
}

MessageWriter::Place MessageWriter::Locate(const std::string& name) {
  if (const FieldDescriptor* const field = FindField(message_, name)) return {&message_, field};
  const char* const condition = ConditionOf(name);
  const std::string parent = condition == nullptr ? "change" : "precondition";
  const FieldDescriptor* const field = FindField(message_, parent);
  if (field == nullptr) NoSuchField(message_, name);
  Message* const nested = message_.GetReflection()->MutableMessage(&message_, field);
  const std::string inner = condition == nullptr ? name : condition;
  const FieldDescriptor* const inner_field = FindField(*nested, inner);
  if (inner_field == nullptr) NoSuchField(*nested, inner);
  return {nested, inner_field};
}

void MessageWriter::Set(Place place, const std::string& text) {
  const auto* const reflection = place.message->GetReflection();
  if (place.field->is_repeated()) {
    reflection->AddString(place.message, place.field, text);
  } else {
    reflection->SetString(place.message, place.field, text);
  }
}

void MessageWriter::Set(Place place, bool value) {
  place.message->GetReflection()->SetBool(place.message, place.field, value);
}

void MessageWriter::Set(Place place, int32_t value) {
  place.message->GetReflection()->SetInt32(place.message, place.field, value);
}

void MessageWriter::Set(Place place, int64_t value) {
  place.message->GetReflection()->SetInt64(place.message, place.field, value);
}

void MessageWriter::SetEnum(Place place, int number) {
  const auto* const reflection = place.message->GetReflection();
  if (place.field->is_repeated()) {
    reflection->AddEnumValue(place.message, place.field, number);
  } else {
    reflection->SetEnumValue(place.message, place.field, number);
  }
}

void MessageWriter::Set(Place place, absl::Time time) {
  auto& timestamp = static_cast<google::protobuf::Timestamp&>(*Nested(place));
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void MessageWriter::Set(Place place, absl::Duration duration) {
  auto& message = static_cast<google::protobuf::Duration&>(*Nested(place));
  absl::Duration rest;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

void MessageWriter::Set(Place place, const Value& value) {
  Message* const nested = Nested(place);
  if (place.field->message_type() == v1::Content::descriptor()) {
    absl::StatusOr<std::string> bson = ToBson(value);
    status_.Update(bson.status());
    if (bson.ok()) static_cast<v1::Content*>(nested)->set_bson(*std::move(bson));
  } else if (place.field->message_type() == google::protobuf::Struct::descriptor()) {
    status_.Update(ToJson(value, static_cast<google::protobuf::Struct&>(*nested)));
  } else {
    status_.Update(ToJson(value, "", static_cast<google::protobuf::Value&>(*nested)));
  }
}

void MessageWriter::Set(Place place, const std::map<std::string, std::string>& entries) {
  for (const auto& [name, value] : entries) {
    Message* const entry = place.message->GetReflection()->AddMessage(place.message, place.field);
    const auto* const reflection = entry->GetReflection();
    reflection->SetString(entry, entry->GetDescriptor()->field(0), name);
    reflection->SetString(entry, entry->GetDescriptor()->field(1), value);
  }
}

Message* MessageWriter::Nested(Place place) {
  const auto* const reflection = place.message->GetReflection();
  return place.field->is_repeated() ? reflection->AddMessage(place.message, place.field)
                                    : reflection->MutableMessage(place.message, place.field);
}

MessageReader::Field MessageReader::FieldOf(const char* name) const {
  const FieldDescriptor* const field = FindField(message_, name);
  if (field == nullptr) NoSuchField(message_, name);
  return *field;
}

bool MessageReader::Has(Field field) const {
  return message_.GetReflection()->HasField(message_, &field);
}

int MessageReader::Count(Field field) const {
  return message_.GetReflection()->FieldSize(message_, &field);
}

const Message& MessageReader::Nested(Field field, int index) const {
  const auto* const reflection = message_.GetReflection();
  return index < 0 ? reflection->GetMessage(message_, &field)
                   : reflection->GetRepeatedMessage(message_, &field, index);
}

void MessageReader::Get(Field field, std::string& text) {
  text = message_.GetReflection()->GetString(message_, &field);
}

void MessageReader::Get(Field field, bool& value) {
  value = message_.GetReflection()->GetBool(message_, &field);
}

void MessageReader::Get(Field field, int32_t& value) {
  value = message_.GetReflection()->GetInt32(message_, &field);
}

void MessageReader::Get(Field field, int64_t& value) {
  value = message_.GetReflection()->GetInt64(message_, &field);
}

int MessageReader::GetEnum(Field field, int index) const {
  const auto* const reflection = message_.GetReflection();
  return index < 0 ? reflection->GetEnumValue(message_, &field)
                   : reflection->GetRepeatedEnumValue(message_, &field, index);
}

void MessageReader::Get(Field field, absl::Time& time) {
  if (!Has(field)) return;
  const auto& message = static_cast<const google::protobuf::Timestamp&>(Nested(field, -1));
  time = absl::FromUnixSeconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

void MessageReader::Get(Field field, absl::Duration& duration) {
  const auto& message = static_cast<const google::protobuf::Duration&>(Nested(field, -1));
  duration = absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

void MessageReader::Get(Field field, std::optional<Value>& value) {
  if (!Has(field)) return;
  const Message& nested = Nested(field, -1);
  absl::StatusOr<Value> read = Value();
  if (field.message_type() == v1::Content::descriptor()) {
    const auto& content = static_cast<const v1::Content&>(nested);
    if (content.body_case() == v1::Content::BODY_NOT_SET) return;
    read = content.has_bson() ? FromBson(content.bson()) : FromJson(content.json());
  } else if (field.message_type() == google::protobuf::Struct::descriptor()) {
    read = FromJson(static_cast<const google::protobuf::Struct&>(nested));
  } else {
    read = FromJson(static_cast<const google::protobuf::Value&>(nested));
  }
  if (read.ok()) {
    value = *std::move(read);
  } else {
    status_.Update(absl::InternalError("the server's answer is damaged: " +
                                       std::string(read.status().message())));
  }
}

void MessageReader::Get(Field field, std::map<std::string, std::string>& entries) {
  const int count = Count(field);
  for (int i = 0; i < count; ++i) {
    const Message& entry = Nested(field, i);
    const auto* const reflection = entry.GetReflection();
    entries[reflection->GetString(entry, entry.GetDescriptor()->field(0))] =
        reflection->GetString(entry, entry.GetDescriptor()->field(1));
  }
}

void MessageReader::Get(Field field, std::vector<std::string>& texts) {
  const int count = Count(field);
  for (int i = 0; i < count; ++i) {
    texts.push_back(message_.GetReflection()->GetRepeatedString(message_, &field, i));
  }
}

}  // namespace strata::client
