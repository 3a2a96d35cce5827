// Bytes that are shared.
#include "schemas/base/bytes.h"

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strata {
namespace {

const char* DataOf(const Bytes& bytes) { return std::string_view(bytes).data(); }

TEST(BytesTest, CopiesShareThem) {
  const std::string text = "some bytes";
  const Bytes bytes(text);
  EXPECT_EQ(bytes, "some bytes");
  EXPECT_NE(DataOf(bytes), text.data());
  Bytes copy = bytes;
  EXPECT_EQ(DataOf(copy), DataOf(bytes));
  const Bytes moved = std::move(copy);
  EXPECT_EQ(DataOf(moved), DataOf(bytes));
  EXPECT_EQ(moved.size(), 10u);
}

TEST(BytesTest, TheyLiveAsLongAsSomebodyHasThem) {
  for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}}) {
    Bytes last;
    {
      Bytes first(std::string(size, 'x'));
      Bytes second = first;
      last = second;
      second = Bytes(std::string("others"));
      first = second;
      Bytes& itself = first;
      first = itself;
      EXPECT_EQ(first, "others");
    }
    EXPECT_EQ(last, std::string(size, 'x'));
  }
}

TEST(BytesTest, NoneAreNotNoBytes) {
  EXPECT_TRUE(Bytes().none());
  EXPECT_EQ(Bytes(), "");
  const Bytes empty{std::string()};
  EXPECT_FALSE(empty.none());
  EXPECT_EQ(empty, "");
  EXPECT_EQ(empty.size(), 0u);
}

TEST(BytesTest, LongOnesAreTakenFromAStringThatIsGivenAway) {
  std::string text(100'000, 'x');
  const char* const data = text.data();
  const Bytes bytes(std::move(text));
  EXPECT_EQ(DataOf(bytes), data);
  EXPECT_EQ(bytes, std::string(100'000, 'x'));
  std::string kept(100'000, 'y');
  EXPECT_NE(DataOf(Bytes(kept)), kept.data());
  EXPECT_EQ(kept, std::string(100'000, 'y'));
}

TEST(BytesTest, ManyThreadsShareThem) {
  for (const size_t size : {size_t{10}, size_t{2000}}) {
    const std::string text(size, 'x');
    auto shared = std::make_unique<const Bytes>(std::string(text));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([own = *shared, &text] {
        for (int round = 0; round < 10'000; ++round) {
          Bytes copy = own;
          const Bytes another = copy;
          copy = Bytes();
          if (another != text) ADD_FAILURE();
        }
      });
    }
    shared = nullptr;
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace strata
