// The calls of CollectionService.
#include "strata/client/collections.h"

#include <thread>
#include <utility>

#include "clients/cpp/requests.h"
#include "strata/v1/collection_service.grpc.pb.h"

namespace strata::client {
namespace {

using CollectionStub = v1::CollectionService::Stub;

// One verification, over as many streams as it takes: each goes on behind the last token.
class Verification {
 public:
  Verification(std::shared_ptr<Core> core, v1::VerifyRequest request)
      : core_(std::move(core)),
        request_(std::move(request)),
        attempts_(CallKind{.writes = request_.repair()}) {}
  ~Verification() {
    if (context_ != nullptr) context_->TryCancel();
    if (stream_ != nullptr) stream_->Finish();
  }

  absl::StatusOr<Range<VerifyProgress>::Page> Next() {
    while (true) {
      if (stream_ == nullptr) {
        context_ = std::make_unique<grpc::ClientContext>();
        stream_ = core_->connection().collections->Verify(context_.get(), request_);
      }
      v1::VerifyResponse response;
      if (stream_->Read(&response)) {
        core_->Connected();
        attempts_.Succeeded();
        if (!response.resume_token().empty()) request_.set_resume_token(response.resume_token());
        absl::StatusOr<VerifyProgress> progress = ReadMessage<VerifyProgress>(response);
        if (!progress.ok()) return progress.status();
        return Range<VerifyProgress>::Page{.items = {*std::move(progress)},
                                           .next_page_token = "more"};
      }
      const grpc::Status status = stream_->Finish();
      stream_.reset();
      context_.reset();
      if (status.ok()) return Range<VerifyProgress>::Page();
      const auto next = core_->AfterFailure(attempts_, RefusalOf(status));
      if (!next.has_value()) return attempts_.status("");
      std::this_thread::sleep_until(*next);
    }
  }

 private:
  const std::shared_ptr<Core> core_;
  v1::VerifyRequest request_;
  Attempts attempts_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::VerifyResponse>> stream_;
};

}  // namespace

absl::StatusOr<CollectionInfo> Collections::Create(const std::string& name,
                                                   const CreateCollectionOptions& options) const {
  v1::CreateCollectionRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  v1::CreateCollectionResponse response;
  if (status.ok()) status = core_->Call(&CollectionStub::CreateCollection, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<CollectionInfo>(response.collection());
}

absl::StatusOr<CollectionInfo> Collections::Get(const std::string& name) const {
  v1::GetCollectionRequest request;
  request.set_name(name);
  v1::GetCollectionResponse response;
  absl::Status status = core_->Call(&CollectionStub::GetCollection, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<CollectionInfo>(response.collection());
}

Range<CollectionInfo> Collections::List(const ListCollectionsOptions& options) const {
  v1::ListCollectionsRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  return Pages<CollectionInfo>(
      core_, &CollectionStub::ListCollections, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.collections(); });
}

absl::StatusOr<bool> Collections::Delete(const std::string& name,
                                         const DeleteCollectionOptions& options) const {
  v1::DeleteCollectionRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  v1::DeleteCollectionResponse response;
  if (status.ok()) status = core_->Call(&CollectionStub::DeleteCollection, request, &response);
  if (!status.ok()) return status;
  return response.replayed();
}

absl::StatusOr<LedgerHead> Collections::GetLedgerHead() const {
  v1::GetLedgerHeadResponse response;
  absl::Status status =
      core_->Call(&CollectionStub::GetLedgerHead, v1::GetLedgerHeadRequest(), &response);
  if (!status.ok()) return status;
  return ReadMessage<LedgerHead>(response.head());
}

Range<VerifyProgress> Collections::Verify(const std::string& name,
                                          const VerifyOptions& options) const {
  v1::VerifyRequest request;
  const absl::Status filled = FillRequest(*core_, options, request);
  request.set_collection(name);
  auto verification = std::make_shared<Verification>(core_, std::move(request));
  return Range<VerifyProgress>(
      [verification, filled](const std::string&) -> absl::StatusOr<Range<VerifyProgress>::Page> {
        if (!filled.ok()) return filled;
        return verification->Next();
      });
}

}  // namespace strata::client
