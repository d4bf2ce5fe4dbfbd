#include "haloscope/comm/mpi_call.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <thread>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/meeting.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/clock.hpp"

namespace haloscope {
namespace {

constexpr int meeting_tag = 32767;  // the largest tag that every MPI supports
constexpr double longest_s = 30;
constexpr const char* job_ends = "; the job ends here, since other ranks may wait for this one";

/// The position of this thread in nested collective calls. Ranks at different positions have not failed in the same
/// call.
struct CallPlace {
  int depth = 0;        // nested calls that run
  int begun = 0;        // in the outermost call
  int companies = 0;    // require_company() since then
  int collectives = 0;  // of MPI since then: a call that only some ranks have begun may stay open
  int kept = 0;         // note_kept() in the outermost call
  bool operator==(const CallPlace&) const = default;
};

thread_local CallPlace call_place;
thread_local std::array<char, 1024> last_refusal{};  // by MPI, in the outermost call

/// Returns the text of an error code. Allocates nothing: MPI may have refused the call because memory is exhausted.
std::array<char, MPI_MAX_ERROR_STRING + 200> text_of(int code, const char* call) noexcept {
  char reason[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS || length <= 0) std::strcpy(reason, "no text");
  std::array<char, MPI_MAX_ERROR_STRING + 200> text;
  std::snprintf(text.data(), text.size(), "%.*s failed (MPI error %d): %s", static_cast<int>(std::strcspn(call, "(")),
                call, code, reason);
  return text;
}

/// Polls a request. @return true if the request completed in time. @throws MpiError where MPI refuses the test.
bool completes(MPI_Request& request, double deadline_s) {
  for (int done = 0;; std::this_thread::yield()) {
    CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return true;
    if (now_s() > deadline_s) return false;
  }
}

/// Returns true if all ranks of a communicator are in MPI_COMM_WORLD of this process.
bool is_in_world(MPI_Comm comm) {
  const OwnedGroup here = group_of(comm), world = group_of(MPI_COMM_WORLD);
  OwnedGroup both;
  int all = 0, found = 0;
  CHECK_MPI(MPI_Group_intersection(here.get(), world.get(), both.address()));
  CHECK_MPI(MPI_Group_size(here.get(), &all));
  CHECK_MPI(MPI_Group_size(both.get(), &found));
  return all == found;
}

/// Sends messages through MPI_COMM_WORLD: a rank that has not failed may free `comm` immediately, and MPICH refuses
/// to free a communicator with an unreceived message.
/// @return true if all ranks arrive within patience_s(), from the same position. Allocates nothing if MPI refuses no
///         call.
bool all_meet(MPI_Comm comm) noexcept try {
  static thread_local CallPlace mine, theirs;  // messages may be in flight when this ends
  mine = call_place;
  const bool in_world = is_in_world(comm);
  const MPI_Comm carrier = in_world ? MPI_COMM_WORLD : comm;
  const ErrorsReturned returned(carrier);
  const auto rank_of = [&](int rank) { return in_world ? world_rank(comm, rank) : rank; };
  const double deadline_s = now_s() + (patience_s() > 0 ? patience_s() : longest_s);
  return meet_by_messages(comm, carrier, rank_of, meeting_tag, std::as_bytes(std::span(&mine, 1)),
                          reinterpret_cast<std::byte*>(&theirs),
                          [&](MPI_Request& request) { return completes(request, deadline_s); });
} catch (const std::exception&) {  // report the first error
  return false;
}

/// Returns the number of unread bytes of a pipe.
int unread(int file) {
  struct stat status {};
  int bytes = 0;
  if (fstat(file, &status) != 0 || !S_ISFIFO(status.st_mode) || ioctl(file, FIONREAD, &bytes) != 0) return 0;
  return bytes;
}

/// Waits until the launcher has read the output: launchers drop output that they have not forwarded when the job is
/// aborted.
void let_output_be_read() {
  constexpr double longest_read_s = 5;  // the launcher may have stopped
  constexpr auto passed_on = std::chrono::milliseconds(300);
  const double deadline_s = now_s() + longest_read_s;
  for (bool all = false; !all && now_s() < deadline_s;) {
    all = unread(STDOUT_FILENO) + unread(STDERR_FILENO) == 0;
    std::this_thread::sleep_for(passed_on);
  }
}

/// Returns true while MPI runs. Errors also occur before MPI_Init and after MPI_Finalize, where few calls of MPI are
/// allowed.
bool runs() {
  int begun = 0, ended = 0;
  return MPI_Initialized(&begun) == MPI_SUCCESS && begun && MPI_Finalized(&ended) == MPI_SUCCESS && !ended;
}

[[noreturn]] void fail_together(MPI_Comm comm, const char* text) {
  if (!all_meet(comm)) end_job(text, job_ends);
  throw Error(Exit::failed, text);
}

}  // namespace

void abort_job() {
  std::fflush(stderr);
  let_output_be_read();
  if (runs()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::failed));
  _exit(static_cast<int>(Exit::failed));  // if MPI refuses even that
}

/// Error paths call this too, so MPI's return code is checked.
std::string own_name() {
  int rank = -1;
  if (!runs() || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || rank < 0) return "a rank";
  return "rank " + std::to_string(rank);
}

MpiError::MpiError(int code, const char* call) : Error(Exit::failed, text_of(code, call).data()) {}

void throw_mpi_error(int code, const char* call) {
  const MpiError error(code, call);
  std::strncpy(last_refusal.data(), error.what(), last_refusal.size() - 1);
  throw error;
}

void end_job(const char* text, const char* more) {
  std::fprintf(stderr, "haloscope: %s: %s%s\n", own_name().c_str(), text, more);
  abort_job();
}

void end_job(int code, const char* call) { end_job(text_of(code, call).data(), job_ends); }

void fail_together(MPI_Comm comm) {
  try {
    throw;
  } catch (const MpiError& error) {
    fail_together(comm, error.what());
  } catch (const OutOfMemory& error) {
    fail_together(comm, error.what());
  } catch (const Error&) {  // the same on all ranks
    throw;
  } catch (const std::bad_alloc&) {
    fail_together(comm, exhausted_memory().data());
  } catch (const std::exception& error) {
    fail_together(comm, error.what());
  }
}

void begin_collective() noexcept { ++call_place.collectives; }

void note_kept() noexcept { ++call_place.kept; }

Collective::Collective() noexcept {
  if (call_place.depth == 0) {
    call_place = {};
    last_refusal[0] = '\0';
  }
  ++call_place.depth;
  ++call_place.begun;
}
Collective::~Collective() { --call_place.depth; }
bool Collective::runs() noexcept { return call_place.depth > 0; }

void require_company(MPI_Comm comm) {
  if (call_place.depth == 0 || std::uncaught_exceptions() == 0) return;
  ++call_place.companies;
  if (all_meet(comm)) return;
  if (last_refusal[0] != '\0') end_job(last_refusal.data(), job_ends);
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), "a collective call failed on this rank alone; %.80s",
                available_text().data());
  end_job(text.data(), job_ends);
}

int world_rank(MPI_Comm comm, int rank) {
  const int found = rank_in(group_of(MPI_COMM_WORLD), group_of(comm), rank);
  return found == MPI_UNDEFINED ? -1 : found;
}

std::string name_rank(MPI_Comm comm, int rank) {
  const int known = world_rank(comm, rank);
  return known >= 0 ? "rank " + std::to_string(known) : "rank " + std::to_string(rank) + " of its communicator";
}

void require_communicator_left(MPI_Comm comm) {
  BriefComm one;
  check_mpi(MPI_Comm_dup(comm, one.address()), "MPI_Comm_dup(");  // not counted: some windows have only two ranks
}

ErrorsReturned::ErrorsReturned(MPI_Comm comm) : comm_(comm) {
  CHECK_MPI(MPI_Comm_get_errhandler(comm_, &before_));
  CHECK_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

ErrorsReturned::~ErrorsReturned() {
  REQUIRE_MPI(MPI_Comm_set_errhandler(comm_, before_));
  if (before_ != MPI_ERRHANDLER_NULL) REQUIRE_MPI(MPI_Errhandler_free(&before_));
}

}  // namespace haloscope
