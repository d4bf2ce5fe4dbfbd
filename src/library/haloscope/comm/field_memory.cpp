#include <algorithm>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/same_request.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/field.hpp"
#include "haloscope/field/field.hpp"

namespace haloscope {

namespace {

/// Makes a plan without messages: only the points and the neighbours matter, and the halo may be wider than any
/// exchange.
Plan plan_of(const Layout& layout, int rank, const FieldMemory::Options& options) {
  if (options.halo < 0)
    throw UsageError("a field cannot have a halo of " + std::to_string(options.halo) + " layers; use 0 or more");
  ExchangeSpec nothing;
  nothing.quantities = {options.quantity};
  nothing.pattern = Pattern::direct;  // any layout allows it
  nothing.low = nothing.high = {0, 0, 0};
  const bool is_none = options.block == 0 && layout.blocks_of(rank) == 0;
  const int block = is_none ? -1 : layout.number_of_block(rank, options.block);
  if (layout.has_several_blocks() && options.memory == MemoryKind::shared)
    throw UsageError("fields in shared memory need a grid of one block a rank; use memory of the rank's own");
  Plan plan = layout.owns_cells(rank) ? make_plan(layout.by_block(), block, nothing) : make_plan(layout, rank, nothing);
  for (int d = 0; d < layout.dims(); ++d) plan.spec.low[d] = plan.spec.high[d] = options.halo;
  return plan;
}

/// Allocates a field. In shared memory collective: a rank that cannot describe its field does not block the others.
Storage allocate(MPI_Comm comm, const Layout& layout, int rank, const std::vector<int>& nodes,
                 const FieldMemory::Options& options) {
  if (options.memory == MemoryKind::own) return Storage(plan_of(layout, rank, options), options.slots);
  Plan plan;
  agree(comm, [&] { plan = plan_of(layout, rank, options); });
  require_same(comm, "fields in shared memory", aspects_of(layout, nodes), {}, "give all of them the same grid");
  const Node& node = node_of(comm, nodes);
  if (!options.all_shared) return Storage(plan, options.slots, {}, shared_by(node));
  return Storage(plan, options.slots, {},
                 [&](std::size_t bytes, const std::vector<ByteRange>&) { return allocate_shared(node, bytes); });
}

}  // namespace

struct FieldMemory::State {
  Storage storage;
};

FieldMemory::FieldMemory(MPI_Comm comm, const Layout& layout, int rank, const std::vector<int>& nodes,
                         const Options& options) {
  const auto open = [&] { state_.reset(new State{allocate(comm, layout, rank, nodes, options)}); };
  options.memory == MemoryKind::own ? locally("a field", open) : collectively(comm, "a field in shared memory", open);
}

FieldMemory::~FieldMemory() = default;
FieldMemory::FieldMemory(FieldMemory&&) noexcept = default;
FieldMemory& FieldMemory::operator=(FieldMemory&&) noexcept = default;

const std::vector<SlotView>& FieldMemory::slots() const {
  if (!state_) throw UsageError("a Field was used that was moved to another one; use that one");
  return state_->storage.views()[0];
}

bool in_shared_memory(const void* address) { return shared_place(address).window >= 0; }

}  // namespace haloscope
