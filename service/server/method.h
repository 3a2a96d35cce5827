// The table of methods that the event loop serves.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "service/security/permission.h"
#include "service/server/call.h"

namespace strata::server {

// A row of the table. What its functions work with, they bring along: the loop knows no service.
struct Method {
  enum class Kind {
    kRead,   // answers at once: on the event loop, unless the engine's reads block
    kScan,   // visits many records: on the executor
    kWrite,  // answers when it is committed: as kRead
  };

  Kind kind = Kind::kRead;
  std::string service;       // "strata.v1.DocumentService"
  std::string name;          // "Get"
  bool writes = false;       // kind kWrite, or a scan that also writes
  bool waits = false;        // perhaps long for others: hears of callers that gave up
  bool operational = false;  // for whoever runs the server: served while draining and overloaded

  // What is asked of callers; of each request or message of a stream, by what it says.
  security::Permission permission = security::Permission::kOperate;
  void (*demands)(const google::protobuf::MessageLite& request, security::Permission permission,
                  security::Demands& demands) = nullptr;  // null: nothing that a request says

  std::string request;  // the full name of requests and messages, for messages to people
  google::protobuf::MessageLite* (*make_request)(google::protobuf::Arena* arena) = nullptr;

  // Unary methods.
  google::protobuf::MessageLite* (*make_response)(google::protobuf::Arena* arena) = nullptr;
  std::function<void(CallHandle call)> handle;
  size_t answer_bytes = 0;  // room that is kept for an answer while it is made

  // Streams.
  std::function<std::unique_ptr<StreamHandler>(Stream& stream)> open;

  bool streams() const { return open != nullptr; }

  std::string path() const { return "/" + service + "/" + name; }
};

}  // namespace strata::server
