// Programs: the operations of the steps between two exchanges, with their order. A program is a plain value made by a
// schedule function.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/stage.hpp"

namespace haloscope {

enum class OpKind : std::uint8_t {
  barrier,   ///< a barrier of all ranks (desync timer); target unused
  post,      ///< post receives; target = message set
  copy,      ///< fill own-neighbour halos; target = copy set
  pack,      ///< gather regions into messages; target = message set
  send,      ///< pass messages to the transport; target = message set
  wait,      ///< until messages have arrived; target = message set
  unpack,    ///< scatter messages into halos; target = message set
  complete,  ///< until sent messages may be overwritten; target = message set
  sweep,     ///< apply the stencil to a box; target = sweep
  progress,  ///< let the communication lane advance without blocking; target unused
  d2h,       ///< copy packed messages from the device to the host; target = message set
  h2d,       ///< copy messages that have arrived from the host to the device; target = message set
  gather,    ///< collect a ring's cells in their own memory, of the host or a device; target = ring
  transfer,  ///< copy them to the other memory; target = ring
  scatter,   ///< write them to their positions there; target = ring
  reduce,    ///< combine a reduction's numbers over threads, begin to over ranks; target = reduction of the stage
  reduced,   ///< until the latest numbers of a started reduction have arrived; target = reduction, counted from the
             ///< stage's first: a negative one is an earlier stage's
};
inline constexpr int op_kinds = static_cast<int>(OpKind::reduced) + 1;
const char* to_string(OpKind kind);

/// The executor of an operation. `main`: the whole team of threads; `comm`: one thread at a time, in program order;
/// `sweep_stream` and `halo_stream`: a device, each in program order.
enum class Lane : std::uint8_t { main, comm, sweep_stream, halo_stream };
inline bool on_device(Lane lane) { return lane == Lane::sweep_stream || lane == Lane::halo_stream; }
inline constexpr int lane_count = 4, stream_count = 2;
inline int stream_of(Lane lane) { return lane == Lane::halo_stream ? 1 : 0; }
const char* to_string(Lane lane);

/// The part of a step that a sweep computes, as reported by timers.
enum class Part : std::uint8_t { full, inner, outer };
HALOSCOPE_WORDS(Part, "part of a step", "full", "inner", "outer");

/// One operation. `after` holds indices of operations that must have finished; usually earlier ones in the list, but
/// the list order binds only the comm lane and each stream. Together with it the dependencies have no cycle.
struct Op {
  OpKind kind = OpKind::progress;
  Lane lane = Lane::main;
  std::uint8_t slot = 0;  ///< slot read (sweep) or exchanged, relative to the slot current at the program's start
  std::int32_t target = -1;
  std::vector<std::int32_t> after;
};

/// One of a stage's sweeps on `region`: reads slot `op.slot`, and writes slot `into` at time `step + levels`.
/// Quantities with one slot ignore both. In place (Gauss-Seidel) both slots are the same.
struct Sweep {
  Box region;  ///< cells written, local coordinates
  Box valid;   ///< cells of `region` with correct values afterwards; the rest is unspecified (full deep halos)
  std::uint8_t into = 1;  ///< slot written, relative like Op::slot
  int step = 0;           ///< time step read, within the program, 0-based
  int levels = 1;         ///< time steps fused into this operation (temporal blocking)
  Part part = Part::full;
  Box twin{};          ///< more cells written by the same launch of a device: the opposite face of `region`
  bool faces = false;  ///< reads halos from received messages; also writes messages of the next exchange
  int number = 0;      ///< number of the stage's sweep
  bool in_place = false;
  Box whole{};  ///< the region of the whole sweep, of which `region` may be a part; empty: `region` and `twin`

  std::array<Box, 2> boxes() const { return {region, twin}; }
  std::int64_t cells() const { return region.volume() + twin.volume(); }
};

/// Cells that one patch of a rank owns and the other patch, in the other memory, needs.
struct Ring {
  bool to_device = true;
  std::vector<Box> boxes;  ///< disjoint
};

/// The way in which the team shares the cells of one sweep.
enum class Sharing : std::uint8_t { guided, dynamic };
HALOSCOPE_WORDS(Sharing, "sharing", "guided", "dynamic");

/// The operations of `steps` executions of a stage with one exchange before the first.
struct Program {
  int steps = 1;
  int slots = 2;
  int final_slot = 1;        ///< slot that holds the result, relative to the slot current at the start
  bool comm_thread = false;  ///< one thread runs the whole `comm` lane first, then joins the others
  bool device = false;       ///< some operations run on a device; all their streams meet at the program's end
  Box block;                 ///< the device's cells, where the host has the rest; empty: all on one side
  std::vector<Ring> rings;   ///< between host and device
  /// One kernel packs a round's messages, waits for the messages of its peers and unpacks them. `pack` starts the
  /// kernel, `send` and `wait` of the round run during it, and it has ended when the round's `unpack` has. In a round
  /// that sends nothing, `unpack` runs it.
  bool signals = false;
  bool wraps = false;  ///< sweeps reach own-neighbour cells by wrapping around, not through halos
  Sharing sharing = Sharing::guided;
  std::vector<Op> ops;
  std::vector<std::vector<int>> sets;        ///< message ids of the plan
  std::vector<std::vector<Copy>> copy_sets;  ///< copies, possibly parts of the plan's
  std::vector<Sweep> sweeps;

  /// Returns true if its sweeps also pack: the previous execution's sweeps have then packed the buffers of that slot
  /// already.
  bool packs_in_sweeps() const {
    return std::any_of(sweeps.begin(), sweeps.end(), [](const Sweep& s) { return s.faces; });
  }
  /// Returns true if an operation starts while an earlier one that it depends on still runs.
  bool starts_within(const Op& op, const Op& earlier) const {
    return signals && op.kind == OpKind::send && earlier.kind == OpKind::pack;
  }
};

/// The cells that the steps between two exchanges sweep: all cells that any of the steps needs; only the cells that
/// later steps need; or the latter, fused tile by tile in the cache.
enum class Substeps : std::uint8_t { full, shrink, blocked };
HALOSCOPE_WORDS(Substeps, "substeps", "full", "shrink", "blocked");

/// Parts of a series of programs whose messages cross from one program into the next (schedule `pipeline`): opening,
/// then entry and body for every time step, then closing, after which no message is in flight. Other schedules have
/// only whole programs.
enum class Series : std::uint8_t {
  whole,    ///< opening, `steps` times entry and body, closing, in one program
  opening,  ///< the messages that the first step needs
  entry,    ///< wait for the message that all work of a step depends on
  body,     ///< everything else of one step
  closing,  ///< completes the messages that the last step has left in flight
};
HALOSCOPE_WORDS(Series, "part of a series of programs", "whole", "opening", "entry", "body", "closing");

/// The parts of a choice that a schedule may read.
struct ScheduleOptions {
  int depth = 1;                       ///< the exchange serves `depth` steps
  int steps = 1;                       ///< steps of this program, 1..depth (a last, shorter round)
  Substeps substeps = Substeps::full;  ///< cells that they sweep (Valen 2023, section 3.3; shrink: Haloscope's)
  int tiles = 8;                       ///< interior tiles of `split`, with `progress` between them
  Sharing sharing = Sharing::guided;   ///< `comm-thread`: distribution of interior cells
  bool barrier = false;                ///< barrier before each exchange (desync timer)
  bool collective_rounds = false;      ///< TransportTraits: ranks without messages have message operations too
  Series series = Series::whole;       ///< `pipeline`: the program of the series
  bool device = false;                 ///< fields are on a device, which runs sweeps, copies and packing
  bool staged = false;                 ///< ... and messages go through host memory
  bool signals = false;                ///< ... or are moved by one kernel a round, see Program
  int walls = 1;                       ///< `box`, `box-overlap`: layers of the host around the device's block
  bool pack_first = true;              ///< `streams`: interior sweeps start after the first round is packed
  bool last = false;                   ///< the program ends a run and includes the reductions of the last step
  int slots = 2;                       ///< slots of the app, see Step::slots()
  bool flips = true;                   ///< the stage writes double-buffered quantities, whose slots it changes
};

}  // namespace haloscope
