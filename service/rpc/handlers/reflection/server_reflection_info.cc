#include <grpc/reflection/v1/reflection.pb.h>

#include "service/rpc/context.h"
#include "service/rpc/reflection.h"

namespace strata::rpc::reflection_service {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

void SetError(absl::StatusCode code, const std::string& message,
              ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(message);
}

void SetFiles(std::vector<std::string> files, ServerReflectionResponse& response) {
  if (files.empty()) return SetError(absl::StatusCode::kNotFound, "not found", response);
  for (std::string& file : files) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(std::move(file));
  }
}

void Respond(const Reflection& reflection, const ServerReflectionRequest& request,
             ServerReflectionResponse& response) {
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : reflection.services()) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::kFileByFilename:
      SetFiles(reflection.FileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFiles(reflection.FileOfSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& extension = request.file_containing_extension();
      SetFiles(
          reflection.FileOfExtension(extension.containing_type(), extension.extension_number()),
          response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const std::string& type = request.all_extension_numbers_of_type();
      if (!reflection.KnowsMessage(type)) {
        return SetError(absl::StatusCode::kNotFound, "not found", response);
      }
      response.mutable_all_extension_numbers_response()->set_base_type_name(type);
      break;
    }
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(absl::StatusCode::kInvalidArgument, "the request is empty", response);
      break;
  }
}

class ServerReflectionInfo final : public HandlerOf<ServerReflectionRequest> {
 public:
  ServerReflectionInfo(const Reflection& reflection, Stream& stream)
      : reflection_(reflection), stream_(stream) {}

  void OnRequest(const ServerReflectionRequest& request) override {
    ServerReflectionResponse response;
    Respond(reflection_, request, response);
    stream_.Send(response);
  }
  void OnLastMessage() override { stream_.Finish(absl::OkStatus()); }
  void OnClosed() override {}

 private:
  const Reflection& reflection_;
  Stream& stream_;
};

}  // namespace

std::unique_ptr<HandlerOf<ServerReflectionRequest>> OpenServerReflectionInfo(
    const Services& services, Stream& stream) {
  return std::make_unique<ServerReflectionInfo>(services.reflection, stream);
}

}  // namespace strata::rpc::reflection_service
