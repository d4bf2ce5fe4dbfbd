// What passes between a running kernel, its other blocks and the CPU: words written by one side and read by the other,
// and the device's clock. Included once per back end, after team.hpp.
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

/// Who reads a word: other blocks of the device, or the CPU too.
enum class Reader { device, anyone };

#if HALOSCOPE_ON_GPU && defined(__HIPCC__)

template <Reader reader>
inline constexpr int memory_scope = reader == Reader::device ? __HIP_MEMORY_SCOPE_AGENT : __HIP_MEMORY_SCOPE_SYSTEM;

/// What was written before the word's value came to be is seen after it was read.
template <Reader reader, class T>
HALOSCOPE_FUNCTION T read_word(const T* word) {
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, memory_scope<reader>);
}
/// What the thread wrote before, and what it saw of others, is seen by those who read the value.
template <Reader reader, class T>
HALOSCOPE_FUNCTION void write_word(T* word, T value) {
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, memory_scope<reader>);
}
/// @return the sum. Who gets it sees what those saw that added before.
HALOSCOPE_FUNCTION std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
  return __hip_atomic_fetch_add(word, value, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) + value;
}
/// Take a lock in device memory if it is free. @return whether it was.
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

// Sequentially consistent, which stands for a fence between a word written and a word read: TSan knows no fences.
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
/// Many blocks share a core: those that wait leave it to those that work, and longer the longer they wait. Dozens of
/// threads that wake every 50 us have been seen to keep all others from running for seconds.
inline void rest(int looks) { std::this_thread::sleep_for(std::chrono::microseconds(1 << std::min(looks, 10))); }
/// Blocks share cores with the CPU's thread that they tell something, too.
inline void look_again(int) { std::this_thread::yield(); }
inline std::uint64_t clock_ticks() { return imitated_clock(); }

#endif

/// One thread of the block polls until `ready()`; the others wait for it.
/// @tparam pause  between two looks: rest, or look_again for an answer that comes at once.
/// @return false, for all threads, where it was told to stop, or has stayed for too long.
template <void (*pause)(int looks) = rest, class Ready>
HALOSCOPE_FUNCTION bool await(const Team& team, const Stay& stay, Ready ready) {
  return team.agree([&]() -> bool {
    if (ready()) return true;
    const std::uint64_t since = clock_ticks();
    for (int looks = 0; !ready(); ++looks) {
      const bool told_to_stop = stay.stop != nullptr && read_word<Reader::anyone>(stay.stop) != 0;
      if (told_to_stop || clock_ticks() - since > stay.ticks) return false;
      pause(looks);
    }
    return true;
  });
}

/// All threads of the block have written what the word announces (Vanecek 2020, section 3.4: fence, barrier, flag).
template <class Announce>
HALOSCOPE_FUNCTION void announce(const Team& team, Announce announce_it) {
  team.each([](int) { fence(); });
  team.sync();
  team.one(announce_it);
  look_again(0);
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
