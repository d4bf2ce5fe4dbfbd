// Waiting by polling.
#pragma once

#include <sched.h>

#include <ctime>

namespace haloscope {

/// Tells the core that it is waiting, for a few nanoseconds.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A wait that may last. Loops that poll look at it now and then.
class WatchedWait {
 public:
  virtual void look() = 0;

 protected:
  ~WatchedWait() = default;
};

/// The innermost of this thread; null: nothing looks.
inline thread_local WatchedWait* current_wait = nullptr;

/// Throws where another rank has failed, so that waits of this thread would not end; null: nothing looks for that.
inline thread_local void (*look_for_failures)() = nullptr;

/// Called between polls of a wait that has lasted for a while. @throws what look_for_failures() does.
inline void look_at_wait() {
  if (look_for_failures != nullptr) look_for_failures();
  if (current_wait != nullptr) current_wait->look();
}

/// What a wait lets go on that it does not wait for itself.
class PolledMeanwhile {
 public:
  virtual void poll() = 0;

 protected:
  ~PolledMeanwhile() = default;
};

/// What waits of this thread that last poll; null: nothing, as on threads that may not call MPI.
inline thread_local PolledMeanwhile* polled_meanwhile = nullptr;

/// What to do between two polls: pauses first; yields the core at once where ranks share cores, else after a while. Now
/// and then it sleeps: Linux 6.18 has been seen not to run new threads for seconds beside those that only yield.
/// From the first sleep on it polls polled_meanwhile.
class Spin {
 public:
  explicit Spin(bool yield) : left_(yield ? 0 : patience) {}
  void again() {
    if (left_ > 0) {
      --left_;
      relax();
    } else if (++yields_ % yields_a_sleep == 0) {
      const timespec shortest{0, 1};
      nanosleep(&shortest, nullptr);
      look_at_wait();
    } else {
      sched_yield();
      if (yields_ > yields_a_sleep && yields_ % yields_a_poll == 0 && polled_meanwhile != nullptr)
        polled_meanwhile->poll();
    }
  }

 private:
  static constexpr int patience = 20000;  // looks: a millisecond
  static constexpr unsigned yields_a_sleep = 256;
  static constexpr unsigned yields_a_poll = 8;  // a large message may need hundreds of polls
  int left_;
  unsigned yields_ = 0;
};

}  // namespace haloscope
