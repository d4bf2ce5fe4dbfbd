#include "haloscope/comm/patience.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "haloscope/agree.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/clock.hpp"

namespace haloscope {
namespace {

constexpr double default_s = 30;

bool ends_stalled_jobs() {
  static const bool ends = [] {
    const char* const text = std::getenv("HALOSCOPE_STALL");
    return text != nullptr && std::strcmp(text, "end") == 0;
  }();
  return ends;
}

double read_patience() {
  const char* const text = std::getenv("HALOSCOPE_PATIENCE");
  if (text == nullptr || *text == '\0') return default_s;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end == '\0' && seconds >= 0) return seconds;
  std::fprintf(stderr, "haloscope: HALOSCOPE_PATIENCE is '%s', not a number of seconds; %g is used\n", text, default_s);
  return default_s;
}

std::string whole_seconds(double seconds) { return std::to_string(static_cast<long>(seconds + 0.5)) + " s"; }

}  // namespace

double patience_s() {
  static const double seconds = read_patience();
  return seconds;
}

void report_wait(MPI_Comm comm, double seconds, const std::string& what) {
  const std::string text = "has waited for " + whole_seconds(seconds) + ": " + what;
  if (ends_stalled_jobs()) end_job(text + "; HALOSCOPE_STALL=end ends the job");
  std::fprintf(stderr, "haloscope: rank %d %s\n", rank_in(comm), text.c_str());
}

void ReportedWait::look() {
  const double now = now_s();
  if (since_ == 0) since_ = reported_ = now;
  if (patience_s() == 0 || now - reported_ < patience_s()) return;
  reported_ = now;
  report_wait(comm_, now - since_, describe());
}

}  // namespace haloscope
