// The check before protobuf's own reader of JSON, at every door. That reader takes text that is no
// JSON, guesses where a member is named twice, and takes time and memory that grow with the square
// of the text.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::json {

struct MessageLimits {
  int depth_max = 100;  // of arrays and objects together; protobuf's own, of objects
  size_t message_bytes_max = size_t{4} << 20;
  size_t field_mask_bytes_max = 4096;
};

// Checks that `text` says a message of `type` in one way: JSON to the letter, no member twice, also
// not in both spellings ("update_mask", "updateMask"), within the limits. Returns the least bytes
// that the message takes. INVALID_FIELD with metadata `field` ("writes[2].update.id");
// INVALID_MESSAGE for the text as a whole. Protobuf's reader finds members that the type lacks, and
// values of a wrong kind.
absl::StatusOr<size_t> CheckMessageJson(std::string_view text,
                                        const google::protobuf::Descriptor& type,
                                        const MessageLimits& limits = {});

}  // namespace strata::json
