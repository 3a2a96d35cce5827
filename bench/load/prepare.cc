#include "bench/load/prepare.h"

#include <cctype>
#include <cstdint>
#include <stdexcept>

#include "strata/v1/collection_service.grpc.pb.h"

namespace strata::bench {
namespace {

v1::Strategy ParseStrategy(std::string name) {
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  v1::Strategy strategy = v1::STRATEGY_UNSPECIFIED;
  v1::Strategy_Parse("STRATEGY_" + name, &strategy);
  return strategy;
}

}  // namespace

bool IsStrategy(const std::string& name) { return ParseStrategy(name) != v1::STRATEGY_UNSPECIFIED; }

void CreateCollection(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                      const std::string& strategy, const std::string& authorization) {
  v1::CreateCollectionRequest request;
  request.set_name(name);
  request.set_strategy(ParseStrategy(strategy));
  v1::CreateCollectionResponse response;
  grpc::ClientContext context;
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  const grpc::Status status =
      v1::CollectionService::NewStub(channel)->CreateCollection(&context, request, &response);
  if (!status.ok()) throw std::runtime_error("CreateCollection: " + status.error_message());
}

Measurement Prepare(const std::shared_ptr<grpc::Channel>& channel, Workload& workload,
                    const std::string& authorization) {
  LoopSettings loop;
  loop.authorization = authorization;
  loop.calls_max = INT64_MAX;
  Measurement done = RunLoop(channel, workload, loop);
  if (done.failures > 0) throw std::runtime_error("cannot prepare: " + workload.name());
  return done;
}

}  // namespace strata::bench
