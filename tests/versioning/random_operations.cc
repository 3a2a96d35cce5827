#include "tests/versioning/random_operations.h"

namespace strata::versioning::checks {

std::string RandomOperations::Name(std::string_view what) {
  return std::string(what) + " " + std::to_string(++made_);
}

// Relaxed Extended JSON of a value: mostly small, now and then a long text or a long array.
std::string RandomOperations::Value(int depth) {
  const uint64_t choice = Below(depth == 0 ? 6 : 9);
  switch (choice) {
    case 0:
      return "null";
    case 1:
      return Below(2) == 0 ? "true" : "false";
    case 2:
      return std::to_string(Below(1000)) + ".5";
    case 3:
      return R"({"$numberLong": ")" + std::to_string(generator_() >> 1) + "\"}";
    case 4:
      return "\"" +
             std::string(Below(8) == 0 ? 400 : Below(20), static_cast<char>('a' + Below(26))) +
             "\"";
    case 5:
      return std::to_string(Below(100));
    case 6: {
      std::string array = "[";
      const uint64_t size = Below(8) == 0 ? 40 : Below(4);
      for (uint64_t i = 0; i < size; ++i) array += (i == 0 ? "" : ", ") + Value(depth - 1);
      return array + "]";
    }
    default: {
      std::string object = "{";
      const uint64_t size = Below(4);
      for (uint64_t i = 0; i < size; ++i) {
        object += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": " + Value(depth - 1);
      }
      return object + "}";
    }
  }
}

Operation RandomOperations::Next(int64_t versions, bool live) {
  const auto member = [&] { return std::string(1, static_cast<char>('a' + Below(8))); };
  if (!live) {
    return Create(Name("create"),
                  R"({"a": )" + Value(2) + R"(, "b": )" + Value(2) + R"(, "c": "some words"})");
  }
  const uint64_t choice = Below(20);
  if (choice == 0) return Delete(Name("delete"));
  if (choice == 1 && versions > 1) return Restore(Name("restore"), versions);
  if (choice < 5) return Remove(Name("remove"), member());
  return Set(Name("set"), "{\"" + member() + "\": " + Value(3) + "}");
}

}  // namespace strata::versioning::checks
