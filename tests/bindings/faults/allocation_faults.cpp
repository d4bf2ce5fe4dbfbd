// A library to preload: allocations are counted, and some of them fail. A program finds its functions by dlsym().
// Only allocations count that code makes in files with "haloscope" in their names, directly or by the C++ or Fortran
// library: operator new, and the calls of the system by which large memory is taken; malloc() in the library of the
// Fortran module.
// MPI and the program around are unaffected.
//   HALOSCOPE_TEST_TRACE=1  prints the callers of failing calls on standard error
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

// The functions of glibc behind malloc() and free(): dlsym() itself may call malloc() and free().
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t number, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void __libc_free(void* memory);
}

namespace {

long made = 0, first_failing = 0, last_failing = -1, failed = 0;
thread_local bool counting = false, looking = false;
bool only_pinned = false;
std::atomic<long> held{0};

enum class File { library, fortran, standard, other };

File file_of(void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return File::other;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const name = slash != nullptr ? slash : info.dli_fname;
  if (std::strstr(name, "libhaloscope_fortran") != nullptr) return File::fortran;
  if (std::strstr(name, "haloscope") != nullptr) return File::library;
  const bool is_standard = std::strstr(name, "libstdc++") != nullptr || std::strstr(name, "libgfortran") != nullptr;
  return is_standard ? File::standard : File::other;
}

/// The file that called the library of a language.
File file_below() {
  void* frames[24];
  const int count = backtrace(frames, 24);
  bool seen = false;
  for (int f = 0; f < count; ++f) {
    const File file = file_of(frames[f]);
    if (file == File::standard) seen = true;
    if (seen && file != File::standard) return file;
  }
  return File::other;
}

File origin_of(void* caller) {
  looking = true;
  const File file = file_of(caller), found = file == File::standard ? file_below() : file;
  looking = false;
  return found;
}

/// Memory that malloc() has returned to the Fortran module and that still exists. Other code may free it.
class OfFortran {
 public:
  void add(void* memory) {
    if (memory == nullptr) return;
    ++held;
    for (std::atomic<void*>& place : places_) {
      void* none = nullptr;
      if (place.compare_exchange_strong(none, memory)) return;
    }
    std::abort();  // there are more than places
  }
  void drop(void* memory) {
    if (memory == nullptr) return;
    for (std::atomic<void*>& place : places_) {
      void* wanted = memory;
      if (!place.compare_exchange_strong(wanted, nullptr)) continue;
      --held;
      return;
    }
  }

 private:
  std::atomic<void*> places_[64] = {};
};
OfFortran of_fortran;

void print_frames() {
  void* frames[24];
  looking = true;
  backtrace_symbols_fd(frames, backtrace(frames, 24), 2);
  looking = false;
}

/// Imitated devices take pinned memory by the operators of the last kind, which nothing else in the library calls.
enum class Kind { any, aligned_or_null };

bool fails(void* caller, Kind kind = Kind::any) {
  if (!counting || looking || (only_pinned && kind == Kind::any) || origin_of(caller) == File::other) return false;
  const long number = ++made;
  if (number < first_failing || number > last_failing) return false;
  ++failed;
  if (std::getenv("HALOSCOPE_TEST_TRACE") != nullptr) print_frames();
  return true;
}

/// @param real  takes memory from the system.
template <class Real>
void* for_fortran(void* caller, Real real) {
  const bool counts = counting && !looking && origin_of(caller) == File::fortran;
  if (counts && fails(caller)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const memory = real();
  if (counts) of_fortran.add(memory);
  return memory;
}

void* allocate(std::size_t bytes, std::size_t alignment, void* caller, Kind kind = Kind::any) {
  if (fails(caller, kind)) throw std::bad_alloc();
  void* const memory = alignment > 0 ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                     : __libc_malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  ++held;
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  --held;
  __libc_free(memory);
}

void* allocate_or_null(std::size_t bytes, std::size_t alignment, void* caller) noexcept try {
  return allocate(bytes, alignment, caller, alignment > 0 ? Kind::aligned_or_null : Kind::any);
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

/// Allocations of this thread are counted from 1 while it counts, and allocations from number `first` to `last` fail.
__attribute__((visibility("default"))) void fail_allocations(long first, long last) {
  void* frames[2];
  backtrace(frames, 2);  // loads the library that it needs
  made = failed = 0;
  first_failing = first;
  last_failing = last;
}
/// From now on only pinned memory of imitated devices counts, or all memory again.
__attribute__((visibility("default"))) void count_only_pinned(int on) { only_pinned = on != 0; }
__attribute__((visibility("default"))) void count_allocations(int on) { counting = on != 0; }
__attribute__((visibility("default"))) long failed_allocations() { return failed; }
/// By operator new, of all code of this process.
__attribute__((visibility("default"))) long held_allocations() { return held; }

void* malloc(size_t bytes) noexcept {
  return for_fortran(CALLER, [&] { return __libc_malloc(bytes); });
}
void* calloc(size_t number, size_t bytes) noexcept {
  return for_fortran(CALLER, [&] { return __libc_calloc(number, bytes); });
}
void* realloc(void* memory, size_t bytes) noexcept {
  return for_fortran(CALLER, [&] {
    void* const moved = __libc_realloc(memory, bytes);
    if (moved != nullptr) of_fortran.drop(memory);
    return moved;
  });
}
void free(void* memory) noexcept {
  of_fortran.drop(memory);
  __libc_free(memory);
}

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
