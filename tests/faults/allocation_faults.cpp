// A library to preload: allocations are counted, and some of them fail. A program finds its functions by dlsym().
// Only allocations count that code makes in files with "haloscope" in their names, directly or by the C++ library: operator
// new, and the calls of the system by which large memory is taken. MPI and the program around are left alone.
//   HALOSCOPE_TEST_TRACE=1  prints the callers of what fails on standard error
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

long made = 0, first_failing = 0, last_failing = -1, failed = 0;
thread_local bool counting = false, looking = false;
std::atomic<long> held{0};

enum class File { library, standard, other };

File file_of(void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return File::other;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const name = slash != nullptr ? slash : info.dli_fname;
  if (std::strstr(name, "haloscope") != nullptr) return File::library;
  return std::strstr(name, "libstdc++") != nullptr ? File::standard : File::other;
}

/// Who called the C++ library.
bool library_is_below() {
  void* frames[24];
  const int count = backtrace(frames, 24);
  bool seen = false;
  for (int f = 0; f < count; ++f) {
    const File file = file_of(frames[f]);
    if (file == File::standard) seen = true;
    if (seen && file != File::standard) return file == File::library;
  }
  return false;
}

bool comes_from_library(void* caller) {
  looking = true;
  const File file = file_of(caller);
  const bool found = file == File::library || (file == File::standard && library_is_below());
  looking = false;
  return found;
}

void print_frames() {
  void* frames[24];
  looking = true;
  backtrace_symbols_fd(frames, backtrace(frames, 24), 2);
  looking = false;
}

bool fails(void* caller) {
  if (!counting || looking || !comes_from_library(caller)) return false;
  const long number = ++made;
  if (number < first_failing || number > last_failing) return false;
  ++failed;
  if (std::getenv("HALOSCOPE_TEST_TRACE") != nullptr) print_frames();
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment, void* caller) {
  if (fails(caller)) throw std::bad_alloc();
  void* const memory = alignment > 0 ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                     : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  ++held;
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  --held;
  std::free(memory);
}

void* allocate_or_null(std::size_t bytes, std::size_t alignment, void* caller) noexcept try {
  return allocate(bytes, alignment, caller);
} catch (const std::bad_alloc&) {
  return nullptr;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

/// Allocations of this thread are counted from 1 while it counts, and those from number `first` to `last` fail.
__attribute__((visibility("default"))) void fail_allocations(long first, long last) {
  void* frames[2];
  backtrace(frames, 2);  // loads what it needs
  made = failed = 0;
  first_failing = first;
  last_failing = last;
}
__attribute__((visibility("default"))) void count_allocations(int on) { counting = on != 0; }
__attribute__((visibility("default"))) long failed_allocations() { return failed; }
/// By operator new, of all code of this process.
__attribute__((visibility("default"))) long held_allocations() { return held; }

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const real = next<decltype(mmap)>("mmap");
  if (!fails(CALLER)) return real(at, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
int ftruncate(int file, off_t bytes) noexcept {
  static auto* const real = next<decltype(ftruncate)>("ftruncate");
  if (!fails(CALLER)) return real(file, bytes);
  errno = ENOSPC;
  return -1;
}
int memfd_create(const char* name, unsigned flags) noexcept {
  static auto* const real = next<decltype(memfd_create)>("memfd_create");
  if (!fails(CALLER)) return real(name, flags);
  errno = ENOMEM;
  return -1;
}
}

void* operator new(std::size_t n) { return allocate(n, 0, CALLER); }
void* operator new[](std::size_t n) { return allocate(n, 0, CALLER); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a), CALLER); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a), CALLER); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate_or_null(n, 0, CALLER); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate_or_null(n, 0, CALLER); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, static_cast<std::size_t>(a), CALLER);
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, static_cast<std::size_t>(a), CALLER);
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
