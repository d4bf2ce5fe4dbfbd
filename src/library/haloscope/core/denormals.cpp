#include "haloscope/core/denormals.hpp"

#include <limits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace haloscope {

#if defined(__SSE2__)
namespace {
constexpr unsigned flush_results = 0x8000, zero_operands = 0x0040;
}

bool can_flush_to_zero() { return true; }

FlushToZero::FlushToZero(bool wanted) : wanted_(wanted) {
  if (!wanted_) return;
  before_ = _mm_getcsr();
  _mm_setcsr(before_ | flush_results | zero_operands);
}

FlushToZero::~FlushToZero() {
  constexpr unsigned both = flush_results | zero_operands;
  if (wanted_) _mm_setcsr((_mm_getcsr() & ~both) | (before_ & both));
}
#else
bool can_flush_to_zero() { return false; }
FlushToZero::FlushToZero(bool wanted) : wanted_(wanted) {}
FlushToZero::~FlushToZero() = default;
#endif

bool flushes_to_zero() {
  volatile double smallest = std::numeric_limits<double>::min();  // volatile: at run time, in this thread's mode
  volatile double half = smallest * 0.5;
  return half == 0;
}

}  // namespace haloscope
