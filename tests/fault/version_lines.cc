// JSON through libbson, which keeps the order of members and every digit of a number.
#include "tests/fault/version_lines.h"

#include <bson/bson.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "tests/fault/child_process.h"

namespace strata::fault {
namespace {

// A document of libbson's, freed at the end.
class Bson {
 public:
  explicit Bson(bson_t* bson) : bson_(bson) {}
  ~Bson() { bson_destroy(bson_); }
  Bson(Bson&& other) noexcept : bson_(std::exchange(other.bson_, nullptr)) {}
  const bson_t* get() const { return bson_; }

 private:
  bson_t* bson_;
};

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << std::endl;
  std::abort();
}

Bson ParseJson(std::string_view json) {
  bson_error_t error;
  Bson parsed(bson_new_from_json(reinterpret_cast<const uint8_t*>(json.data()),
                                 static_cast<ssize_t>(json.size()), &error));
  if (parsed.get() == nullptr)
    Die("not JSON: " + std::string(error.message) + ": " + std::string(json));
  return parsed;
}

std::string Decompress(const std::string& compressed) {
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                    &ZSTD_freeDStream);
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 27);
  ZSTD_inBuffer in = {compressed.data(), compressed.size(), 0};
  std::string text;
  std::string part(ZSTD_DStreamOutSize(), '\0');
  size_t left = 1;
  while (in.pos < in.size || left != 0) {
    ZSTD_outBuffer out = {part.data(), part.size(), 0};
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(left)) Die(ZSTD_getErrorName(left));
    text.append(part, 0, out.pos);
    if (in.pos == in.size && out.pos == 0 && left != 0) Die("the compressed file is cut short");
  }
  return text;
}

std::string TextOf(const bson_iter_t& at) {
  uint32_t size = 0;
  const char* text = bson_iter_utf8(&at, &size);
  return {text, size};
}

struct Line {
  std::string id;
  VersionLine version;
};

Line ParseLine(const std::string& text) {
  const Bson parsed = ParseJson(text);
  Line line;
  bson_iter_t at;
  bson_iter_init(&at, parsed.get());
  while (bson_iter_next(&at)) {
    const std::string_view name = bson_iter_key(&at);
    if (name == "collection") continue;  // an import may rename it
    if (name == "id") {
      line.id = TextOf(at);
    } else if (name == "time") {
      line.version.time = TextOf(at);
    } else if (name == "actor") {
      line.version.actor = TextOf(at);
    } else if (name == "reason") {
      line.version.reason = TextOf(at);
    } else if (name == "deleted") {
      line.version.deleted = bson_iter_bool(&at);
    } else if (name == "content") {
      const uint8_t* bytes = nullptr;
      uint32_t size = 0;
      bson_iter_document(&at, &size, &bytes);
      line.version.content.assign(reinterpret_cast<const char*>(bytes), size);
    } else {
      Die("unknown member " + std::string(name));
    }
  }
  return line;
}

}  // namespace

std::string ReadText(const std::string& path) {
  std::string file = ReadFile(path);
  constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";
  if (file.starts_with(kZstdMagic)) file = Decompress(file);
  return file;
}

Histories ReadVersionLines(const std::string& path) {
  Histories histories;
  std::istringstream in(ReadText(path));
  for (std::string text; std::getline(in, text);) {
    Line line = ParseLine(text);
    histories[line.id].push_back(std::move(line.version));
  }
  return histories;
}

size_t CountVersions(const Histories& histories) {
  size_t count = 0;
  for (const auto& [id, versions] : histories) count += versions.size();
  return count;
}

std::string FirstDifference(const Histories& expected, const Histories& actual) {
  for (const auto& [id, versions] : expected) {
    const auto found = actual.find(id);
    if (found == actual.end()) return id + " is missing";
    const std::vector<VersionLine>& others = found->second;
    for (size_t i = 0; i < std::min(versions.size(), others.size()); ++i) {
      if (versions[i] != others[i]) return id + " differs in version " + std::to_string(i + 1);
    }
    if (versions.size() != others.size()) {
      return id + " has " + std::to_string(others.size()) + " versions, not " +
             std::to_string(versions.size());
    }
  }
  for (const auto& [id, versions] : actual) {
    if (!expected.contains(id)) return id + " should not be there";
  }
  return "";
}

int64_t NumberIn(const std::string& json, const std::string& name) {
  const Bson parsed = ParseJson(json);
  bson_iter_t at;
  if (!bson_iter_init_find(&at, parsed.get(), name.c_str())) Die("no " + name + " in " + json);
  return bson_iter_as_int64(&at);
}

}  // namespace strata::fault
