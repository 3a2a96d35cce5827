// modifier TARGET COLLECTION ID COUNT: adds one to member "n" of a document, COUNT times, each time
// by Modify. A process of its own, as those that change one document at the same time are. Exit
// status 0: all were told done.
#include <cstdlib>
#include <iostream>

#include "strata/client/client.h"

int main(int argc, char** argv) {
  using namespace strata::client;  // NOLINT(google-build-using-namespace): as a program of users
                                   // has it
  if (argc != 5) return 2;
  const auto client = Client::Connect(
      {.target = argv[1], .timeout = absl::Seconds(5), .retry_for = absl::Minutes(2)});
  if (!client.ok()) return 2;
  const Collection things = client->collection(argv[2]);
  for (int i = std::atoi(argv[4]); i > 0; --i) {
    const auto written =
        things.Modify(argv[3], [](std::optional<Value> content) -> std::optional<Value> {
          Value next = content.value_or(Object{{"n", 0}});
          next["n"] = *next["n"].AsInteger() + 1;
          return next;
        });
    if (written.ok() && written->changed) continue;
    std::cerr << (written.ok() ? "nothing changed" : ErrorOf(written.status()).ToString())
              << std::endl;
    return 1;
  }
  return 0;
}
