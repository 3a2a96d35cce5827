#include "service/http/routes.h"

#include <utility>

#include "service/http/explorer.h"

namespace strata::http {
namespace {

constexpr std::string_view kPageMethods = "GET, HEAD";
constexpr std::string_view kCallMethods = "POST";
constexpr std::string_view kIndex = "/index.html";

Route::Kind KindOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) return Route::Kind::kOtherStream;
  return method.server_streaming() ? Route::Kind::kServerStream : Route::Kind::kUnary;
}

}  // namespace

Routes::Routes(const server::LoopState& calls) {
  for (const ExplorerFile& file : ExplorerFiles()) {
    Route route{.kind = Route::Kind::kFile,
                .allow = kPageMethods,
                .content = file.content,
                .content_type = ContentTypeOf(file.path),
                .entity_tag = EntityTagOf(file.content)};
    if (file.path == kIndex) routes_.emplace("/", route);
    routes_.emplace(file.path, std::move(route));
  }
  routes_.emplace("/version", Route{.kind = Route::Kind::kVersion, .allow = kPageMethods});
  for (const auto& endpoint : calls.endpoints) {
    const server::Method& row = endpoint->method;
    const auto* const method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        row.service + "." + row.name);
    if (method == nullptr) continue;
    routes_.emplace(endpoint->path, Route{.kind = KindOf(*method),
                                          .allow = kCallMethods,
                                          .method = method,
                                          .endpoint = endpoint.get()});
  }
}

const Route* Routes::Find(std::string_view path) const {
  const auto found = routes_.find(std::string(path));
  return found == routes_.end() ? nullptr : &found->second;
}

}  // namespace strata::http
