// Grids that are split over ranks, their fields, and views of a user's own arrays.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/exchange.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/field.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope {

/// A value for each dimension, x first.
template <class T, int D>
using PerDimension = std::array<T, static_cast<std::size_t>(D)>;

/// Returns {0, 1, ...}.
template <int D>
constexpr PerDimension<int, D> first_dimensions() {
  PerDimension<int, D> all{};
  for (std::size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int>(d);
  return all;
}

/// The type of the numbers in points T: T itself, the parts of a complex number, the elements of a std::array.
template <class T>
struct NumberIn {
  using type = T;
};
template <class T>
struct NumberIn<std::complex<T>> : NumberIn<T> {};
template <class T, std::size_t N>
struct NumberIn<std::array<T, N>> : NumberIn<T> {};

/// Returns a quantity with points T.
template <class T>
Quantity quantity_of(const std::string& name, Centring centring) {
  using Number = typename NumberIn<T>::type;
  constexpr bool number = std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool> && sizeof(Number) <= 8;
  Quantity quantity{name, static_cast<int>(sizeof(T)),
                    std::is_integral_v<Number> ? ScalarType::integer : ScalarType::real, centring};
  quantity.number_bytes = number ? static_cast<int>(sizeof(Number)) : -1;
  return quantity;
}

template <int D>
struct GridOptions {
  PerDimension<std::int64_t, D> cells{};                   ///< global cells, x first, each >= 1
  PerDimension<bool, D> periodic{};                        ///< dimensions that wrap around
  std::string process_grid = D == 2 ? "square" : "cubic";  ///< rule or explicit "2x3"; see process_grid()
  /// The dimensions, starting with the one along which rank numbers run fastest. Default: x fastest.
  PerDimension<int, D> rank_order = first_dimensions<D>();
  /// Reorders ranks in the grid so that neighbours share nodes and sockets, see reordered(). `comm` stays as it is;
  /// owned() returns the cells of each rank.
  bool reorder = false;
  /// Ranks that own cells, the first ones, for coarse grids and gathered fields. 0: all; where no process grid of all
  /// ranks fits the cells, the largest number that fits. The others move nothing.
  int active_ranks = 0;
  std::vector<int> nodes{};  ///< node of each rank, to emulate nodes on one machine; empty: the real machines
};

/// A global grid split over the ranks of a communicator.
template <int D>
class Grid {
 public:
  /// Local; with `reorder` collective, 8 bytes from each rank to all. @throws UsageError as process_grid() and Layout
  /// do, unless `comm` is an intra-communicator, and for a communicator whose topology differs from `options` in the
  /// positions of ranks or in the periodic dimensions: see of_cartesian().
  Grid(MPI_Comm comm, const GridOptions<D>& options) : Grid(comm, make(comm, options), options.nodes) {
    refuse_other_topology(comm, layout_, options.process_grid);
  }
  /// Returns a grid of `cells` cells, split as a communicator of MPI_Cart_create is, into blocks as even as possible:
  /// positions, order of ranks and periods are the communicator's. Local.
  /// @param axes      the communicator's dimension that is x, then y, then z; not_split for one that it does not
  ///                  split, such as the columns of a 3D grid on a 2D communicator. Default: dimension 0 is x.
  /// @param periodic  periods of dimensions that are not split; ignored for others.
  /// @throws UsageError for a communicator without Cartesian topology, for axes that do not name each of its dimensions
  ///         once (one of 1 process need not be named), and as Layout does.
  static Grid of_cartesian(MPI_Comm cartesian, const PerDimension<std::int64_t, D>& cells,
                           const PerDimension<int, D>& axes = first_dimensions<D>(), const std::vector<int>& nodes = {},
                           const PerDimension<bool, D>& periodic = {}) {
    return Grid(cartesian, cartesian_layout(cartesian, spec_of(cells, periodic), whole(axes)), nodes);
  }
  /// Returns a grid in which each rank of `comm` specifies its cells: uneven blocks, any order of ranks, and holes
  /// (over land, for example).
  /// Collective over `comm`; 56 bytes from each rank to all.
  /// @param own    this rank's cells in global coordinates, without halos; an empty box: none. Dimensions that the
  ///               grid lacks are ignored.
  /// @param holes  true: cells may belong to no rank. Halos towards a hole are not filled, like halos beyond the
  ///               grid's edge; exchanges that fill corners then must be direct.
  /// @throws UsageError on all ranks, as Layout of boxes does.
  static Grid of_boxes(MPI_Comm comm, const PerDimension<std::int64_t, D>& cells, const PerDimension<bool, D>& periodic,
                       Box own, bool holes = false, const std::vector<int>& nodes = {}) {
    return split(comm, cells, periodic, {&own, 1}, holes, nodes);
  }
  /// Returns a grid in which each rank may own several blocks: tiles, over-decomposition, blocks that a balancer has
  /// dealt out. An exchange takes the fields of a rank's first block, then the same ones of the next; messages carry
  /// all of what one rank sends to another in a direction, and blocks of one rank copy from each other.
  /// Steppers, fields in shared memory and fields of devices need one block a rank.
  /// Collective over `comm`; 8 bytes from each rank to all, then 48 a block.
  /// @param own  the blocks of this rank, in global coordinates, without halos; none: an empty list. Ranks may have
  ///             different numbers of blocks.
  /// @throws UsageError on all ranks, as Layout::of_blocks() does.
  static Grid of_blocks(MPI_Comm comm, const PerDimension<std::int64_t, D>& cells,
                        const PerDimension<bool, D>& periodic, std::vector<Box> own, bool holes = false,
                        const std::vector<int>& nodes = {}) {
    return split(comm, cells, periodic, own, holes, nodes);
  }
  /// Returns the same grid folded at its high edge of y, as at the north of tripolar ocean grids: exchanges then fill
  /// the rows beyond it from inner rows in reverse, and make points on the fold equal. A field whose edge there is odd
  /// changes its sign; `Quantity::on_high_face` is for velocities. Accumulations, shares, Steppers and devices need a
  /// grid without a fold. Local.
  /// @throws UsageError as Layout::folded() does.
  Grid folded(Fold fold) const { return Grid(comm_, layout_.folded(fold), nodes_); }
  /// Returns the same grid with its cells in panels, which meet at seams, turned against each other or not, as the
  /// faces of a cubed sphere do: exchanges fill the points beyond an edge from the panel that it meets. Each block lies
  /// in one panel. Fields with `Quantity::vector` are components in directions of the panel: across a seam, x may be y,
  /// or opposite. Points beyond a corner are filled where the ways around both of its edges lead to one place.
  /// Accumulations, shares, Steppers and devices need a grid without seams. Local. See cubed_sphere().
  /// @throws UsageError as Layout::joined() does.
  Grid joined(Panels panels) const {
    for (Box& box : panels.boxes) fill_lacking(box);
    return Grid(comm_, layout_.joined(panels), nodes_);
  }
  MPI_Comm comm() const { return comm_; }
  const Layout& layout() const { return layout_; }
  int rank() const { return rank_; }
  const std::vector<int>& nodes() const { return nodes_; }
  /// Returns the number of blocks of this rank, see of_blocks().
  int blocks() const { return layout_.blocks_of(rank_); }
  // Calls without a block throw UsageError where ranks have several.

  /// Returns the number of owned cells per dimension; local coordinates run from 0.
  Index cells() const { return layout_.local_cells(rank_); }
  Index cells(int block) const { return layout_.by_block().local_cells(layout_.number_of_block(rank_, block)); }
  /// Returns the owned cells in global coordinates.
  Box owned() const { return layout_.owned(rank_); }
  Box owned(int block) const { return layout_.by_block().owned(layout_.number_of_block(rank_, block)); }
  /// Returns true if an exchange fills halos on this side (0 low, 1 high) of dimension d.
  bool has_neighbour(int d, int side) const { return layout_.has_neighbour(rank_, d, side); }
  bool has_neighbour(int d, int side, int block) const {
    return layout_.by_block().has_neighbour(layout_.number_of_block(rank_, block), d, side);
  }

 private:
  /// Splits a grid by the blocks of this rank, which get one cell in dimensions that the grid lacks. Allocates nothing
  /// before the ranks meet: one whose memory is exhausted would leave the others waiting.
  static Grid split(MPI_Comm comm, const PerDimension<std::int64_t, D>& cells, const PerDimension<bool, D>& periodic,
                    std::span<Box> own, bool holes, const std::vector<int>& nodes) {
    for (Box& box : own) fill_lacking(box);
    return Grid(comm, Layout::of_blocks(spec_of(cells, periodic), blocks_of_all(comm, own), holes), nodes);
  }
  /// Gives a box one cell in dimensions that the grid lacks.
  static void fill_lacking(Box& box) {
    for (std::size_t d = D; d < 3; ++d) {
      box.lo[d] = 0;
      box.hi[d] = 1;
    }
  }
  Grid(MPI_Comm comm, Layout layout, const std::vector<int>& nodes)
      : comm_(comm), layout_(std::move(layout)), nodes_(nodes), rank_(require_communicator(comm).rank) {}
  static GridSpec spec_of(const PerDimension<std::int64_t, D>& cells, const PerDimension<bool, D>& periodic) {
    GridSpec spec;
    spec.dims = D;
    for (std::size_t d = 0; d < D; ++d) {
      spec.cells[d] = cells[d];
      spec.periodic[d] = periodic[d];
    }
    return spec;
  }
  static Layout make(MPI_Comm comm, const GridOptions<D>& options) {
    const int size = require_communicator(comm).size;
    const GridSpec spec = spec_of(options.cells, options.periodic);
    const int active = haloscope::active_ranks(options.active_ranks, size, options.process_grid, spec);
    const Layout layout(spec, haloscope::process_grid(options.process_grid, active, spec), whole(options.rank_order));
    if (!options.reorder) return layout.with_idle_ranks(size);
    return reordered(layout, first_ranks(sites_of(comm, options.nodes), active, size)).with_idle_ranks(size);
  }
  /// Returns a value for each of the three dimensions.
  static std::array<int, 3> whole(const PerDimension<int, D>& some) {
    std::array<int, 3> all{0, 1, 2};
    std::copy(some.begin(), some.end(), all.begin());
    return all;
  }
  MPI_Comm comm_;
  Layout layout_;
  std::vector<int> nodes_;
  int rank_ = 0;
};

struct FieldOptions {
  int halo = 1;   ///< ghost layers on every side, >= 0
  int slots = 1;  ///< buffers, e.g. 2 for old and new, >= 1
  std::string name = "u";
  Centring centring = Centring::cell;
  /// MemoryKind::shared: all ranks of the node can access it, as strategies `shared` and `shared:pull` require.
  MemoryKind memory = MemoryKind::own;
  /// In shared memory: other ranks access every point, as redistributions by strategy `shared` do, not only the layers
  /// at neighbours. Costs huge pages, which shared memory lacks.
  bool all_shared = false;
  int block = 0;  ///< block of this rank, on a grid of several blocks a rank
};

/// Returns the cells of a block of this rank; without blocks, none.
template <int D>
Index cells_of(const Grid<D>& grid, int block) {
  return grid.blocks() > 0 ? grid.cells(block) : Index{};
}

/// A field on a grid: memory for all owned points and halos of every slot, laid out for fast sweeps.
template <class T, int D>
class Field {
  static_assert(std::is_trivially_copyable_v<T>, "halos are moved as bytes");

 public:
  /// Zeroed. Local; in shared memory collective over the grid's communicator, as is the destructor, except during
  /// stack unwinding: then it does not wait for other ranks, and the memory stays allocated.
  /// @throws UsageError for negative halos, slots < 1 or a block that the rank lacks; Error with the bytes needed and
  ///         available where (shared) memory is exhausted, in shared memory on all ranks.
  Field(const Grid<D>& grid, const FieldOptions& options)
      : memory_(grid.comm(), grid.layout(), grid.rank(), grid.nodes(),
                {quantity(options), options.halo, options.slots, options.memory, options.all_shared, options.block}) {
    ref_.quantity = quantity(options);
    ref_.cells = cells_of(grid, options.block);
    for (std::size_t d = 0; d < D; ++d) ref_.low[d] = ref_.high[d] = options.halo;
  }
  FieldView<T, D> operator[](int slot) const {
    const SlotView& v = memory_.slots().at(static_cast<std::size_t>(slot));
    const auto size = static_cast<std::int64_t>(sizeof(T));
    return {reinterpret_cast<T*>(v.origin), v.stride[1] / size, v.stride[2] / size};
  }
  operator FieldRef() const {
    FieldRef ref = ref_;
    ref.slots = memory_.slots();
    return ref;
  }

 private:
  static Quantity quantity(const FieldOptions& o) { return quantity_of<T>(o.name, o.centring); }
  FieldMemory memory_;
  FieldRef ref_;  // without slots: nothing may be allocated after a collective call that has opened memory
};

/// The layout of a user's arrays in memory.
template <int D>
struct ViewOptions {
  PerDimension<std::int64_t, D>
      stride{};                        ///< bytes between points that are neighbours in x, y, z; of any sign and order
  PerDimension<int, D> low{}, high{};  ///< ghost layers that the arrays have room for, by dimension
  std::string name = "view";           ///< for error texts
  Centring centring = Centring::cell;
  int block = 0;  ///< block of this rank, on a grid of several blocks a rank
};

/// Returns a user's arrays as a field, one pointer per slot: the axes in any order, members of structs, with any
/// gaps.
/// @param first  address of the first owned point of each slot (not of the halo).
/// Exchanges are faster with longer contiguous runs in x: make the axis that is contiguous in memory x.
template <class T, int D>
FieldRef view(const Grid<D>& grid, const std::vector<T*>& first, const ViewOptions<D>& options) {
  static_assert(std::is_trivially_copyable_v<T>, "halos are moved as bytes");
  FieldRef ref;
  ref.cells = cells_of(grid, options.block);
  ref.quantity = quantity_of<T>(options.name, options.centring);
  SlotView slot{nullptr, {}, static_cast<std::int64_t>(sizeof(T))};
  for (std::size_t d = 0; d < D; ++d) {
    slot.stride[d] = options.stride[d];
    ref.low[d] = options.low[d];
    ref.high[d] = options.high[d];
  }
  for (T* p : first) {
    slot.origin = reinterpret_cast<std::byte*>(p);
    ref.slots.push_back(slot);
  }
  return ref;
}

/// The same for arrays whose points are contiguous in x.
/// @param row   elements between points neighbouring in y; @param plane  in z.
/// @param halo  ghost layers on every side that the arrays have room for.
template <class T, int D>
FieldRef view(const Grid<D>& grid, const std::vector<T*>& first, std::int64_t row, std::int64_t plane, int halo,
              Centring centring = Centring::cell) {
  const std::array<std::int64_t, 3> elements{1, row, plane};
  ViewOptions<D> options;
  options.centring = centring;
  for (std::size_t d = 0; d < D; ++d) {
    options.stride[d] = elements[d] * static_cast<std::int64_t>(sizeof(T));
    options.low[d] = options.high[d] = halo;
  }
  return view(grid, first, options);
}

/// Opens an exchange of `fields` (all with the same number of slots). Collective over the grid's communicator.
/// @param strategy  such as "ordered/p2p"; "auto" tries transports in the first exchanges, then uses the fastest, and
///                  caches this choice for later programs (docs/understand/transports.md). HALOSCOPE_STRATEGY in the
///                  environment of rank 0 overrides it.
/// @throws on all ranks, as Exchange does.
template <int D>
Exchange make_exchange(const Grid<D>& grid, const std::vector<FieldRef>& fields, const Strategy& strategy = "auto",
                       const ExchangeOptions& options = {}) {
  return Exchange(grid.comm(), grid.layout(), fields, strategy, options, grid.nodes());
}

/// Returns the sum of a field, an inner product, a norm, with the same bits on any number of ranks: see field.hpp.
template <int D>
double sum(const Grid<D>& grid, const FieldRef& u, int slot = 0) {
  return sum(grid.comm(), grid.layout(), u, slot);
}
template <int D>
double dot(const Grid<D>& grid, const FieldRef& u, const FieldRef& v, int slot_u = 0, int slot_v = 0) {
  return dot(grid.comm(), grid.layout(), u, v, slot_u, slot_v);
}
template <int D>
double norm(const Grid<D>& grid, const FieldRef& u, int slot = 0) {
  return norm(grid.comm(), grid.layout(), u, slot);
}
/// The same where ranks have several blocks. @param u, v  the field of each block of this rank.
template <int D>
double sum(const Grid<D>& grid, const std::vector<FieldRef>& u, int slot = 0) {
  return sum(grid.comm(), grid.layout(), u, slot);
}
template <int D>
double dot(const Grid<D>& grid, const std::vector<FieldRef>& u, const std::vector<FieldRef>& v, int slot_u = 0,
           int slot_v = 0) {
  return dot(grid.comm(), grid.layout(), u, v, slot_u, slot_v);
}
template <int D>
double norm(const Grid<D>& grid, const std::vector<FieldRef>& u, int slot = 0) {
  return norm(grid.comm(), grid.layout(), u, slot);
}

/// Writes a field to a file, or reads it, on any number of ranks: see field.hpp.
template <int D>
void write_field(const Grid<D>& grid, const FieldRef& u, const std::string& path, int slot = 0) {
  write_field(grid.comm(), grid.layout(), u, path, slot);
}
template <int D>
void read_field(const Grid<D>& grid, const FieldRef& u, const std::string& path, int slot = 0) {
  read_field(grid.comm(), grid.layout(), u, path, slot);
}
/// The same where ranks have several blocks. @param u  the field of each block of this rank.
template <int D>
void write_field(const Grid<D>& grid, const std::vector<FieldRef>& u, const std::string& path, int slot = 0) {
  write_field(grid.comm(), grid.layout(), u, path, slot);
}
template <int D>
void read_field(const Grid<D>& grid, const std::vector<FieldRef>& u, const std::string& path, int slot = 0) {
  read_field(grid.comm(), grid.layout(), u, path, slot);
}
/// The same at an offset of a file of another format.
template <int D>
void write_field_at(const Grid<D>& grid, const FieldRef& u, const std::string& path, std::int64_t offset,
                    int slot = 0) {
  write_field_at(grid.comm(), grid.layout(), u, path, offset, slot);
}
template <int D>
void write_field_at(const Grid<D>& grid, const std::vector<FieldRef>& u, const std::string& path, std::int64_t offset,
                    int slot = 0) {
  write_field_at(grid.comm(), grid.layout(), u, path, offset, slot);
}
template <int D>
void read_field_at(const Grid<D>& grid, const FieldRef& u, const std::string& path, std::int64_t offset, int slot = 0) {
  read_field_at(grid.comm(), grid.layout(), u, path, offset, slot);
}
template <int D>
void read_field_at(const Grid<D>& grid, const std::vector<FieldRef>& u, const std::string& path, std::int64_t offset,
                   int slot = 0) {
  read_field_at(grid.comm(), grid.layout(), u, path, offset, slot);
}

/// Returns the owned cells at least `width` away from every exchanged halo. @param block  of this rank.
template <int D>
Box interior(const Grid<D>& grid, int width, int block) {
  if (grid.blocks() == 0) return {};
  Box box{{0, 0, 0}, grid.cells(block)};
  for (int dimension = 0; dimension < D; ++dimension) {
    const auto d = static_cast<std::size_t>(dimension);
    if (grid.has_neighbour(dimension, 0, block)) box.lo[d] += width;
    if (grid.has_neighbour(dimension, 1, block)) box.hi[d] = std::max(box.lo[d], box.hi[d] - width);
  }
  return box;
}

/// Returns the owned cells outside interior(grid, width), as disjoint boxes.
template <int D>
std::vector<Box> boundary(const Grid<D>& grid, int width, int block) {
  return subtract(Box{{0, 0, 0}, cells_of(grid, block)}, interior(grid, width, block));
}

/// The same on a grid of one block a rank. @throws UsageError on one of several.
template <int D>
Box interior(const Grid<D>& grid, int width) {
  return grid.cells() == Index{} ? Box{} : interior(grid, width, 0);
}
template <int D>
std::vector<Box> boundary(const Grid<D>& grid, int width) {
  return subtract(Box{{0, 0, 0}, grid.cells()}, interior(grid, width));
}

}  // namespace haloscope
