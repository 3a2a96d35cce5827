// What the server tells about itself: the protos of its public services.
#pragma once

#include <google/protobuf/descriptor.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace strata::rpc {

// Immutable.
class Reflection {
 public:
  // Knows the files that declare `services`, the details of errors, and all that they import.
  explicit Reflection(std::vector<std::string> services);

  const std::vector<std::string>& services() const { return services_; }

  // The serialised descriptor of the file, then those of all that it imports; empty if it is not
  // among the known ones.
  std::vector<std::string> FileByName(const std::string& name) const;
  std::vector<std::string> FileOfSymbol(const std::string& symbol) const;
  std::vector<std::string> FileOfExtension(const std::string& message, int number) const;
  bool KnowsMessage(const std::string& name) const;

 private:
  void Add(const google::protobuf::FileDescriptor* file);
  std::vector<std::string> WithImports(const google::protobuf::FileDescriptor* file) const;

  std::vector<std::string> services_;
  std::set<const google::protobuf::FileDescriptor*> files_;
};

}  // namespace strata::rpc
