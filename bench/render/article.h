// What "How to Track Versions with MongoDB" (askasya.com, 2014) says of each strategy, to be set
// beside figures.
#pragma once

#include <string_view>

namespace strata::bench {

struct ArticleWords {
  std::string_view strategy;  // its name in the registry
  std::string_view choice;    // its number in the article
  std::string_view schema;    // the article's name for it
  std::string_view fetch_one;
  std::string_view fetch_many;
  std::string_view update;
  std::string_view recover;
};

// All empty but the name for a strategy that the article does not have.
ArticleWords ArticleOn(std::string_view strategy);

}  // namespace strata::bench
