// Teams, the interface that kernels are written against: the threads of one block. On a GPU each of them runs the
// kernel; on the host one thread runs it for all of them, loop by loop, so a kernel's code between two sync() stands in
// each().
//
// Included once per back end, with another HALOSCOPE_BACKEND (a namespace), as the CPU's kernels are once per
// instruction set.
#pragma once

#ifndef HALOSCOPE_BACKEND
#error "define HALOSCOPE_BACKEND before including this header"
#endif

#include <cmath>
#include <cstdint>

#include "haloscope/device/kernels.hpp"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define HALOSCOPE_ON_GPU 1
#define HALOSCOPE_FUNCTION __device__ __forceinline__
#define HALOSCOPE_UNROLL_TEXT(text) _Pragma(#text)
#define HALOSCOPE_UNROLL(times) HALOSCOPE_UNROLL_TEXT(unroll times)
#else
#define HALOSCOPE_ON_GPU 0
#define HALOSCOPE_FUNCTION inline
#define HALOSCOPE_UNROLL(times)
#endif

namespace haloscope::device::HALOSCOPE_BACKEND {

#if HALOSCOPE_ON_GPU

class Team {
 public:
  HALOSCOPE_FUNCTION int block() const { return static_cast<int>(blockIdx.x); }
  HALOSCOPE_FUNCTION int threads() const { return static_cast<int>(blockDim.x); }
  /// Calls f(thread) for each thread of the block.
  template <class F>
  HALOSCOPE_FUNCTION void each(F f) const {
    f(static_cast<int>(threadIdx.x));
  }
  /// Synchronises: after it, all threads of the block see everything that was written before it.
  HALOSCOPE_FUNCTION void sync() const { __syncthreads(); }
  /// Calls f() on one thread of the block.
  template <class F>
  HALOSCOPE_FUNCTION void one(F f) const {
    if (threadIdx.x == 0) f();
  }
  /// Returns to all threads the result of f() on one thread; a sync().
  template <class F>
  HALOSCOPE_FUNCTION bool agree(F f) const {
    return __syncthreads_or(threadIdx.x == 0 && f()) != 0;
  }
  /// The same for a number.
  template <class F>
  HALOSCOPE_FUNCTION int tell(F f) const {
    __shared__ int answer;
    if (threadIdx.x == 0) answer = f();
    __syncthreads();
    const int result = answer;
    __syncthreads();
    return result;
  }
  /// The block's shared memory, with the number of bytes that the launch requested.
  template <class T>
  HALOSCOPE_FUNCTION T* shared() const {
    extern __shared__ __align__(16) unsigned char haloscope_shared_memory[];
    return reinterpret_cast<T*>(haloscope_shared_memory);
  }
};

/// A variable private to each thread of a block, from one each() to the next: registers.
template <class T>
class PerThread {
 public:
  HALOSCOPE_FUNCTION T& operator[](int) { return value_; }

 private:
  T value_;
};

#else

class Team {
 public:
  Team(int block, int threads, void* shared) : block_(block), threads_(threads), shared_(shared) {}
  int block() const { return block_; }
  int threads() const { return threads_; }
  template <class F>
  void each(F f) const {
    for (int thread = 0; thread < threads_; ++thread) f(thread);
  }
  void sync() const {}
  template <class F>
  void one(F f) const {
    f();
  }
  template <class F>
  bool agree(F f) const {
    return f();
  }
  template <class F>
  int tell(F f) const {
    return f();
  }
  template <class T>
  T* shared() const {
    return static_cast<T*>(shared_);
  }

 private:
  int block_, threads_;
  void* shared_;
};

template <class T>
class PerThread {
 public:
  T& operator[](int thread) { return values_[thread]; }

 private:
  T values_[most_threads];
};

#endif

/// Reads data that is not written while the kernel runs. This lets the compiler load twice-used data once, and move
/// loads ahead of earlier stores: several layers' loads are then in flight concurrently.
template <class T>
HALOSCOPE_FUNCTION T load(const T* p) {
#if defined(__CUDACC__)
  return __ldg(p);
#else
  return *p;
#endif
}

/// Values that are contiguous in memory, and move in one access where they begin at a multiple of their bytes.
template <class T, int count>
struct alignas(count * sizeof(T)) Pack {
  T value[count];
};

/// Reads as load() does. Of a Pack of which only values `begin` to `end` may be read the others are undefined: a GPU
/// reads them too, since memory that holds some bytes of 16 holds all.
/// @param p  aligned as a Pack is.
template <int count, class T>
HALOSCOPE_FUNCTION Pack<T, count> load_pack(const T* p, [[maybe_unused]] int begin, [[maybe_unused]] int end) {
  Pack<T, count> pack;
#if defined(__CUDACC__)
  static_assert(sizeof pack == sizeof(int4));
  const int4 bits = __ldg(reinterpret_cast<const int4*>(p));
  memcpy(&pack, &bits, sizeof pack);
#elif HALOSCOPE_ON_GPU
  pack = *reinterpret_cast<const Pack<T, count>*>(p);
#else
  for (int i = 0; i < count; ++i) pack.value[i] = i >= begin && i < end ? p[i] : T{};
#endif
  return pack;
}

/// @param p  aligned as a Pack is.
template <int count, class T>
HALOSCOPE_FUNCTION void store_pack(T* p, const Pack<T, count>& pack) {
#if HALOSCOPE_ON_GPU
  *reinterpret_cast<Pack<T, count>*>(p) = pack;
#else
  for (int i = 0; i < count; ++i) p[i] = pack.value[i];
#endif
}

/// Copies from memory to the block's shared memory, asynchronously where the device can: a thread's copies are complete
/// once await_copies() reports it for its end_copies(), for the others after a sync().
template <class T>
HALOSCOPE_FUNCTION void copy_to_shared(T* to, const T* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "n"(sizeof(T)));
#else
  *to = load(from);
#endif
}
/// Ends a group of copies, perhaps an empty one.
HALOSCOPE_FUNCTION void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}
/// Waits for all groups but the last `left` ones.
template <int left>
HALOSCOPE_FUNCTION void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(left));
#endif
}

/// Reads data that others may write while the kernel runs, and whose arrival a word has announced.
template <class T>
HALOSCOPE_FUNCTION T load_fresh(const T* p) {
#if HALOSCOPE_ON_GPU
  return *const_cast<const volatile T*>(p);
#else
  return *p;
#endif
}

/// Orders writes: this thread's earlier ones are visible, to the CPU too, before its later ones.
HALOSCOPE_FUNCTION void fence() {
#if HALOSCOPE_ON_GPU
  __threadfence_system();
#endif
}

/// Prefetches data from memory to the device's last-level cache.
HALOSCOPE_FUNCTION void prefetch(const void* p) {
#if defined(__CUDACC__) && !defined(__HIP__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
  (void)p;
#endif
}

HALOSCOPE_FUNCTION double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }
HALOSCOPE_FUNCTION float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

}  // namespace haloscope::device::HALOSCOPE_BACKEND
