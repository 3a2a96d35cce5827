#include "service/observability/log.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "service/observability/log_sink.h"

namespace strata::observability {
namespace {

std::string SayDropped(int64_t lines);

struct State {
  std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>(
      "stratad", std::make_shared<LogSink>(STDERR_FILENO, &SayDropped));
  std::atomic<LogLevel> level = LogLevel::kWarning;
  std::atomic<LogFormat> format = LogFormat::kText;

  State() { Configure(LogLevel::kWarning, LogFormat::kText); }

  void Configure(LogLevel new_level, LogFormat new_format) {
    level = new_level;
    format = new_format;
    // The level is checked here, not by the logger.
    logger->set_level(spdlog::level::trace);
    logger->set_pattern(new_format == LogFormat::kJson
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})"
                            : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
                        spdlog::pattern_time_type::utc);
  }
};

State& GlobalState() {
  static auto* const state = new State;
  return *state;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// Where the texts of a line end, so that the line stays one that a reader can parse: numbers,
// quotes and the line's beginning still fit.
constexpr size_t kTextsEnd = LogSink::kLineBytesMax - 512;

// The character that the text begins with, if a terminal obeys it or it changes lines' direction,
// so that what a caller names could make a line look like another; 0: none such.
unsigned ObeyedAt(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto is = [](unsigned code, unsigned first, unsigned last) {
    return code >= first && code <= last;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return byte(0);
  if (!is(byte(1), 0x80, 0xBF)) return 0;
  const unsigned two = (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  if (byte(0) == 0xC2 && is(two, 0x80, 0x9F)) return two;
  if (byte(0) == 0xD8 && two == 0x061C) return two;
  if (byte(0) != 0xE2 || !is(byte(2), 0x80, 0xBF)) return 0;
  const unsigned three = 0x2000 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  const bool turns =
      is(three, 0x200E, 0x200F) || is(three, 0x2028, 0x202E) || is(three, 0x2066, 0x2069);
  return turns ? three : 0;
}

size_t BytesOf(unsigned code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : 3; }

// A JSON string; good in text lines too, where a value needs quotes. Cut where the line gets full.
void AppendQuoted(std::string_view text, std::string& line) {
  constexpr char kHex[] = "0123456789abcdef";
  line += '"';
  while (!text.empty()) {
    if (line.size() >= kTextsEnd) {
      line += "...";
      break;
    }
    const char c = text.front();
    const unsigned code = ObeyedAt(text);
    if (code != 0 || c == '\0') {
      line += "\\u";
      for (const int shift : {12, 8, 4, 0}) line += kHex[code >> shift & 0xF];
    } else {
      if (c == '"' || c == '\\') line += '\\';
      line += c;
    }
    text.remove_prefix(BytesOf(code));
  }
  line += '"';
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' ||
        ObeyedAt(text.substr(i)) != 0) {
      return true;
    }
  }
  return false;
}

void AppendField(const LogField& field, LogFormat format, std::string& line) {
  if (format == LogFormat::kJson) {
    line += ",\"";
    line += field.key();
    line += "\":";
  } else {
    line += ' ';
    line += field.key();
    line += '=';
  }
  if (field.number()) {
    line += std::to_string(*field.number());
  } else if (format == LogFormat::kJson || NeedsQuotes(field.text())) {
    AppendQuoted(field.text(), line);
  } else {
    line += field.text().substr(0, kTextsEnd - std::min(kTextsEnd, line.size()));
  }
}

// What stands after time and level.
std::string Payload(LogFormat format, std::string_view event,
                    std::initializer_list<LogField> fields) {
  std::string line;
  if (format == LogFormat::kJson) {
    line += "\"event\":";
    AppendQuoted(event, line);
  } else {
    line += event;
  }
  for (const LogField& field : fields) AppendField(field, format, line);
  return line;
}

std::string SayDropped(int64_t lines) {
  return Payload(GlobalState().format.load(std::memory_order_relaxed),
                 "lines were dropped, as their reader was too slow", {{"lines", lines}});
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return std::nullopt;
}

std::optional<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return std::nullopt;
}

void ConfigureLog(LogLevel level, LogFormat format) { GlobalState().Configure(level, format); }

bool LogsAt(LogLevel level) {
  return level >= GlobalState().level.load(std::memory_order_relaxed) && level != LogLevel::kOff;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!LogsAt(level)) return;
  State& state = GlobalState();
  const std::string line = Payload(state.format.load(std::memory_order_relaxed), event, fields);
  state.logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace strata::observability
