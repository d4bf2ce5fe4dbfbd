// Long waits for other ranks: reported, never cut short.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>

#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Seconds after which a rank reports that it still waits, and again after as many: HALOSCOPE_PATIENCE, 30 by default.
/// 0: never. Local.
double patience_s();

/// Prints that this rank still waits on standard error; where HALOSCOPE_STALL is "end", that ends the job.
/// @param what  has not happened: "rank 3 has not answered in exchange 1042 of u".
void report_wait(MPI_Comm comm, double seconds, const std::string& what);

/// Reports a wait of this thread, once it has lasted for patience_s(), on standard error. The wait goes on, unless
/// HALOSCOPE_STALL is "end": then the report ends the job. Works in waits that poll; MPI's own blocking calls (fences)
/// give no chance to look. Cost: two stores; the clock is read from about a millisecond on.
class ReportedWait : public WatchedWait {
 public:
  /// @param comm  whose rank numbers describe() uses.
  explicit ReportedWait(MPI_Comm comm) : comm_(comm), outer_(std::exchange(current_wait, this)) {}
  ~ReportedWait() { current_wait = outer_; }
  ReportedWait(const ReportedWait&) = delete;
  ReportedWait& operator=(const ReportedWait&) = delete;

  void look() final;

 private:
  /// See report_wait().
  virtual std::string describe() const = 0;

  MPI_Comm comm_;
  WatchedWait* outer_;
  double since_ = 0, reported_ = 0;  // seconds of this process' clock; since_ 0: not looked yet
};

}  // namespace haloscope
