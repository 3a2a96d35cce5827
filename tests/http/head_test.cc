// How strictly the head of a request is read: whatever two programs could read differently is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "service/http/request_head.h"

namespace strata::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Head(const std::string& lines) { return "POST /a HTTP/1.1\r\n" + lines + "\r\n"; }

// The status that it is refused by; 0: it is taken.
int StatusOf(const std::string& text) {
  if (const auto bad = FindBadByte(text, 0)) return bad->status;
  const auto parsed = ParseHead(text);
  const auto* const bad = std::get_if<BadHead>(&parsed);
  return bad == nullptr ? 0 : bad->status;
}

TEST(RequestHead, SaysWhatWasSent) {
  const auto parsed = ParseHead(
      "POST /strata.v1.X/Y?q=%20 HTTP/1.1\r\nHost: a:1\r\nACCEPT:\t b, c \r\naccept: d\r\n"
      "Content-Length: 12\r\nExpect: 100-Continue\r\nX-Percent: %0d%0a\r\n\r\n");
  const auto& head = std::get<RequestHead>(parsed);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/strata.v1.X/Y");
  EXPECT_EQ(head.host, "a:1");
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_FALSE(head.chunked);
  EXPECT_THAT(head.headers.All("accept"), ElementsAre("b, c", "d"));
  EXPECT_EQ(head.headers.Find("x-percent"), "%0d%0a") << "values are not decoded";
  EXPECT_EQ(head.headers.Count("accept"), 2U);
}

TEST(RequestHead, TakesABodyOfEitherKind) {
  EXPECT_EQ(StatusOf(Head("Host: a\r\nContent-Length: 0\r\n")), 0);
  EXPECT_EQ(StatusOf(Head("Host: a\r\nTransfer-Encoding: Chunked\r\n")), 0);
  EXPECT_EQ(StatusOf(Head("Host: a\r\n")), 0);
}

TEST(RequestHead, IsRefusedWhereTheBodysLengthIsInDoubt) {
  for (const char* const lines :
       {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3\r\ncontent-length: 4\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n", "Content-Length: -3\r\n", "Content-Length: 0x3\r\n",
        "Content-Length: 3 4\r\n", "Content-Length:\r\n", "Content-Length: 3;\r\n",
        "Content-Length: 99999999999999999999\r\n"}) {
    EXPECT_EQ(StatusOf(Head(std::string("Host: a\r\n") + lines)), 400) << lines;
  }
  for (const char* const coding :
       {"gzip", "gzip, chunked", "identity", "chunked, chunked", "xchunked", "chunked;a=b", ""}) {
    EXPECT_EQ(StatusOf(Head("Host: a\r\nTransfer-Encoding: " + std::string(coding) + "\r\n")), 501)
        << coding;
  }
}

TEST(RequestHead, IsRefusedWhereLinesAreInDoubt) {
  for (const char* const lines :
       {"Content-Length : 3\r\n", " Content-Length: 3\r\n", "Content-Length: 3\r\n 4\r\n",
        "Content-Length\r\n", ": 3\r\n", "A B: 3\r\n", "A(: 3\r\n", "A: b\nC: d\r\n",
        "A: b\rC: d\r\n", "A: b\x01\r\n"}) {
    EXPECT_EQ(StatusOf(Head(std::string("Host: a\r\n") + lines)), 400) << lines;
  }
  EXPECT_EQ(StatusOf(Head(std::string("Host: a\r\nA: b\0c\r\n", 17))), 400);
  EXPECT_EQ(StatusOf("POST /a HTTP/1.1\nHost: a\n\n"), 400);
}

TEST(RequestHead, IsRefusedWithoutOneHost) {
  EXPECT_EQ(StatusOf(Head("")), 400);
  EXPECT_EQ(StatusOf(Head("Host: a\r\nHost: a\r\n")), 400);
}

TEST(RequestHead, IsRefusedForItsFirstLine) {
  const auto with = [](const std::string& line) { return StatusOf(line + "\r\nHost: a\r\n\r\n"); };
  for (const char* const line :
       {"POST /a", "POST  HTTP/1.1", "/a HTTP/1.1", "POST /a  HTTP/1.1", "POST /a b HTTP/1.1",
        "POST /a HTTP/1.", "POST /a HTTP/1.10", "POST /a HTTP/0.9", "POST /a http/1.1",
        "PO(ST /a HTTP/1.1", " POST /a HTTP/1.1", "POST http://a/b HTTP/1.1", "POST a HTTP/1.1",
        "POST /a#b HTTP/1.1", "POST /\xC3\xA4 HTTP/1.1", "", "CONNECT a:1 HTTP/1.1"}) {
    EXPECT_EQ(with(line), 400) << line;
  }
  for (const char* const line : {"PRI * HTTP/2.0", "GET / HTTP/2", "GET / HTTP/3"}) {
    EXPECT_EQ(with(line), 505) << line;
  }
  for (const char* const line : {"OPTIONS * HTTP/1.1", "POST /a HTTP/1.2", "POST /a HTTP/1.0"}) {
    EXPECT_EQ(with(line), 0) << line;
  }
}

TEST(RequestHead, ExpectsNothingButToGoOn) {
  EXPECT_EQ(StatusOf(Head("Host: a\r\nExpect: 200-ok\r\n")), 417);
  EXPECT_EQ(StatusOf(Head("Host: a\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n")), 417);
  // Whoever speaks HTTP/1.0 may hand on what another one has asked for, and does not know the
  // answer.
  EXPECT_EQ(StatusOf("POST /a HTTP/1.0\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"), 0);
}

TEST(RequestHead, WhoeverSpeaksTlsHereIsToldSo) {
  const auto bad = FindBadByte(std::string("\x16\x03\x01\x02", 4), 0);
  ASSERT_TRUE(bad.has_value());
  EXPECT_THAT(bad->problem, HasSubstr("without TLS"));
}

}  // namespace
}  // namespace strata::http
