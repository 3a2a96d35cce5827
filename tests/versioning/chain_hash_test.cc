// The chain hash: what was proven once is proven for ever, whatever versions have had since.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {
namespace {

VersionHeader Header() {
  VersionHeader header;
  header.version = 3;
  header.kind = VersionKind::kUpdated;
  header.commit_time = 1'234'567;
  header.change = {"ann", "bob", "because", {{"ticket", "7"}, {"area", "x"}}};
  header.request_id = "r-1";
  header.request_fingerprint = "12345678";
  header.salt = std::string(kSaltSize, 's');
  header.content_hash.fill('h');
  return header;
}

std::string Hex(const VersionHeader& header) {
  const document::Hash hash = ChainHash(ChainStart("books", "moby"), header);
  return absl::BytesToHexString(std::string(document::HashBytes(hash)));
}

// Computed by another program from the grammar in version.h.
TEST(ChainHash, IsWhatItAlwaysWas) {
  VersionHeader header = Header();
  EXPECT_EQ(Hex(header), "357f3b39303605c2b189752b6eda677111a52e3ba259cdc685b2336879459af7");
  header.fingerprint_chained = true;
  EXPECT_EQ(Hex(header), "e0fbfc43442f9661927fd9ac2122de41c73adc239ce561cd5380dc369027bcca");
  header.fingerprint_chained = false;
  header.transaction_id = "t-1";
  EXPECT_EQ(Hex(header), "c9107c86f292d2a671a7dbf573b94f6e7a4114b5298ed7ce6039f4f4a2a0dd4c");
  header.fingerprint_chained = true;
  EXPECT_EQ(Hex(header), "74e1d8d5bd75a31cef55b17b312d095143b5e162790c8b82f1d1981e224043f7");
  header.mark = VersionMark::kApplied;
  EXPECT_EQ(Hex(header), "0eb124659714e487a8200fc18480c11db3a9466d99e3de056c98ba4a200303dc");
  header.mark = VersionMark::kUndone;
  EXPECT_EQ(Hex(header), "4ba800d4a00c9ff4a5e5e654cccfe60b24e685b1f2968f641d787f8793c63ab3");
  header.mark = VersionMark::kClosed;
  EXPECT_EQ(Hex(header), "c7c1f7a50058bca7628be2362103b0d367d2a2a6cb112f38938d69abef622ed9");
}

// All that a forger might try: none of these hashes like another.
TEST(ChainHash, NoMarkTransactionOrLabelPassesForAnother) {
  std::vector<VersionHeader> headers;
  const std::string content(32, 'h');
  for (const std::map<std::string, std::string>& labels :
       std::vector<std::map<std::string, std::string>>{{},
                                                       {{"a", ""}},
                                                       {{"\x02t", ""}},
                                                       {{"", "\x02t"}},
                                                       {{content, "\x02t"}},
                                                       {{content, "\x03\x01\x02t"}},
                                                       {{content, content}},
                                                       {{content, "\x02t"}, {"z", ""}}}) {
    for (const std::string transaction :
         {"", "t", "\x02t", "\x01\x02t", "\x03\x01\x02t", "t\x03\x01"}) {
      for (const int mark : {0, 1, 2, 3}) {
        for (const bool chained : {false, true}) {
          VersionHeader& header = headers.emplace_back(Header());
          header.change.labels = labels;
          header.transaction_id = transaction;
          header.mark = static_cast<VersionMark>(mark);
          header.fingerprint_chained = chained;
          // The codec lets none through that bears a mark and names no transaction.
          if (mark != 0 && transaction.empty()) headers.pop_back();
        }
      }
    }
  }
  std::set<std::string> hashes;
  for (const VersionHeader& header : headers) hashes.insert(Hex(header));
  EXPECT_EQ(hashes.size(), headers.size());
}

}  // namespace
}  // namespace strata::versioning
