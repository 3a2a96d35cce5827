// The server's log: one line an event, on stderr, as text or as JSON. It never waits for whoever
// reads there: what does not fit is dropped and counted (log_sink.h).
//
// What goes in is an event's name and facts about it. Document content, document ids and the text
// of drivers' errors stay out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace strata::observability {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// "debug", "info", "warning", "error", "off"; "text", "json". Nothing for any other name.
std::optional<LogLevel> ParseLogLevel(std::string_view name);
std::optional<LogFormat> ParseLogFormat(std::string_view name);

// Before it is called, the log takes warnings and worse as text. Not thread-safe against Log.
void ConfigureLog(LogLevel level, LogFormat format);

// Whether a line of this level is written: ask before work that only the log needs.
bool LogsAt(LogLevel level);

// One fact: a text or a number. Keys are words of letters and underscores.
class LogField {
 public:
  LogField(std::string_view key, std::string_view text) : key_(key), text_(text) {}
  LogField(std::string_view key, int64_t number) : key_(key), number_(number) {}

  std::string_view key() const { return key_; }
  std::string_view text() const { return text_; }
  const std::optional<int64_t>& number() const { return number_; }

 private:
  std::string_view key_;
  std::string_view text_;
  std::optional<int64_t> number_;
};

// Writes one line: time, level, event, fields in the order given. Thread-safe.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace strata::observability
