// Counts allocations of this program's C++ code. MPI libraries are C and call malloc themselves, so what they allocate
// inside their own functions is not counted, as intended; nothing of the project calls malloc directly.
#include "allocation_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace haloscope::test {
namespace {
std::atomic<std::int64_t> count{0};

void* counted(std::size_t bytes, std::size_t alignment = 0) {
  ++count;
  const std::size_t padded = alignment ? (bytes + alignment - 1) / alignment * alignment : bytes;
  void* at = alignment ? std::aligned_alloc(alignment, padded) : std::malloc(bytes > 0 ? bytes : 1);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
}  // namespace

std::int64_t allocations() { return count; }
}  // namespace haloscope::test

using haloscope::test::counted;
void* operator new(std::size_t n) { return counted(n); }
void* operator new[](std::size_t n) { return counted(n); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  ++haloscope::test::count;
  return std::malloc(n > 0 ? n : 1);
}
void* operator new[](std::size_t n, const std::nothrow_t& tag) noexcept { return operator new(n, tag); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
