// What a reader of records takes for damage.
#include "schemas/document/bson_builder.h"

#include <string>

#include "gtest/gtest.h"

namespace strata::document {
namespace {

TEST(BsonReader, AMemberOfAnotherFormIsCorrupt) {
  std::string text = BsonBuilder().String("member", "text").Take();
  text[text.size() - 2] = 'x';  // where the string ends
  BsonReader strings(text);
  ASSERT_TRUE(strings.Next());
  EXPECT_EQ(strings.String(), "");
  EXPECT_TRUE(strings.corrupt());
  EXPECT_FALSE(strings.Next());

  std::string truth = BsonBuilder().Bool("member", true).Take();
  truth[truth.size() - 2] = 2;
  BsonReader bools(truth);
  ASSERT_TRUE(bools.Next());
  EXPECT_FALSE(bools.Bool());
  EXPECT_TRUE(bools.corrupt());
}

}  // namespace
}  // namespace strata::document
