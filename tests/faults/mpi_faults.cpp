// A library to preload: calls of MPI are counted, and one of them fails.
//   HALOSCOPE_TEST_FAULT=FUNCTION:N[:RANK]  the N-th call (from 1) of a function by this rank, or by every rank
//   HALOSCOPE_TEST_CALLS=FILE               calls by function, appended as "RANK FUNCTION N" when the process ends
//   HALOSCOPE_TEST_CALLERS=NAME             calls count that come from files with this in their names, at the time of each call;
//                                           "haloscope" by default, since those of the program around it are its own
// mpi_functions.inc has a line FAULTY(NAME) for each function that the library calls, and for its form for large counts.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Fault {
  std::string function;
  long number = 0;
  int rank = -1;

  Fault() {
    const char* const text = std::getenv("HALOSCOPE_TEST_FAULT");
    if (text == nullptr) return;
    const std::string all = text;
    const auto first = all.find(':'), second = all.find(':', first + 1);
    function = all.substr(0, first);
    number = std::atol(all.c_str() + first + 1);
    if (second != std::string::npos) rank = std::atoi(all.c_str() + second + 1);
  }
};

int own_rank() {
  int begun = 0, rank = -1;
  PMPI_Initialized(&begun);
  if (begun) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

bool counts(void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const asked = std::getenv("HALOSCOPE_TEST_CALLERS");
  return std::strstr(slash ? slash : info.dli_fname, asked ? asked : "haloscope") != nullptr;
}

class Calls {
 public:
  static Calls& all() {
    static Calls* const calls = new Calls;
    return *calls;
  }
  bool fails(const char* function, void* caller) {
    if (!counts(caller)) return false;
    const std::lock_guard lock(mutex_);
    const long number = ++counts_[function];
    if (rank_ < 0) rank_ = own_rank();
    if (fault_.function != function || number != fault_.number || (fault_.rank >= 0 && fault_.rank != rank_))
      return false;
    std::fprintf(stderr, "fault: rank %d, %s call %ld\n", rank_, function, number);
    return true;
  }
  void write() {
    const char* const path = std::getenv("HALOSCOPE_TEST_CALLS");
    if (path == nullptr || rank_ < 0) return;
    std::string text;
    for (const auto& [function, number] : counts_)
      text += std::to_string(rank_) + " " + function + " " + std::to_string(number) + "\n";
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fputs(text.c_str(), file);
      std::fclose(file);
    }
  }

 private:
  Fault fault_;
  std::mutex mutex_;
  std::map<std::string, long> counts_;
  int rank_ = -1;
};

__attribute__((destructor)) void write_calls() { Calls::all().write(); }

/// Wraps a function of any signature.
template <auto real>
struct Faulty;
template <class... A, int (*real)(A...)>
struct Faulty<real> {
  template <const char* name>
  static int call(A... a) {
    return Calls::all().fails(name, __builtin_return_address(0)) ? MPI_ERR_OTHER : real(a...);
  }
};

}  // namespace

// The loader takes what resolve_NAME() returns for NAME, so that no signature is written here.
#define FAULTY(name)                                                                             \
  static constexpr char text_##name[] = #name;                                                   \
  extern "C" {                                                                                   \
  static void* resolve_##name() { return (void*)&Faulty<&P##name>::template call<text_##name>; } \
  decltype(P##name) name __attribute__((ifunc("resolve_" #name)));                               \
  }
#include "mpi_functions.inc"
