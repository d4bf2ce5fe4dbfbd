// The simulator: runs the programs of 10^3 to 10^6 ranks message by message, by the rules of the runner.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/layout.hpp"
#include "haloscope/simulate/network.hpp"
#include "haloscope/simulate/op_list.hpp"

namespace haloscope::simulate {

class Engine;

/// Ranks wait for each other indefinitely: their programs do not fit together.
struct Deadlock : Error {
  explicit Deadlock(const std::string& message) : Error(Exit::failed, message) {}
};

/// Options of a run.
struct Options {
  int rounds = 10;         ///< runs of the body, >= 1
  int counted_from = 0;    ///< first round that Result::seconds counts, 0..rounds-1
  double noise_s = 0;      ///< mean of the delay of each operation that takes time, exponentially distributed ...
  double noise_share = 0;  ///< ... plus this part of the operation's seconds
  std::uint64_t seed = 0;  ///< of the delays; the same seed reproduces the run
  double efficiency = 1;   ///< part of its speed at which a message travels while its receiver is not in a call
  bool by_itself = false;  ///< rendezvous messages need the receiver to have posted, but no call
};

struct Result {
  std::vector<double> ends;                ///< seconds from the start, by round, then by rank
  std::array<double, op_kinds> seconds{};  ///< by OpKind: sum over ranks and counted rounds, waiting included
  std::int64_t messages = 0, bytes = 0;    ///< sent, in all rounds
  std::int64_t operations = 0;             ///< executed
  std::int64_t events = 0;  ///< departures and arrivals of messages, other operations that involve other ranks
};

/// Ranks of a layout with their op lists. Memory: per rank 64 bytes, 8 per incoming message and 24 per message in
/// flight; one op list per class.
class Simulator {
 public:
  /// node, socket: of each rank, numbered from 0. class_of: number in `classes` of each rank, which must have the plans
  /// of that class but for rank numbers. Plans and programs are copied.
  /// @throws UsageError as make_op_list() does, when lengths do not fit, and when a message has no match at its peer.
  Simulator(const Layout& layout, const Network& network, std::vector<std::int32_t> node,
            std::vector<std::int32_t> socket, const std::vector<RankClass>& classes,
            std::vector<std::int32_t> class_of);
  ~Simulator();
  Simulator(const Simulator&) = delete;

  /// @throws UsageError for options out of range, Deadlock when ranks wait for each other indefinitely.
  /// Cost O(events x log(ranks)); allocates before the first event, later only when more messages are in flight than
  /// ever before.
  Result run(const Options& options);

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace haloscope::simulate
