// Signals between a running kernel, its other blocks and the CPU: words written by one side and read by the other, and
// the device's clock. Included once per back end, after team.hpp.
#pragma once

#include "haloscope/device/team.hpp"

#if HALOSCOPE_ON_GPU && !defined(__HIPCC__)
#include <cuda/atomic>
#elif !HALOSCOPE_ON_GPU
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#endif

#include "haloscope/device/stay.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// The readers of a word: other blocks of the device, or the CPU too.
enum class Reader { device, anyone };

#if HALOSCOPE_ON_GPU && defined(__HIPCC__)

template <Reader reader>
inline constexpr int memory_scope = reader == Reader::device ? __HIP_MEMORY_SCOPE_AGENT : __HIP_MEMORY_SCOPE_SYSTEM;

/// Acquires: everything written before the word got its value is visible after this read.
template <Reader reader, class T>
HALOSCOPE_FUNCTION T read_word(const T* word) {
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, memory_scope<reader>);
}
/// Releases: everything that the thread wrote before, and that it saw of others, is visible to readers of the value.
template <Reader reader, class T>
HALOSCOPE_FUNCTION void write_word(T* word, T value) {
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, memory_scope<reader>);
}
/// @return the sum. The thread that gets it sees everything that threads saw that added before.
HALOSCOPE_FUNCTION std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
  return __hip_atomic_fetch_add(word, value, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) + value;
}
/// Takes a lock in device memory if it is free. @return true if it was.
HALOSCOPE_FUNCTION bool take(std::uint32_t* lock, std::uint32_t owner) {
  std::uint32_t free = 0;
  return __hip_atomic_compare_exchange_strong(lock, &free, owner, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                              __HIP_MEMORY_SCOPE_AGENT);
}
HALOSCOPE_FUNCTION void rest(int) { __builtin_amdgcn_s_sleep(1); }
HALOSCOPE_FUNCTION void look_again(int) {}
/// Ticks of the device's clock, see Info::clock_hz.
HALOSCOPE_FUNCTION std::uint64_t clock_ticks() {
#if defined(__HIP_DEVICE_COMPILE__)
  return static_cast<std::uint64_t>(wall_clock64());
#else
  return 0;  // the host's pass of the compiler, to which old versions do not declare it
#endif
}

#elif HALOSCOPE_ON_GPU

template <Reader reader>
inline constexpr ::cuda::thread_scope memory_scope =
    reader == Reader::device ? ::cuda::thread_scope_device : ::cuda::thread_scope_system;

template <Reader reader, class T>
HALOSCOPE_FUNCTION T read_word(const T* word) {
  return ::cuda::atomic_ref<T, memory_scope<reader> >(*const_cast<T*>(word)).load(::cuda::memory_order_acquire);
}
template <Reader reader, class T>
HALOSCOPE_FUNCTION void write_word(T* word, T value) {
  ::cuda::atomic_ref<T, memory_scope<reader> >(*word).store(value, ::cuda::memory_order_release);
}
HALOSCOPE_FUNCTION std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
  using Word = ::cuda::atomic_ref<std::uint32_t, ::cuda::thread_scope_device>;
  return Word(*word).fetch_add(value, ::cuda::memory_order_acq_rel) + value;
}
HALOSCOPE_FUNCTION bool take(std::uint32_t* lock, std::uint32_t owner) {
  std::uint32_t free = 0;
  return ::cuda::atomic_ref<std::uint32_t, ::cuda::thread_scope_device>(*lock).compare_exchange_strong(
      free, owner, ::cuda::memory_order_acquire, ::cuda::memory_order_relaxed);
}
HALOSCOPE_FUNCTION void rest(int) { __nanosleep(100); }
HALOSCOPE_FUNCTION void look_again(int) {}
HALOSCOPE_FUNCTION std::uint64_t clock_ticks() {
  std::uint64_t ticks;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ticks));
  return ticks;
}

#else

// Sequentially consistent, which replaces a fence between a word written and a word read: TSan does not support fences.
template <Reader, class T>
T read_word(const T* word) {
  return std::atomic_ref<T>(*const_cast<T*>(word)).load();
}
template <Reader, class T>
void write_word(T* word, T value) {
  std::atomic_ref<T>(*word).store(value);
}
inline std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
  return std::atomic_ref<std::uint32_t>(*word).fetch_add(value, std::memory_order_acq_rel) + value;
}
inline bool take(std::uint32_t* lock, std::uint32_t owner) {
  std::uint32_t free = 0;
  return std::atomic_ref<std::uint32_t>(*lock).compare_exchange_strong(free, owner, std::memory_order_acquire,
                                                                       std::memory_order_relaxed);
}
/// Many blocks share a core: blocks that wait leave it to blocks that work, and longer the longer they wait. Dozens of
/// threads that wake every 50 us have been seen to keep all others from running for seconds.
inline void rest(int looks) { std::this_thread::sleep_for(std::chrono::microseconds(1 << std::min(looks, 10))); }
/// Blocks also share cores with the CPU's thread that they signal.
inline void look_again(int) { std::this_thread::yield(); }
inline std::uint64_t clock_ticks() { return imitated_clock(); }

#endif

/// Polls on one thread of the block until `ready()`; the others wait for it.
/// @tparam pause  between two reads: rest, or look_again for an answer that comes immediately.
/// @return false, for all threads, where a stop was requested, or the block has stayed for too long.
template <void (*pause)(int looks) = rest, class Ready>
HALOSCOPE_FUNCTION bool await(const Team& team, const Stay& stay, Ready ready) {
  return team.agree([&]() -> bool {
    if (ready()) return true;
    const std::uint64_t since = clock_ticks();
    for (int looks = 0; !ready(); ++looks) {
      const bool stop_requested = stay.stop != nullptr && read_word<Reader::anyone>(stay.stop) != 0;
      if (stop_requested || clock_ticks() - since > stay.ticks) return false;
      pause(looks);
    }
    return true;
  });
}

/// Announces a word once all threads of the block have written the data that it covers (Vanecek 2020, section 3.4:
/// fence, barrier, flag).
template <class Announce>
HALOSCOPE_FUNCTION void announce(const Team& team, Announce announce_it) {
  team.each([](int) { fence(); });
  team.sync();
  team.one(announce_it);
  look_again(0);
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
