// The builder of programs, shared by all schedules: appends operations and exchanges, and computes the boxes that
// sub-steps sweep.
#pragma once

#include <vector>

#include "haloscope/extend/schedule.hpp"

namespace haloscope {

/// The operations of an exchange's rounds in a program.
struct ExchangeOps {
  std::vector<int> sent;      ///< per round: last operation of its sending half (pack/send, or copies)
  std::vector<int> received;  ///< per round: last operation of its receiving half (unpack, or copies)
  int in_flight = -1;         ///< the first messages are in flight after this operation
  int first_packed = -1;      ///< the first messages are packed after this operation
  int local = -1;             ///< own-neighbour halos that need no message are full after this operation
  int complete = -1;          ///< sent memory may change after this operation; -1: nothing is sent
  int ready() const { return received.back(); }
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Stage& stage, const Plan& plan, const ScheduleOptions& options);

  /// Appends all operations of the exchange of slot 0, on the comm lane.
  /// @param unpacked  false: messages that no later message or copy passes on stay in their buffers, and sweeps read
  ///         them there.
  ExchangeOps exchange(bool unpacked = true);
  /// Appends all operations of a reverse exchange, in order: contributions of a round are added before the next round
  /// is sent, and halos are cleared after all rounds have been sent.
  void reverse_exchange();
  /// Returns the op index of round r's wait (or of its copies where it has no message).
  int wait_of(int round) const { return waits_[round]; }

  int sweep(const Sweep& sweep, int slot, std::vector<int> after);
  /// Appends a sweep of the first step on a lane; returns -1 for an empty box.
  int sweep_on(Lane lane, const Box& box, Part part, std::vector<int> after);
  /// Appends gathering cells of a device's block for the host's cells around it, or the reverse, and their transfer
  /// to the other memory. @return the operation to pass to take_ring().
  int give_ring(bool to_device, const std::vector<Box>& boxes);
  /// Appends scattering them there. @return the operation after which they are in place.
  int take_ring(int transfer);
  int progress(std::vector<int> after);
  std::vector<Op>& ops() { return program_.ops; }
  Program& program() { return program_; }

  /// Returns the cells that the first sweep, `levels` steps of it fused, can compute without halos from messages and
  /// without overwriting cells that are sent. It may read own-neighbour halos, so its sweep comes after
  /// ExchangeOps::local.
  Box interior(int levels = 1) const;
  /// region() returns the cells that the stage's sweep `sweep` writes in step `step` of this program, valid() the
  /// cells of them that are correct afterwards.
  Box region(int step = 0, int sweep = 0) const;
  Box valid(int step = 0, int sweep = 0) const;

  /// Appends everything after the first sweep: the stage's other sweeps and the later steps, full boxes, each after
  /// all operations in `after`. The first sweep must have written slot 1.
  void later_sweeps(std::vector<int> after, const ExchangeOps& exchange);
  /// Appends the first sweep (or all steps of it, fused) over `box`; returns the op.
  int first_sweep(const Box& box, Part part, std::vector<int> after);
  /// Returns the boxes of the first sweep outside `inner`.
  std::vector<Box> shell(const Box& inner) const;
  /// Finishes the program: slots, steps, reductions.
  Program take();

  bool blocked() const { return options_.substeps == Substeps::blocked && options_.steps > 1; }
  const Plan& plan() const { return plan_; }
  const ScheduleOptions& options() const { return options_; }

 private:
  int add(OpKind kind, Lane lane, int slot, int target, std::vector<int> after = {});
  int add_copies(std::vector<Copy> copies);
  int add_messages(OpKind kind, int round, bool out);
  bool active(int round) const;
  Lane lane(OpKind kind) const;
  Box grown_to_neighbours(const Widths& layers) const;
  Widths overwritten() const;
  int next_slot(int slot) const { return options_.flips ? (slot + 1) % options_.slots : slot; }
  bool gathers(int step, int sweep) const;
  void add_reductions();
  void await_reduction(int reduction, std::vector<int> after, int started);

  const Stage& stage_;
  const Plan& plan_;
  ScheduleOptions options_;
  std::vector<std::vector<Widths>> growths_;  // by step of a program of the whole depth, then sweep
  Program program_;
  std::vector<int> waits_;
  int last_message_op_ = -1;
  int last_pack_ = -1;  // the packing of the messages that are sent next
  int complete_ = -1;   // see ExchangeOps
  int all_sent_ = -1;   // the operation that completes messages
};

}  // namespace haloscope
