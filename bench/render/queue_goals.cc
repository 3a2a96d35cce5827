// The goals of queues.
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/goal_forms.h"

namespace strata::bench {
namespace {

constexpr char kQueuePostgres[] = "postgresql";
constexpr char kRabbit[] = "rabbitmq";
constexpr char kRedis[] = "redis";
constexpr char kCycle[] = "q2_cycle";
constexpr char kCycleFew[] = "q2_cycle, 10^3 waiting";

Measured Queue(const std::string& figure, const std::string& queue,
               const std::string& system = "strata") {
  return {figure, {{"system", system}, {"queue", queue}}};
}

Measured Messages(const std::string& queue, const std::string& system = "strata") {
  return Queue("messages_per_second", queue, system);
}

// Messages/s against a peer's.
Goal AgainstQueueOf(const std::string& peer, const std::string& what, double limit,
                    const std::string& queue) {
  return AtLeast(what, limit, Messages(queue), {Messages(queue, peer)});
}

std::vector<Goal> Pushes() {
  return {AtLeast("Q1 Push, 64 in flight, in turns with W1: calls/s of its", 1.3,
                  RatioOf("calls_ratio", "q1_push", "W1 update, beside queues")),
          AgainstQueueOf(kQueuePostgres, "Q1 Push: messages/s of PostgreSQL's", 1, "q1_push"),
          AgainstQueueOf(kRabbit, "Q1 Push: of RabbitMQ's", 1, "q1_push"),
          AgainstQueueOf(kRedis, "Q1 Push: of Redis's", 0.5, "q1_push"),
          AtLeast("Q1 in batches of 100, in turns with Q1: messages/s of its", 3,
                  RatioOf("calls_ratio", "q1_push_batch", "q1_push")),
          AgainstQueueOf(kRedis, "Q1 in batches of 100: of Redis's, pipelined by 100", 0.3,
                         "q1_push_batch")};
}

std::vector<Goal> Takes() {
  return {AgainstQueueOf(kQueuePostgres,
                         "Q2 push, reserve, acknowledge: messages/s of PostgreSQL's", 1, kCycle),
          AgainstQueueOf(kRabbit, "Q2: of RabbitMQ's, by basic.get", 1, kCycle),
          AgainstQueueOf(kRedis, "Q2: of Redis's, by XREADGROUP and XACK", 0.5, kCycle),
          AtMost("Q2: races lost", 0, Unit::kCount, Queue("races_lost", kCycle)),
          AgainstQueueOf(kRabbit, "Q3 Receive: messages/s of RabbitMQ's", 1, "q3_receive"),
          AgainstQueueOf(kQueuePostgres, "Q3 Receive: of PostgreSQL's", 3, "q3_receive")};
}

std::vector<Goal> Depths() {
  std::vector<Goal> goals;
  for (const std::string depth : {"10^5", "10^6", "10^7"}) {
    const std::string deep = absl::StrCat("q2_cycle, ", depth, " waiting");
    goals.push_back(
        AtLeast(absl::StrCat("Q4 Q2 at ", depth, " waiting, in turns with it at 10^3: of its"),
                0.85, RatioOf("calls_ratio", deep, kCycleFew)));
  }
  goals.push_back(
      AtLeast("Q4 Q2 after many have gone through, in turns with a new queue: of its", 0.85,
              RatioOf("calls_ratio", "q2_cycle, many gone through", "q2_cycle, a new queue")));
  goals.push_back(ToLookAt("Q4 at PostgreSQL: Q2 at 10^6 waiting of it at 10^3",
                           Messages("q2_cycle_waiting", kQueuePostgres),
                           {Messages(kCycle, kQueuePostgres)}));
  return goals;
}

std::vector<Goal> Together() {
  return {
      AtMost("Q5 Commit of acknowledgement, update and push, in turns with W1: server CPU", 1.6,
             Unit::kRatio, RatioOf("server_cpu_ratio", "q5_commit", "W1 update, beside q5_commit")),
      AgainstQueueOf(kQueuePostgres, "Q5: calls/s of PostgreSQL's transaction of the same", 1,
                     "q5_commit"),
      AtMost("Q6 from a push to a waiting Reserve, in turns with W1, one in flight: p50 of its", 2,
             Unit::kRatio, RatioOf("latency_p50_ratio", "q6_wait", "W1 update, one in flight"))};
}

std::vector<Goal> Unused() {
  std::vector<Goal> goals;
  for (const char* workload : {"W1 update", "W2 hot document", "W3 get"}) {
    const std::string of = absl::StrCat(workload, ", queues unused");
    const std::string to = absl::StrCat(workload, ", before queues");
    goals.push_back(AtLeast(absl::StrCat(of, ": calls/s of those before queues"), 0.99,
                            RatioOf("calls_ratio", of, to)));
    goals.push_back(AtMost(absl::StrCat(of, ": server CPU of that before queues"), 1.01,
                           Unit::kRatio, RatioOf("server_cpu_ratio", of, to)));
  }
  return goals;
}

std::vector<Goal> Waiting() {
  std::vector<Goal> goals;
  for (const std::string what : {"10^6 waiting", "10^6 waiting, started anew"}) {
    goals.push_back(AtMost(absl::StrCat(what, ": memory more than with 10^3"), 64 * kMebibyte,
                           Unit::kBytes, Queue("memory_above", what)));
  }
  for (const std::string what :
       {"10^6 waiting, started anew", "10^6 waiting, started anew after a kill -9"}) {
    goals.push_back(AtMost(absl::StrCat(what, ": serving after"), 1000 * kMillisecond,
                           Unit::kMicroseconds, Queue("serving", what)));
  }
  return goals;
}

}  // namespace

std::vector<Goal> QueueGoals() {
  std::vector<Goal> all;
  for (const auto some : {Pushes, Takes, Depths, Together, Unused, Waiting}) {
    for (Goal& goal : some()) all.push_back(std::move(goal));
  }
  return all;
}

}  // namespace strata::bench
