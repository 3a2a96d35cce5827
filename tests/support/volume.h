// How much a test does: less under a sanitizer, more in the long run.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace strata::test_support {

// A sanitizer makes all several times as slow: there, one in so many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kOneIn = 8;
#elif defined(__has_feature)  // clang++ says it so
inline constexpr int64_t kOneIn =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ? 8 : 1;
#else
inline constexpr int64_t kOneIn = 1;
#endif

// `otherwise`, or one in kOneIn of it.
constexpr int64_t Sampled(int64_t otherwise) { return otherwise / kOneIn; }

// `otherwise`, or `sample` of it under a sanitizer: as much as it takes to go every way.
constexpr int Sampled(int otherwise, int sample) { return kOneIn == 1 ? otherwise : sample; }

// Whether a case that is like others is left to the build that is not sanitized.
constexpr bool LeftOut(bool like_others) { return kOneIn != 1 && like_others; }

// A number of the environment, or else `usual`.
inline int64_t NumberOr(const char* name, int64_t usual) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : usual;
}
inline int64_t Volume(const char* name, int64_t otherwise) {
  return NumberOr(name, Sampled(otherwise));
}

}  // namespace strata::test_support
