// Generated stubs, with what a careful program would do besides: a deadline and a request id. Many
// calls at a time have one completion queue, in the calling thread.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "bench/client/calls.h"
#include "bench/support/ten_fields.h"
#include "clients/cpp/connection.h"
#include "strata/client/value.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Stub = v1::DocumentService::Stub;

v1::GetRequest GetOf(int64_t number) {
  v1::GetRequest request;
  request.set_collection(kCollection);
  request.set_id(IdOf(number));
  request.set_encoding(v1::ENCODING_BSON);
  return request;
}

v1::UpdateRequest UpdateOf(int64_t number) {
  v1::UpdateRequest request;
  request.set_collection(kCollection);
  request.set_id(IdOf(number));
  request.mutable_replace()->set_bson(TenFields(number % kDocuments, number));
  request.set_encoding(v1::ENCODING_BSON);
  request.set_request_id(client::UuidText(client::NewUuid()));
  return request;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
}

template <typename Response>
struct Slot {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  Response response;
  grpc::Status status;
};

class RawCaller : public Caller {
 public:
  explicit RawCaller(const std::string& target) : connection_(client::Connect(target, {})) {}

  std::string_view name() const override { return "generated stub"; }

  int64_t Get(int in_flight, Clock::time_point until) override {
    return Run<v1::GetResponse>(in_flight, until, &GetOf, &Stub::Get, &Stub::PrepareAsyncGet);
  }
  int64_t Update(int in_flight, Clock::time_point until) override {
    return Run<v1::UpdateResponse>(in_flight, until, &UpdateOf, &Stub::Update,
                                   &Stub::PrepareAsyncUpdate);
  }

 private:
  template <typename Response, typename Request, typename Call, typename Prepare>
  int64_t Run(int in_flight, Clock::time_point until, Request (*request_of)(int64_t), Call call,
              Prepare prepare) {
    Stub& stub = *connection_.documents;
    if (in_flight == 1) {
      int64_t calls = 0;
      for (; Clock::now() < until; ++calls) {
        grpc::ClientContext context;
        SetDeadline(context);
        Response response;
        if (!(stub.*call)(&context, request_of(next_++), &response).ok()) return -1;
        if (!response.document().content().has_bson()) return -1;
      }
      return calls;
    }
    grpc::CompletionQueue queue;
    std::vector<Slot<Response>> slots(static_cast<size_t>(in_flight));
    const auto send = [&](Slot<Response>& slot) {
      slot.context = std::make_unique<grpc::ClientContext>();
      SetDeadline(*slot.context);
      slot.reader = (stub.*prepare)(slot.context.get(), request_of(next_++), &queue);
      slot.reader->StartCall();
      slot.reader->Finish(&slot.response, &slot.status, &slot);
    };
    for (Slot<Response>& slot : slots) send(slot);
    int64_t calls = 0;
    bool right = true;
    void* tag = nullptr;
    bool ok = false;
    for (int open = in_flight; open > 0 && queue.Next(&tag, &ok);) {
      auto& slot = *static_cast<Slot<Response>*>(tag);
      right = right && slot.status.ok() && slot.response.document().content().has_bson();
      ++calls;
      if (right && Clock::now() < until) {
        send(slot);
      } else {
        --open;
      }
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
      // Nothing is left; a queue has to be drained.
    }
    return right ? calls : -1;
  }

  client::Connection connection_;
  int64_t next_ = 0;
};

}  // namespace

std::string IdOf(int64_t number) { return "d" + std::to_string(number % kDocuments); }

std::unique_ptr<Caller> MakeRawCaller(const std::string& target) {
  return std::make_unique<RawCaller>(target);
}

}  // namespace strata::bench
