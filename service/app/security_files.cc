#include "service/app/security_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "service/observability/log.h"
#include "service/security/policy.h"
#include "service/security/tokens.h"

namespace strata::app {
namespace {

using observability::Log;
using observability::LogLevel;

// What of a file is read at most: no kind of them may have more, and who looks at them says so.
constexpr size_t kBytesMax = std::max(
    {security::kCertificateBytesMax, security::Tokens::kBytesMax, security::Policy::kBytesMax});

constexpr std::string_view kTokensFlag = "tokens";
constexpr std::string_view kPolicyFlag = "policy";

constexpr size_t kExpiredTokensTold = 20;

constexpr std::chrono::hours kExpiryWarning{14 * 24};
constexpr std::chrono::hours kExpiryWarningInterval{24};

absl::Status Problem(std::string_view flag, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, "--" + std::string(flag) + ": " + problem)
      .With("field", flag);
}

std::string SystemError() { return std::error_code(errno, std::generic_category()).message(); }

class Descriptor {
 public:
  // Neither a pipe nor a terminal makes it wait.
  explicit Descriptor(const std::string& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}  // NOLINT
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  const int number_;
};

// Its beginning, if it is longer than any may be. Who writes while it is read is read again.
std::optional<std::string> Contents(int descriptor, size_t expected) {
  std::string text(std::min(expected, kBytesMax) + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

bool AreEqual(const absl::StatusOr<std::vector<std::string>>& a,
              const absl::StatusOr<std::vector<std::string>>& b) {
  return a.ok() && b.ok() ? *a == *b : a.status() == b.status();
}

}  // namespace

server::TlsCredentials::ClientCertificates SecurityOptions::client_certificates() const {
  using Clients = server::TlsCredentials::ClientCertificates;
  if (tls_client_ca.empty()) return Clients::kNone;
  return tls_client == "optional" ? Clients::kOptional : Clients::kRequired;
}

std::vector<SecurityFiles::Part> SecurityFiles::PartsOf(const SecurityOptions& options) {
  std::vector<Part> parts;
  if (options.encrypted()) {
    parts.push_back({Kind::kCertificates,
                     {{security::kCertificateFlag, options.tls_certificate},
                      {security::kKeyFlag, options.tls_key}}});
    if (!options.tls_client_ca.empty()) {
      parts.back().files.push_back({security::kClientCaFlag, options.tls_client_ca});
    }
  }
  if (!options.tokens.empty()) {
    parts.push_back({Kind::kTokens, {{kTokensFlag, options.tokens, true}}});
  }
  if (!options.policy.empty()) parts.push_back({Kind::kPolicy, {{kPolicyFlag, options.policy}}});
  return parts;
}

absl::StatusOr<std::string> SecurityFiles::Read(const File& file) {
  const Descriptor opened(file.path);
  struct stat found {};
  if (opened.number() < 0 || fstat(opened.number(), &found) != 0) {
    return Problem(file.flag, file.path + " cannot be read: " + SystemError());
  }
  if (!S_ISREG(found.st_mode)) {
    return Problem(file.flag, file.path + (S_ISDIR(found.st_mode) ? " is a directory"
                                                                  : " is no regular file"));
  }
  const mode_t mode = found.st_mode & 07777;
  if (file.secret && mode != 0600 && mode != 0400) {
    char text[8];
    std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode));
    return Problem(file.flag, file.path + " has mode " + text + "; it must be 0600 or 0400");
  }
  std::optional<std::string> contents =
      Contents(opened.number(), static_cast<size_t>(found.st_size));
  if (contents.has_value()) return *std::move(contents);
  return Problem(file.flag, file.path + " cannot be read: " + SystemError());
}

absl::StatusOr<SecurityFiles::Texts> SecurityFiles::Read(const Part& part) {
  Texts texts;
  for (const File& file : part.files) {
    ASSIGN_OR_RETURN(std::string text, Read(file));
    texts.push_back(std::move(text));
  }
  return texts;
}

absl::Status SecurityFiles::Understand(Kind kind, const Texts& texts, UnixMicros now, Said& said) {
  const auto named = [](std::string_view flag, const absl::Status& problem) {
    return Problem(flag, std::string(ToStd(problem.message())));
  };
  if (kind == Kind::kCertificates) {
    security::CertificateTexts certificates{texts[0], texts[1], std::nullopt};
    if (texts.size() > 2) certificates.client_ca = texts[2];
    ASSIGN_OR_RETURN(said.expiry, security::CheckCertificates(certificates, now));
    said.certificates = std::move(certificates);
  } else if (kind == Kind::kTokens) {
    // As whoever begins to write it leaves it for a moment: that withdraws nobody's token.
    if (texts[0].empty()) {
      return Problem(kTokensFlag,
                     "is empty; if no caller is to have a token, write a comment into it");
    }
    auto tokens = security::Tokens::Parse(texts[0], now);
    if (!tokens.ok()) return named(kTokensFlag, tokens.status());
    said.rules.tokens = std::make_shared<const security::Tokens>(*std::move(tokens));
  } else {
    auto policy = security::Policy::Parse(texts[0]);
    if (!policy.ok()) return named(kPolicyFlag, policy.status());
    said.rules.policy = std::make_shared<const security::Policy>(*std::move(policy));
  }
  return absl::OkStatus();
}

absl::Status SecurityFiles::Check(const SecurityOptions& options, UnixMicros now) {
  Said said;
  for (const Part& part : PartsOf(options)) {
    ASSIGN_OR_RETURN(const Texts texts, Read(part));
    RETURN_IF_ERROR(Understand(part.kind, texts, now, said));
  }
  return absl::OkStatus();
}

SecurityFiles::SecurityFiles(SecurityOptions options, const Clock& clock, security::Access& access)
    : options_(std::move(options)), clock_(clock), access_(access), parts_(PartsOf(options_)) {}

absl::Status SecurityFiles::Open() {
  const std::lock_guard lock(mutex_);
  for (Part& part : parts_) {
    bool changed = false;
    RETURN_IF_ERROR(LookAt(part, false, changed));
  }
  WarnOfExpiry();
  return absl::OkStatus();
}

// Of a mutex of its own, as the other is held while files are read.
std::shared_ptr<const security::CertificateTexts> SecurityFiles::certificates() const {
  const std::lock_guard lock(certificates_mutex_);
  return certificates_;
}

void SecurityFiles::Look() { LookAtAll(false); }

void SecurityFiles::Reload() { LookAtAll(true); }

void SecurityFiles::LookAtAll(bool again) {
  const std::lock_guard lock(mutex_);
  for (Part& part : parts_) {
    bool changed = false;
    const absl::Status status = LookAt(part, again, changed);
    const std::string flag = MetadataOf(status, "field").value_or("");
    const auto file = std::find_if(part.files.begin(), part.files.end(),
                                   [&](const File& one) { return one.flag == flag; });
    if (!status.ok()) {
      Log(LogLevel::kError, "not reloaded, what was in use stays",
          {{"file", file == part.files.end() ? part.files[0].path : file->path},
           {"error", ToStd(status.message())}});
    } else if (changed) {
      Log(LogLevel::kInfo, "reloaded", {{"file", part.files[0].path}});
    }
  }
  WarnOfExpiry();
}

absl::Status SecurityFiles::LookAt(Part& part, bool again, bool& changed) {
  absl::StatusOr<Texts> read = Read(part);
  const bool same = !again && part.seen.has_value() && AreEqual(*part.seen, read);
  // A certificate may become valid as time goes by; nothing else gets better by itself.
  const bool may_fit = part.kind == Kind::kCertificates && read.ok() && !part.problem.ok();
  if (same && !may_fit) return absl::OkStatus();
  absl::Status problem =
      read.ok() ? Understand(part.kind, *read, clock_.Now(), in_use_) : read.status();
  const bool told = same && problem == part.problem;
  part.seen = std::move(read);
  part.problem = problem;
  if (told) return absl::OkStatus();
  RETURN_IF_ERROR(problem);
  changed = true;
  Use(part.kind);
  return absl::OkStatus();
}

void SecurityFiles::TellOfExpired(const security::Tokens& tokens) const {
  const auto& expired = tokens.expired();
  for (size_t i = 0; i < expired.size() && i < kExpiredTokensTold; ++i) {
    Log(LogLevel::kWarning, "a token has expired and is refused; remove its line",
        {{"file", options_.tokens}, {"line", int64_t{expired[i].line}}, {"name", expired[i].name}});
  }
  if (expired.size() > kExpiredTokensTold) {
    Log(LogLevel::kWarning, "more tokens have expired",
        {{"tokens", static_cast<int64_t>(expired.size() - kExpiredTokensTold)}});
  }
}

void SecurityFiles::Use(Kind kind) {
  if (kind == Kind::kTokens) TellOfExpired(*in_use_.rules.tokens);
  if (kind != Kind::kCertificates) {
    access_.Use(in_use_.rules);
  } else {
    warned_.reset();
    {
      const std::lock_guard lock(certificates_mutex_);
      certificates_ = std::make_shared<const security::CertificateTexts>(in_use_.certificates);
    }
    if (credentials_ != nullptr) return credentials_->Use(in_use_.certificates);
    credentials_ = std::make_shared<server::TlsCredentials>(options_.client_certificates(),
                                                            in_use_.certificates);
  }
}

void SecurityFiles::WarnOfExpiry() {
  if (credentials_ == nullptr) return;
  const auto left = std::chrono::microseconds(in_use_.expiry - clock_.Now());
  const auto now = clock_.SteadyNow();
  if (left > kExpiryWarning || (warned_ && now - *warned_ < kExpiryWarningInterval)) return;
  warned_ = now;
  const std::string expires = absl::FormatTime(
      absl::RFC3339_sec, absl::FromUnixMicros(in_use_.expiry), absl::UTCTimeZone());
  Log(LogLevel::kWarning, left.count() > 0 ? "certificate expires soon" : "certificate has expired",
      {{"file", options_.tls_certificate}, {"expires", expires}});
}

}  // namespace strata::app
