// Claims about times, durations and printable text.
#include <gtest/gtest.h>

#include <string>

#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/time_text.h"

namespace strata::client {
namespace {

constexpr int64_t kNoon = 1769860800;  // 2026-01-31T12:00:00Z

Instant Parsed(const std::string& text) {
  const auto time = ParseTime(text);
  EXPECT_TRUE(time.ok()) << text;
  return time.value_or(Instant{});
}

TEST(Time, IsReadAsAPersonTypesIt) {
  EXPECT_EQ(Parsed("2026-01-31"), (Instant{kNoon - 12 * 3600, 0}));
  EXPECT_EQ(Parsed("2026-01-31T12:00"), (Instant{kNoon, 0}));
  EXPECT_EQ(Parsed("2026-01-31 12:00"), (Instant{kNoon, 0}));
  EXPECT_EQ(Parsed("2026-01-31T12:00:07"), (Instant{kNoon + 7, 0}));
  EXPECT_EQ(Parsed("2026-01-31T12:00:07.25Z"), (Instant{kNoon + 7, 250'000'000}));
  EXPECT_EQ(Parsed("2026-01-31T14:00+02:00"), (Instant{kNoon, 0}));
  EXPECT_EQ(Parsed("2026-01-31T06:30:00-05:30"), (Instant{kNoon, 0}));
  EXPECT_EQ(Parsed("2024-02-29"), (Instant{1709164800, 0}));
  EXPECT_EQ(Parsed("1969-12-31T23:59:59Z"), (Instant{-1, 0}));
}

TEST(Time, IsRefusedIfNoCalendarHasIt) {
  for (const std::string text :
       {"", "now", "2026", "2026-1-31", "2026-02-29", "2026-13-01", "0000-01-01",
        "2026-01-31T24:00", "2026-01-31T12", "2026-01-31T12:00:", "2026-01-31T12:00:00.",
        "2026-01-31T12:00:60", "2026-01-31T12:00:00+2", "2026-01-31T12:00:00 ", "2026-01-31Z",
        "2026-01-31x12:00"}) {
    EXPECT_FALSE(ParseTime(text).ok()) << text;
  }
}

TEST(Time, IsWrittenAsItIsRead) {
  for (const std::string text :
       {"2026-01-31T12:00:00Z", "2026-01-31T12:00:00.250Z", "2026-01-31T12:00:00.000250Z",
        "2026-01-31T12:00:00.000000001Z", "1969-12-31T23:59:59.500Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_EQ(FormatTime(Parsed(text)), text);
  }
  EXPECT_EQ(FormatTimeShort({kNoon, 5}), "2026-01-31 12:00:00");
  EXPECT_EQ(FormatTimeMicros({kNoon, 250'999}), "2026-01-31 12:00:00.000250");
  EXPECT_EQ(Parsed(FormatTimeMicros({kNoon, 123'456'000})), (Instant{kNoon, 123'456'000}));
}

TEST(Time, MayBeCountedFromNow) {
  const Instant now{kNoon, 250'000'000};
  const auto counted = [&](const std::string& text) {
    const auto time = ParseTimeFrom(text, now);
    EXPECT_TRUE(time.ok()) << text;
    return time.value_or(Instant{});
  };
  EXPECT_EQ(counted("now"), now);
  EXPECT_EQ(counted("5m ago"), (Instant{kNoon - 300, 250'000'000}));
  EXPECT_EQ(counted(" 5 minutes ago "), (Instant{kNoon - 300, 250'000'000}));
  EXPECT_EQ(counted("1 minute ago"), (Instant{kNoon - 60, 250'000'000}));
  EXPECT_EQ(counted("1h30m ago"), (Instant{kNoon - 5400, 250'000'000}));
  EXPECT_EQ(counted("1 day 2 hours ago"), (Instant{kNoon - 93'600, 250'000'000}));
  EXPECT_EQ(counted("2w ago"), (Instant{kNoon - 1'209'600, 250'000'000}));
  EXPECT_EQ(counted("500ms ago"), (Instant{kNoon - 1, 750'000'000}));
  EXPECT_EQ(counted("1.5s ago"), (Instant{kNoon - 2, 750'000'000}));
  EXPECT_EQ(counted("in 900ms"), (Instant{kNoon + 1, 150'000'000}));
  EXPECT_EQ(counted("in 2 hours"), (Instant{kNoon + 7200, 250'000'000}));
  EXPECT_EQ(counted("2026-01-31"), Parsed("2026-01-31"));
  for (const std::string text :
       {"ago", "5 ago", "m ago", "five minutes ago", "-5m ago", "5m", "5x ago", "in", "in 5",
        "in 5m ago", "11000d ago", "nan s ago", "inf s ago", "5ms s ago", "", "Now"}) {
    EXPECT_FALSE(ParseTimeFrom(text, now).ok()) << text;
  }
}

TEST(Duration, HasUnits) {
  EXPECT_EQ(ParseDurationMs("90").value(), 90'000);
  EXPECT_EQ(ParseDurationMs("1.5s").value(), 1500);
  EXPECT_EQ(ParseDurationMs("250ms").value(), 250);
  EXPECT_EQ(ParseDurationMs("2m").value(), 120'000);
  EXPECT_EQ(ParseDurationMs("1h").value(), 3'600'000);
  for (const std::string text : {"", "s", "-1s", "0", "1d", "1 s", "nan", "1e30"}) {
    EXPECT_FALSE(ParseDurationMs(text).ok()) << text;
  }
}

TEST(Duration, LongOnesHaveDays) {
  EXPECT_EQ(ParseLongDurationMs("0").value(), 0);
  EXPECT_EQ(ParseLongDurationMs("250ms").value(), 250);
  EXPECT_EQ(ParseLongDurationMs("3650d").value(), 315'360'000'000);
  for (const std::string text : {"", "d", "-1s", "3661d", "1y", "nan"}) {
    EXPECT_FALSE(ParseLongDurationMs(text).ok()) << text;
  }
}

TEST(Printable, NothingReachesTheTerminalThatItObeys) {
  EXPECT_EQ(Printable("plain é 日本"), "plain é 日本");
  EXPECT_EQ(Printable("two\nlines\tand\ra tab"), "two lines and a tab");
  EXPECT_EQ(Printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(Printable("\xe2\x80\xaeright to left"), "\\xe2\\x80\\xaeright to left");
  EXPECT_EQ(Printable("\xe2\x80\x8f"), "\\xe2\\x80\\x8f");
  EXPECT_EQ(Printable("bad \xff\xc3"), "bad \\xff\\xc3");
  EXPECT_EQ(Printable(std::string("zero\0byte", 9)), "zero\\x00byte");
}

// UTF-8 of a code point of two or three bytes.
std::string Utf8(uint32_t code_point) {
  std::string text;
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
  } else {
    text += static_cast<char>(0xE0 | code_point >> 12);
    text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
  }
  return text + static_cast<char>(0x80 | (code_point & 0x3F));
}

// Documents and --json are JSON: what a terminal obeys is spelled there, and means the same.
TEST(JsonText, NothingReachesTheTerminalThatItObeys) {
  for (uint32_t code_point = 0; code_point < 0x3000; ++code_point) {
    const std::string text = "a" + Utf8(code_point) + "b";
    std::string json;
    AppendJsonString(text, json);
    if (IsObeyed(code_point)) {
      EXPECT_EQ(json.find(Utf8(code_point)), std::string::npos) << code_point;
    } else if (code_point != '"' && code_point != '\\') {
      EXPECT_EQ(json, "\"" + text + "\"");
    }
    const auto same = BsonFromJson("{\"v\":" + json + "}");
    ASSERT_TRUE(same.ok()) << json;
    EXPECT_EQ(*JsonFromBson(*same, JsonStyle::kRelaxed), "{\"v\":" + json + "}");
    EXPECT_NE(same->find(text), std::string::npos) << json;
  }
  std::string json;
  AppendJsonString("\xe2\x80\xae\xd8\x9c\xc2\x9b\x7f\xff", json);
  EXPECT_EQ(json, "\"\\u202e\\u061c\\u009b\\u007f\xff\"");
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("é"), 1u);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1u);
  EXPECT_EQ(DisplayWidth("日本"), 4u);
  EXPECT_EQ(DisplayWidth("😀"), 2u);
}

}  // namespace
}  // namespace strata::client
