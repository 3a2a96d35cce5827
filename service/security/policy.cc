#include "service/security/policy.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "service/security/json_shape.h"
#include "service/security/policy.pb.h"

namespace strata::security {
namespace {

constexpr size_t kPatternBytesMax = 512;
constexpr double kMiB = 1 << 20;

constexpr unsigned Bit(Permission permission) { return 1u << static_cast<unsigned>(permission); }

struct Role {
  std::string_view name;
  unsigned permissions;
};

constexpr unsigned kReads = Bit(Permission::kRead);
constexpr unsigned kReadsAndWrites = kReads | Bit(Permission::kWrite);
constexpr Role kRoles[] = {
    {"reader", kReads},
    {"auditor", kReads | Bit(Permission::kAudit)},
    {"writer", kReadsAndWrites},
    {"admin", kReadsAndWrites | Bit(Permission::kAudit) | Bit(Permission::kManage) |
                  Bit(Permission::kErase)},
    {"operator", Bit(Permission::kOperate)},
};

constexpr std::string_view kServer = "server";
constexpr std::string_view kEverything = "*";
constexpr std::string_view kKinds[] = {"collection/", "queue/", "lease/", "subscription/", "view/"};

absl::Status PolicyError(const std::string& field, std::string_view problem) {
  return Error(ErrorReason::kInvalidField,
               "policy: " + (field.empty() ? "" : field + " ") + std::string(problem))
      .With("field", field.empty() ? "policy" : field);
}

// What is wrong with something of the policy, by its place in it.
absl::Status InPolicy(const absl::Status& status, const std::string& field) {
  return PolicyError(field, ToStd(status.message()));
}

std::string Element(std::string_view list, int index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

using Texts = google::protobuf::RepeatedPtrField<std::string>;

absl::Status CheckPrincipal(const std::string& text) {
  const auto is_odd = [](char c) { return c <= ' ' || c > '~'; };
  if (std::none_of(text.begin(), text.end(), is_odd)) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               "has other bytes than printable ASCII without blanks; no principal has them");
}

absl::Status CheckAnyText(const std::string& /*text*/) { return absl::OkStatus(); }

absl::Status CheckKind(const std::string& text) {
  if (text == kServer || text == kEverything) return absl::OkStatus();
  for (const std::string_view kind : kKinds) {
    if (!text.starts_with(kind)) continue;
    if (text.size() > kind.size()) return absl::OkStatus();
    return Error(ErrorReason::kInvalidField, "names none; " + text + "* is all of them");
  }
  return Error(
      ErrorReason::kInvalidField,
      "is of no kind that there is; it has to begin with " +
          absl::StrJoin(kKinds, ", ",
                        [](std::string* out, std::string_view kind) { out->append(kind); }) +
          " or be \"server\" or \"*\"");
}

template <typename Check>
absl::StatusOr<std::vector<Pattern>> ParsePatterns(const std::string& field, const Texts& texts,
                                                   Check&& check) {
  std::vector<Pattern> patterns;
  for (int i = 0; i < texts.size(); ++i) {
    auto pattern = Pattern::Parse(texts[i]);
    absl::Status status = pattern.status();
    if (status.ok()) status = check(texts[i]);
    if (!status.ok()) return InPolicy(status, Element(field, i));
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

template <typename Check>
absl::StatusOr<std::vector<Pattern>> ParseRequired(const std::string& field, const Texts& texts,
                                                   Check&& check) {
  if (texts.empty()) return PolicyError(field, "is required: one pattern or more");
  return ParsePatterns(field, texts, std::forward<Check>(check));
}

absl::StatusOr<unsigned> ParseRole(const std::string& field, const std::string& name) {
  const auto* const role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                        [&](const Role& each) { return each.name == name; });
  if (role != std::end(kRoles)) return role->permissions;
  const std::string roles = absl::StrJoin(
      kRoles, ", ", [](std::string* out, const Role& each) { out->append(each.name); });
  return PolicyError(
      field, name.empty() ? "is required: one of " + roles : "is no role; there are " + roles);
}

// An operator has to do with the server alone, and nobody else has.
absl::Status CheckOperates(bool operates, const std::string& field, const Texts& resources) {
  for (int i = 0; i < resources.size(); ++i) {
    if (operates == (resources[i] == kServer)) continue;
    return PolicyError(Element(field, i), operates
                                              ? "is not \"server\", which is all of an operator's"
                                              : "is \"server\", which only an operator may have");
  }
  return absl::OkStatus();
}

struct Range {
  double least;
  double most;
};

// Fractions of a call or a MiB a second mean something; none at all is said by granting nothing.
constexpr Range kCallsPerSecond{0.001, 1e9};
constexpr Range kMibPerSecond{0.001, 1e6};
constexpr Range kCallsInFlight{1, 1e6};

absl::Status CheckLimit(const std::string& field, double limit, const Range& range) {
  if (limit >= range.least && limit <= range.most) return absl::OkStatus();
  const auto text = [](double number) {
    return number == std::trunc(number) && std::abs(number) < 1e15
               ? absl::StrCat(static_cast<int64_t>(number))
               : absl::StrCat(number);
  };
  return PolicyError(field, "is " + text(limit) + ", but has to be " + text(range.least) + " to " +
                                text(range.most));
}

absl::StatusOr<QuotaLimits> ParseLimits(const std::string& place, const QuotaEntry& entry) {
  QuotaLimits limits;
  if (entry.has_calls_per_second()) {
    limits.calls_per_second = entry.calls_per_second();
    RETURN_IF_ERROR(
        CheckLimit(place + ".calls_per_second", limits.calls_per_second, kCallsPerSecond));
  }
  if (entry.has_mib_per_second()) {
    RETURN_IF_ERROR(CheckLimit(place + ".mib_per_second", entry.mib_per_second(), kMibPerSecond));
    limits.bytes_per_second = entry.mib_per_second() * kMiB;
  }
  if (entry.has_calls_in_flight()) {
    limits.calls_in_flight = entry.calls_in_flight();
    RETURN_IF_ERROR(
        CheckLimit(place + ".calls_in_flight", entry.calls_in_flight(), kCallsInFlight));
  }
  if (limits.any()) return limits;
  return PolicyError(place,
                     "limits nothing: calls_per_second, mib_per_second or calls_in_flight is "
                     "required");
}

bool MatchesAny(const std::vector<Pattern>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const Pattern& pattern) { return pattern.Matches(text); });
}

}  // namespace

absl::StatusOr<Pattern> Pattern::Parse(std::string_view text) {
  const auto problem = [](std::string_view what) {
    return Error(ErrorReason::kInvalidField, what).ToStatus();
  };
  if (text.empty()) return problem("is empty");
  if (text.size() > kPatternBytesMax) {
    return problem("has " + std::to_string(text.size()) + " bytes, at most " +
                   std::to_string(kPatternBytesMax) + " are allowed");
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_control)) return problem("has a control character");
  Pattern pattern;
  pattern.prefix_ = text.back() == '*';
  if (pattern.prefix_) text.remove_suffix(1);
  if (text.find('*') != std::string_view::npos)
    return problem("has \"*\" elsewhere than at its end");
  pattern.text_ = text;
  return pattern;
}

bool Pattern::Matches(std::string_view text) const {
  return prefix_ ? text.starts_with(text_) : text == text_;
}

bool Pattern::IsCloserThan(const Pattern& other) const {
  if (prefix_ != other.prefix_) return !prefix_;
  return text_.size() > other.text_.size();
}

absl::StatusOr<Policy> Policy::Parse(std::string_view json) {
  if (json.size() > kBytesMax) {
    return Error(ErrorReason::kInvalidField, "policy: has " + std::to_string(json.size()) +
                                                 " bytes, at most " + std::to_string(kBytesMax) +
                                                 " are allowed")
        .With("field", "policy")
        .With("limit", static_cast<int64_t>(kBytesMax));
  }
  const absl::Status shape = CheckJsonShape(json, *PolicyFile::descriptor());
  if (!shape.ok()) return InPolicy(shape, MetadataOf(shape, "field").value_or(""));
  PolicyFile file;
  const auto read = google::protobuf::util::JsonStringToMessage(std::string(json), &file);
  if (!read.ok()) {
    return PolicyError("", std::string(read.message().data(), read.message().size()));
  }
  Policy policy;
  RETURN_IF_ERROR(policy.AddGrants(file));
  RETURN_IF_ERROR(policy.AddQuotas(file));
  return policy;
}

absl::Status Policy::AddGrants(const PolicyFile& file) {
  for (int i = 0; i < file.grants_size(); ++i) {
    const GrantEntry& entry = file.grants(i);
    const std::string place = Element("grants", i);
    Grant grant;
    ASSIGN_OR_RETURN(grant.principals,
                     ParseRequired(place + ".principals", entry.principals(), CheckPrincipal));
    ASSIGN_OR_RETURN(grant.permissions, ParseRole(place + ".role", entry.role()));
    ASSIGN_OR_RETURN(grant.resources,
                     ParseRequired(place + ".resources", entry.resources(), CheckKind));
    RETURN_IF_ERROR(CheckOperates((grant.permissions & Bit(Permission::kOperate)) != 0,
                                  place + ".resources", entry.resources()));
    ASSIGN_OR_RETURN(grant.acts_for,
                     ParsePatterns(place + ".acts_for", entry.acts_for(), CheckAnyText));
    if (!grant.acts_for.empty() && (grant.permissions & Bit(Permission::kWrite)) == 0) {
      return PolicyError(place + ".acts_for", "is for roles that write: writer, admin");
    }
    grants_.push_back(std::move(grant));
  }
  return absl::OkStatus();
}

absl::Status Policy::AddQuotas(const PolicyFile& file) {
  std::map<std::string, std::string> places;
  for (int i = 0; i < file.quotas_size(); ++i) {
    const QuotaEntry& entry = file.quotas(i);
    const std::string place = Element("quotas", i);
    ASSIGN_OR_RETURN(std::vector<Pattern> principals,
                     ParseRequired(place + ".principals", entry.principals(), CheckPrincipal));
    for (int j = 0; j < entry.principals_size(); ++j) {
      const std::string field = Element(place + ".principals", j);
      const auto [before, is_new] = places.try_emplace(entry.principals(j), field);
      if (!is_new) return PolicyError(field, "stands in " + before->second + " too");
    }
    ASSIGN_OR_RETURN(const QuotaLimits limits, ParseLimits(place, entry));
    for (Pattern& principal : principals) quotas_.push_back({std::move(principal), limits});
  }
  return absl::OkStatus();
}

bool Policy::Permits(std::string_view principal, const Demand& demand) const {
  if (principal.empty()) return false;
  const std::string resource = demand.resource.text();
  return std::any_of(grants_.begin(), grants_.end(), [&](const Grant& grant) {
    return (grant.permissions & Bit(demand.permission)) != 0 &&
           MatchesAny(grant.principals, principal) && MatchesAny(grant.resources, resource);
  });
}

bool Policy::PermitsActingFor(std::string_view principal, const Resource& resource,
                              std::string_view name) const {
  if (principal.empty()) return false;
  const std::string text = resource.text();
  return std::any_of(grants_.begin(), grants_.end(), [&](const Grant& grant) {
    return (grant.permissions & Bit(Permission::kWrite)) != 0 && MatchesAny(grant.acts_for, name) &&
           MatchesAny(grant.principals, principal) && MatchesAny(grant.resources, text);
  });
}

QuotaLimits Policy::QuotaOf(std::string_view principal) const {
  const Limited* closest = nullptr;
  for (const Limited& entry : quotas_) {
    if (!entry.principal.Matches(principal)) continue;
    if (closest == nullptr || entry.principal.IsCloserThan(closest->principal)) closest = &entry;
  }
  return closest == nullptr ? QuotaLimits() : closest->limits;
}

}  // namespace strata::security
