// A library to preload: calls of MPI are counted, and one of them fails.
//   HALOSCOPE_TEST_FAULT=FUNCTION:N[:RANK]  the N-th call (from 1) of a function by this rank, or by every rank
//   HALOSCOPE_TEST_CALLS=FILE               calls by function, appended as "RANK FUNCTION N" when the process ends
//   HALOSCOPE_TEST_CALLERS=NAME             calls count that come from files with this in their names, at the time of
//                                           each call; "haloscope" by default, since the program around it makes calls
//                                           of its own
// haloscope-rank has separate MPI_ functions, which time its calls, so there PMPI_ functions fail.
// A call fails as one of MPI does: it returns a code with a separate text where the error handler of its communicator,
// window or file returns errors, and ends the job where that handler is fatal. Calls that have neither return a code.
// mpi_functions.inc has a line FAULTY(NAME, "PARAMETERS") for each function that the library calls, and for its form
// for large counts, and a line TIMED(NAME) for functions that haloscope-rank times.
#include <dlfcn.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>

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

/// @param inner  the function begins with PMPI_.
bool counts(void* caller, bool inner) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const file = slash ? slash : info.dli_fname;
  if (inner) return std::strcmp(file, "/haloscope-rank") == 0;
  const char* const wanted = std::getenv("HALOSCOPE_TEST_CALLERS");
  return std::strstr(file, wanted ? wanted : "haloscope") != nullptr;
}

class Calls {
 public:
  static Calls& all() {
    static Calls* const calls = new Calls;
    return *calls;
  }
  bool fails(const char* function) {
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

bool runs() {
  int begun = 0, ended = 0;
  PMPI_Initialized(&begun);
  PMPI_Finalized(&ended);
  return begun && !ended;
}

/// A code whose text no other error has.
int new_code() {
  int group = 0, code = MPI_ERR_OTHER;
  if (!runs() || PMPI_Add_error_class(&group) != MPI_SUCCESS || PMPI_Add_error_code(group, &code) != MPI_SUCCESS ||
      PMPI_Add_error_string(code, "a test has injected this failure") != MPI_SUCCESS)
    return MPI_ERR_OTHER;
  return code;
}

/// The position of the first parameter of a type in a declaration; -1: it has none.
constexpr int place_of(std::string_view type, std::string_view parameters) {
  for (int place = 0;; ++place) {
    if (parameters.starts_with(type)) return place;
    const auto comma = parameters.find(", ");
    if (comma == std::string_view::npos) return -1;
    parameters.remove_prefix(comma + 2);
  }
}

/// Where the library left the handler fatal, MPI would end the job in the call.
template <class Handle>
void obey_handler(Handle handle, int (*get)(Handle, MPI_Errhandler*), const char* function) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (!runs() || get(handle, &handler) != MPI_SUCCESS) return;
  bool fatal = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
  fatal = fatal || handler == MPI_ERRORS_ABORT;
#endif
  PMPI_Errhandler_free(&handler);
  if (!fatal) return;
  std::fprintf(stderr, "fatal handler of %s\n", function);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // launchers drop output that they have not passed on
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);  // MPICH may return from it
}

template <class Handle, class Argument>
Handle handle_of(Argument argument) {
  if constexpr (std::is_same_v<Argument, Handle>)
    return argument;
  else
    return *argument;  // of MPI_Comm_free, MPI_Win_free
}

/// Wraps a function of any signature.
template <class Function>
struct Faulty;
template <class... A>
struct Faulty<int(A...)> {
  template <const char* name, const char* parameters, bool inner>
  static int call(A... a) {
    static const auto real = reinterpret_cast<int (*)(A...)>(dlsym(RTLD_NEXT, (std::string("P") + name).c_str()));
    if (!counts(__builtin_return_address(0), inner) || !Calls::all().fails(name)) return real(a...);
    obey_handler_of<name, parameters>(std::tuple<A...>(a...));
    return new_code();
  }

 private:
  template <const char* name, const char* parameters>
  static void obey_handler_of(const std::tuple<A...>& all) {
    constexpr int comm = place_of("MPI_Comm ", parameters), window = place_of("MPI_Win ", parameters);
    if constexpr (std::string_view(name).starts_with("MPI_File_")) {
      obey_handler(MPI_FILE_NULL, PMPI_File_get_errhandler, name);  // a file begins with the handler of MPI_FILE_NULL
    } else if constexpr (comm >= 0) {
      if (const auto handle = handle_of<MPI_Comm>(std::get<comm>(all)); handle != MPI_COMM_NULL)
        obey_handler(handle, PMPI_Comm_get_errhandler, name);
    } else if constexpr (window >= 0) {
      if (const auto handle = handle_of<MPI_Win>(std::get<window>(all)); handle != MPI_WIN_NULL)
        obey_handler(handle, PMPI_Win_get_errhandler, name);
    }
  }
};

}  // namespace

// The loader binds NAME to the result of resolve_NAME(), so that no signature is written here.
#define RESOLVED(function, name, inner)                                                             \
  extern "C" {                                                                                      \
  static void* resolve_##function() {                                                               \
    return (void*)&Faulty<decltype(P##name)>::template call<text_##name, parameters_##name, inner>; \
  }                                                                                                 \
  decltype(P##name) function __attribute__((ifunc("resolve_" #function)));                          \
  }
#define FAULTY(name, parameters)                                                 \
  static constexpr char text_##name[] = #name, parameters_##name[] = parameters; \
  RESOLVED(name, name, false)
#define TIMED(name) RESOLVED(P##name, name, true)
#include "mpi_functions.inc"
