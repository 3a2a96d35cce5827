#include "bench/render/article.h"

namespace strata::bench {
namespace {

constexpr ArticleWords kArticle[] = {
    {"full-copies", "1", "new document for each", "Easy, Fast", "Not easy, Slow", "Medium", "N/A"},
    {"current-flag", "1a", "new document with \"current\"", "Easy, Fast", "Easy, Fast", "Medium",
     "Hard"},
    {"embedded-history", "2", "embedded in single document", "Easy, Fastest", "Easy, Fastest",
     "Medium", "N/A"},
    {"shadow-collection", "3", "separate collection for previous", "Easy, Fastest", "Easy, Fastest",
     "Medium", "Medium Hard"},
    {"deltas", "4", "deltas only", "TBD/Hard", "TBD/Hard", "Medium", "N/A"},
};

}  // namespace

ArticleWords ArticleOn(std::string_view strategy) {
  for (const ArticleWords& words : kArticle) {
    if (words.strategy == strategy) return words;
  }
  ArticleWords words{};
  words.strategy = strategy;
  return words;
}

}  // namespace strata::bench
