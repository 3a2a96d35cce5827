#include "tests/fault/counted_documents.h"

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>

#include "clients/cpp/refusal.h"

namespace strata::fault {
namespace {

constexpr char kCollection[] = "things";
constexpr std::chrono::seconds kPatience{10};

void SetPatience(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
}

std::optional<std::string> ReasonOf(const grpc::Status& status) {
  if (status.ok()) return std::nullopt;
  const client::Refusal refusal = client::RefusalOf(status);
  return refusal.reason.empty() ? client::CodeName(refusal.code) : refusal.reason;
}

}  // namespace

void CountedDocuments::Connect(const ServerProcess& server) {
  const auto channel = server.Connect();
  // Connections that have just ended may still count for the server: the next try finds room.
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + kPatience));
  documents_ = v1::DocumentService::NewStub(channel);
  health_ = grpc::health::v1::Health::NewStub(channel);
}

// Words of letters at random, each of them twice: half of it can be packed.
std::string CountedDocuments::Text(const std::string& id, int64_t count) const {
  std::mt19937_64 random(seed_ ^ (std::hash<std::string>()(id) + static_cast<uint64_t>(count)));
  std::string text;
  text.reserve(text_bytes_ + 64);
  while (text.size() < text_bytes_) {
    std::string word(32, ' ');
    for (char& letter : word) letter = static_cast<char>('!' + random() % 90);
    text += word + word;
  }
  return text;
}

std::optional<std::string> CountedDocuments::Update(const std::string& id) {
  int64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = counts_[id] + 1;
  }
  v1::UpdateRequest request;
  request.set_collection(kCollection);
  request.set_id(id);
  request.set_allow_missing(true);
  request.set_omit_content(true);
  auto& fields = *request.mutable_replace()->mutable_json()->mutable_fields();
  fields["count"].set_number_value(static_cast<double>(count));
  fields["text"].set_string_value(Text(id, count));
  v1::UpdateResponse response;
  grpc::ClientContext context;
  SetPatience(context);
  const grpc::Status status = documents_->Update(&context, request, &response);
  if (!status.ok()) return ReasonOf(status);
  EXPECT_EQ(response.document().version(), count);
  const std::lock_guard lock(mutex_);
  counts_[id] = count;
  ++acknowledged_;
  return std::nullopt;
}

std::optional<std::string> CountedDocuments::Delete(const std::string& id) {
  v1::DeleteRequest request;
  request.set_collection(kCollection);
  request.set_id(id);
  v1::DeleteResponse response;
  grpc::ClientContext context;
  SetPatience(context);
  const grpc::Status status = documents_->Delete(&context, request, &response);
  if (!status.ok()) return ReasonOf(status);
  const std::lock_guard lock(mutex_);
  counts_.erase(id);
  return std::nullopt;
}

void CountedDocuments::ExpectAllAcknowledged() { ExpectStored(Beyond::kNone); }

void CountedDocuments::ExpectNothingLost() { ExpectStored(Beyond::kUnknown); }

void CountedDocuments::ExpectStored(Beyond beyond) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, count] : counts_) {
    if (count == 0) continue;
    v1::GetRequest request;
    request.set_collection(kCollection);
    request.set_id(id);
    v1::GetResponse response;
    grpc::ClientContext context;
    SetPatience(context);
    const grpc::Status status = documents_->Get(&context, request, &response);
    ASSERT_TRUE(status.ok()) << id << ": " << status.error_message();
    const int64_t version = response.document().version();
    EXPECT_GE(version, count) << id;
    EXPECT_LE(version, beyond == Beyond::kNone ? count : count + 1) << id;
    const auto& fields = response.document().content().json().fields();
    EXPECT_EQ(fields.at("count").number_value(), static_cast<double>(version)) << id;
    EXPECT_EQ(fields.at("text").string_value(), Text(id, version)) << id;
  }
}

bool CountedDocuments::IsServing(const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext context;
  SetPatience(context);
  return health_->Check(&context, request, &response).ok() &&
         response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

int64_t CountedDocuments::acknowledged() const {
  const std::lock_guard lock(mutex_);
  return acknowledged_;
}

}  // namespace strata::fault
