// Enrollment messages: their order and repetition leave no trace, whatever they say; on contents
// that nobody meant for them they are an error or take effect, and nothing else is touched.
#include <algorithm>
#include <string>
#include <vector>

#include "schemas/document/bson_check.h"
#include "schemas/enrollment/sequence_guard.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;
using document::Limits;
using enrollment::Message;

constexpr std::string_view kStudent = "s-1";

std::vector<Message> MakeMessages(Input& input) {
  static constexpr std::string_view kSets[] = {"classes", "clubs", "a"};
  std::vector<Message> messages;
  for (size_t i = input.Below(24); i > 0; --i) {
    Message message;
    message.set = kSets[input.Chance(4) ? input.Below(std::size(kSets)) : 0];
    message.class_name = input.Name();
    message.sequence_number = static_cast<int64_t>(input.Below(input.Chance(4) ? 200 : 4));
    if (input.Chance(16)) message.sequence_number = input.Integer() & INT64_MAX;
    message.operation =
        input.Chance(2) ? enrollment::Operation::kUnenroll : enrollment::Operation::kEnroll;
    messages.push_back(std::move(message));
  }
  return messages;
}

// Applies them in turn, and every decision must fit what it left behind.
Content Apply(Content content, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    const auto decision = enrollment::ApplyMessage(content, kStudent, message, Limits{});
    Require(decision.ok(), "a message about a well-formed student is decided on");
    const auto found =
        enrollment::FindEnrollment(decision->content, message.set, message.class_name);
    Require(found.has_value() == decision->enrolled, "a student is enrolled as the answer says");
    const auto again = enrollment::ApplyMessage(decision->content, kStudent, message, Limits{});
    Require(again.ok() && again->content == decision->content, "a repetition changes nothing");
    content = decision->content;
  }
  return content;
}

// Sets stand in the order in which they were first written, and that does depend on the messages'
// order: apart from it the contents are equal.
void CheckOrder(const std::vector<Message>& messages) {
  const Content forth = Apply(Content(), messages);
  std::vector<Message> reversed(messages.rbegin(), messages.rend());
  Require(SameMeaning(Apply(Content(), reversed), forth), "the order of messages does not matter");
  std::vector<Message> twice = reversed;
  twice.insert(twice.end(), messages.begin(), messages.end());
  Require(SameMeaning(Apply(Content(), twice), forth), "their number does not matter");
  const bool one_set = std::all_of(messages.begin(), messages.end(), [&](const Message& message) {
    return message.set == messages.front().set;
  });
  if (one_set) {
    Require(Apply(Content(), reversed) == forth, "of one set the content is the same to the byte");
  }
}

// A tombstone that is gone leaves a floor: what it kept out stays out.
void CheckPurge(const std::vector<Message>& messages, int64_t through) {
  const Content content = Apply(Content(), messages);
  const auto purge =
      enrollment::PurgeTombstones(content, enrollment::kDefaultSet, through, Limits{});
  Require(purge.ok(), "a well-formed student is purged");
  const auto before = enrollment::ReadEnrollments(content, enrollment::kDefaultSet);
  const auto after = enrollment::ReadEnrollments(purge->content, enrollment::kDefaultSet);
  Require(before.ok() && after.ok(), "a well-formed student is read");
  Require(before->all.size() - after->all.size() == static_cast<size_t>(purge->tombstones),
          "a purge removes what it says");
  for (const Message& message : messages) {
    const auto late = enrollment::ApplyMessage(purge->content, kStudent, message, Limits{});
    Require(late.ok(), "a purged student takes messages");
    const auto known = enrollment::ReadEnrollments(late->content, message.set);
    Require(known.ok(), "a purged student stays well-formed");
    const auto held = enrollment::ReadEnrollments(content, message.set);
    Require(held.ok(), "a well-formed student is read");
    for (const enrollment::Enrollment& entry : known->all) {
      Require(std::find(held->all.begin(), held->all.end(), entry) != held->all.end(),
              "no late message brings back what was purged");
    }
  }
}

void CheckHostile(const Content& content, const std::vector<Message>& messages, int64_t through) {
  for (const Message& message : messages) {
    (void)enrollment::FindEnrollment(content, message.set, message.class_name);
    const auto decision = enrollment::ApplyMessage(content, kStudent, message, Limits{});
    if (!decision.ok()) continue;
    Require(document::CheckLimits(decision->content, Limits{}).ok(), "what is left is a document");
    Require(enrollment::ReadEnrollments(decision->content, message.set).ok(),
            "what was written can be read");
    const auto again = enrollment::ApplyMessage(decision->content, kStudent, message, Limits{});
    Require(again.ok() && again->content == decision->content, "a repetition changes nothing");
  }
  const auto purge =
      enrollment::PurgeTombstones(content, enrollment::kDefaultSet, through, Limits{});
  if (purge.ok()) {
    Require(document::IsWellFormed(purge->content.bytes(), 100), "what a purge leaves is BSON");
  }
}

// An entry as it has to be, mostly: an object with name and seq, or a string.
document::Value MakeEntry(Input& input) {
  if (input.Chance(16)) return input.Value();
  document::Value value{document::kBsonString, {}};
  document::AppendStringValue(input.Name(), value.bytes);
  if (input.Chance(4)) return value;
  std::string object;
  const size_t start = document::BeginDocument(object);
  document::AppendMember(value.type, "name", value.bytes, object);
  document::AppendMemberHead(document::kBsonInt64, "seq", object);
  document::AppendNumber(int64_t{input.Byte()} - (input.Chance(32) ? 200 : 0), object);
  if (input.Chance(32)) {
    const document::Value more = input.Value();
    document::AppendMember(more.type, "more", more.bytes, object);
  }
  document::EndDocument(start, object);
  return {document::kBsonObject, object};
}

document::Value MakeEntries(Input& input) {
  document::Value array{document::kBsonArray, {}};
  const size_t start = document::BeginDocument(array.bytes);
  document::IndexName index;
  for (size_t i = input.Below(6); i > 0; --i, index.Next()) {
    const document::Value entry = MakeEntry(input);
    document::AppendMember(entry.type, index.text(), entry.bytes, array.bytes);
  }
  document::EndDocument(start, array.bytes);
  return array;
}

// A student with members of the right names, and often of the right shape.
Content MakeStudent(Input& input) {
  std::string bytes;
  const size_t start = document::BeginDocument(bytes);
  for (const std::string_view name :
       {"student_id", "classes", "x", "deleted_classes", "purged_through"}) {
    if (input.Chance(4)) continue;
    const document::Value value =
        name.ends_with("classes") && !input.Chance(8) ? MakeEntries(input) : input.Value();
    document::AppendMember(value.type, name, value.bytes, bytes);
  }
  document::EndDocument(start, bytes);
  return Content::FromTrusted(std::move(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::vector<Message> messages = MakeMessages(input);
  const int64_t through = input.Integer();
  CheckOrder(messages);
  CheckPurge(messages, through);
  CheckHostile(MakeStudent(input), messages, through);
  if (const auto raw = Content::FromBson(input.Bytes(), Limits{}); raw.ok()) {
    CheckHostile(*raw, messages, through);
  }
  return 0;
}

}  // namespace strata::fuzz
