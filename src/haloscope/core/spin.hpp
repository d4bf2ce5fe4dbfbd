// Waiting by polling.
#pragma once

#include <sched.h>

namespace haloscope {

/// Tells the core that it is waiting, for a few nanoseconds.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What to do between two polls: pauses first; yields the core at once where ranks share cores, else after a while.
class Spin {
 public:
  explicit Spin(bool yield) : left_(yield ? 0 : patience) {}
  void again() {
    if (left_ == 0) {
      sched_yield();
      return;
    }
    --left_;
    relax();
  }

 private:
  static constexpr int patience = 20000;  // looks: a millisecond
  int left_;
};

}  // namespace haloscope
