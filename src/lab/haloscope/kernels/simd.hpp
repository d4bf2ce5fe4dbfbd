// A vector of N lanes for the instruction set that this translation unit is compiled for.
//
// Included once per isa_*.cpp, each with another -march and another HALOSCOPE_ISA. Everything lives in a namespace of
// that name, and nothing here or in the headers built on it calls an inline function from elsewhere (std::min, Box):
// the linker keeps one copy of such a function, and it might keep the one a weaker CPU cannot run. Kernels of devices
// that are equal to kernels of the CPU point by point include it too, once per back end (device/pass_kernel.hpp).
#pragma once

#ifndef HALOSCOPE_ISA
#error "define HALOSCOPE_ISA before including this header"
#endif

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define HALOSCOPE_SIMD 0
#define HALOSCOPE_PRAGMA(text) _Pragma(#text)
#define HALOSCOPE_UNROLLED(times) HALOSCOPE_PRAGMA(unroll times)
#if defined(__HIPCC__)
#define HALOSCOPE_UNROLLED_ON_DEVICE  // clang does not see that there are so few
#else
#define HALOSCOPE_UNROLLED_ON_DEVICE HALOSCOPE_PRAGMA(unroll)
#endif
#define HALOSCOPE_INLINE __device__ __forceinline__
#define HALOSCOPE_LAMBDA
#define HALOSCOPE_KERNEL __device__ __forceinline__
#else
#define HALOSCOPE_SIMD 1
#define HALOSCOPE_PRAGMA(text) _Pragma(#text)
#define HALOSCOPE_UNROLLED(times) HALOSCOPE_PRAGMA(GCC unroll times)
#define HALOSCOPE_UNROLLED_ON_DEVICE  // of loops that have one or two turns there
#define HALOSCOPE_INLINE [[gnu::always_inline]] inline
#define HALOSCOPE_LAMBDA __attribute__((always_inline))
#define HALOSCOPE_KERNEL  // a kernel, or a part of several that is not inlined
#endif

#if HALOSCOPE_SIMD && defined(__SSE2__)
#include <immintrin.h>
#endif

namespace haloscope::HALOSCOPE_ISA {

#if !HALOSCOPE_SIMD
constexpr int vector_bytes = 8;
#elif defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

#if HALOSCOPE_SIMD && defined(__SSE2__)
constexpr bool can_stream = true;  ///< has non-temporal stores
#else
constexpr bool can_stream = false;
#endif
#if HALOSCOPE_SIMD && defined(__AVX512F__)
constexpr bool can_shift = true;  ///< joins lanes of two vectors at a variable position in one instruction
#else
constexpr bool can_shift = false;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool many_registers = true;  ///< 32 vector registers instead of 16
#else
constexpr bool many_registers = false;
#endif

template <class T>
constexpr int full_lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T, int N>
struct RawVector {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T>
struct RawVector<T, 1> {
  using type = T;
};

/// N lanes of T; N a power of two, 1 up to full_lanes<T>.
template <class T, int N>
struct Vec {
  typename RawVector<T, N>::type v;

  HALOSCOPE_INLINE static Vec load(const T* p) {
    Vec r;
    __builtin_memcpy(&r.v, p, sizeof r.v);
    return r;
  }
  HALOSCOPE_INLINE static Vec splat(T s) {
    if constexpr (N == 1)
      return {s};
    else
      return {s - typename RawVector<T, N>::type{}};
  }
  HALOSCOPE_INLINE void store(T* p) const { __builtin_memcpy(p, &v, sizeof v); }
  HALOSCOPE_INLINE T lane(int i) const {
    if constexpr (N == 1)
      return v;
    else
      return v[i];
  }
};

template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> operator*(Vec<T, N> a, Vec<T, N> b) {
  return {a.v * b.v};
}

template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> operator+(Vec<T, N> a, Vec<T, N> b) {
  return {a.v + b.v};
}
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> operator-(Vec<T, N> a, Vec<T, N> b) {
  return {a.v - b.v};
}

template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> operator/(Vec<T, N> a, Vec<T, N> b) {
  return {a.v / b.v};
}

/// a where x > 0, else b.
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> where_positive(Vec<T, N> x, Vec<T, N> a, Vec<T, N> b) {
  return {x.v > 0 ? a.v : b.v};
}
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> larger_of(Vec<T, N> a, Vec<T, N> b) {
  return {a.v > b.v ? a.v : b.v};
}
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> smaller_of(Vec<T, N> a, Vec<T, N> b) {
  return {a.v < b.v ? a.v : b.v};
}
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> magnitude(Vec<T, N> a) {
  return {a.v < 0 ? -a.v : a.v};
}

#if !HALOSCOPE_SIMD
HALOSCOPE_INLINE Vec<double, 1> square_root(Vec<double, 1> a) { return {::sqrt(a.v)}; }
/// Writes lanes [first, last) of v to p[first..last).
template <class T>
HALOSCOPE_INLINE void store_lanes(T* p, Vec<T, 1> v, int first, int last) {
  if (first < last) p[first] = v.v;
}
#else
template <int N>
HALOSCOPE_INLINE Vec<double, N> square_root(Vec<double, N> a) {
  if constexpr (N == 1) {
#if defined(__SSE2__)
    return {_mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(a.v)))};
#else
    return {__builtin_sqrt(a.v)};
#endif
#if defined(__AVX512F__)
  } else if constexpr (N == 8) {
    return {_mm512_maskz_sqrt_pd(0xff, a.v)};
#endif
#if defined(__AVX2__)
  } else if constexpr (N == 4) {
    return {_mm256_sqrt_pd(a.v)};
#endif
#if defined(__SSE2__)
  } else if constexpr (N == 2) {
    return {_mm_sqrt_pd(a.v)};
#endif
  } else {
    Vec<double, N> r;
    for (int i = 0; i < N; ++i) r.v[i] = __builtin_sqrt(a.v[i]);
    return r;
  }
}

HALOSCOPE_INLINE double scalar_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
HALOSCOPE_INLINE float scalar_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// a * b + c, rounded once in every lane on every instruction set (by libm where the CPU has no such instruction).
template <class T, int N>
HALOSCOPE_INLINE Vec<T, N> fma(Vec<T, N> a, Vec<T, N> b, Vec<T, N> c) {
  [[maybe_unused]] constexpr bool f64 = sizeof(T) == 8;
  [[maybe_unused]] constexpr int bytes = N * static_cast<int>(sizeof(T));
  if constexpr (N == 1) {
    return {scalar_fma(a.v, b.v, c.v)};
#if defined(__AVX512F__)
  } else if constexpr (bytes == 64 && f64) {
    return {_mm512_fmadd_pd(a.v, b.v, c.v)};
  } else if constexpr (bytes == 64) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
#endif
#if defined(__FMA__)
  } else if constexpr (bytes == 32 && f64) {
    return {_mm256_fmadd_pd(a.v, b.v, c.v)};
  } else if constexpr (bytes == 32) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  } else if constexpr (bytes == 16 && f64) {
    return {_mm_fmadd_pd(a.v, b.v, c.v)};
  } else if constexpr (bytes == 16) {
    return {_mm_fmadd_ps(a.v, b.v, c.v)};
#endif
  } else {
    Vec<T, N> r;
    for (int i = 0; i < N; ++i) r.v[i] = scalar_fma(a.v[i], b.v[i], c.v[i]);
    return r;
  }
}

/// Elements from p to the next address that is a multiple of the N-lane vector's size; 0 if p is one.
template <int N, class T>
HALOSCOPE_INLINE int to_boundary(const T* p) {
  return static_cast<int>((-reinterpret_cast<std::uintptr_t>(p) & (N * sizeof(T) - 1)) / sizeof(T));
}

/// The last multiple of the N-lane vector's size before p.
template <int N, class T>
HALOSCOPE_INLINE T* vector_before(T* p) {
  return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(p) - 1) & ~(N * sizeof(T) - 1));
}

/// Returns p, hidden from the compiler: it recomputes values that it would otherwise keep in (too many) registers.
template <class T>
HALOSCOPE_INLINE T* opaque(T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

#if defined(__AVX512F__)
/// v rotated so that its lane `shift` modulo N comes first. (Masked forms: g++ 12 warns about the others' own header.)
template <class T>
HALOSCOPE_INLINE Vec<T, full_lanes<T> > rotated(Vec<T, full_lanes<T> > v, std::int64_t shift) {
  if constexpr (sizeof(T) == 8) {
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    return {_mm512_maskz_permutexvar_pd(0xff, _mm512_add_epi64(lane, _mm512_set1_epi64(shift)), v.v)};
  } else {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(shift)));
    return {_mm512_maskz_permutexvar_ps(0xffff, index, v.v)};
  }
}
#endif

/// Writes lanes [first, last) of v to p[first..last) and accesses no other cache line: a masked store that only reaches
/// into a line just streamed to memory would fetch it back.
template <class T, int N>
HALOSCOPE_INLINE void store_lanes(T* p, Vec<T, N> v, int first, int last) {
#if defined(__AVX512F__)
  if constexpr (N == full_lanes<T>) {
    for (T* line = vector_before<N>(p + first + 1); line < p + last; line += N) {
      const std::int64_t shift = line - p;
      const auto from = first > shift ? static_cast<unsigned>(first - shift) : 0u;
      const auto to = last - shift < N ? static_cast<unsigned>(last - shift) : static_cast<unsigned>(N);
      const auto mask = ((1u << to) - 1u) & ~((1u << from) - 1u);
      if constexpr (sizeof(T) == 8)
        _mm512_mask_store_pd(line, static_cast<__mmask8>(mask), rotated(v, shift).v);
      else
        _mm512_mask_store_ps(line, static_cast<__mmask16>(mask), rotated(v, shift).v);
    }
    return;
  }
#endif
  for (int i = first; i < last; ++i) p[i] = v.lane(i);
}

/// Stores past the caches to a multiple of the vector's size; an ordinary store where the CPU has no other.
template <class T>
HALOSCOPE_INLINE void store_stream(T* p, Vec<T, full_lanes<T> > v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), reinterpret_cast<__m512i>(v.v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(v.v));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), reinterpret_cast<__m128i>(v.v));
#else
  v.store(p);
#endif
}

/// Makes streamed stores visible to other threads before anything stored later.
HALOSCOPE_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#if defined(__AVX512F__)
/// Lanes shift .. shift + N - 1 of the 2N lanes (low, high), the shift fixed at construction.
template <class T>
struct Join {
  __m512i index;

  HALOSCOPE_INLINE static Join at(int shift) {
    if constexpr (sizeof(T) == 8) {
      return {_mm512_add_epi64(_mm512_set1_epi64(shift), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0))};
    } else {
      return {_mm512_add_epi32(_mm512_set1_epi32(shift),
                               _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))};
    }
  }
  HALOSCOPE_INLINE Vec<T, full_lanes<T> > operator()(Vec<T, full_lanes<T> > low, Vec<T, full_lanes<T> > high) const {
    if constexpr (sizeof(T) == 8)
      return {_mm512_permutex2var_pd(low.v, index, high.v)};
    else
      return {_mm512_permutex2var_ps(low.v, index, high.v)};
  }
};
#endif

#endif  // HALOSCOPE_SIMD

}  // namespace haloscope::HALOSCOPE_ISA
