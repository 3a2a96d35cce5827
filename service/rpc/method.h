// The table of methods that the event loop serves, and how a handler becomes a line of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "service/rpc/call.h"

namespace strata::rpc {

struct Method {
  enum class Kind {
    kRead,    // answers at once, on the event loop unless the engine's reads block
    kScan,    // visits many records: on the executor
    kWrite,   // answers when it is committed
    kStream,  // messages in both directions
  };

  Kind kind = Kind::kRead;
  std::string service;  // "strata.v1.DocumentService"
  std::string name;     // "Get"
  std::string request;  // the request's full name, for messages to people

  // Unary methods.
  google::protobuf::MessageLite* (*make_request)(google::protobuf::Arena* arena) = nullptr;
  google::protobuf::MessageLite* (*make_response)(google::protobuf::Arena* arena) = nullptr;
  void (*handle)(const Services& services, CallHandle call) = nullptr;

  // Streams.
  std::unique_ptr<StreamHandler> (*open)(const Services& services, Stream& stream) = nullptr;

  std::string path() const { return "/" + service + "/" + name; }
};

// All methods of all services, from handlers/*.def.
std::vector<Method> AllMethods();

// The names of the services among `methods`, each once.
std::vector<std::string> ServiceNames(const std::vector<Method>& methods);

namespace internal {

template <typename Message>
google::protobuf::MessageLite* MakeMessage(google::protobuf::Arena* arena) {
  return google::protobuf::Arena::CreateMessage<Message>(arena);
}

template <auto handler>
struct Unary;

// A handler that has its answer when it returns.
template <typename Request, typename Response,
          absl::Status (*handler)(const Context&, const Request&, Response&)>
struct Unary<handler> {
  static void Handle(const Services& services, CallHandle call) {
    call.Answer(handler(Context{services, call.call()}, static_cast<const Request&>(call.request()),
                        static_cast<Response&>(call.response())));
  }
  static constexpr auto kMakeRequest = &MakeMessage<Request>;
  static constexpr auto kMakeResponse = &MakeMessage<Response>;
};

// A handler that answers later. The request lives as long as the reply.
template <typename Request, typename Response,
          void (*handler)(const Context&, const Request&, Reply<Response>)>
struct Unary<handler> {
  static void Handle(const Services& services, CallHandle call) {
    const Context context{services, call.call()};
    const auto& request = static_cast<const Request&>(call.request());
    handler(context, request, Reply<Response>(std::move(call)));
  }
  static constexpr auto kMakeRequest = &MakeMessage<Request>;
  static constexpr auto kMakeResponse = &MakeMessage<Response>;
};

}  // namespace internal

template <auto handler>
Method UnaryMethod(Method::Kind kind, std::string_view service, std::string_view name) {
  using Unary = internal::Unary<handler>;
  Method method;
  method.kind = kind;
  method.service = service;
  method.name = name;
  method.request =
      method.service.substr(0, method.service.rfind('.') + 1) + method.name + "Request";
  method.make_request = Unary::kMakeRequest;
  method.make_response = Unary::kMakeResponse;
  method.handle = &Unary::Handle;
  return method;
}

inline Method StreamMethod(std::string_view service, std::string_view name,
                           std::unique_ptr<StreamHandler> (*open)(const Services&, Stream&)) {
  Method method;
  method.kind = Method::Kind::kStream;
  method.service = service;
  method.name = name;
  method.open = open;
  return method;
}

}  // namespace strata::rpc
