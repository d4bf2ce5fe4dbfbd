// The guard of a Stepper: finds sweeps that read more of a halo than they declare.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/field.hpp"
#include "haloscope/stepper/halo_poison.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

class BoundStage;

class StepperGuard {
 public:
  /// @param candidate, views candidate and views of the stepper; they outlive the guard. @param device the fields on
  ///                          a device, which outlive it too; null: host memory.
  StepperGuard(MPI_Comm comm, const Candidate& candidate, const Views& views, const std::vector<FieldRef>& fields,
               DeviceFields* device);

  /// Stores the places of a stage's ghost points, so that steps allocate nothing. Called once for each stage, in
  /// order.
  void add(const BoundStage& stage);
  /// Before a stage exchanges a slot: poisons all ghost points of the exchanged fields that some rank owns, including
  /// points that the exchange will not fill. Local; cost: one store for each number in them.
  void poison_halos(const BoundStage& stage, int slot);
  /// After it: checks the own points that its sweeps wrote for poison. Collective.
  /// @throws UsageError on all ranks, naming the first such point, the side and the stage.
  void check_written(const BoundStage& stage, int slot) const;

 private:
  struct Room {
    Widths low{}, high{};
  };
  void add_spots(std::vector<PoisonSpot>& spots, int quantity, const Box& owned) const;
  std::vector<PoisonSpot> spots_of(const BoundStage& stage) const;

  MPI_Comm comm_;
  int rank_ = 0;
  const Candidate& candidate_;
  std::vector<Room> room_;  // by field: ghost layers in memory
  HaloPoison poison_;
};

}  // namespace haloscope
