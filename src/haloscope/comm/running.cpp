#include "haloscope/comm/running.hpp"

#include <mpi.h>

#include <string>

#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

int thread_level() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level;
}

bool find_whether_thread_may_call() {
  int main = 0;
  MPI_Is_thread_main(&main);
  return main != 0 || thread_level() >= MPI_THREAD_SERIALIZED;
}

/// Looked up once a thread.
bool thread_may_call() {
  thread_local const bool may = find_whether_thread_may_call();
  return may;
}

[[noreturn]] void refuse_thread(const std::string& call) {
  throw UsageError(
      call +
      " came from another thread than the one that initialised MPI, whose level of thread support does not "
      "allow that; call MPI_Init_thread with MPI_THREAD_MULTIPLE (or MPI_THREAD_SERIALIZED, where threads "
      "take turns), or make all calls on that thread");
}

}  // namespace

bool mpi_has_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

void require_mpi() {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun == 0 || mpi_has_ended())
    throw UsageError("MPI is not running in " + mpi_library() +
                     ", which this library was built with; call MPI_Init first and MPI_Finalize last, and use the same "
                     "MPI everywhere in the program");
  if (!thread_may_call()) refuse_thread("a call");
}

void require_running(const char* call) {
  if (mpi_has_ended())
    throw UsageError(std::string(call) +
                     "() was called after MPI_Finalize; make all calls before it, and free exchanges before it too");
  if (!thread_may_call()) refuse_thread(std::string(call) + "()");
}

Call::Call(std::atomic<bool>& busy, const char* name) : busy_(busy) {
  require_running(name);
  if (busy_.exchange(true, std::memory_order_acquire))
    throw UsageError(std::string(name) +
                     "() was called while another thread was in a call; let one thread at a time use an exchange, and "
                     "one at a time all of them where MPI runs with MPI_THREAD_SERIALIZED");
}

std::atomic<bool>& busy_mark(std::atomic<bool>& own) {
  static std::atomic<bool> of_all{false};
  return thread_level() == MPI_THREAD_SERIALIZED ? of_all : own;
}

}  // namespace haloscope
