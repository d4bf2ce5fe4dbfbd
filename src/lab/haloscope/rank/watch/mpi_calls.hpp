// Time inside MPI, call by call: wrappers of the MPI functions through the profiling interface (PMPI). While no
// MpiClock runs, each call costs one test of a flag.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "haloscope/rank/watch/epochs.hpp"
#include "haloscope/runner/status.hpp"

namespace haloscope {

/// The dependence of a call on other ranks: none, it polls whether they are ready, or it waits until they are.
enum class MpiRole : std::uint8_t { starts, polls, waits };
const char* to_string(MpiRole role);

/// The cost of one MPI function on this rank during one kind of operation.
struct MpiCall {
  const char* name;  ///< "MPI_Waitall"
  MpiRole role;
  std::int32_t during = 0;  ///< number of an operation kind or phase, see phase_name()
  std::int64_t calls = 0;
  double seconds = 0;
};

/// One call of a trace, or a series of polls. Times in seconds of std::chrono::steady_clock, as in the runner's traces.
struct MpiSpan {
  int function = 0;
  std::int64_t step = 0;
  std::int32_t during = 0;
  std::int64_t calls = 1;
  double begin_s = 0, end_s = 0;
};

/// Counts while it runs; one may run at a time. Any thread may call MPI meanwhile.
class MpiClock {
 public:
  /// @param spans   room for this many calls and epochs of a trace; later ones are only counted.
  /// @param status  has the current operation of this rank.
  MpiClock(std::size_t spans, const RankStatus& status);
  ~MpiClock() { stop(); }
  MpiClock(const MpiClock&) = delete;
  MpiClock& operator=(const MpiClock&) = delete;

  void start();
  void stop();
  void reset_spans() {
    spans_.clear();
    epochs_.reset_spans();
  }
  /// Returns the calls, the costliest first.
  std::vector<MpiCall> calls() const;
  const std::vector<MpiSpan>& spans() const { return spans_; }
  const EpochLog& epochs() const { return epochs_; }
  static const char* name_of(const MpiSpan& span);

  /// For the functions themselves: one call is over.
  void note(int function, double begin_s, double end_s, const std::optional<EpochCall>& epoch);

 private:
  void add(const MpiSpan& call);

  struct Sum {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::int32_t, int>, Sum> sums_;  // by operation and function
  std::vector<MpiSpan> spans_;
  EpochLog epochs_;
  const RankStatus& status_;
};

}  // namespace haloscope
