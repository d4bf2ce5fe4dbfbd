#include "haloscope/stepper/stepper_guard.hpp"

#include "haloscope/extend/agree.hpp"
#include "haloscope/stepper/bound_stage.hpp"

namespace haloscope {

StepperGuard::StepperGuard(MPI_Comm comm, const Candidate& candidate, const Views& views,
                           const std::vector<FieldRef>& fields, DeviceFields* device)
    : comm_(comm), candidate_(candidate), poison_(candidate.step.quantities, views, device) {
  rank_ = rank_in(comm);
  for (const FieldRef& field : fields) room_.push_back({field.low, field.high});
}

void StepperGuard::add(const BoundStage& stage) { poison_.add(spots_of(stage)); }

void StepperGuard::poison_halos(const BoundStage& stage, int slot) { poison_.write(stage.number(), slot); }

std::vector<PoisonSpot> StepperGuard::spots_of(const BoundStage& stage) const {
  std::vector<PoisonSpot> spots;
  int place = 0;
  for (const int q : exchanged(candidate_, stage.number())) add_spots(spots, q, stage.plan().owned(place++));
  return spots;
}

void StepperGuard::add_spots(std::vector<PoisonSpot>& spots, int q, const Box& owned) const {
  const Layout& layout = candidate_.layout;
  const Room& room = room_[q];
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        const std::array<int, 3> way{x, y, z};
        if (way == std::array<int, 3>{} || (y != 0 && layout.dims() < 2) || (z != 0 && layout.dims() < 3)) continue;
        if (layout.neighbour(rank_, way) < 0) continue;
        Box box = owned;
        for (int d = 0; d < layout.dims(); ++d) {
          if (way[d] < 0) box.hi[d] = owned.lo[d], box.lo[d] = owned.lo[d] - room.low[d];
          if (way[d] > 0) box.lo[d] = owned.hi[d], box.hi[d] = owned.hi[d] + room.high[d];
        }
        spots.push_back({q, box, side_of(box, owned)});
      }
}

void StepperGuard::check_written(const BoundStage& stage, int slot) const {
  agree(comm_, [&] {
    for (const SweepSpec& sweep : stage.stage().sweeps)
      for (const int q : sweep.writes) {
        const Quantity& quantity = candidate_.step.quantities[q];
        const Box own{{0, 0, 0}, candidate_.layout.local_cells(rank_)};
        const auto leak = poison_.find(q, slot, points_of(own, own, quantity.centring, candidate_.layout.dims()));
        if (!leak) continue;
        throw UsageError(
            name_point(*leak, quantity, candidate_.layout.owned(rank_).lo, candidate_.layout.dims()) +
            " was computed by sweep '" + sweep.name + "' from ghost points on " + to_string(leak->from) +
            " that its description does not declare; set the layers that it reads in SweepSpec::reads, and "
            "box_stencil if it reads corners");
      }
  });
}

}  // namespace haloscope
