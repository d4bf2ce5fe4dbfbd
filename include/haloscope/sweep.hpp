// Arguments of an app's sweep: views of the fields, the cells to compute, and the problem's parameters.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>

#include "haloscope/extend/both_sides.hpp"
#include "haloscope/extend/parameters.hpp"
#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/real.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// One problem of an app: all inputs of its result.
struct Problem {
  GridSpec grid;
  std::string form;  ///< of the kernels, one of App::forms
  Real real = Real::f64;
  Parameters parameters;
};

/// Typed access to one slot of a field: u(i, j, k) with local coordinates, which are negative or past the end in halos.
template <class T, int D>
struct FieldView {
  T* origin;
  std::int64_t row = 0, plane = 0;  ///< elements between neighbours in y and z
  HALOSCOPE_ON_BOTH_SIDES T& operator()(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0) const {
    return origin[i + j * row + k * plane];
  }
};

/// Device memory for the numbers that each cell adds to a sweep's reductions; a kernel must write all of them. Plain,
/// so that it can be an argument of a kernel.
struct CellNumbers {
  double* first = nullptr;  ///< cell (0, 0, 0), which need not be one of them; device memory
  std::int64_t row = 0, plane = 0, cells = 0;
  /// Returns true if the numbers are requested in this sweep.
  HALOSCOPE_ON_BOTH_SIDES explicit operator bool() const { return cells > 0; }
  /// Returns a number of a cell. @param number counted over all reductions of the sweep, in order.
  HALOSCOPE_ON_BOTH_SIDES double& operator()(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0,
                                             int number = 0) const {
    return first[number * cells + i + j * row + k * plane];
  }
};

namespace device {
struct Pass;
}

/// One thread's part of one sweep.
struct SweepArgs {
  const Problem* problem = nullptr;
  int stage = 0, sweep = 0;       ///< numbers of the stage, and of the sweep in it
  std::int64_t step = 0;          ///< time step that the sweep starts from
  Box region;                     ///< cells to compute, rank-local
  Box whole;                      ///< the region of the whole sweep, of which this is a part
  Index first{};                  ///< global coordinates of the rank's first cell
  const SlotView* in = nullptr;   ///< by quantity of the step: the slot that is read
  const SlotView* out = nullptr;  ///< ... and written
  const Centring* centrings = nullptr;
  const double* scalars = nullptr;  ///< App::scalars as they were when the stage began
  double* reduced = nullptr;        ///< this thread's numbers of all reductions, in order; null: not requested
  int dims = 3;
  int levels = 1;       ///< time steps fused
  bool stream = false;  ///< fields outgrow the cache: stores may bypass it
  int thread = 0;       ///< in [0, threads)
  int threads = 1;
  void* scratch = nullptr;       ///< see Sweeper::scratch_bytes()
  DeviceStream device_stream{};  ///< SweepSpec::launch: the stream to enqueue the kernel on
  CellNumbers numbers{};         ///< ... and the memory for the numbers of the cells of `region`, for reductions
  /// The launch of a sweep whose fields are in the memory of a device; null: it is computed on the calling thread.
  device::Pass* device = nullptr;

  /// Returns the points of quantity q that this part must write.
  Box points(int q) const;
  template <class T, int D>
  FieldView<const T, D> read(int q) const {
    return view<const T, D>(in[q]);
  }
  template <class T, int D>
  FieldView<T, D> write(int q) const {
    return view<T, D>(out[q]);
  }

 private:
  template <class T, int D>
  static FieldView<T, D> view(const SlotView& v) {
    const auto size = static_cast<std::int64_t>(sizeof(T));
    return {reinterpret_cast<T*>(v.origin), v.stride[1] / size, v.stride[2] / size};
  }
};

}  // namespace haloscope
