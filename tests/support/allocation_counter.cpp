// Counts allocations of this program's C++ code. MPI libraries are C and call malloc themselves, so allocations inside
// their functions are not counted, as intended; the project never calls malloc directly.
#include "allocation_counter.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace haloscope::test {
namespace {
std::atomic<std::int64_t> count{0}, held{0}, most_held{0};
std::atomic<bool> refused{false};

void* keep(void* at) {
  if (at == nullptr) return at;
  const std::int64_t now = held += static_cast<std::int64_t>(malloc_usable_size(at));
  for (std::int64_t most = most_held; most < now && !most_held.compare_exchange_weak(most, now);) {
  }
  return at;
}

[[maybe_unused]] void give_back(void* at) {
  held -= static_cast<std::int64_t>(malloc_usable_size(at));
  std::free(at);
}

void* counted_or_null(std::size_t bytes, std::size_t alignment = 0) {
  ++count;
  if (refused) return nullptr;
  const std::size_t padded = alignment ? (bytes + alignment - 1) / alignment * alignment : bytes;
  return keep(alignment ? std::aligned_alloc(alignment, padded) : std::malloc(bytes > 0 ? bytes : 1));
}

[[maybe_unused]] void* counted(std::size_t bytes, std::size_t alignment = 0) {
  void* const at = counted_or_null(bytes, alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
}  // namespace

std::int64_t allocations() { return count; }
void refuse_allocations(bool refuse) { refused = refuse; }
std::int64_t held_bytes() { return held; }
std::int64_t most_held_bytes(bool again) { return again ? most_held.exchange(held) : most_held.load(); }
}  // namespace haloscope::test

#ifndef SANITIZER_HAS_OPERATOR_NEW  // with it, no allocation is counted or refused
using haloscope::test::counted;
using haloscope::test::counted_or_null;
using haloscope::test::give_back;
void* operator new(std::size_t n) { return counted(n); }
void* operator new[](std::size_t n) { return counted(n); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted_or_null(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted_or_null(n); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted_or_null(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted_or_null(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
#endif
