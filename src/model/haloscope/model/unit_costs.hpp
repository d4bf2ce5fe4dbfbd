// The cost of a choice's sweeps, copies, messages and reductions on one rank, by a machine profile.
//
// Bytes, boxes and contiguous runs of memory come from plans and programs; nothing here counts cells or bytes itself.
// Transports appear only as their surcharges: the costs that they add to plain messages, per message, byte, round and
// exchange. A negative sum (fields that neighbours read in place need no packing) shortens packing, then travelling,
// then unpacking.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/model/device_unit_costs.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/model/range.hpp"
#include "haloscope/model/traffic.hpp"

namespace haloscope::model {

/// The name of a candidate's kernels in profiles: APP/FORM/REAL, then ,NAME=VALUE of parameters with other sweeps.
std::string kernel_of(const Candidate& candidate);
/// The names in profiles of the sweeps of each stage: its kernel's, and :STAGE/SWEEP where a step has several.
using SweepNames = std::vector<std::vector<std::string>>;
SweepNames sweep_names(const Candidate& candidate);
/// @throws UnavailableError when a profile lacks the cost of one of these sweeps.
void require_kernels(const Profile& profile, const SweepNames& names);

/// A strategy's transports inside and between nodes, as profiles name them; often the same.
std::array<std::string, 2> transports_of(const Strategy& strategy);

/// The number of a message's contiguous runs of memory shorter than a cache line.
double short_rows(const Traffic& traffic);
/// Bytes of one slot of a rank's first field, halos included.
double slot_bytes(const Plan& plan);

/// Seconds of one message: packing it, the transport's cost at the sender, travelling, unpacking it; and fetching the
/// data that the packing or unpacking end no longer finds in the cache.
struct MessageUnitCost {
  double pack = 0, synchronisation = 0, copy = 0, flight = 0, unpack = 0, refetch = 0;
  Ratios corrections{};  ///< ratio of measured to predicted seconds of steps with such messages; applied
};

struct UnitCosts;

/// The costs of one stage: of its sweeps, of its strategy's messages, of its reductions.
class StageUnitCosts {
 public:
  StageUnitCosts(const UnitCosts& common, const Candidate& candidate, int stage);

  /// Seconds in which `workers` threads run one of the stage's sweeps, with `active` cores of the socket busy. A piece
  /// of a block has the block's cost per cell, since the previous step has left in the cache its share of the block,
  /// not of the piece; only the fixed time of a call is the piece's.
  /// @param amount  the cells that it counts as, by `amount_of`; block: the cells of a whole step.
  /// @param streams  it stores around the cache.
  /// @param levels  fused sweeps; without a cost for several they cost the same number of single ones, with costs of
  ///         other numbers the closest counts.
  double sweep(int number, double amount, double block, int workers, double active, int levels, bool streams) const;
  /// The number of cells that a region counts as for one of the stage's sweeps, whose rows have an additional cost.
  double amount_of(int number, const Box& region) const;
  /// @param flight  seconds it travels; far: it goes to another node; block_bytes: of one slot of the block it leaves.
  MessageUnitCost message(Traffic traffic, double flight, bool far, int threads, double block_bytes) const;

  const UnitCosts& common;
  int number = 0;
  std::array<const TransportCost*, 2> surcharges{};  ///< inside and between nodes
  int first_reduction = 0;
  bool meets = true;        ///< ranks meet for reductions; ranks of a pipeline are in different steps
  std::vector<char> waits;  ///< by reduction: ranks wait where they contribute their numbers

 private:
  MessageUnitCost uncorrected(Traffic traffic, double flight, bool far, int threads, double block_bytes) const;

  std::vector<std::array<const Table*, 2>> kernels_;  ///< with stores through the cache, and around it
  std::vector<const RowCost*> rows_;
  std::vector<const std::vector<Correction>*> corrections_;  ///< of messages inside a node
  std::vector<const std::map<int, Table>*> fused_;
};

/// The costs of a candidate on a machine: costs that all stages share, and `stages`.
struct UnitCosts {
  /// The profile, the candidate and the names must outlive it.
  /// @throws UnavailableError when the profile lacks a kernel, a transport or, once something is packed, its cost, and
  ///         for freed temporaries and pieces, which no profile has.
  UnitCosts(const Profile& profile, const Candidate& candidate, const SweepNames& names);
  UnitCosts(const UnitCosts&) = delete;

  /// Seconds of a reduction of the step, from the last rank's numbers until every rank has the result.
  double reduction_s(int number) const;
  /// Flight times of messages: unchanged, or the times of empty ones where a device writes to its neighbour and
  /// messages only notify it.
  std::vector<double> flight_times(const std::vector<Locality>& near, const std::vector<double>& flights) const;
  /// Seconds of gathering, scattering or copying bytes: by the team only where that pays.
  /// @param copies  between two sides of the block, instead of packing.
  double copying(const Traffic& traffic, int threads, double block_bytes, bool copies = false) const;
  /// The same of a block that lies wholly beyond the cache, or in it.
  double copying_of(const Traffic& traffic, int threads, bool far, bool copies) const;

  const Profile& profile;
  const Candidate& candidate;
  const SweepNames& names;
  int threads = 1, ranks = 1, dims = 3;
  bool buffered = false;  ///< messages leave by plain MPI from buffers that a device has packed
  mutable Range range;
  std::optional<DeviceUnitCosts> device;
  std::vector<const Reduction*> reductions;
  std::vector<StageUnitCosts> stages;
};

}  // namespace haloscope::model
