#include "haloscope/comm/mpi_call.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "haloscope/comm/meeting.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/core/clock.hpp"

namespace haloscope {
namespace {

constexpr int meeting_tag = 32767;  // the largest that every MPI has
constexpr double longest_s = 30;

std::string text_of(int code, const char* call) {
  const std::string source = call;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  const std::string reason = length > 0 ? std::string(text, static_cast<std::size_t>(length)) : "no text";
  return source.substr(0, source.find('(')) + " failed (MPI error " + std::to_string(code) + "): " + reason;
}

/// The number in MPI_COMM_WORLD. Errors come from here too, so MPI's answer is not relied on.
std::string name_of_rank() {
  int rank = -1;
  if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || rank < 0) return "a rank";
  return "rank " + std::to_string(rank);
}

/// @return whether the request completed in time. @throws MpiError where MPI refuses the test.
bool completes(MPI_Request& request, double deadline_s) {
  for (int done = 0;; std::this_thread::yield()) {
    CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return true;
    if (now_s() > deadline_s) return false;
  }
}

}  // namespace

MpiError::MpiError(int code, const char* call) : Error(Exit::failed, text_of(code, call)) {}

void throw_mpi_error(int code, const char* call) { throw MpiError(code, call); }

void end_job(const std::string& text) {
  const std::string line = "haloscope: " + name_of_rank() + ": " + text + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // launchers drop output just before an abort
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::failed));
  _exit(static_cast<int>(Exit::failed));  // where even that is refused
}

void end_job(int code, const char* call) {
  end_job(text_of(code, call) + "; the job ends here, since other ranks may wait for this one");
}

void fail_together(MPI_Comm comm, const MpiError& error) {
  bool met = false;
  try {
    const double deadline_s = now_s() + (patience_s() > 0 ? patience_s() : longest_s);
    met = meet_by_messages(comm, meeting_tag, [&](MPI_Request& request) { return completes(request, deadline_s); });
  } catch (const MpiError&) {  // the first error is the one to report
  }
  if (!met) end_job(error.what() + std::string("; the job ends here, since other ranks may wait for this one"));
  throw Error(Exit::failed, error.what());
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
