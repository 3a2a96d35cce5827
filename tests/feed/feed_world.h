// A feed whose turns the test runs, and watchers that keep what they get.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/feed/feed.h"
#include "tests/documents/units.h"
#include "tests/documents/world.h"
#include "tests/support/executors.h"

namespace strata::feed::testing {

// What one message brought.
struct Message {
  std::vector<Event> events;
  std::vector<std::string> documents;  // "collection/id@version"
  Progress progress;
};

// Takes messages of at most so many events; the test says when one has been taken.
class Inbox final : public Sink {
 public:
  explicit Inbox(size_t events_max) : events_max_(events_max) {}

  bool closed() const override { return is_closed; }
  absl::Status Admit() override { return admitted; }
  bool TakeRoom() override {
    rooms += has_room ? 1 : 0;
    return has_room;
  }
  void ReturnRoom() override { --rooms; }
  bool Add(Event&& event) override {
    if (before_add) before_add();
    if (message_.events.size() == events_max_) return false;
    message_.events.push_back(std::move(event));
    return true;
  }
  bool AddDocument(versioning::CopyCursor& document) override {
    if (message_.documents.size() == events_max_) return false;
    message_.documents.push_back(document.collection() + "/" + document.id() + "@" +
                                 std::to_string(document.version().header.version));
    return true;
  }
  void Send(const Progress& progress) override {
    message_.progress = progress;
    messages.push_back(std::exchange(message_, {}));
    ++waiting;
  }
  void Finish(const absl::Status& status) override { end = status; }

  std::atomic<bool> is_closed = false;
  absl::Status admitted;
  std::function<void()> before_add;
  bool has_room = true;
  int rooms = 0;  // that it has
  std::vector<Message> messages;
  int waiting = 0;  // messages that the watcher has not taken
  std::optional<absl::Status> end;

 private:
  const size_t events_max_;
  Message message_;
};

struct Watcher {
  std::shared_ptr<Inbox> inbox;
  std::unique_ptr<Watch> watch;

  // "things/a@1", a deletion of the collection "things".
  std::vector<std::string> Seen() const {
    std::vector<std::string> seen;
    for (const Message& message : inbox->messages) {
      for (const Event& event : message.events) {
        seen.push_back(event.type == EventType::kVersion
                           ? event.collection + "/" + event.id + "@" +
                                 std::to_string(event.version.header.version)
                           : event.collection);
      }
    }
    return seen;
  }
  store::CommitPosition resume() const { return inbox->messages.back().progress.resume_position; }
};

class FeedWorld {
 public:
  explicit FeedWorld(std::string_view engine = "memory", const FeedOptions& options = {})
      : world({engine}),
        executor(world.clock()),
        feed(world->store(), world->documents(), world.clock(), executor, options) {}

  Watcher Open(WatchQuery query = {}, size_t events_max = 1000) {
    Watcher watcher;
    watcher.inbox = std::make_shared<Inbox>(events_max);
    auto opened = feed.Open(std::move(query), watcher.inbox);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return watcher;
    watcher.watch = *std::move(opened);
    watcher.watch->Ready();
    return watcher;
  }

  // Does all there is to do; what was sent has been taken then.
  void Run(const std::vector<Watcher*>& watchers) {
    size_t done = 1;
    while (done > 0) {
      done = executor.RunDue();
      for (Watcher* watcher : watchers) {
        for (; watcher->inbox->waiting > 0; --watcher->inbox->waiting) {
          watcher->watch->Ready();
          ++done;
        }
      }
    }
  }
  // The same until the watcher's place is the ledger's end; an engine may tell of a commit a moment
  // after it was answered.
  void RunToEnd(Watcher& watcher) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      Run({&watcher});
      if (feed.tail().end() == world->store().LastPosition() || watcher.inbox->end) break;
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < give_up);
    Run({&watcher});
  }

  store::CommitPosition Create(std::string_view id, int64_t number = 1,
                               std::string_view collection = "things") {
    versioning::WriteRequest request = versioning::testing::Request(id);
    request.name.collection = collection;
    const auto written = world->Create(std::move(request), versioning::testing::Number(number));
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? written->position : 0;
  }
  store::CommitPosition Update(std::string_view id, int64_t number,
                               std::string_view collection = "things") {
    versioning::WriteRequest request = versioning::testing::Request(id);
    request.name.collection = collection;
    const auto written = world->Update(std::move(request), versioning::testing::Number(number));
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? written->position : 0;
  }
  void DeleteCollection(const std::string& name) {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete({.name = name, .force = true}, [&](const auto& result) {
      deleted.set_value(result.status());
    });
    EXPECT_TRUE(deleted.get_future().get().ok());
  }

  versioning::testing::World world;
  test_support::ManualExecutor executor;
  Feed feed;
};

inline WatchQuery From(store::CommitPosition after) {
  WatchQuery query;
  query.start = FromPosition{after};
  return query;
}

}  // namespace strata::feed::testing
