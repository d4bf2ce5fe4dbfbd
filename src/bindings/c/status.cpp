// Outcomes of calls of the C interfaces.
#include <cstdio>
#include <new>

#include "bindings/c/border.hpp"

namespace haloscope::c {

namespace {

/// A fixed text where no memory was left for the whole one.
struct Failure {
  std::string text;
  ShortText fixed{};
};

Failure& last_failure() {
  thread_local Failure failure;
  return failure;
}

}  // namespace

void keep_failure(const char* prefix, const char* text) noexcept {
  Failure& last = last_failure();
  last.fixed[0] = '\0';
  try {
    last.text.assign(prefix).append(text);
  } catch (const std::bad_alloc&) {
    std::snprintf(last.fixed.data(), last.fixed.size(), "%s%s", prefix, text);
  }
}

const char* kept_failure() noexcept {
  const Failure& last = last_failure();
  return last.fixed[0] != '\0' ? last.fixed.data() : last.text.c_str();
}

}  // namespace haloscope::c

using namespace haloscope::c;

const char* hs_version(void) { return HALOSCOPE_VERSION; }
int32_t hs_abi(void) { return HS_ABI; }
const char* hs_last_error(void) { return kept_failure(); }
