// Figures in, tables and pages out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/render/document.h"
#include "bench/render/figures.h"
#include "bench/render/goals.h"
#include "bench/render/sections.h"
#include "bench/support/figure_lines.h"
#include "bench/support/measurement.h"

namespace strata::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Figures Read(const std::string& lines) {
  Figures figures;
  std::istringstream in(lines);
  const absl::Status status = figures.Read(in, "lines");
  EXPECT_TRUE(status.ok()) << status;
  return figures;
}

std::string Refusal(const std::string& lines) {
  Figures figures;
  std::istringstream in(lines);
  return std::string(figures.Read(in, "lines").message());
}

std::string Number(const std::string& figure, const std::string& parameters, double value,
                   const std::string& unit) {
  return absl::StrCat(R"({"program": "p", "figure": ")", figure, R"(", "parameters": {)",
                      parameters, R"(}, "value": )", value, R"(, "unit": ")", unit, "\"}\n");
}

// A Get at three quarters of the empty call, 4 us above it.
std::string Gets() {
  const std::string get =
      R"("system": "strata deltas", "workload": "W3 get, BSON", "in_flight": 64)";
  return Number("calls_per_second", get, 60000, "per_second") +
         Number("share_of_empty_calls", get, 0.75, "ratio") + Number("server_cpu", get, 16, "us") +
         Number("empty_server_cpu", get, 12, "us") +
         Number("server_cpu_above_empty", get, 4, "us") + Number("latency_p50", get, 1024, "us") +
         Number("latency_p99", get, 2345.6, "us") + Number("failures", get, 0, "count");
}

// Medians of both strategies on one engine against versions, and what the article's table needs.
std::string Strategies() {
  std::string lines = Number("raw_bytes_per_version", R"("engine": "rocksdb")", 500, "bytes");
  int number = 0;
  for (const char* strategy : {"full-copies", "deltas"}) {
    const std::string one = absl::StrCat(R"("engine": "rocksdb", "strategy": ")", strategy, "\"");
    for (const char* operation : {"fetch one", "fetch many", "update"}) {
      const std::string its = absl::StrCat(one, R"(, "operation": ")", operation, "\"");
      lines += Number("latency_p50", its, 5.05 + number++, "us");
      for (const int versions : {1, 10, 100, 1000}) {
        lines += Number("latency_p50", absl::StrCat(its, R"(, "versions": )", versions),
                        versions * 0.25 + number, "us");
      }
    }
    lines += Number("recovery", one, 58500, "us");
    for (const char* part : {"contents", "headers", "requests", "ledger"}) {
      lines += Number("bytes_per_version", absl::StrCat(one, R"(, "part": ")", part, "\""),
                      100 + number, "bytes");
    }
  }
  return lines;
}

TEST(Figures, AreShownInTheTableOfCalls) {
  EXPECT_THAT(
      ToText(MakeDocument(Read(Gets()))),
      HasSubstr(
          "| system        |     workload | in flight | calls/s | of empty | server us/call | "
          "empty "
          "us/call | client us/call | p50 ms | p99 ms | attempts | failures |\n"
          "|---------------|-------------:|----------:|--------:|---------:|---------------:|------"
          "--------:|---------------:|-------:|-------:|---------:|---------:|\n"
          "| strata deltas | W3 get, BSON |        64 |  60,000 |     0.75 |           16.0 |      "
          " "
          "   12.0 |                |  1.024 |  2.346 |          |        0 |\n"));
}

TEST(Figures, StandBesideTheArticlesWords) {
  EXPECT_THAT(
      ToText(MakeDocument(Read(Strategies()))),
      HasSubstr(
          "| rocksdb                               |           fetch one |        fetch many, each "
          "|          update | recover if fail |\n"
          "|---------------------------------------|--------------------:|------------------------:"
          "|----------------:|----------------:|\n"
          "| 1) new document for each: full-copies | Easy, Fast: 5.05 us | Not easy, Slow: 6.05 us "
          "| Medium: 7.05 us |    N/A: 58.5 ms |\n"
          "| 4) deltas only: deltas                |   TBD/Hard: 8.05 us |       TBD/Hard: 9.05 us "
          "| Medium: 10.1 us |    N/A: 58.5 ms |\n"));
}

TEST(Figures, OfWhatWasNotMeasuredAreNotThere) {
  const std::string text = ToText(MakeDocument(Read(Gets())));
  EXPECT_THAT(text, Not(HasSubstr("article")));
  EXPECT_THAT(text, Not(HasSubstr("At start")));
}

TEST(Figures, ALaterLineReplacesAnEarlierOne) {
  const std::string where = R"("documents": 1000)";
  const Figures figures = Read(Number("resident_memory", where, 1, "bytes") +
                               Number("resident_memory", where, 2, "bytes"));
  ASSERT_EQ(figures.all().size(), 1U);
  EXPECT_EQ(figures.Value("resident_memory", {{"documents", "1000"}}), 2);
}

TEST(Figures, OfAnotherProgramStandBeside) {
  const char* const lines =
      R"({"program": "a", "figure": "measured_on", "text": "one machine"}
{"program": "b", "figure": "measured_on", "text": "another"})";
  EXPECT_EQ(ToText(MakeDocument(Read(lines))), "a: one machine\nb: another\n");
}

// A run that is appended to the file of another does not hide what went wrong in it.
TEST(Figures, WhatWentWrongStays) {
  const std::string path = testing::TempDir() + "/runs.jsonl";
  std::remove(path.c_str());
  for (const char* what : {"first run", "second run"}) FigureLines("p", path).Wrong(what);
  std::ifstream in(path);
  Figures figures;
  ASSERT_TRUE(figures.Read(in, path).ok());
  EXPECT_EQ(ToText(MakeDocument(figures)), "WRONG: p: first run\nWRONG: p: second run\n");
}

TEST(Figures, WhatWentWrongIsSaid) {
  const std::string line =
      R"({"program": "p", "figure": "wrong", "parameters": {"number": 1}, "text": "lost & <gone>"})";
  const Document document = MakeDocument(Read(line));
  EXPECT_THAT(ToText(document), HasSubstr("WRONG: p: lost & <gone>\n"));
  EXPECT_THAT(ToHtml(document), HasSubstr("<p class=\"missed\">p: lost &amp; &lt;gone&gt;</p>"));
}

// What no program writes is shown all the same.
TEST(Figures, MayHaveAnyParameters) {
  const std::string page = ToHtml(MakeDocument(
      Read(Strategies() + Number("server_cpu", R"("call": "", "documents": "none")", -1, "us") +
           Number("latency_p50",
                  R"("engine": "rocksdb", "strategy": "", "operation": "update", "versions": 0)", 0,
                  "us") +
           R"({"program": "p", "figure": "limit", "text": "ends"})" + "\n" +
           R"({"program": "p", "figure": "end", "text": "ends"})")));
  EXPECT_THAT(page, HasSubstr("? on ? ends."));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf\"")));
}

TEST(MalformedLines, AreRefusedWithTheirNumber) {
  const std::string good = Gets();
  const auto lines = std::to_string(std::count(good.begin(), good.end(), '\n') + 1);
  const std::string begin = "lines:" + lines + ": ";
  const struct {
    const char* line;
    const char* why;
  } kCases[] = {
      {"", "it is no JSON object"},
      {"calls 3", "it is no JSON object"},
      {R"({"program": "p")", "it is no JSON object"},
      {R"({"program": "p", "figure": "f", "text": "t"} {})", "something follows the JSON object"},
      {R"({"figure": "f", "value": 1, "unit": "us"})", "program is missing"},
      {R"({"program": "p", "value": 1, "unit": "us"})", "figure is missing"},
      {R"({"program": "p", "figure": "f"})", "it needs either a value or a text"},
      {R"({"program": "p", "figure": "f", "value": 1, "unit": "us", "text": "t"})",
       "it needs either a value or a text"},
      {R"({"program": "p", "figure": "f", "value": 1})",
       "a value needs a unit, and a text has none"},
      {R"({"program": "p", "figure": "f", "text": "t", "unit": "us"})",
       "a value needs a unit, and a text has none"},
      {R"({"program": "p", "figure": "f", "value": 1, "unit": "ms"})", "there is no unit ms"},
      {R"({"program": "p", "figure": "f", "value": "1", "unit": "us"})", "value is no number"},
      {R"({"program": "p", "figure": 7, "value": 1, "unit": "us"})", "figure is no text"},
      {R"({"program": "p", "figure": "f", "value": 1, "unit": "us", "median": 1})",
       "there is no member median"},
      {R"({"program": "p", "program": "p", "figure": "f", "text": "t"})",
       "program stands there twice"},
      {R"({"program": "p", "figure": "f", "parameters": [1], "text": "t"})",
       "parameters is no object"},
      {R"({"program": "p", "figure": "f", "parameters": {"a": 1.5}, "text": "t"})",
       "parameter a is neither a text nor a whole number"},
      {R"({"program": "p", "figure": "f", "value": 1, "unit": "us", "low": 1})",
       "low, high and rounds stand together, beside a value"},
      {R"({"program": "p", "figure": "f", "value": 3, "unit": "us", "low": 1, "high": 2, "rounds": 3})",
       "value is not between low and high"},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(Refusal(good + one.line + "\n" + good), begin + one.why) << one.line;
  }
}

// What the programs write and what is read are one format.
TEST(FigureLines, AreReadAsTheyWereWritten) {
  const std::string path = testing::TempDir() + "/figure_lines.jsonl";
  std::remove(path.c_str());
  {
    FigureLines lines("p\"", path);
    lines.Number("f", {{"a", "b\\\"c\n"}, {"n", 64}}, 1234567890.25, Unit::kBytes,
                 Spread{1, 2e9, 3});
    lines.Text("t", {}, "\u00b5 <&>");
    lines.Wrong("first");
    lines.Wrong("second");
    EXPECT_EQ(lines.wrong(), 2);
  }
  std::ifstream in(path);
  Figures figures;
  ASSERT_TRUE(figures.Read(in, path).ok());
  ASSERT_EQ(figures.all().size(), 4U);
  const Figure* const number = figures.Find("f", {{"a", "b\\\"c\n"}, {"n", "64"}});
  ASSERT_NE(number, nullptr);
  EXPECT_EQ(number->program, "p\"");
  EXPECT_EQ(number->value, 1234567890.25);
  EXPECT_EQ(number->unit, Unit::kBytes);
  ASSERT_TRUE(number->spread.has_value());
  EXPECT_EQ(number->spread->rounds, 3);
  EXPECT_EQ(figures.Find("t", {})->text, "\u00b5 <&>");
  EXPECT_THAT(ToText(MakeDocument(figures)), HasSubstr("WRONG: p\": first\nWRONG: p\": second\n"));
}

TEST(FigureLines, AMeasurementSaysBetweenWhichRoundsItLies) {
  const std::string path = testing::TempDir() + "/measurement.jsonl";
  std::remove(path.c_str());
  std::vector<Measurement> rounds(3);
  for (size_t i = 0; i < rounds.size(); ++i) {
    rounds[i].system = "s";
    rounds[i].workload = "w";
    rounds[i].in_flight = 2;
    rounds[i].calls = 1000 * static_cast<int64_t>(i + 1);
    rounds[i].duration = std::chrono::seconds(1);
  }
  {
    FigureLines lines("p", path);
    Write(ParametersOf(rounds[1]), rounds, 1, lines);
  }
  std::ifstream in(path);
  Figures figures;
  ASSERT_TRUE(figures.Read(in, path).ok());
  const Where where = {{"system", "s"}, {"workload", "w"}, {"in_flight", "2"}};
  const Figure* const rate = figures.Find("calls_per_second", where);
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->value, 2000);
  EXPECT_EQ(rate->spread->low, 1000);
  EXPECT_EQ(rate->spread->high, 3000);
  EXPECT_EQ(figures.Find("attempts_per_call", where), nullptr) << "it was not counted";
}

TEST(Goals, SayWhatWasReached) {
  const std::string text = ToText(MakeDocument(Read(Gets())));
  EXPECT_THAT(text, HasSubstr("| goal                                            |      bound | "
                              "reached |              |\n"
                              "|-------------------------------------------------|-----------:|----"
                              "----:|-------------:|\n"
                              "| W3 Get, BSON: calls/s of the empty call's       |    >= 0.75 |    "
                              "0.75 |          met |\n"
                              "| W3 Get, BSON: server CPU above the empty call's | <= 5.00 us | "
                              "4.00 us |          met |\n"
                              "| W3 Get: calls/s of PostgreSQL's                 |    >= 1.00 |    "
                              "     | not measured |\n"));
  EXPECT_THAT(text, Not(HasSubstr("start on"))) << "nothing of it was measured";
}

TEST(Goals, AMissedOneStandsOut) {
  const Document document =
      MakeDocument(Read(Number("serving", R"("start_on": "an empty directory")", 1.5e6, "us")));
  EXPECT_THAT(ToText(document), HasSubstr("| <= 1.00 s |  1.50 s | MISSED |"));
  EXPECT_THAT(ToHtml(document), HasSubstr("<td class=\"missed\">missed</td>"));
}

TEST(Goals, OneWithoutABoundIsShownAndNotJudged) {
  const auto events = [](const char* system, double value) {
    return Number("events_per_second",
                  absl::StrCat(R"("system": ")", system, R"(", "feed": "catch-up, with contents")"),
                  value, "per_second");
  };
  const std::string text =
      ToText(MakeDocument(Read(events("strata", 50'000) + events("postgresql", 100'000))));
  EXPECT_THAT(text, testing::ContainsRegex("events/s of PostgreSQL's with LISTEN/NOTIFY *\\| *"
                                           "\\| *0.50 \\| *to look at \\|\n"));
  EXPECT_THAT(text, testing::ContainsRegex("NATS JetStream's, each write synced *\\| *\\| *"
                                           "\\| not measured \\|\n"));
}

TEST(Goals, GrowthIsHeldAgainstTheShortLedgerWhateverTheLongOne) {
  const auto grown = [](const char* figure, const char* entries, double value, const char* unit) {
    return Number(figure, absl::StrCat(R"("growth": "Renew", "entries": ")", entries, "\""), value,
                  unit);
  };
  const std::string text = ToText(MakeDocument(Read(grown("server_cpu", "10^4", 20, "us") +
                                                    grown("server_cpu", "10^7", 23, "us") +
                                                    grown("growth_ratio", "10^6", 1.05, "ratio") +
                                                    grown("growth_ratio", "10^7", 1.15, "ratio"))));
  EXPECT_THAT(text,
              testing::ContainsRegex("\\| Renew *\\| *20.0 \\| *23.0 \\| *1.05 \\| *1.15 \\|\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("Renew: server CPU with 10\\^6 entries of that with 10\\^4 "
                                     "*\\| <= 1.10 \\| *1.05 \\| *met \\|"));
  EXPECT_THAT(text,
              testing::ContainsRegex("Renew: server CPU with 10\\^7 entries of that with 10\\^4 "
                                     "*\\| <= 1.10 \\| *1.15 \\| MISSED \\|"));
}

TEST(Goals, NoTwoAreTheSame) {
  std::set<std::string> seen;
  for (const Goal& goal : AllGoals()) EXPECT_TRUE(seen.insert(goal.what).second) << goal.what;
}

// Every element is closed, in order; an attribute has quotes; '&' begins an entity.
void ExpectWellFormed(const std::string& page) {
  std::vector<std::string> open;
  size_t at = page.find('\n') + 1;  // after <!DOCTYPE html>
  while ((at = page.find_first_of("<&", at)) != std::string::npos) {
    if (page[at] == '&') {
      const std::string entity = page.substr(at, page.find(';', at) - at + 1);
      ASSERT_TRUE((std::set<std::string>{"&amp;", "&lt;", "&gt;", "&quot;"}.contains(entity)))
          << entity;
      ++at;
      continue;
    }
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    ASSERT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Page, IsWellFormed) {
  const std::string page = ToHtml(MakeDocument(Read(Gets() + Strategies())));
  ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(page));
  EXPECT_THAT(page, HasSubstr("<title>What Strata costs</title>"));
  EXPECT_THAT(page, HasSubstr("<polyline points=\""));
  EXPECT_THAT(page, HasSubstr("<rect "));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf\"")));
}

struct Label {
  double x;
  double y;
  std::string text;
};

// The texts of a class in a plot, from above.
std::vector<Label> LabelsOf(const std::string& svg, const std::string& css) {
  std::vector<Label> labels;
  const std::string name = "class=\"" + css + "\">";
  for (size_t at = svg.find(name); at != std::string::npos; at = svg.find(name, at + 1)) {
    const size_t begin = at + name.size();
    labels.push_back({std::atof(svg.c_str() + svg.rfind(" x=\"", at) + 4),
                      std::atof(svg.c_str() + svg.rfind(" y=\"", at) + 4),
                      svg.substr(begin, svg.find('<', begin) - begin)});
  }
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  return labels;
}

// Of DejaVu Sans at 12 pixels, the widest that the page asks for.
constexpr double kCharacterWidth = 7.2;

TEST(Plot, LabelsOfLinesThatEndTogetherDoNotOverlap) {
  LinePlot plot;
  plot.x_ticks = {1, 10};
  plot.y_text = plot.tick_text = [](double) { return "9.83 ms"; };
  for (int i = 0; i < 6; ++i) {
    plot.lines.push_back({"History, newest ten", i, {{1, 2}, {10, 5 + 0.01 * i}}});
  }
  const std::string svg = ToSvg(plot);
  const std::vector<Label> names = LabelsOf(svg, "name");
  const std::vector<Label> values = LabelsOf(svg, "value end");
  ASSERT_EQ(names.size(), 6U);
  ASSERT_EQ(values.size(), 6U);
  const auto width = [](const Label& label) {
    return kCharacterWidth * static_cast<double>(label.text.size());
  };
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(names[i].y - names[i - 1].y, 12);
    }
    EXPECT_LT(names[i].x + width(names[i]), values[i].x - width(values[i])) << names[i].text;
  }
}

TEST(Plot, NamesOfBarsStandAboveThem) {
  BarPlot plot;
  plot.parts = {"before", "more at the peak"};
  plot.bars = {
      {"1000 unfinished updates of 1 MiB on 10 connections, 64 MiB in flight", {1, 2}, "3"},
      {"nothing at all", {0, 0}, "0"}};
  const std::string svg = ToSvg(plot);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  const std::vector<Label> names = LabelsOf(svg, "name");
  const std::vector<Label> values = LabelsOf(svg, "value");
  ASSERT_EQ(names.size(), 2U);
  EXPECT_LT(names[0].y + 12, values[0].y);
  EXPECT_LT(values[0].y + 12, names[1].y);
}

}  // namespace
}  // namespace strata::bench
