// The guard of a Stepper: sweeps that read more of a halo than their description says.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/field.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

class BoundStage;

class StepperGuard {
 public:
  /// @param candidate, views  of the stepper; they outlive the guard.
  StepperGuard(MPI_Comm comm, const Candidate& candidate, const Views& views, const std::vector<FieldRef>& fields);

  /// Before a stage exchanges a slot: poison all ghost points of the fields that it exchanges that some rank owns, whether
  /// the exchange will fill them or not. Local; cost: one store for each number in them.
  void poison_halos(const BoundStage& stage, int slot) const;
  /// After it: look for poison in the own points that its sweeps wrote. Collective.
  /// @throws UsageError on all ranks alike, naming the first such point, the side and the stage.
  void check_written(const BoundStage& stage, int slot) const;

 private:
  struct Room {
    Widths low{}, high{};
  };
  void poison_field(int quantity, const Box& owned, int slot) const;

  MPI_Comm comm_;
  int rank_ = 0;
  const Candidate& candidate_;
  const Views& views_;
  std::vector<Room> room_;  // by field: ghost layers that there is memory for
};

}  // namespace haloscope
