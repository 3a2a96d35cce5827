#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"
#include "service/rpc/page_token.h"
#include "service/rpc/server_stream.h"
#include "service/rpc/verify_place.h"

namespace strata::rpc::collection_service {
namespace {

constexpr std::string_view kVerifyMethod = "Verify";
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
  ASSIGN_OR_RETURN(const std::string bytes, ReadPageToken(kVerifyMethod, PageScope(request),
                                                          request.resume_token(), kResumeToken));
  std::optional<versioning::VerifyPlace> place = DecodeVerifyPlace(bytes);
  if (!place) return InvalidPageToken("names no position of a verification", kResumeToken);
  return *std::move(place);
}

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

absl::StatusOr<versioning::VerifyQuery> ToQuery(const wire::VerifyRequest& request) {
  versioning::VerifyQuery query{request.collection(), request.id(), request.repair()};
  if (request.has_expect_head()) {
    ASSIGN_OR_RETURN(query.expect_head, ToLedgerHead(request.expect_head()));
  }
  return query;
}

// Sends a step whenever the caller has taken the one before.
class Verify final : public ServerStream<wire::VerifyRequest, wire::VerifyResponse> {
 public:
  Verify(versioning::Documents& documents, Stream& stream)
      : ServerStream(stream), documents_(documents) {}

 private:
  absl::Status Begin(const wire::VerifyRequest& request) override {
    ASSIGN_OR_RETURN(versioning::VerifyPlace place, PlaceOf(request));
    ASSIGN_OR_RETURN(query_, ToQuery(request));
    scope_ = PageScope(request);
    broken_before_ = place.broken;
    verification_ = documents_.Verify(query_, std::move(place));
    return absl::OkStatus();
  }

  void OnReady() override {
    const absl::StatusOr<versioning::VerifyStep> step = verification_->Next();
    if (!step.ok()) return Finish(step.status());
    wire::VerifyResponse response;
    Take(*step, response);
    Send(response);
    if (step->complete) Finish(End());
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
    response.set_resume_token(MakePageToken(kVerifyMethod, scope_, EncodeVerifyPlace(step.place)));
  }

  absl::Status End() const {
    if (broken_ == 0) return absl::OkStatus();
    return versioning::BrokenBy(query_, first_broken_ ? &*first_broken_ : nullptr, broken_,
                                broken_before_);
  }

  versioning::Documents& documents_;
  versioning::VerifyQuery query_;
  std::string scope_;          // what resume tokens are bound to
  int64_t broken_before_ = 0;  // of the runs that this one goes on with
  std::optional<versioning::Verification> verification_;
  std::optional<versioning::Finding> first_broken_;  // of this run
  int64_t broken_ = 0;
};

}  // namespace

std::unique_ptr<HandlerOf<wire::VerifyRequest>> OpenVerify(const Services& services,
                                                           Stream& stream) {
  return std::make_unique<Verify>(services.documents, stream);
}

}  // namespace strata::rpc::collection_service
