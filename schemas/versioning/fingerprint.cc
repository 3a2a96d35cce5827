#include "schemas/versioning/fingerprint.h"

#include "schemas/document/hash.h"

namespace strata::versioning {

std::string Fingerprint(std::string_view operation, const WriteRequest& request,
                        std::string_view arguments) {
  if (request.request_id.empty()) return {};
  document::PartHasher hasher;
  hasher.Add(operation).Add(request.name.collection).Add(request.name.id).Add(arguments);
  hasher.Add(int64_t{request.keep_unchanged});
  hasher.Add(request.precondition.version.value_or(-1));
  hasher.Add(request.precondition.exists ? int64_t{*request.precondition.exists} : -1);
  hasher.Add(request.precondition.filter ? request.precondition.filter->bytes()
                                         : std::string_view());
  // Three parts, for which no labels can pass, as those come in pairs.
  if (const auto& newer = request.precondition.newer) {
    hasher.Add("newer").Add(newer->path.ToString()).Add(newer->value);
  }
  hasher.Add(request.change.actor).Add(request.change.on_behalf_of).Add(request.change.reason);
  for (const auto& [name, value] : request.change.labels) hasher.Add(name).Add(value);
  return std::string(document::HashBytes(hasher.Finish()).substr(0, kFingerprintSize));
}

std::string PatchArguments(const document::Patch& patch) {
  document::PartHasher hasher;
  hasher.Add(patch.merge ? patch.merge->bytes() : std::string_view());
  for (const document::Operation& operation : patch.operations) {
    hasher.Add(operation.path.ToString())
        .Add(static_cast<int64_t>(operation.kind))
        .Add(int64_t{operation.operand.type})
        .Add(operation.operand.bytes);
  }
  return std::string(document::HashBytes(hasher.Finish()));
}

}  // namespace strata::versioning
