#include "tests/withstand/documents.h"

#include "strata/v1/feed_service.pb.h"

namespace strata::withstand {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kMember[] = "text";
constexpr int kPatterns = 100;

// The patterns have no letters that a search could jump to, and differ.
google::protobuf::Struct CostlyFilter() {
  google::protobuf::Struct filter;
  auto& either = *(*filter.mutable_fields())["$or"].mutable_list_value();
  for (int i = 0; i < kPatterns; ++i) {
    google::protobuf::Struct pattern;
    (*pattern.mutable_fields())["$regex"].set_string_value("[a-m]+[n-z]{2}" + std::to_string(i));
    auto& condition = *either.add_values()->mutable_struct_value();
    *(*condition.mutable_fields())[kMember].mutable_struct_value() = pattern;
  }
  return filter;
}

}  // namespace

grpc::Status Documents::Write(grpc::ClientContext& context, const std::string& collection,
                              const std::string& id, size_t letters) const {
  v1::UpdateRequest request;
  request.set_collection(collection);
  request.set_id(id);
  request.set_allow_missing(true);
  request.set_omit_content(true);
  auto& fields = *request.mutable_replace()->mutable_json()->mutable_fields();
  std::string text(letters, ' ');
  for (size_t i = 0; i < letters; ++i) text[i] = i % 6 == 5 ? ' ' : static_cast<char>('a' + i % 11);
  fields[kMember].set_string_value(text);
  v1::UpdateResponse response;
  return stub_->Update(&context, request, &response);
}

grpc::Status Documents::Count(grpc::ClientContext& context, const std::string& collection,
                              const std::string& id) const {
  v1::UpdateRequest request;
  request.set_collection(collection);
  request.set_id(id);
  request.set_allow_missing(true);
  v1::Operation& count = *request.mutable_patch()->add_operations();
  count.set_path("/count");
  count.mutable_increment()->set_number_value(1);
  v1::UpdateResponse response;
  return stub_->Update(&context, request, &response);
}

grpc::Status Documents::Get(grpc::ClientContext& context, const std::string& collection,
                            const std::string& id) const {
  v1::GetRequest request;
  request.set_collection(collection);
  request.set_id(id);
  v1::GetResponse response;
  return stub_->Get(&context, request, &response);
}

grpc::Status Documents::List(grpc::ClientContext& context, const std::string& collection) const {
  v1::ListRequest request;
  request.set_collection(collection);
  v1::ListResponse response;
  return stub_->List(&context, request, &response);
}

grpc::Status Documents::Fill(const std::string& collection, int documents, size_t letters) const {
  for (int i = 0; i < documents; ++i) {
    grpc::ClientContext context;
    const grpc::Status status = Write(context, collection, std::to_string(i), letters);
    if (!status.ok()) return status;
  }
  return grpc::Status::OK;
}

std::string GetMessage(const std::string& collection, const std::string& id) {
  v1::GetRequest request;
  request.set_collection(collection);
  request.set_id(id);
  return request.SerializeAsString();
}

std::string ListMessage(const std::string& collection) {
  v1::ListRequest request;
  request.set_collection(collection);
  request.set_encoding(v1::ENCODING_BSON);
  return request.SerializeAsString();
}

std::string WatchMessage(const std::string& collection) {
  v1::WatchRequest request;
  request.add_collections(collection);
  request.set_include_content(true);
  request.set_encoding(v1::ENCODING_BSON);
  return request.SerializeAsString();
}

std::string CostlyListMessage(const std::string& collection) {
  v1::ListRequest request;
  request.set_collection(collection);
  request.set_encoding(v1::ENCODING_BSON);
  *request.mutable_filter() = CostlyFilter();
  return request.SerializeAsString();
}

std::string CostlyUpdateMessage(const std::string& collection, const std::string& id) {
  v1::UpdateRequest request;
  request.set_collection(collection);
  request.set_id(id);
  request.set_omit_content(true);
  v1::Operation& count = *request.mutable_patch()->add_operations();
  count.set_path("/count");
  count.mutable_increment()->set_number_value(1);
  *request.mutable_precondition()->mutable_filter() = CostlyFilter();
  return request.SerializeAsString();
}

FreshCall CallAfresh(const ConnectionSettings& settings, const std::string& method,
                     const std::string& message, std::chrono::milliseconds patience) {
  const Clock::time_point start = Clock::now();
  RawConnection connection(settings);
  const uint32_t stream = connection.Begin(CallHeaders(method), message);
  AdvanceUntil({&connection}, patience, [&] { return connection.over(stream); });
  return {connection.outcome(stream),
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start)};
}

}  // namespace strata::withstand
