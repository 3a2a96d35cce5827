#include "bench/strategies/article.h"

namespace strata::bench {
namespace {

constexpr ArticleWords kArticle[] = {
    {"full-copies", "1", "new document for each", "Easy, Fast", "Not easy, Slow", "Medium", "N/A",
     "There is nothing between two writes, so a crash leaves nothing and nobody has to mend "
     "anything."},
    {"current-flag", "1a", "new document with \"current\"", "Easy, Fast", "Easy, Fast", "Medium",
     "Hard",
     "Several flagged records. Readers never trust the flag: the current version is the greatest. "
     "The next update clears what is left."},
    {"embedded-history", "2", "embedded in single document", "Easy, Fastest", "Easy, Fastest",
     "Medium", "N/A",
     "There is nothing between two writes, so a crash leaves nothing and nobody has to mend "
     "anything."},
    {"shadow-collection", "3", "separate collection for previous", "Easy, Fastest", "Easy, Fastest",
     "Medium", "Medium Hard",
     "A copy of the version that is still current. It is harmless and nobody cleans it up: readers "
     "read the head first and then only the versions below it, and the next update finds its "
     "ensure done."},
    {"deltas", "4", "deltas only", "TBD/Hard", "TBD/Hard", "Medium", "N/A",
     "A coded copy of the version that is still current; readers read the head first and then only "
     "what is below it, and the next update finds its ensure done."},
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
