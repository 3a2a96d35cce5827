// Whether a rule leaves the same content behind for every order and every duplication of messages,
// without trying them all: if for every subset S and every message m, applying m to what S has to
// leave behind gives what S + m has to, then any sequence, of whatever length, ends right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/enrollment/oracle.h"

namespace strata::enrollment::testing {

// What a rule made of a message. Without result and enrolled, only the content is compared.
struct Outcome {
  document::Content content;
  std::optional<Result> result;
  std::optional<bool> enrolled;
};
// One atomic write. A rule is one or several of them for each message, one after the other.
using Step = std::function<Outcome(const document::Content&, const Message&)>;
using Rule = std::vector<Step>;

struct Report {
  int64_t checks = 0;
  int64_t wrong = 0;
  std::string counter_example;  // the first

  bool right() const { return checks > 0 && wrong == 0; }
  void Add(const Report& other) {
    checks += other.checks;
    wrong += other.wrong;
    if (counter_example.empty()) counter_example = other.counter_example;
  }
};

// A message set with the content of each of its subsets; bit i of a subset is message i.
class Subsets {
 public:
  Subsets(const Start& start, std::vector<Message> messages)
      : start_(start), messages_(std::move(messages)) {
    for (uint32_t subset = 0; subset < count(); ++subset) {
      classes_.push_back(OracleClasses(start_, Of(subset)));
      contents_.push_back(OracleContent(start_, classes_.back()));
    }
  }

  const Start& start() const { return start_; }
  const std::vector<Message>& messages() const { return messages_; }
  uint32_t count() const { return uint32_t{1} << messages_.size(); }
  const document::Content& content(uint32_t subset) const { return contents_[subset]; }
  const Classes& classes(uint32_t subset) const { return classes_[subset]; }
  std::vector<Message> Of(uint32_t subset) const {
    std::vector<Message> members;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if ((subset >> i & 1) != 0) members.push_back(messages_[i]);
    }
    return members;
  }

 private:
  const Start start_;
  const std::vector<Message> messages_;
  std::vector<Classes> classes_;
  std::vector<document::Content> contents_;
};

inline void Wrong(const Subsets& subsets, uint32_t subset, const std::string& then,
                  const document::Content& got, const document::Content& want, Report& report) {
  if (report.wrong++ > 0) return;
  report.counter_example = subsets.start().name + ", after {" + Show(subsets.Of(subset)) +
                           "} comes " + then + ": " + document::Json(got) + ", not " +
                           document::Json(want);
}

// The induction: every subset, every message; one that is in the subset is a duplicate.
inline Report CheckInduction(const Subsets& subsets, const Rule& rule) {
  Report report;
  for (uint32_t subset = 0; subset < subsets.count(); ++subset) {
    for (size_t m = 0; m < subsets.messages().size(); ++m) {
      const Message& message = subsets.messages()[m];
      const uint32_t after = subset | uint32_t{1} << m;
      Outcome outcome{subsets.content(subset), {}, {}};
      for (const Step& step : rule) outcome = step(outcome.content, message);
      ++report.checks;
      const auto known = subsets.classes(after).find(message.class_name);
      const bool enrolled = known != subsets.classes(after).end() && known->second.enrolled;
      bool right = outcome.content == subsets.content(after);
      right = right && outcome.enrolled.value_or(enrolled) == enrolled;
      if (outcome.result) {
        right =
            right && *outcome.result == OracleResult(subsets.start(), subsets.Of(subset), message);
      }
      if (right) continue;
      Wrong(subsets, subset, Show(message), outcome.content, subsets.content(after), report);
    }
  }
  return report;
}

// The same for two messages at once: all interleavings of their writes.
inline Report CheckPairs(const Subsets& subsets, const Rule& rule) {
  Report report;
  const auto steps = static_cast<uint32_t>(rule.size());
  std::vector<std::vector<int>> orders;  // 0: the first message's next write; 1: the second's
  std::vector<int> order(2 * steps);
  std::fill(order.begin() + steps, order.end(), 1);
  do {
    orders.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  const size_t count = subsets.messages().size();
  for (uint32_t subset = 0; subset < subsets.count(); ++subset) {
    for (size_t pair = 0; pair < count * count; ++pair) {
      const size_t both[] = {pair / count, pair % count};
      const uint32_t after = subset | uint32_t{1} << both[0] | uint32_t{1} << both[1];
      for (const std::vector<int>& turns : orders) {
        document::Content content = subsets.content(subset);
        size_t next[] = {0, 0};
        std::string then;
        for (const int turn : turns) {
          const Message& message = subsets.messages()[both[turn]];
          const size_t step = next[turn]++;
          then += (then.empty() ? "" : ", ") + Show(message) + " (write " +
                  std::to_string(step + 1) + ")";
          content = rule[step](content, message).content;
        }
        ++report.checks;
        if (content == subsets.content(after)) continue;
        Wrong(subsets, subset, then, content, subsets.content(after), report);
      }
    }
  }
  return report;
}

// Every order of the whole set, one by one.
inline Report CheckOrders(const Subsets& subsets, const Rule& rule) {
  Report report;
  std::vector<size_t> order(subsets.messages().size());
  std::iota(order.begin(), order.end(), 0);
  const document::Content& want = subsets.content(subsets.count() - 1);
  do {
    document::Content content = subsets.start().content;
    for (const size_t m : order) {
      for (const Step& step : rule) content = step(content, subsets.messages()[m]).content;
    }
    ++report.checks;
    if (content == want) continue;
    std::vector<Message> sequence;
    for (const size_t m : order) sequence.push_back(subsets.messages()[m]);
    Wrong(subsets, 0, Show(sequence), content, want, report);
  } while (std::next_permutation(order.begin(), order.end()));
  return report;
}

}  // namespace strata::enrollment::testing
