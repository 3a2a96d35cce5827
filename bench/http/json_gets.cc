#include "bench/http/json_gets.h"

#include "absl/strings/str_cat.h"

namespace strata::bench {

std::string GetRequestText(const std::string& collection, const std::string& id, int port) {
  const std::string body = absl::StrCat(R"({"collection":")", collection, R"(","id":")", id,
                                        R"(","encoding":"ENCODING_JSON"})");
  return absl::StrCat("POST /strata.v1.DocumentService/Get HTTP/1.1\r\nHost: 127.0.0.1:", port,
                      "\r\nUser-Agent: strata_http_load\r\nAccept: */*\r\n",
                      "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n",
                      body);
}

JsonGets::JsonGets(const Population& population, int port, uint64_t seed)
    : bytes_(population.form.bytes), random_(seed) {
  for (size_t i = 0; i < population.versions.size(); ++i) {
    const std::string id = std::to_string(i);
    requests_.push_back(
        {.text = GetRequestText(population.collection, id, port),
         .answer = absl::StrCat(R"({"document":{"collection":")", population.collection,
                                R"(","id":")", id, R"(","version":")", population.versions[i],
                                R"(","content":{"json":{)")});
  }
}

const std::string& JsonGets::Next(int slot) {
  std::uniform_int_distribution<size_t> all(0, requests_.size() - 1);
  const size_t chosen = all(random_);
  if (slots_.size() <= static_cast<size_t>(slot)) slots_.resize(static_cast<size_t>(slot) + 1);
  slots_[static_cast<size_t>(slot)] = chosen;
  return requests_[chosen].text;
}

bool JsonGets::IsRight(int slot, std::string_view body) const {
  // Looked at from the front: a search through 2 KB would be the client's cost, not the server's.
  return body.starts_with(requests_[slots_[static_cast<size_t>(slot)]].answer) &&
         body.size() > bytes_ && body.ends_with("}}");
}

}  // namespace strata::bench
