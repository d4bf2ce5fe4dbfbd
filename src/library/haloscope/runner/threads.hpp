// The threads of a rank: the only place of the library that makes them by OpenMP.
#pragma once

namespace haloscope {

/// Calls `call(work, thread)` for each thread of a team, concurrently; the caller's thread is number 0. The libraries
/// of the C interface, in which one thread makes each call, have a definition without OpenMP (one_thread.cpp).
/// @param threads  >= 1
void run_team(int threads, void (*call)(const void* work, int thread), const void* work);

/// Calls `work(thread)` for each thread of a team, see run_team().
template <class Work>
void on_threads(int threads, const Work& work) {
  run_team(
      threads, [](const void* at, int thread) { (*static_cast<const Work*>(at))(thread); }, &work);
}

}  // namespace haloscope
