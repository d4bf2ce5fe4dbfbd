// Epochs of one-sided communication on this rank: the times between the calls that open and close them on a window.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace haloscope {

/// fence: from one fence to the next. access, exposure: of general active target synchronisation (start to complete,
/// post to wait). lock, lock_all: of passive target synchronisation.
enum class EpochKind : std::uint8_t { fence, access, exposure, lock, lock_all };
const char* to_string(EpochKind kind);

/// The effect of a call on the epochs of a window: it closes one, opens one, or is made within one.
struct EpochCall {
  MPI_Win window = MPI_WIN_NULL;
  EpochKind kind = EpochKind::lock_all;  ///< of a call within an epoch: if no other is open for operations
  int target = -1;                       ///< of a lock, a flush or an operation, in the window; -1: none
  bool closes = false, opens = false;
};

/// The time of a call.
struct CallTime {
  double begin_s = 0, end_s = 0;  ///< seconds of std::chrono::steady_clock
  std::int32_t during = 0;        ///< operation of the program, see phase_name()
  std::int64_t step = 0;
  bool waits = false, polls = false;  ///< role of the function
};

/// An epoch of a trace: from the begin of the call that opens it to the end of the call that closes it.
struct EpochSpan {
  EpochKind kind;
  std::int64_t step = 0;  ///< of the closing call
  double begin_s = 0, end_s = 0;
  double blocked_s = 0;  ///< in calls that wait, and in polls with the time between them
};

/// All epochs of one kind.
struct EpochSum {
  EpochKind kind = EpochKind::fence;
  std::int64_t epochs = 0;
  double open_s = 0, longest_s = 0, blocked_s = 0;
};

/// Follows the calls of one rank. An epoch to all ranks that was opened before start() lasts from there to stop(), if
/// a call is made within it. Not thread-safe.
class EpochLog {
 public:
  /// @param spans  room for this many epochs of a trace; later ones are only counted.
  explicit EpochLog(std::size_t spans) { spans_.reserve(spans); }

  void start(double now_s);
  void stop(double now_s, std::int64_t step);
  void note(const EpochCall& call, const CallTime& time);
  void reset_spans() { spans_.clear(); }

  /// Returns the kinds that occurred, in the order of EpochKind.
  std::vector<EpochSum> sums() const;
  const std::vector<EpochSpan>& spans() const { return spans_; }

 private:
  using Key = std::tuple<MPI_Win, EpochKind, int>;  // the number is the target of a lock, else -1
  struct Open {
    double begin_s = 0, blocked_s = 0;
    CallTime polled = {};  // the latest poll
  };

  Open* find(const EpochCall& call);
  static void add(Open& epoch, const CallTime& time);
  void close(EpochKind kind, const Open& epoch, double end_s, std::int64_t step);

  double started_s_ = 0;
  std::map<Key, Open> open_;
  std::map<EpochKind, EpochSum> sums_;
  std::vector<EpochSpan> spans_;
};

}  // namespace haloscope
