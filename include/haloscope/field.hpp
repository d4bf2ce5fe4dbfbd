// Memory of a field on a grid, and the views through which exchanges and programs access fields, of the library or of
// the caller.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <memory>
#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// The points of a quantity that one rank owns, with its halo, in one or more slots. Zeroed, laid out for fast sweeps.
class FieldMemory {
 public:
  struct Options {
    Quantity quantity;
    int halo = 1;   ///< ghost layers on every side, >= 0
    int slots = 1;  ///< buffers, >= 1
    MemoryKind memory = MemoryKind::own;
    bool all_shared = false;  ///< in shared memory: other ranks access every point, not only the layers at neighbours
    int block = 0;            ///< block of the rank, where it has several
  };
  /// Local; in shared memory collective over `comm`, as is the destructor.
  /// @param nodes  node of each rank, to emulate nodes on one machine; empty: the real machines.
  /// @throws UsageError for a negative halo, slots < 1, a block that the rank lacks, shared memory on a grid of several
  ///         blocks a rank; Error with the bytes needed and available where (shared) memory is exhausted, in shared
  ///         memory on all ranks.
  FieldMemory(MPI_Comm comm, const Layout& layout, int rank, const std::vector<int>& nodes, const Options& options);
  ~FieldMemory();
  FieldMemory(FieldMemory&&) noexcept;
  FieldMemory& operator=(FieldMemory&&) noexcept;

  const std::vector<SlotView>& slots() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One field of an exchange, in memory of the library or of the caller.
struct FieldRef {
  Quantity quantity;
  Widths low{}, high{};         ///< ghost layers in memory, which an exchange fills by default
  std::vector<SlotView> slots;  ///< one view per slot
  Index cells{};                ///< cells of the block of the field's grid, which is checked; 0: unknown
};

// Sums over the points of a grid, each of which counts once: of nodes and faces that several ranks hold, the owner's
// value (see Exchange::start_share()). Ghost layers do not count. Results have the same bits on any number of ranks,
// for any split of the grid and any layout in memory: terms are added as exact parts (Demmel and Nguyen 2013). An
// infinite or undefined term gives an infinite or undefined sum.
// Collective. @throws UsageError, on all ranks, for slots that do not exist, points that are not made of reals of 4 or
// 8 bytes, fields of a device, another number of fields than blocks, other fields or grids than on other ranks, and in
// sum() for points of several numbers. Cost: two reductions to all of 48 and 24 bytes, and two passes over the points.

// Where ranks have several blocks, u and v are lists: the field of each block of this rank, in their order. A rank
// without blocks passes the field once, without cells.

/// Returns the sum of a field.
double sum(MPI_Comm comm, const Layout& layout, const FieldRef& u, int slot = 0);
double sum(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, int slot = 0);
/// Returns the inner product of two fields of one grid and centring: the sum of the products of all their numbers.
double dot(MPI_Comm comm, const Layout& layout, const FieldRef& u, const FieldRef& v, int slot_u = 0, int slot_v = 0);
double dot(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::vector<FieldRef>& v,
           int slot_u = 0, int slot_v = 0);
/// Returns the square root of the inner product of a field with itself.
double norm(MPI_Comm comm, const Layout& layout, const FieldRef& u, int slot = 0);
double norm(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, int slot = 0);

// Fields in files of NumPy's format .npy, which any number of ranks writes and reads: the points of the grid, each
// once, x fastest, in the file's last axis before the numbers of a point. A node or a face that several ranks hold is
// written by its owner and read by all holders; where a staggered dimension is periodic, the file has both of its ends.
// Ghost layers are neither written nor read. A file takes its name when it is complete; until then it is PATH.part. A
// file whose first axis is contiguous, as Fortran writes it, is refused: numpy.load() would show it transposed.
// Collective. @throws UsageError, on all ranks, for fields of a device, slots that do not exist, ranks that pass
// different paths or fields, and files of another format, type or shape, or that were cut off; Error where the file
// system fails. Cost: a redistribution to whole planes (see redistribution.hpp), and a file's bytes divided by ranks.

// Where ranks have several blocks, u is a list, as for sums.

/// Writes a field. Points in holes of the grid are 0.
void write_field(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, int slot = 0);
void write_field(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                 int slot = 0);
/// Reads a field.
void read_field(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, int slot = 0);
void read_field(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                int slot = 0);

// The same points without a header, in a file of another format: an array in one piece, as a contiguous dataset of HDF5
// (H5Dget_offset() returns its offset) or an array of a file of the program.

/// Writes a field into a file that exists and has its bytes already, of which only these change. A failure may leave
/// some of them changed.
/// @param offset  byte of the first point in the file.
/// @throws UsageError, also where the file has not these bytes.
void write_field_at(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path,
                    std::int64_t offset, int slot = 0);
void write_field_at(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                    std::int64_t offset, int slot = 0);
/// Reads a field. The type of the numbers in the file is not checked.
void read_field_at(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, std::int64_t offset,
                   int slot = 0);
void read_field_at(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                   std::int64_t offset, int slot = 0);

/// Returns true if an address is in memory that the ranks of a node share through a FieldMemory of this process.
bool in_shared_memory(const void* address);

}  // namespace haloscope
