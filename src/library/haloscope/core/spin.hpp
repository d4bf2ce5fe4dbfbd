// Waits that poll.
#pragma once

#include <sched.h>

#include <ctime>

namespace haloscope {

/// Pauses the core for a few nanoseconds.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A wait that may last. Polling loops check it from time to time.
class WatchedWait {
 public:
  virtual void look() = 0;

 protected:
  ~WatchedWait() = default;
};

/// The innermost wait of this thread; null: none is checked.
inline thread_local WatchedWait* current_wait = nullptr;

/// Throws where another rank has failed, so that waits of this thread would not end; null: failures are not checked.
inline thread_local void (*look_for_failures)() = nullptr;

/// Checks the wait; called between polls of a wait that has lasted for a while. @throws as look_for_failures() does.
inline void look_at_wait() {
  if (look_for_failures != nullptr) look_for_failures();
  if (current_wait != nullptr) current_wait->look();
}

/// Work that progresses during a wait for something else.
class PolledMeanwhile {
 public:
  virtual void poll() = 0;

 protected:
  ~PolledMeanwhile() = default;
};

/// The work that long waits of this thread poll; null: none, as on threads that may not call MPI.
inline thread_local PolledMeanwhile* polled_meanwhile = nullptr;

/// The pause between two polls: first pauses the core; yields the core immediately where ranks share cores, else
/// after a while. From time to time it sleeps: Linux 6.18 was observed not to run new threads for seconds while other
/// threads only yield. From the first sleep on it polls polled_meanwhile.
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
  static constexpr int patience = 20000;  // polls: a millisecond
  static constexpr unsigned yields_a_sleep = 256;
  static constexpr unsigned yields_a_poll = 8;  // a large message may need hundreds of polls
  int left_;
  unsigned yields_ = 0;
};

}  // namespace haloscope
