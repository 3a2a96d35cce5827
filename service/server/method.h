// The table of methods that the event loop serves.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

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
  bool writes = false;       // a scan that also writes
  bool operational = false;  // for whoever runs the server: served while draining and overloaded

  // Unary methods.
  std::string request;  // the request's full name, for messages to people
  google::protobuf::MessageLite* (*make_request)(google::protobuf::Arena* arena) = nullptr;
  google::protobuf::MessageLite* (*make_response)(google::protobuf::Arena* arena) = nullptr;
  std::function<void(CallHandle call)> handle;
  size_t answer_bytes = 0;  // room that is kept for an answer while it is made

  // Streams.
  std::function<std::unique_ptr<StreamHandler>(Stream& stream)> open;

  bool streams() const { return open != nullptr; }

  std::string path() const { return "/" + service + "/" + name; }
};

}  // namespace strata::server
