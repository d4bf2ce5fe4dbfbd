// Timelines: the programs of rank classes with the costs of their operations.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "haloscope/model/ranks.hpp"
#include "haloscope/simulate/op_list.hpp"

namespace haloscope::model {

/// Categories of the seconds of a step.
enum class Term : std::uint8_t {
  compute,
  pack,
  d2h,
  message,
  h2d,
  unpack,
  copy,
  refetch,
  synchronisation,
  launch,
  wait,
  runner,
  reduction,
};
constexpr int term_count = static_cast<int>(Term::reduction) + 1;
const char* to_string(Term term);
std::vector<std::string> term_names();
/// Seconds by Term.
using Terms = std::array<double, term_count>;

struct Part {
  Term term = Term::compute;
  double seconds = 0;
};

/// The few parts of an operation. Parts that take no time are skipped.
class Parts {
 public:
  void add(Term term, double seconds) {
    if (seconds > 0) parts_[count_++] = {term, seconds};
  }
  const Part* begin() const { return parts_.data(); }
  const Part* end() const { return parts_.data() + count_; }
  bool empty() const { return count_ == 0; }
  std::span<const Part> all() const { return {parts_.data(), count_}; }
  double seconds() const {
    double sum = 0;
    for (const Part& part : *this) sum += part.seconds;
    return sum;
  }

 private:
  std::array<Part, 4> parts_{};
  std::uint32_t count_ = 0;
};

enum class Deed : std::uint8_t { work, sweep, send, wait, complete, progress, barrier, reduce, reduced };

/// One operation with its costs.
struct TimedOp {
  Deed deed = Deed::work;
  Lane lane = Lane::main;
  bool copying = false;       ///< keeps the device's copy engine busy, not its kernels
  bool waits = true;          ///< `reduce` waits for the result itself
  int reduction = -1;         ///< the one that `reduce` contributes to and `reduced` waits for
  std::vector<int> after;     ///< operations that must have finished
  std::vector<int> messages;  ///< that it sends, waits for or completes
  Parts parts;                ///< its work on its thread
  /// Seconds of a sweep while the communication thread, or the other stream, is busy, while it waits, and once it
  /// helps; without one only the last.
  std::array<double, 3> sweep{};
  double hand_s = 0;        ///< in which the host enqueues it on a device
  double collective_s = 0;  ///< from the last rank's numbers until every rank has the result

  bool on_stream() const { return on_device(lane); }
  /// The same as the simulator takes it: a sweep's seconds are all that it takes.
  simulate::OpSeconds cost() const;
};

/// The flight of an outgoing message: its seconds, true if it advances without calls into the message library, and its
/// receiver-side seconds, which the receiver must spend in a call in any case: copying, where the cores are
/// the network.
struct Flight {
  double seconds = 0;
  bool by_itself = true;
  double held = 0;
};

/// A class of ranks: `opening` runs once, `body` in every round.
struct Timeline {
  std::vector<TimedOp> body;
  std::vector<int> ends;        ///< of each program of the body; it begins when both lanes of the one before are done
  std::vector<Flight> flights;  ///< by message; of outgoing ones
  Sources sources;              ///< by message: timelines and their messages that it may come from; the last one counts
  std::vector<TimedOp> opening;
  bool comm_thread = false;
  double efficiency = 1;  ///< part of a travelling message's progress while the receiver computes
  double notice_s = 0;    ///< after which the host sees that an operation of its device is done

  /// The timed operation with this number in the op list: operations of the opening come first.
  const TimedOp& action(int operation) const {
    const auto number = static_cast<std::size_t>(operation);
    return number < opening.size() ? opening[number] : body[number - opening.size()];
  }
  bool has_streams() const;
  /// The sum of the seconds of everything in a round but waiting.
  double busy() const;
};

}  // namespace haloscope::model
