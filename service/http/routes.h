// The table of what the port serves: files for people, the version, and the methods of the
// services.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "service/server/loop_state.h"

namespace strata::http {

struct Route {
  enum class Kind {
    kFile,          // of the explorer
    kVersion,       // what runs here
    kUnary,         // a method, called with one message and answered by one
    kServerStream,  // called with one, answered by any number
    kOtherStream,   // called with any number, which there is no way to send here
  };

  Kind kind = Kind::kFile;
  std::string_view allow;  // the methods of HTTP, as the Allow header names them

  // A file.
  std::string_view content{};
  std::string_view content_type{};
  std::string entity_tag{};

  // A method of a service, and how the server knows it.
  const google::protobuf::MethodDescriptor* method = nullptr;
  const server::Endpoint* endpoint = nullptr;

  bool is_call() const { return method != nullptr; }
};

// Immutable.
class Routes {
 public:
  // All methods that are served and whose descriptors are linked.
  explicit Routes(const server::LoopState& calls);

  // Null: there is nothing under this path.
  const Route* Find(std::string_view path) const;

 private:
  std::unordered_map<std::string, Route> routes_;
};

}  // namespace strata::http
