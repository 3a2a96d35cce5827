// The library as its users have it: values in and out, futures where there are many calls at a
// time.
#include <deque>
#include <future>
#include <utility>
#include <vector>

#include "bench/client/calls.h"
#include "bench/support/ten_fields.h"
#include "strata/client/client.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

bool IsDocument(const absl::StatusOr<std::optional<client::Document>>& answer) {
  return answer.ok() && answer->has_value() && (*answer)->content.has_value();
}
bool IsDocument(const absl::StatusOr<client::Written>& answer) {
  return answer.ok() && answer->document.content.has_value();
}

class LibraryCaller : public Caller {
 public:
  explicit LibraryCaller(const std::string& target)
      : books_(client::Client::Connect({.target = target})->collection(kCollection)) {
    // Contents are made beforehand, as a program has them at hand.
    for (int64_t i = 0; i < kDocuments; ++i) {
      for (int64_t version : {i, i + kDocuments}) {
        contents_.push_back(client::Replace(*client::FromBson(TenFields(i, version))));
      }
    }
  }

  std::string_view name() const override { return "client library"; }

  int64_t Get(int in_flight, Clock::time_point until) override {
    return Run(
        in_flight, until, [this] { return books_.Get(IdOf(next_++)); },
        [this] { return books_.GetAsync(IdOf(next_++)); });
  }
  int64_t Update(int in_flight, Clock::time_point until) override {
    return Run(
        in_flight, until,
        [this] {
          const int64_t number = next_++;
          return books_.Update(IdOf(number), ContentOf(number));
        },
        [this] {
          const int64_t number = next_++;
          return books_.UpdateAsync(IdOf(number), ContentOf(number));
        });
  }

 private:
  // Another one each time that the document comes by.
  const client::Change& ContentOf(int64_t number) const {
    const int64_t version = number / kDocuments % 2;
    return contents_[static_cast<size_t>(number % kDocuments * 2 + version)];
  }

  template <typename Call, typename CallAsync>
  static int64_t Run(int in_flight, Clock::time_point until, const Call& call,
                     const CallAsync& call_async) {
    int64_t calls = 0;
    if (in_flight == 1) {
      for (; Clock::now() < until; ++calls) {
        if (!IsDocument(call())) return -1;
      }
      return calls;
    }
    std::deque<decltype(call_async())> futures;
    while (Clock::now() < until) {
      while (futures.size() < static_cast<size_t>(in_flight)) futures.push_back(call_async());
      if (!IsDocument(futures.front().get())) return -1;
      futures.pop_front();
      ++calls;
    }
    for (; !futures.empty(); futures.pop_front(), ++calls) {
      if (!IsDocument(futures.front().get())) return -1;
    }
    return calls;
  }

  client::Collection books_;
  std::vector<client::Change> contents_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Caller> MakeLibraryCaller(const std::string& target) {
  return std::make_unique<LibraryCaller>(target);
}

}  // namespace strata::bench
