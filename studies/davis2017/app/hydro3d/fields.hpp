// Common conventions of the kernels of hydro3d and the app that calls them.
#pragma once

#include <cstdint>

#include "haloscope/extend/both_sides.hpp"

namespace haloscope::hydro {

/// Quantities, by number in the step. Quantities that the remap moves exist twice: each of its sweeps reads one set and
/// writes the other. Vectors have a quantity for each dimension.
enum Field : int {
  density,
  energy,    ///< specific internal
  fraction,  ///< of the mass that is material 1
  volume,
  other_density,
  other_energy,
  other_fraction,
  other_volume,
  pressure,
  viscosity,  ///< the artificial pressure
  sound,      ///< speed
  material,   ///< 0 or 1, an integer
  velocity,
  acceleration = velocity + 3,
  other_velocity = acceleration + 3,
  other_acceleration = other_velocity + 3,
  displacement = other_acceleration + 3,
  node_mass = displacement + 3,
  node_loss,  ///< kinetic energy that the remap of velocities has lost
  volume_flux,
  mass_flux = volume_flux + 3,
  field_count = mass_flux + 3
};

/// Entries of KernelArgs::weights.
enum Weight : int {
  inverse_size,             ///< 1 / the cell's extent, by dimension
  area = inverse_size + 3,  ///< of a face
  cell_volume = area + 3,
  sub_step,   ///< seconds of a sub-cycle
  quadratic,  ///< coefficients of the artificial viscosity
  linear,
  gamma_less_one,                   ///< by material
  code_first = gamma_less_one + 2,  ///< 1 + number of the rank's first cell, and distances of rows and planes
  code_row,
  code_plane,
  heated,   ///< 1: kinetic energy that the remap has lost becomes internal energy
  first_x,  ///< global number of the rank's first cell in x
  weight_count
};

/// Rates in 1/s that limit the time step, as the sweep `rates` gathers their largest values.
enum Rate : int {
  deformation,                   ///< |du_i/dx_j|, nine
  sound_rate = deformation + 9,  ///< by dimension, as the following ones
  advection_rate = sound_rate + 3,
  acceleration_rate = advection_rate + 3,
  viscous_rate = acceleration_rate + 3,
  compression_rate = viscous_rate + 3,
  work_rate,
  rate_count
};
static_assert(rate_count == 23);

/// Sums over the grid.
enum Total : int { mass, internal_energy, kinetic_energy, momentum, fraction_mass = momentum + 3, total_count };

/// The values of each cell in the summary of a step: its part of each Total, then its state. Sums, largest and least
/// values over all cells.
enum Observed : int {
  observed_density = total_count,
  observed_energy,  ///< specific internal
  observed_pressure,
  observed_fraction,  ///< of material 1
  observed_sound,
  observed_speed,   ///< root of the mean square over the cell's nodes
  observed_growth,  ///< of the volume: the divergence of the velocity
  observed_count
};
static_assert(observed_count == 14);

/// Cells that it counts.
enum Counted : int {
  cells_all,
  cells_of_material_1,
  cells_mixed,  ///< of both materials
  cells_supersonic,
  cells_rising,  ///< whose mean velocity is positive, by dimension
  counted_count = cells_rising + 3
};
static_assert(counted_count == 7);

/// Sums by dimension.
enum Directed : int {
  directed_energy,                          ///< kinetic
  directed_momentum = directed_energy + 3,  ///< its magnitude
  directed_power = directed_momentum + 3,   ///< pressure times velocity times volume
  directed_count = directed_power + 3
};
static_assert(directed_count == 9);

/// The largest density along x as a line of text: 'm' is 1, each letter before or after it is a factor of a root of 2.
constexpr int sketch_letters = 32;

/// Numbers of the summary, one reduction after the other.
enum Summary : int {
  summary_counts,
  summary_sums = summary_counts + counted_count,
  summary_largest = summary_sums + observed_count,
  summary_least = summary_largest + observed_count,
  summary_directed = summary_least + observed_count,
  summary_sketch = summary_directed + directed_count,
  summary_count = summary_sketch + sketch_letters
};

/// The kernels, by KernelArgs::number. Kernels of the three dimensions follow each other; `_back` reads the other set.
enum Kernel : int {
  kernel_viscosity,
  kernel_rates,
  kernel_totals,
  kernel_gather_nodes,
  kernel_predict,
  kernel_state_predicted,
  kernel_accelerate,
  kernel_correct,
  kernel_state,
  kernel_return_cells,
  kernel_return_nodes,
  kernel_faces,
  kernel_cells = kernel_faces + 3,
  kernel_cells_back = kernel_cells + 3,
  kernel_nodes = kernel_cells_back + 3,
  kernel_nodes_back = kernel_nodes + 3,
  kernel_heat_other = kernel_nodes_back + 3,
  kernel_heat,
  kernel_limits,
  kernel_predict_pressure,
  kernel_accelerate_first,
  kernel_correct_pressure,
  kernel_return_gas,
  kernel_summary,
  kernel_count
};

/// Rows that a kernel keeps, and the elements between rows of n points.
constexpr int kept_rows = 17;
HALOSCOPE_ON_BOTH_SIDES constexpr std::int64_t kept_pitch(std::int64_t n) { return (n + 4 + 7) / 8 * 8 + 8; }

/// Arrays of form `arrays`, as large as a region and the points around it: `array_margin` more points per dimension.
constexpr int kept_arrays = 15, array_margin = 3;
constexpr std::int64_t array_points(std::int64_t x, std::int64_t y, std::int64_t z) {
  return (x + array_margin) * (y + array_margin) * (z + array_margin);
}

}  // namespace haloscope::hydro
