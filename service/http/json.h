// Messages as JSON and as bytes, by Protobuf's own mapping, without an object for each value.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/type_resolver.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::http {

// Of the linked types. Thread-safe.
class JsonCodec {
 public:
  JsonCodec();

  // Takes room for `bytes`; false: there is none.
  using Room = std::function<bool(size_t bytes)>;

  // INVALID_FIELD, naming it: there is no such field, it is there twice, or its value is none that
  // it may have. INVALID_MESSAGE: not JSON, no object, or too deep or too large. OVERLOADED: no
  // room to convert it.
  absl::StatusOr<std::string> ToBytes(const google::protobuf::Descriptor& type,
                                      std::string_view json, const Room& room) const;
  // INTERNAL: deeper than Protobuf's limit, or no bytes of the type.
  absl::StatusOr<std::string> ToJson(const google::protobuf::Descriptor& type,
                                     std::string_view bytes) const;

 private:
  const std::unique_ptr<google::protobuf::util::TypeResolver> types_;
};

// `text` in quotes, with what JSON may not hold escaped. REQUIRES: UTF-8.
void AppendJsonText(std::string_view text, std::string& json);

}  // namespace strata::http
