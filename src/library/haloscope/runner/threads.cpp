#include "haloscope/runner/threads.hpp"

namespace haloscope {

void run_team(int threads, void (*call)(const void* work, int thread), const void* work) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) call(work, thread);
}

}  // namespace haloscope
