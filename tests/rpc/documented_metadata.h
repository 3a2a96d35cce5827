// What error_reason.proto says of the metadata of each reason, read from its comments.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <set>
#include <string>

namespace strata::rpc_test {

struct DocumentedMetadata {
  std::set<std::string> always;
  std::set<std::string> sometimes;

  std::set<std::string> all() const;
};

// By the names of the reasons on the wire.
const std::map<std::string, DocumentedMetadata>& AllDocumentedMetadata();

struct Details;

// The keys of what an error carries, but for those that say which part of a transaction it is
// about.
std::set<std::string> KeysOfReason(const Details& details);

// That an error of ours carries the metadata that its comment tells of, and no other.
void ExpectDocumentedMetadata(const grpc::Status& status);

}  // namespace strata::rpc_test
