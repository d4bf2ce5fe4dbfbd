#include "haloscope/comm/running.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <mutex>
#include <string>
#include <thread>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

std::atomic<bool> ending{false};               // MPI_Finalize has begun
std::atomic<std::thread::id> only_thread{{}};  // the only thread that may call MPI; none: all may

int thread_level() {
  int level = MPI_THREAD_SINGLE;
  CHECK_MPI(MPI_Query_thread(&level));
  return level;
}

bool thread_may_call() {
  const std::thread::id only = only_thread.load(std::memory_order_relaxed);
  return only == std::thread::id() || only == std::this_thread::get_id();
}

[[noreturn]] void refuse_thread(const std::string& call) {
  throw UsageError(
      call +
      " came from another thread than the one that initialised MPI, whose level of thread support does not "
      "allow that; call MPI_Init_thread with MPI_THREAD_MULTIPLE (or MPI_THREAD_SERIALIZED, where threads "
      "take turns), or make all calls on that thread");
}

int note_end(MPI_Comm, int, void*, void*) {
  ending.store(true, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

/// Sets `ending` when MPI_Finalize begins, which deletes attributes of MPI_COMM_SELF, so that calls need not query
/// MPI.
void watch_end() {
  stay_loaded();
  const ErrorsReturned returned(MPI_COMM_SELF);
  int key = MPI_KEYVAL_INVALID;
  CHECK_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_end, &key, nullptr));
  CHECK_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr));
  CHECK_MPI(MPI_Comm_free_keyval(&key));
}

/// Queries MPI; called once, while MPI runs.
void look_at_mpi() {
  if (thread_level() < MPI_THREAD_SERIALIZED) {
    int main = 0;
    CHECK_MPI(MPI_Is_thread_main(&main));
    if (main == 0) refuse_thread("a call");
    only_thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  watch_end();
}

bool is_finalized() {
  int ended = 0;
  CHECK_MPI(MPI_Finalized(&ended));
  return ended != 0;
}

}  // namespace

void stay_loaded() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(stay_loaded), &info) != 0 && info.dli_fname != nullptr)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);  // null for an executable, which stays
}

bool mpi_has_ended() { return ending.load(std::memory_order_relaxed) && is_finalized(); }

void require_mpi() {
  static std::once_flag looked;
  refuse_other_mpi();
  int begun = 0;
  CHECK_MPI(MPI_Initialized(&begun));
  if (begun == 0 || is_finalized())
    throw UsageError("MPI is not running in " + mpi_library() +
                     ", which this library was built with (" HS_BUILT_FOR_THIS
                     "); call MPI_Init first and MPI_Finalize last (a session is not enough), and use the "
                     "same MPI everywhere in the program");
  std::call_once(looked, look_at_mpi);
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
