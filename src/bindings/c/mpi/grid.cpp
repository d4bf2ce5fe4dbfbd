// Grids of the C interface with MPI.
#include <algorithm>
#include <optional>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"

namespace haloscope::c {

namespace {

enum class Split : std::uint8_t { even, cartesian, boxes };
static_assert(HS_FOLD_NODE == int(Fold::node) && HS_FOLD_CELL == int(Fold::cell));
static_assert(HS_SPLIT_EVEN == 0 && HS_SPLIT_CARTESIAN == 1 && HS_SPLIT_BOXES == 2);

RankOrder three_of(const int32_t (&numbers)[3]) { return {numbers[0], numbers[1], numbers[2]}; }

GridSpec spec_of(const hs_grid_options& options) {
  GridSpec spec;
  spec.dims = options.dims;
  for (int d = 0; d < 3; ++d) {
    spec.cells[d] = options.cells[d];
    spec.periodic[d] = options.periodic[d] != 0;
  }
  return spec;
}

std::vector<int> nodes_of(MPI_Comm comm, const hs_grid_options& options) {
  return options.nodes ? std::vector<int>(options.nodes, options.nodes + ranks_in(comm)) : std::vector<int>();
}

/// @param sites  of the ranks, if they may be reordered.
Layout even_layout(MPI_Comm comm, const hs_grid_options& options, const std::optional<Sites>& sites) {
  const GridSpec spec = spec_of(options);
  const std::string rule = options.process_grid ? options.process_grid : spec.dims == 2 ? "square" : "cubic";
  const int active = active_ranks(options.active_ranks, ranks_in(comm), rule, spec);
  Layout layout(spec, process_grid(rule, active, spec), three_of(options.rank_order));
  if (sites) layout = reordered(layout, first_ranks(*sites, active, ranks_in(comm)));
  layout = layout.with_idle_ranks(ranks_in(comm));
  refuse_other_topology(comm, layout, rule, three_of(options.axes));
  return layout;
}

/// A box of a grid; dimensions that the grid does not have are not read.
Box box_of(const hs_box& from, int dims) {
  Box box;
  copy3(from.lo, box.lo);
  copy3(from.hi, box.hi);
  for (int d = std::max(0, dims); d < 3; ++d) box.lo[d] = 0, box.hi[d] = 1;
  return box;
}

/// The blocks that this rank owns.
std::vector<Box> owned_boxes(const hs_grid_options& options) {
  const bool single = options.block_count < 0;
  std::vector<Box> own;
  for (int block = 0; block < (single ? 1 : options.block_count); ++block)
    own.push_back(box_of(single ? options.owned : options.blocks[block], options.dims));
  return own;
}

PanelEdge edge_of(const hs_seam& seam, int end) { return {seam.panel[end], seam.dimension[end], seam.side[end]}; }

/// Returns the panels of a grid.
Panels panels_of(const hs_grid_options& options) {
  Panels panels;
  for (int n = 0; n < options.panel_count; ++n) panels.boxes.push_back(box_of(options.panels[n], options.dims));
  for (int n = 0; n < options.seam_count; ++n) {
    const hs_seam& seam = options.seams[n];
    panels.seams.push_back({edge_of(seam, 0), edge_of(seam, 1), seam.reversed != 0});
  }
  return panels;
}

/// @throws UsageError for a number of panels or seams without their address.
void check_panels(const hs_grid_options& options) {
  if (options.panel_count < 0 || options.seam_count < 0 || (options.panel_count > 0 && options.panels == nullptr) ||
      (options.seam_count > 0 && options.seams == nullptr))
    throw UsageError("panel_count is " + std::to_string(options.panel_count) + " and seam_count " +
                     std::to_string(options.seam_count) + ", which need `panels` and `seams`; pass both, or 0");
}

/// Checks options that exclude each other, or do not fit the number of ranks.
void check_options(const hs_grid_options& options, Split split, int ranks) {
  if (options.node_count != 0 && options.node_count != ranks)
    throw UsageError("nodes has " + std::to_string(options.node_count) + " numbers for " + std::to_string(ranks) +
                     " ranks; pass one for each");
  if (options.reorder != 0 && split != Split::even)
    throw UsageError("the grid's split specifies the cells of each rank; reorder is for HS_SPLIT_EVEN");
  if (options.active_ranks != 0 && split != Split::even)
    throw UsageError("the grid's split specifies the cells of each rank; active_ranks is for HS_SPLIT_EVEN");
  check_panels(options);
  if (options.block_count < -1)
    throw UsageError("block_count is " + std::to_string(options.block_count) +
                     "; pass the number of this rank's blocks, or -1 for the one in `owned`");
  if (options.block_count > 0 && (options.blocks == nullptr || split != Split::boxes))
    throw UsageError("block_count is " + std::to_string(options.block_count) +
                     ", which needs `blocks` and HS_SPLIT_BOXES; pass both, or leave it at -1");
}

/// Collective: the ranks agree on the way to split the grid before any of them contributes its cells.
void make_grid(MPI_Comm comm, const hs_grid_options* passed, hs_grid** grid) {
  hs_grid_options options;
  hs_grid_init(&options);
  Split split{};
  std::vector<Box> own;
  agree(comm, [&] {
    needed(grid, "grid") = nullptr;
    options = versioned(passed, options, "options");
    if (options.problem) {
      const int why = enumerator<int>(options.problem_status - 1, 3, "problem_status, less 1,") + 1;
      fail(static_cast<Exit>(why), options.problem);
    }
    split = enumerator<Split>(options.split, 3, "split of a grid");
    check_options(options, split, ranks_in(comm));
    own = owned_boxes(options);
  });
  if (!same_everywhere(comm, 2 * static_cast<std::uint64_t>(split) + (options.reorder != 0)))
    throw UsageError(
        "the ranks split the grid in different ways: by the cells that each owns, by the communicator's topology, or "
        "evenly, with reorder or without; split it in the same way on all of them");
  const std::vector<int> nodes = nodes_of(comm, options);
  std::optional<Sites> sites;
  if (options.reorder != 0) sites = sites_of(comm, nodes);
  std::vector<std::vector<Box>> blocks;
  if (split == Split::boxes) blocks = blocks_of_all(comm, own);
  std::optional<Layout> layout;
  agree(comm, [&] {
    layout = split == Split::boxes       ? Layout::of_blocks(spec_of(options), blocks, options.holes != 0)
             : split == Split::cartesian ? cartesian_layout(comm, spec_of(options), three_of(options.axes))
                                         : even_layout(comm, options, sites);
    layout = layout->folded(enumerator<Fold>(options.fold, 3, "fold"));
    if (options.panel_count > 0 || options.seam_count > 0) layout = layout->joined(panels_of(options));
  });
  *grid = keep(new hs_grid{comm, *layout, rank_in(comm), nodes});
}

void put(const Box& from, hs_box& to) {
  copy3(from.lo, to.lo);
  copy3(from.hi, to.hi);
}

/// The number of a block of this rank among the blocks of all ranks; -1: block 0 of none.
/// @throws UsageError for one that the rank lacks.
int number_of_block(const hs_grid& from, int32_t block) {
  const bool is_none = block == 0 && from.layout.blocks_of(from.rank) == 0;
  return is_none ? -1 : from.layout.number_of_block(from.rank, block);
}

/// The layout of a grid. @throws UsageError for a rank that it does not have.
const Layout& layout_with(const hs_grid* grid, int32_t rank) {
  const Layout& layout = needed(grid, "grid").layout;
  layout.require_rank(rank);
  return layout;
}

void create_grid(MPI_Comm comm, const hs_grid_options* options, hs_grid** grid) {
  require_communicator(comm);
  collectively(comm, "a grid", [&] { make_grid(comm, options, grid); });
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_grid_init_sized(hs_grid_options* options, uint64_t size) {
  hs_grid_options defaults{};
  defaults.dims = 3;
  defaults.problem_status = HS_USAGE;
  defaults.block_count = -1;
  for (int d = 0; d < 3; ++d) {
    defaults.cells[d] = 1;
    defaults.rank_order[d] = defaults.axes[d] = d;
    defaults.owned.hi[d] = 1;
  }
  put_defaults(defaults, options, size);
}

hs_status hs_cubed_sphere(int64_t edge, int64_t levels, hs_box panels[6], hs_seam seams[12]) {
  return guarded([&] {
    needed(panels, "panels");
    needed(seams, "seams");
    const Panels sphere = cubed_sphere(edge, levels);
    for (const Box& box : sphere.boxes) put(box, *panels++);
    for (const Seam& seam : sphere.seams)
      *seams++ = {{seam.first.panel, seam.second.panel},
                  {seam.first.d, seam.second.d},
                  {seam.first.side, seam.second.side},
                  seam.reversed,
                  0};
  });
}

hs_status hs_grid_create(MPI_Comm comm, const hs_grid_options* options, hs_grid** grid) {
  return guarded([&] { create_grid(comm, options, grid); });
}

hs_status hs_grid_create_f(int comm, const hs_grid_options* options, hs_grid** grid) {
  return guarded([&] { create_grid(from_fortran(comm), options, grid); });
}

hs_status hs_grid_free(hs_grid* grid) { return release(grid, "grid"); }

hs_status hs_grid_owned(const hs_grid* grid, hs_box* owned) {
  return guarded([&] {
    const hs_grid& from = needed(grid, "grid");
    put(from.layout.owned(from.rank), needed(owned, "owned"));
  });
}

hs_status hs_grid_block(const hs_grid* grid, int32_t block, hs_box* owned) {
  return guarded([&] {
    const hs_grid& from = needed(grid, "grid");
    const int number = number_of_block(from, block);
    put(number >= 0 ? from.layout.by_block().owned(number) : Box{}, needed(owned, "owned"));
  });
}

hs_status hs_grid_edges(const hs_grid* grid, int32_t block, int32_t at_edge[3][2]) {
  return guarded([&] {
    const hs_grid& from = needed(grid, "grid");
    const int number = number_of_block(from, block);
    needed(at_edge, "at_edge");
    const Layout& by_block = from.layout.by_block();
    for (int d = 0; d < 3; ++d)
      for (const int side : {0, 1})
        at_edge[d][side] = d < by_block.dims() && number >= 0 && by_block.is_at_edge(number, d, side);
  });
}

void hs_grid_data_init_sized(hs_grid_data* data, uint64_t size) { put_defaults(hs_grid_data{}, data, size); }

hs_status hs_grid_get(const hs_grid* grid, hs_grid_data* data) {
  return guarded([&] {
    const hs_grid& from = needed(grid, "grid");
    const Layout& layout = from.layout;
    hs_grid_data result{};
    result.blocks = layout.blocks_of(from.rank);
    result.several = layout.has_several_blocks();
    copy3(layout.grid().cells, result.cells);
    copy3(layout.grid().periodic, result.periodic);
    copy3(layout.ranks(), result.ranks);
    result.dims = layout.dims();
    result.size = layout.size();
    result.fold = static_cast<int32_t>(layout.grid().fold);
    result.panels = static_cast<int32_t>(layout.grid().panels.boxes.size());
    put_versioned(result, data, "data");
  });
}

hs_status hs_grid_coords(const hs_grid* grid, int32_t rank, int32_t coords[3]) {
  return guarded([&] {
    const Layout& layout = layout_with(grid, rank);
    needed(coords, "coords");
    copy3(layout.coords(rank), coords);
  });
}

hs_status hs_grid_neighbour(const hs_grid* grid, int32_t rank, const int32_t offset[3], int32_t* neighbour) {
  return guarded([&] {
    const Layout& layout = layout_with(grid, rank);
    needed(offset, "offset");
    for (int d = 0; d < 3; ++d)
      if (offset[d] < -1 || offset[d] > 1) throw UsageError("a neighbour's offset is -1, 0 or 1 in each dimension");
    needed(neighbour, "neighbour") = layout.neighbour(rank, {offset[0], offset[1], offset[2]});
  });
}
