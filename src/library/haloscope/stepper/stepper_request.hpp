// Requests of Steppers: from fields, stages and a choice to a candidate, equal on all ranks.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/stepper.hpp"

namespace haloscope {

/// Returns the app that represents the user's sweeps. Local. @throws UsageError for one that cannot be run.
App app_of(const std::vector<FieldRef>& fields, const Choice& choice, const std::vector<Stage>& stages, int dims,
           const StepperOptions& options);

/// Returns the user's choice with the fields that the grid determines. Local. @throws UsageError for a choice that was
/// made for another grid.
Choice choice_for(const Choice& requested, const Layout& layout, const std::vector<int>& nodes);

/// Local. @throws UsageError for a choice that a Stepper cannot run.
void check_choice(const Candidate& candidate);

/// Checks the choice and the slots, strides and ghost layers of the fields. Local. @throws UsageError.
void check_request(const Candidate& candidate, const std::vector<FieldRef>& fields);

/// Checks that memory is separate: a sweep may write and read all points that the depth needs of all fields, in both
/// slots. Fields that no sweep writes may be the same array. Local.
/// @throws UsageError.
void check_memory(const Candidate& candidate, int rank, const std::vector<FieldRef>& fields);

/// Checks that all ranks take the same steps; else they would wait for each other in calls that do not match.
/// Collective.
void require_same_steps(MPI_Comm comm, const Candidate& candidate, const std::vector<FieldRef>& fields,
                        const std::vector<int>& nodes, bool fused, bool guarded);

}  // namespace haloscope
