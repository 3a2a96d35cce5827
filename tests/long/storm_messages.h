// Enrollment messages as they come in a storm: shuffled, some of them twice; and what has to be
// left of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace strata::fault {

struct StormMessage {
  int32_t student = 0;
  int32_t class_number = 0;
  int64_t sequence_number = 0;
  bool enroll = false;
};

inline std::string StudentId(int64_t student) { return std::to_string(student); }
inline std::string ClassName(int64_t number) { return "CS " + std::to_string(101 + number); }

// Each student's messages are numbered from 1 in the order in which they are meant; three of ten
// come twice; the order in which they are sent is chance.
inline std::vector<StormMessage> MakeStormMessages(int64_t count, int64_t students,
                                                   std::mt19937_64& random) {
  constexpr int kClasses = 12;
  std::vector<StormMessage> messages;
  messages.reserve(static_cast<size_t>(count));
  for (int64_t number = 1; static_cast<int64_t>(messages.size()) < count; ++number) {
    for (int64_t student = 0; student < students; ++student) {
      if (static_cast<int64_t>(messages.size()) >= count) break;
      messages.push_back({static_cast<int32_t>(student), static_cast<int32_t>(random() % kClasses),
                          number, random() % 2 == 0});
      if (random() % 10 < 3) messages.push_back(messages.back());
    }
  }
  std::shuffle(messages.begin(), messages.end(), random);
  return messages;
}

// The last message about each class of each student, by its number.
using StormOracle = std::vector<std::map<std::string, StormMessage>>;
inline StormOracle MakeStormOracle(int64_t students, const std::vector<StormMessage>& messages) {
  StormOracle oracle(static_cast<size_t>(students));
  for (const StormMessage& message : messages) {
    StormMessage& last =
        oracle[static_cast<size_t>(message.student)][ClassName(message.class_number)];
    if (message.sequence_number > last.sequence_number) last = message;
  }
  return oracle;
}

}  // namespace strata::fault
