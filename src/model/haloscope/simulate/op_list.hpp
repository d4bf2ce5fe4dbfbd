// Op lists: timed programs of one class of ranks, flattened so that the simulator walks them without calling the core.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "haloscope/layout.hpp"
#include "haloscope/program.hpp"
#include "haloscope/simulate/network.hpp"

namespace haloscope::simulate {

/// Seconds of one operation on one rank. A sweep concurrent with a communication thread has three values: while that
/// thread is busy, while it waits, and once it helps. A sweep on a device's sweep stream has two: while kernels of the
/// other stream run (`busy`) and while none does (`idle`). Everything else takes `seconds`. Before an operation of a
/// device the host is busy for `hand`, to enqueue it.
struct OpSeconds {
  double busy = 0, idle = 0, seconds = 0, hand = 0;
};

/// A program of one stage. plan: its number in RankClass::plans; reduction: the number of the stage's first reduction.
struct RankProgram {
  const Program* program = nullptr;
  int plan = 0;
  int reduction = 0;
};

/// A reduction over all ranks: seconds from the last rank's numbers until every rank has the result. waits: ranks wait
/// where they contribute their numbers, otherwise at `reduced`.
struct RankReduction {
  double seconds = 0;
  bool waits = true;
};

/// Ranks with equal work: the plans of their stages, and the programs that they run sequentially, `opening` and
/// `closing` once, `body` in every round.
struct RankClass {
  std::vector<const Plan*> plans;
  std::vector<RankProgram> opening, body, closing;
  std::vector<RankReduction> reductions;
  std::vector<OpSeconds> seconds;     ///< of each operation of opening, body, closing, in this order
  std::vector<double> flight_change;  ///< seconds that transports add to each message of all plans; empty: none
  bool comm_thread = false;           ///< programs that use one get a separate thread for the comm lane
  double notice_s = 0;                ///< until the host sees that an operation of its device is done
};

/// One operation. needs: operations of the other lane that must have finished, counted in that lane's order.
struct PricedOp {
  OpKind kind = OpKind::progress;
  OpSeconds cost;
  int needs = 0;
  std::int32_t first = 0, count = 0;  ///< messages, in OpList::messages; of reduce and reduced, first: the reduction
  std::int32_t number = 0;            ///< in its op list, for logs
};

/// An operation of a program. after: operations that must have finished, by their positions in the program.
struct PlacedOp {
  Lane lane = Lane::main;
  std::span<const std::int32_t> after;
  PricedOp op;
};

/// The dependencies of an operation of a program with a device: by Lane, the number of operations that must have
/// finished, or on a stream been enqueued.
using Needs = std::array<std::int32_t, lane_count>;

struct Lanes {
  std::vector<PricedOp> main, comm;
  bool comm_thread = false;
  bool device = false;
  std::array<std::vector<PricedOp>, stream_count> streams;
  std::array<std::vector<Needs>, lane_count> needs;  ///< of programs of a device, by lane
};

/// One end of a message: a rank, and the message's number among its outgoing, or incoming, messages.
struct End {
  std::int32_t rank = -1, box = -1;
};

/// A message of one of the plans. offset: from the rank to its peer in the process grid, 0 <= offset < ranks per
/// dimension. box: its number among the incoming, or the outgoing, messages. other: its other end, for op lists of one
/// rank each; ranks that share an op list find it by the offset.
struct Route {
  bool out = false;
  std::int32_t box = 0, plan = 0, tag = 0, round = 0;
  std::array<int, 3> offset{};
  End other;
  std::int64_t bytes = 0;
  std::array<Flight, places> flights;
};

struct OpList {
  std::vector<Lanes> programs;
  int opening = 0, body = 0;
  std::vector<std::int32_t> messages;  ///< numbers of routes, set after set
  std::vector<Route> routes;           ///< of all plans, in order
  std::vector<RankReduction> reductions;
  int incoming = 0, outgoing = 0;
  double notice_s = 0;

  /// The `number`th program to run when the body runs `rounds` times; none from total() on.
  int program_of(int number, int rounds) const {
    if (number < opening) return number;
    const int repeated = body * rounds;
    return number < opening + repeated ? opening + (number - opening) % body : number - repeated + body;
  }
  int round_of(int number, int rounds) const {
    return number < opening ? 0 : std::min((number - opening) / body, rounds - 1);
  }
  int total(int rounds) const { return static_cast<int>(programs.size()) + body * (rounds - 1); }
};

/// The operations of a program by lane.
/// @throws UsageError for an operation that waits for one that the program lacks, or for a later one of its lane.
Lanes make_lanes(std::span<const PlacedOp> ops, bool comm_thread, bool device);

/// @throws UsageError when the class is inconsistent: no body; another number of seconds than operations, or of changes
///         than messages; plans, reductions or messages that do not exist; negative seconds; a comm lane that waits for
///         one of its later operations.
OpList make_op_list(const Layout& layout, const RankClass& rank_class, const Network& network);

}  // namespace haloscope::simulate
