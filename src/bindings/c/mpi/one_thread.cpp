// Teams of the libraries of the C interface. Their calls have one thread each, so that programs in C, Fortran and
// Python need no run time of OpenMP: the linker takes this definition, and leaves that of threads.cpp in its archive.
#include "haloscope/runner/threads.hpp"

namespace haloscope {

void run_team(int threads, void (*call)(const void* work, int thread), const void* work) {
  for (int thread = 0; thread < threads; ++thread) call(work, thread);
}

}  // namespace haloscope
