// A server with or without the port for people, and the documents on it.
#pragma once

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "bench/http/json_gets.h"
#include "bench/http/measure.h"
#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"
#include "tests/fault/child_process.h"

namespace strata::bench {

enum class PortForPeople { kOff, kOn };

class HttpServer {
 public:
  // In `settings.folder`/`name`. Throws std::runtime_error, with its log, if it does not serve.
  HttpServer(const HttpLoadSettings& settings, const std::string& name, PortForPeople port);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // Of the port for people; 0: it has none.
  int http_port() const { return http_port_; }
  // Documents of this form, made when they are asked for first.
  Population& Documents(const Form& form);

  // A round after a warm-up of a quarter of it, begun when the server is quiet. What is answered
  // wrong is written as such.
  Measurement Run(Workload& workload, int in_flight, FigureLines& lines);
  Measurement Run(JsonGets& gets, int in_flight, FigureLines& lines);

 private:
  LoopSettings BeginRound(int in_flight) const;

  const HttpLoadSettings& settings_;
  fault::ChildProcess process_;
  std::shared_ptr<grpc::Channel> channel_;
  int http_port_ = 0;
  std::map<std::string, Population> populations_;
};

}  // namespace strata::bench
