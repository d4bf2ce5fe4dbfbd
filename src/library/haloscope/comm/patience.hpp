// Long waits for other ranks, which are reported and have no time limit.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Returns the seconds after which a rank reports that it still waits, and the interval of later reports:
/// HALOSCOPE_PATIENCE, 30 by default. 0: never. Local.
double patience_s();

/// Prints that this rank still waits on standard error; where HALOSCOPE_STALL is "end", that ends the job.
/// @param event  the missing one: "rank 3 has not answered in exchange 1042 of u", by numbers in MPI_COMM_WORLD.
/// Allocates nothing.
void report_wait(double seconds, const char* event);

/// The clock of reports of a wait. Cost: the clock is read.
class ReportClock {
 public:
  /// Returns the seconds that the wait has lasted, each time that patience_s() have passed since the first call or
  /// the last report; 0: not yet.
  double due();
  /// Resets the clock: the next call is for another wait.
  void reset() { since_ = 0; }

 private:
  double since_ = 0, reported_ = 0;  // seconds of this process's clock; since_ 0: due() was not called yet
};

/// Reports a wait that is due. A report does not affect the wait: where memory is exhausted, it has no description.
/// @param describe  returns the missing event, see report_wait().
template <class Describe>
void report_due(ReportClock& clock, Describe describe) {
  const double seconds = clock.due();
  if (seconds == 0) return;
  try {
    report_wait(seconds, describe().c_str());
  } catch (const std::bad_alloc&) {
    report_wait(seconds, "no memory is left to describe the wait");
  }
}

/// Reports a wait of this thread, once it has lasted for patience_s(), on standard error. The wait goes on, unless
/// HALOSCOPE_STALL is "end": then the report ends the job. Works in waits that poll; for other waits see Overseen.
/// Cost: two stores; the clock is read from about a millisecond on.
class ReportedWait : public WatchedWait {
 public:
  ReportedWait() : outer_(std::exchange(current_wait, this)) {}
  ~ReportedWait() { current_wait = outer_; }
  ReportedWait(const ReportedWait&) = delete;
  ReportedWait& operator=(const ReportedWait&) = delete;

  void look() final;

 private:
  /// Returns the missing event, see report_wait().
  virtual std::string describe() const = 0;

  WatchedWait* outer_;
  ReportClock clock_;
};

/// Lets a thread of the library check a wait that lasts inside a call of MPI, which cannot report itself: a fence, a
/// blocking send. The wait's describe() must then be safe on any thread. Cost: a lock, twice. The first object starts
/// the thread, which sleeps nearly always. The wait is not checked where HALOSCOPE_PATIENCE is 0, memory is exhausted
/// or MPI is simulated.
class Overseen {
 public:
  explicit Overseen(WatchedWait& wait);
  ~Overseen();
  Overseen(const Overseen&) = delete;
  Overseen& operator=(const Overseen&) = delete;

 private:
  WatchedWait* wait_;  // null: the wait is not checked
};

/// A reported wait that a function describes.
template <class Describe>
class DescribedWait final : public ReportedWait {
 public:
  explicit DescribedWait(Describe missing) : missing_(std::move(missing)) {}

 private:
  std::string describe() const override { return missing_(); }

  Describe missing_;
};

/// The wait until other ranks have come to a place of the program, which may last inside a call of MPI, see Overseen.
class WaitInsideMpi final : public ReportedWait {
 public:
  /// @param place  "the end of a window"; a literal.
  explicit WaitInsideMpi(const char* place) : place_(place), overseen_(*this) {}

 private:
  std::string describe() const override { return std::string("other ranks have not come to ") + place_; }

  const char* place_;
  Overseen overseen_;
};

}  // namespace haloscope
