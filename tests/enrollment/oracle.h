// What a set of messages has to leave behind, told as plainly as can be: sort by number, unenroll
// last among equals, and let each overwrite the one before. Content is built from JSON text, so
// that nothing here is code under test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/document/content.h"
#include "schemas/enrollment/sequence_guard.h"
#include "tests/document/documents.h"

namespace strata::enrollment::testing {

// "A+1 A-2": enroll in A with number 1, unenroll from A with number 2.
inline std::vector<Message> Messages(const std::string& text,
                                     const std::string& set = std::string(kDefaultSet)) {
  std::vector<Message> messages;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t sign = word.find_first_of("+-");
    const Operation operation = word[sign] == '+' ? Operation::kEnroll : Operation::kUnenroll;
    messages.push_back({set, word.substr(0, sign), std::stoll(word.substr(sign + 1)), operation});
  }
  return messages;
}
inline Message OneMessage(const std::string& text,
                          const std::string& set = std::string(kDefaultSet)) {
  return Messages(text, set).at(0);
}

inline std::string Show(const Message& message) {
  return message.class_name + (message.operation == Operation::kEnroll ? "+" : "-") +
         std::to_string(message.sequence_number);
}
inline std::string Show(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) text += (text.empty() ? "" : " ") + Show(message);
  return text;
}

struct Known {
  int64_t number = 0;
  bool enrolled = false;
  friend bool operator==(const Known&, const Known&) = default;
};
using Classes = std::map<std::string, Known>;

// A student before the first message: the document, and in other words what it says.
struct Start {
  std::string name;
  document::Content content;
  std::string before;  // members that stand before the set, as JSON, each with a comma after it
  std::string after;   // and after it, each with a comma before it
  Classes classes;
  int64_t floor = 0;
};

inline std::string SetJson(const Classes& classes, int64_t floor,
                           const std::string& set = std::string(kDefaultSet)) {
  const auto array = [&](bool enrolled) {
    std::string text;
    for (const auto& [name, known] : classes) {
      if (known.enrolled != enrolled) continue;
      text += (text.empty() ? "" : ",") + ("{\"name\":\"" + name + "\",") +
              "\"seq\":{\"$numberLong\":\"" + std::to_string(known.number) + "\"}}";
    }
    return "[" + text + "]";
  };
  std::string json = "\"" + set + "\":" + array(true) + ",\"deleted_" + set + "\":" + array(false);
  if (floor > 0) {
    json += ",\"purged_through" + (set == kDefaultSet ? "" : "_" + set) + "\":{\"$numberLong\":\"" +
            std::to_string(floor) + "\"}";
  }
  return json;
}

inline document::Content ContentOf(const Start& start, const Classes& classes, int64_t floor) {
  return document::Doc("{" + start.before + SetJson(classes, floor) + start.after + "}");
}

// The classes that `messages`, in any order, leave behind on top of `start`.
inline Classes OracleClasses(const Start& start, std::vector<Message> messages) {
  Classes classes = start.classes;
  std::stable_sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
    if (a.sequence_number != b.sequence_number) return a.sequence_number < b.sequence_number;
    return a.operation == Operation::kEnroll && b.operation == Operation::kUnenroll;
  });
  for (const Message& message : messages) {
    const auto before = start.classes.find(message.class_name);
    const bool enroll = message.operation == Operation::kEnroll;
    if (before == start.classes.end()) {
      if (message.sequence_number <= start.floor) continue;
    } else {
      const Known& known = before->second;
      if (message.sequence_number < known.number) continue;
      if (message.sequence_number == known.number && enroll) continue;
    }
    classes[message.class_name] = {message.sequence_number, enroll};
  }
  return classes;
}

inline document::Content OracleContent(const Start& start, const Classes& classes) {
  // A document that no message changed keeps its bytes, and so its older shape.
  return classes == start.classes ? start.content : ContentOf(start, classes, start.floor);
}

// What one more message has to be answered, where `messages` came before.
inline Result OracleResult(const Start& start, const std::vector<Message>& messages,
                           const Message& message) {
  const Classes classes = OracleClasses(start, messages);
  const auto found = classes.find(message.class_name);
  if (found == classes.end()) {
    return message.sequence_number <= start.floor ? Result::kBelowFloor : Result::kApplied;
  }
  if (message.sequence_number > found->second.number) return Result::kApplied;
  if (message.sequence_number < found->second.number) return Result::kSuperseded;
  const bool enroll = message.operation == Operation::kEnroll;
  return enroll == found->second.enrolled ? Result::kDuplicate : Result::kConflict;
}

// The documents that messages may find: none, one with other members, one that is older than the
// numbers, one that was purged, and one with all of it in another order.
inline Start NoDocument() {
  return {"no document", document::Content(), R"("student_id":"7",)", "", {}, 0};
}
inline std::vector<Start> AllStarts() {
  using document::Doc;
  std::vector<Start> starts = {NoDocument()};
  starts.push_back({"other members",
                    Doc(R"({"student_id":"7","name":"John Doe","address":{"city":"Bonn"}})"),
                    R"("student_id":"7","name":"John Doe","address":{"city":"Bonn"},)",
                    "",
                    {},
                    0});
  starts.push_back({"older than the numbers",
                    Doc(R"({"name":"John Doe","classes":["B","A","Z"],"year":2})"),
                    R"("student_id":"7","name":"John Doe",)",
                    R"(,"year":2)",
                    {{"A", {0, true}}, {"B", {0, true}}, {"Z", {0, true}}},
                    0});
  starts.push_back({"purged",
                    Doc(R"({"student_id":"7","classes":[{"name":"A","seq":1}],)"
                        R"("deleted_classes":[],"purged_through":2})"),
                    R"("student_id":"7",)",
                    "",
                    {{"A", {1, true}}},
                    2});
  starts.push_back({"tombstones first",
                    Doc(R"({"purged_through":{"$numberLong":"1"},"x":[1],)"
                        R"("deleted_classes":[{"seq":2,"name":"B"}],"student_id":8})"),
                    "",
                    R"(,"x":[1],"student_id":8)",
                    {{"B", {2, false}}},
                    1});
  return starts;
}

}  // namespace strata::enrollment::testing
