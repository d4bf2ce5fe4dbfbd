// The kernels that every back end has, as functions that launch them on a stream. Plain values, no device code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/core/kernel_args.hpp"
#include "haloscope/device/copy.hpp"
#include "haloscope/device/exchange.hpp"
#include "haloscope/device/stay.hpp"
#include "haloscope/field/poison.hpp"
#include "haloscope/stage.hpp"

namespace haloscope::device {

class Stream;

/// Threads of a block, and layers of the last dimension that one block passes through. 0: the kernel's default.
struct BlockShape {
  int x = 0, y = 0, layers = 0;
};

inline constexpr int max_weights = 27;
inline constexpr int most_threads = 1024;  ///< of a block, on every device there is

/// The positions of the messages of one slot in device memory, as the kernels of faces read and write them.
struct FaceTable {
  struct Place {
    void* data = nullptr;                        ///< null: the field
    std::int64_t first = 0, row = 0, plane = 0;  ///< elements from there to cell (0,0,0), and between neighbours
  };
  struct Sent {
    Place place;
    std::int32_t lo[3], hi[3];  ///< cells of the message
  };
  std::int32_t cells[3] = {1, 1, 1};  ///< owned
  Place halo[27];                     ///< by direction, (x + 1) + 3 (y + 1) + 9 (z + 1): cells arrived from there
  Sent sent[26];
  int sent_count = 0;
};

/// One sweep on a device.
struct SweepLaunch {
  const void* in = nullptr;  ///< cell (0,0,0) of the slot read, device memory
  void* out = nullptr;       ///< cell (0,0,0) of the slot written
  std::int64_t row = 0;      ///< elements between cells neighbouring in y
  std::int64_t plane = 0;    ///< elements between cells neighbouring in z
  Box region;                ///< cells written
  Index wrap{0, 0, 0};       ///< cells of a dimension that wraps around inside the kernel (one rank), else 0
  int levels = 1;            ///< time steps fused on chip; > 1 by variant "fused" only
  BlockShape shape;
  Box twin;                            ///< sweeps of faces: more cells written
  const FaceTable* arrived = nullptr;  ///< ... device memory: messages of the slot read
  const FaceTable* leaving = nullptr;  ///< ... and of the slot written
  double weights[max_weights] = {};    ///< as find_kernel() of the CPU's kernels has them
};

using SweepFunction = void (*)(Stream&, const SweepLaunch&);

/// Numbers that a pass gathers for reductions, all in device memory.
struct PassNumbers {
  int count = 0;                  ///< 0: it gathers none
  const ReduceOp* ops = nullptr;  ///< operations that combine the numbers of two points
  double* partials = nullptr;     ///< `count` of each of pass_blocks()
  double* all = nullptr;          ///< of the whole pass, written by it
};

/// A pass over several quantities, with the arguments of the CPU's kernel: fields are in device memory, `operands` and
/// `weights` themselves in the caller's, until the call returns; `reduced` is not read.
/// @throws UsageError for a number of a kernel that devices do not have, and for boxes of 2^31 points and more.
using PassFunction = void (*)(Stream&, const KernelArgs&, const PassNumbers& numbers);

/// One sweep of an app with several quantities, for its sweeper to launch, which sets the kernel's arguments.
struct Pass {
  Stream& stream;
  PassFunction function;
  PassNumbers numbers = {};
  bool launched = false;  ///< run() was called

  void run(const KernelArgs& args) {
    function(stream, args, numbers);
    launched = true;
  }
};

inline constexpr int pass_threads = 128;  ///< of a block, each with a cell or point
/// Blocks of a pass over a box of cells or points. @throws UsageError for a box of 2^31 points and more.
int pass_blocks(const Box& box);

inline constexpr int gather_threads = 256, gathered_cells = 8 * gather_threads;  ///< of a block
/// Returns the blocks that combine the numbers of `cells` cells. @throws UsageError for 2^31 blocks and more.
int gather_blocks(std::int64_t cells);

/// Looks for poison in the points of a box, which follow each other in x.
struct PoisonSearch {
  const std::byte* first = nullptr;  ///< device memory
  std::int64_t extent[3] = {0, 0, 0};
  std::int64_t row = 0, plane = 0;  ///< bytes between neighbours in y and z
  std::int32_t point = 8;           ///< bytes of one
  PoisonBits bits;
  PassNumbers found;  ///< one, by `min`: the place in the box of the first such point; infinite: none exists
};

struct Kernels {
  void (*copy)(Stream&, const CopyLaunch&);
  /// Combines the numbers of the cells of a box into one for each reduction. @param values  number after number.
  void (*gather)(Stream&, const PassNumbers& numbers, const double* values, std::int64_t cells);
  void (*find_poison)(Stream&, const PoisonSearch&);
  struct Entry {
    const char* form;
    const char* real;     ///< "f32", "f64"
    const char* variant;  ///< see find_sweep()
    SweepFunction sweep;
  };
  std::vector<Entry> sweeps;
  std::vector<Entry> faces;  ///< of boundary faces, one of each form and type; see FaceTable
  struct Passes {
    const char* form;
    PassFunction run;
  };
  std::vector<Passes> passes;  ///< of apps with several quantities
  ExchangeKernels exchange;
  /// Answers the CPU with the clock: writes it to the word in mapped memory, waits for 0 there, writes it again; unless
  /// it has to leave before.
  void (*clock)(Stream&, std::uint64_t* word, const Stay&) = nullptr;
  struct OfGuest {
    const char* name;
    const void* table;  ///< of a type that the guest defines; it lives until the program ends
  };
  std::vector<OfGuest> of_guests;  ///< kernels that are neither sweeps nor passes
};

/// Adds the kernels that the known apps have for a back end.
void add_kernels_of_apps(Kernels& kernels, const std::string& backend);

/// Returns a sweep by name; the forms and their bits are the same as on the CPU (kernels/jam.hpp).
/// @param variant  "naive": a thread per cell; "stream": threads pass through the last dimension with partial sums in
///                 registers; "shared": the same with each layer staged in shared memory; "fused": several steps on
///                 chip (laplace2d: 8, laplace3d: 4 at most); "": the default, stream.
/// @throws UsageError for a form, type or variant that does not exist.
SweepFunction find_sweep(const Kernels& kernels, const std::string& form, const std::string& real,
                         const std::string& variant);
/// The sweep of boundary faces: a thread per cell of two boxes; the launch has FaceTables.
/// @throws UsageError for a form or type that does not exist.
SweepFunction find_faces(const Kernels& kernels, const std::string& form, const std::string& real);
/// The passes of an app with several quantities; null for a form that has none.
PassFunction find_passes(const Kernels& kernels, const std::string& form);

/// The block shape of a launch, with `usual` where it names none.
/// @param levels  most time steps that the variant fuses
/// @throws UsageError for levels beyond those, for more threads than a block has, for a block so narrow that the cells
///         which fused levels need around it leave none to write, and for a wrapped dimension of fewer cells than
///         levels.
BlockShape shape_of(const SweepLaunch& launch, const BlockShape& usual, int dims, int levels);

}  // namespace haloscope::device
