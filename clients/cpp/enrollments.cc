// The calls of EnrollmentService.
#include "strata/client/enrollments.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "clients/cpp/duplex.h"
#include "clients/cpp/requests.h"
#include "strata/v1/enrollment_service.grpc.pb.h"

namespace strata::client {
namespace {

using EnrollmentStub = v1::EnrollmentService::Stub;
using Clock = Repetition::Clock;

constexpr size_t kUnansweredMax = 1000;

// Of Enroll and Unenroll.
template <typename Request, typename Response, typename Method>
absl::StatusOr<Enrolled> Send(Core& core, Method method, const std::string& student_id,
                              const std::string& class_name, int64_t sequence_number,
                              const EnrollOptions& options) {
  Request request;
  absl::Status status = FillRequest(core, options, request);
  if (!status.ok()) return status;
  request.set_student_id(student_id);
  request.set_class_name(class_name);
  request.set_sequence_number(sequence_number);
  Response response;
  status = core.Call(method, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Enrolled>(response);
}

}  // namespace

// Messages stay in one row until their results are taken, so that these come in their order,
// whichever stream brought them.
class ApplyStream::Body : public Duplex<v1::ApplyRequest, v1::ApplyResponse> {
 public:
  explicit Body(std::shared_ptr<Core> core) : Duplex(std::move(core)) { Start(); }
  ~Body() override { Stop(); }

  absl::Status Send(const EnrollmentMessage& message) {
    v1::ApplyRequest request;
    absl::Status filled = FillRequest(*core_, message, request);
    if (!filled.ok()) return filled;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || unanswered_ < kUnansweredMax; });
    if (finishing_) return absl::FailedPreconditionError("Finish was called");
    if (over_) return status_;
    items_.push_back({.request = std::move(request), .begun = Clock::now(), .result = {}});
    ++unanswered_;
    changed_.notify_all();
    return absl::OkStatus();
  }

  void Finish() {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    changed_.notify_all();
  }

  std::optional<ApplyResult> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return over_ || (items_.empty() ? finishing_ : items_.front().result.has_value());
    });
    if (items_.empty() || !items_.front().result.has_value()) return std::nullopt;
    std::optional<ApplyResult> result = std::move(items_.front().result);
    items_.pop_front();
    ++taken_;
    return result;
  }

  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  struct Item {
    v1::ApplyRequest request;
    Clock::time_point begun;
    std::optional<ApplyResult> result;
  };

  std::unique_ptr<Stream> Open(grpc::ClientContext* context) override {
    return core_->connection().enrollments->Apply(context);
  }

  void Opened() override {
    next_ = taken_;
    on_their_way_.clear();
    retiring_ = false;
  }

  // Answers come in the order in which this stream was told the messages.
  void Received(v1::ApplyResponse& response) override {
    if (on_their_way_.empty()) return;
    Item& item = items_[on_their_way_.front() - taken_];
    on_their_way_.pop_front();
    if (response.has_error()) {
      Refusal refusal = RefusalOf(response.error());
      const bool in_time = Clock::now() - item.begun < std::chrono::milliseconds(core_->retry_ms());
      if (in_time && refusal.IsRetryablePart()) {
        // Another stream asks again, once this one has answered what it was told. That is invited,
        // as by the RetryInfo that a call of its own would have been refused with.
        retiring_ = true;
        refusal.retry_delay_ms = 0;
        trouble_ = std::move(refusal);
        return;
      }
    }
    ApplyResult result;
    result.result = static_cast<EnrollmentResult>(response.result());
    result.enrolled = response.enrolled();
    result.version = response.version();
    if (response.has_error()) result.status = StatusOf(response.error());
    item.result = std::move(result);
    --unanswered_;
    Succeeded();
  }

  bool HasWrite() override {
    if (retiring_) return false;
    // What an earlier stream answered may have been taken meanwhile.
    next_ = std::max(next_, taken_);
    while (next_ - taken_ < items_.size() && items_[next_ - taken_].result.has_value()) ++next_;
    return next_ - taken_ < items_.size();
  }

  v1::ApplyRequest TakeWrite() override {
    on_their_way_.push_back(next_);
    return items_[next_++ - taken_].request;
  }

  bool WantsEnd() override { return retiring_ || finishing_; }
  bool Ends(bool ok) override { return ok && finishing_ && unanswered_ == 0; }
  Refusal EndedEarly() override { return retiring_ ? trouble_ : Duplex::EndedEarly(); }

  // Places are counted from the first message on.
  std::deque<Item> items_;
  size_t taken_ = 0;  // the place of the first item
  size_t next_ = 0;   // to be sent
  std::deque<size_t> on_their_way_;
  size_t unanswered_ = 0;
  bool finishing_ = false;
  bool retiring_ = false;
  Refusal trouble_;
};

ApplyStream::ApplyStream(std::shared_ptr<Core> core)
    : body_(std::make_unique<Body>(std::move(core))) {}
ApplyStream::ApplyStream(ApplyStream&&) noexcept = default;
ApplyStream& ApplyStream::operator=(ApplyStream&&) noexcept = default;
ApplyStream::~ApplyStream() = default;
absl::Status ApplyStream::Send(const EnrollmentMessage& message) { return body_->Send(message); }
void ApplyStream::Finish() { body_->Finish(); }
std::optional<ApplyResult> ApplyStream::Next() { return body_->Next(); }
absl::Status ApplyStream::status() const { return body_->status(); }

absl::StatusOr<Enrolled> Enrollments::Enroll(const std::string& student_id,
                                             const std::string& class_name, int64_t sequence_number,
                                             const EnrollOptions& options) const {
  return Send<v1::EnrollRequest, v1::EnrollResponse>(*core_, &EnrollmentStub::Enroll, student_id,
                                                     class_name, sequence_number, options);
}

absl::StatusOr<Enrolled> Enrollments::Unenroll(const std::string& student_id,
                                               const std::string& class_name,
                                               int64_t sequence_number,
                                               const EnrollOptions& options) const {
  return Send<v1::UnenrollRequest, v1::UnenrollResponse>(
      *core_, &EnrollmentStub::Unenroll, student_id, class_name, sequence_number, options);
}

absl::StatusOr<StudentEnrollments> Enrollments::Get(const std::string& student_id,
                                                    const GetEnrollmentsOptions& options) const {
  v1::GetEnrollmentsRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_student_id(student_id);
  v1::GetEnrollmentsResponse response;
  if (status.ok()) status = core_->Call(&EnrollmentStub::GetEnrollments, request, &response);
  if (LacksCollection(status)) return StudentEnrollments();
  if (!status.ok()) return status;
  return ReadMessage<StudentEnrollments>(response);
}

Range<RosterEntry> Enrollments::Roster(const std::string& class_name,
                                       const RosterOptions& options) const {
  v1::ListRosterRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_class_name(class_name);
  return Pages<RosterEntry>(
      core_, &EnrollmentStub::ListRoster, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.students(); });
}

ApplyStream Enrollments::Apply() const { return ApplyStream(core_); }

absl::StatusOr<Purged> Enrollments::PurgeTombstones(int64_t through_sequence_number,
                                                    const PurgeOptions& options) const {
  v1::PurgeTombstonesRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_through_sequence_number(through_sequence_number);
  Purged all;
  do {
    v1::PurgeTombstonesResponse response;
    if (status.ok()) status = core_->Call(&EnrollmentStub::PurgeTombstones, request, &response);
    if (!status.ok()) return status;
    all.examined += response.examined();
    all.purged_students += response.purged_students();
    all.purged_tombstones += response.purged_tombstones();
    all.refused_student_ids.insert(all.refused_student_ids.end(),
                                   response.refused_student_ids().begin(),
                                   response.refused_student_ids().end());
    const int64_t through = response.through_sequence_number();
    // What is true of all.
    all.through_sequence_number =
        request.page_token().empty() ? through : std::min(all.through_sequence_number, through);
    request.set_page_token(response.next_page_token());
    // Where nothing may go at present, asking again at once does not help.
    if (through == 0) break;
  } while (!request.page_token().empty());
  return all;
}

}  // namespace strata::client
