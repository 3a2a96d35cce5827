#include "schemas/versioning/verify.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"
#include "service/rpc/page_token.h"
#include "service/rpc/verify_place.h"

namespace strata::rpc::collection_service {
namespace {

constexpr std::string_view kMethod = "Verify";
constexpr std::string_view kResumeToken = "resume_token";

void FillFinding(const versioning::Finding& finding, wire::Finding& filled) {
  filled.set_id(finding.id);
  filled.set_version(finding.version);
  filled.set_kind(static_cast<wire::FindingKind>(finding.kind));
  filled.set_problem(finding.problem);
  filled.set_recoverable(finding.recoverable);
  filled.set_repaired(finding.repaired);
  filled.set_commit_position(finding.position);
}

absl::StatusOr<versioning::VerifyPlace> PlaceOf(const wire::VerifyRequest& request) {
  if (request.resume_token().empty()) return versioning::VerifyPlace();
  ASSIGN_OR_RETURN(const std::string bytes, ReadPageToken(kMethod, PageScope(request),
                                                          request.resume_token(), kResumeToken));
  std::optional<versioning::VerifyPlace> place = DecodeVerifyPlace(bytes);
  if (!place) return InvalidPageToken("names no place of a verification", kResumeToken);
  return *std::move(place);
}

// A verification that walks on the executor, a step at a time, and sends what each found. It may
// outlive the stream by the step that it is doing.
class Run : public std::enable_shared_from_this<Run> {
 public:
  // `scope` is what resume tokens are bound to.
  Run(const Services& services, Stream& stream, versioning::VerifyQuery query, std::string scope,
      versioning::VerifyPlace place)
      : executor_(services.executor),
        query_(query),
        scope_(std::move(scope)),
        broken_before_(place.broken),
        verification_(services.store, services.documents.collections(), services.clock,
                      std::move(query), std::move(place)),
        stream_(&stream) {}

  // The next step; one at a time.
  void Continue() {
    executor_.Schedule([self = shared_from_this()] { self->Step(); });
  }

  // From now on the stream is not touched.
  void Leave() {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }

 private:
  void Step() {
    if (Left()) return;
    const absl::StatusOr<versioning::VerifyStep> step = verification_.Next();
    wire::VerifyResponse response;
    if (step.ok()) Take(*step, response);
    const std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    if (!step.ok()) return stream_->Finish(step.status());
    stream_->Send(response);
    if (!step->complete) return;
    stream_->Finish(End());
    stream_ = nullptr;  // what was just sent may have asked for a step more
  }

  bool Left() {
    const std::lock_guard lock(mutex_);
    return stream_ == nullptr;
  }

  void Take(const versioning::VerifyStep& step, wire::VerifyResponse& response) {
    for (const versioning::Finding& finding : step.findings) {
      FillFinding(finding, *response.add_findings());
      if (finding.recoverable || finding.repaired || first_broken_) continue;
      first_broken_ = finding;
    }
    broken_ = step.place.broken;
    response.set_documents(step.documents);
    response.set_versions(step.versions);
    response.set_ledger_entries(step.ledger_entries);
    response.set_complete(step.complete);
    if (step.complete) return;
    response.set_resume_token(MakePageToken(kMethod, scope_, EncodeVerifyPlace(step.place)));
  }

  absl::Status End() const {
    if (broken_ == 0) return absl::OkStatus();
    return versioning::BrokenBy(query_, first_broken_ ? &*first_broken_ : nullptr, broken_,
                                broken_before_);
  }

  Executor& executor_;
  const versioning::VerifyQuery query_;
  const std::string scope_;
  const int64_t broken_before_;  // of the runs that this one goes on with
  versioning::Verification verification_;
  std::optional<versioning::Finding> first_broken_;  // of this run
  int64_t broken_ = 0;

  std::mutex mutex_;
  Stream* stream_;  // null: nobody listens any more
};

absl::StatusOr<versioning::LedgerHead> ToLedgerHead(const wire::LedgerHead& head) {
  versioning::LedgerHead made;
  if (head.position() < 1) {
    return FieldError("expect_head.position",
                      "is " + std::to_string(head.position()) + ", but has to be 1 or more");
  }
  if (head.hash().size() != made.hash.size()) {
    return FieldError("expect_head.hash",
                      "has " + std::to_string(head.hash().size()) + " bytes, but has to have 32");
  }
  made.position = head.position();
  std::copy(head.hash().begin(), head.hash().end(), made.hash.begin());
  return made;
}

// Takes one request, then sends a step whenever the caller has taken the one before.
class Verify final : public StreamHandler {
 public:
  Verify(const Services& services, Stream& stream) : services_(services), stream_(stream) {}

  // The end of the request, or a message too many, comes before the first answer.
  int64_t unanswered_max() const override { return 2; }

  void OnMessage(std::string_view bytes) override {
    wire::VerifyRequest request;
    const bool parsed = request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    if (!parsed || run_ != nullptr) {
      return stream_.Finish(
          Error(ErrorReason::kInvalidMessage,
                parsed ? "a second message came" : "not a strata.v1.VerifyRequest"));
    }
    const absl::StatusOr<versioning::VerifyPlace> place = PlaceOf(request);
    if (!place.ok()) return stream_.Finish(place.status());
    versioning::VerifyQuery query{request.collection(), request.id(), request.repair()};
    if (request.has_expect_head()) {
      const absl::StatusOr<versioning::LedgerHead> head = ToLedgerHead(request.expect_head());
      if (!head.ok()) return stream_.Finish(head.status());
      query.expect_head = *head;
    }
    run_ = std::make_shared<Run>(services_, stream_, std::move(query), PageScope(request), *place);
  }

  void OnLastMessage() override {
    if (run_ == nullptr) {
      return stream_.Finish(Error(ErrorReason::kInvalidMessage, "no message came"));
    }
    run_->Continue();
  }

  void OnSent() override { run_->Continue(); }

  void OnClosed() override {
    if (run_ != nullptr) run_->Leave();
  }

 private:
  const Services& services_;
  Stream& stream_;
  std::shared_ptr<Run> run_;
};

}  // namespace

std::unique_ptr<StreamHandler> OpenVerify(const Services& services, Stream& stream) {
  return std::make_unique<Verify>(services, stream);
}

}  // namespace strata::rpc::collection_service
