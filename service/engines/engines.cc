#include "service/engines/engines.h"

#include "schemas/base/error.h"

namespace strata::engines {

#define ENGINE(name, open) \
  absl::StatusOr<std::unique_ptr<store::Store>> open(const OpenOptions& options);
#include "service/engines/engines.def"
#undef ENGINE

const std::vector<Engine>& AllEngines() {
  static const auto* const all = new std::vector<Engine>{
#define ENGINE(name, open) {name, open},
#include "service/engines/engines.def"
#undef ENGINE
  };
  return *all;
}

absl::StatusOr<std::unique_ptr<store::Store>> OpenEngine(std::string_view name,
                                                         const OpenOptions& options) {
  std::string names;
  for (const Engine& engine : AllEngines()) {
    if (engine.name == name) return engine.open(options);
    if (!names.empty()) names += ", ";
    names += engine.name;
  }
  return Error(ErrorReason::kInvalidField, "There is no such engine; there are: " + names + ".")
      .With("field", "engine");
}

}  // namespace strata::engines
