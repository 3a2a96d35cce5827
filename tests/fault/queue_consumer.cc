// queue_consumer ADDRESS QUEUE CREDITS: takes the messages of a queue over one stream and
// acknowledges them, until a message without a number kills it. Exit status 0: the server ended the
// stream.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fault/queue_client.h"

namespace strata::fault {
namespace {

int Consume(const std::string& address, const std::string& queue, int credits) {
  QueueClient client(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  ReceiveStream stream(client, queue, credits);
  for (v1::ReceiveResponse response; stream.Read(response);) {
    std::vector<std::string> tokens;
    for (const v1::QueueMessage& message : response.messages().messages()) {
      if (NumberOf(message.payload()) < 0) raise(SIGKILL);
      tokens.push_back(message.token());
      if (tokens.size() < 100) continue;
      stream.Acknowledge(tokens);
      tokens.clear();
    }
    if (!tokens.empty()) stream.Acknowledge(tokens);
  }
  return 0;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: queue_consumer ADDRESS QUEUE CREDITS\n";
    return 2;
  }
  return strata::fault::Consume(argv[1], argv[2], std::atoi(argv[3]));
}
