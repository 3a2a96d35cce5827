#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/resources.h"

namespace strata::rpc::transaction_service {
namespace {

using Documents = google::protobuf::RepeatedPtrField<wire::DocumentName>;

std::string Field(size_t index) { return Element("documents", index); }

absl::Status CheckNoneTwice(const Documents& documents) {
  const auto key = [&](size_t index) {
    const wire::DocumentName& name = documents[static_cast<int>(index)];
    return std::tie(name.id(), name.collection());  // those of one collection differ at once
  };
  std::vector<size_t> order(static_cast<size_t>(documents.size()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  for (size_t i = 1; i < order.size(); ++i) {
    if (key(order[i - 1]) != key(order[i])) continue;
    return FieldError(Field(order[i]),
                      "is the same as " + Field(order[i - 1]) + "; ask for a document once");
  }
  return absl::OkStatus();
}

absl::Status CheckDocuments(const Documents& documents) {
  if (documents.empty()) return FieldError("documents", "is required: 1 to 1000 documents");
  RETURN_IF_ERROR(CheckLength("documents", documents, kReadDocumentsMax));
  return CheckNoneTwice(documents);
}

std::vector<DocumentName> NamesOf(const Documents& documents) {
  std::vector<DocumentName> names;
  names.reserve(static_cast<size_t>(documents.size()));
  for (const wire::DocumentName& document : documents) {
    names.push_back({document.collection(), document.id()});
  }
  return names;
}

absl::Status TooLarge(size_t bytes) {
  return Error(ErrorReason::kLayoutLimit,
               "the answer would have over " + std::to_string(bytes - 1) + " bytes, at most " +
                   std::to_string(kPageBytesMax) + " are allowed; ask for fewer documents")
      .With("size", static_cast<int64_t>(bytes))
      .With("limit", static_cast<int64_t>(kPageBytesMax));
}

// What others may wait for.
constexpr int kBriefDocumentsMax = 64;
const versioning::ReadLimits& BriefLimits() {
  static const auto* const limits =
      new versioning::ReadLimits{.document_bytes_max = versioning::kBriefDocumentBytesMax,
                                 .rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax,
                                 .searches = false};
  return *limits;
}

// What a document takes in an answer besides its content: names, times and a transaction's id.
constexpr size_t kDocumentBytesMax = 2 * kNameBytesMax + kTransactionIdBytesMax + 128;

// To count what an answer has takes as long as to write it.
bool MayBeTooLarge(const transaction::ReadDocuments& read, wire::Encoding encoding) {
  if (encoding != wire::ENCODING_BSON) return true;  // a content may have many times its bytes
  size_t bytes_max = 0;
  for (const transaction::ReadDocuments::Found& found : read.documents) {
    bytes_max += kDocumentBytesMax + found.version.content->size();
  }
  return bytes_max > kPageBytesMax;
}

absl::Status FillAnswer(const wire::ReadRequest& request, transaction::ReadDocuments read,
                        wire::ReadResponse& response) {
  const bool counts = MayBeTooLarge(read, request.encoding());
  size_t bytes = 0;
  for (transaction::ReadDocuments::Found& found : read.documents) {
    wire::Document& document = *response.add_documents();
    FillDocument(found.name.collection, found.name.id, found.version, document);
    FillContent(*found.version.content, request.encoding(), *document.mutable_content());
    found.version.content.reset();
    if (counts) bytes += document.ByteSizeLong();
    if (bytes > kPageBytesMax) return TooLarge(bytes);
  }
  for (const versioning::ReadCheck& found : read.missing) {
    wire::DocumentVersion& missing = *response.add_missing();
    missing.set_collection(found.name.collection);
    missing.set_id(found.name.id);
    missing.set_version(found.version);
  }
  response.set_commit_position(read.position);
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const Context& context, const wire::ReadRequest& request,
                  Reply<wire::ReadResponse> reply) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  RETURN_IF_ERROR(CheckDocuments(request.documents()));
  const transaction::Transactions& transactions = context.services.transactions;
  if (request.documents_size() <= kBriefDocumentsMax) {
    absl::StatusOr<transaction::ReadDocuments> read =
        transactions.Read(NamesOf(request.documents()), BriefLimits());
    if (read.ok()) {
      RETURN_IF_ERROR(FillAnswer(request, *std::move(read), reply.response()));
      reply.Ok();
      return absl::OkStatus();
    }
    if (!versioning::DoesTakeLong(read.status())) return read.status();
  }
  reply.Later([&transactions, &request, &call = reply.call(),
               &response = reply.response()]() -> absl::Status {
    ASSIGN_OR_RETURN(
        transaction::ReadDocuments read,
        transactions.Read(NamesOf(request.documents()), {.stopped = OnceClosed(call)}));
    return FillAnswer(request, std::move(read), response);
  });
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
