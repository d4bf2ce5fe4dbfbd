// What a simulation's fields hold: initial values, poisoned halos, checksums, errors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "haloscope/run/run.hpp"

namespace haloscope {

namespace {

std::uint64_t hash(std::uint64_t id, std::uint64_t bits) {
  std::uint64_t x = id * 0x9e3779b97f4a7c15ull ^ (bits + 0x632be59bd9b4e019ull);
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

template <class F>
void for_each_cell(const Box& box, F f) {
  for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
    for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
      for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x) f(Index{x, y, z});
}

}  // namespace

std::uint64_t checksum_term(const GridSpec& grid, const Index& cell, std::uint64_t bits) {
  std::uint64_t id = 0;
  for (int d = 2; d >= 0; --d) id = id * grid.cells[d] + cell[d];
  return hash(id, bits);
}

double Simulation::last_change() const {
  const Box owned = plan_.owned(0);
  const SlotView &now = storage_->views()[0][slot_], &before = storage_->views()[0][1 - slot_];
  double largest = 0;
#pragma omp parallel for num_threads(choice_.threads) schedule(static) reduction(max : largest)
  for (std::int64_t y = owned.lo[1]; y < owned.hi[1]; ++y) {
    const auto* a = reinterpret_cast<const double*>(now.at({0, y, 0}));
    const auto* b = reinterpret_cast<const double*>(before.at({0, y, 0}));
    for (std::int64_t x = 0; x < owned.hi[0]; ++x) largest = std::max(largest, std::abs(b[x] - a[x]));
  }
  return largest;
}

void Simulation::poison_halos(int slot) {
  const bool on_device = messages_on_device(choice_);
  if (on_device) fields_->download(*storage_);
  const SlotView& view = storage_->views()[0][slot];
  const std::size_t bytes = static_cast<std::size_t>(view.stride[0]);
  const auto poison = [&](const Box& box) {
    for_each_cell(box, [&](const Index& p) { std::memset(view.at(p), 0xff, bytes); });  // all ones is a NaN
  };
  for (const Message& m : plan_.messages)
    if (!m.out)
      for (const Region& r : m.regions) poison(r.box);
  for (const Copy& c : plan_.copies) poison(c.to);
  if (on_device) fields_->upload(*storage_);
}

template <class T>
void Simulation::fill() {
  const Box global = layout_.owned(plan_.rank), owned = plan_.owned(0), all = plan_.allocated(0);
  const auto& views = storage_->views()[0];
  const bool gaussian = parameters_.initial == "gaussian";
  const ExactSolution exact(choice_, parameters_, gaussian ? global : Box{}, 0);
  for_each_cell(all, [&](const Index& p) {
    const Index cell{global.lo[0] + p[0], global.lo[1] + p[1], global.lo[2] + p[2]};
    bool boundary = false;  // beyond the edge of a grid that does not wrap around: fixed values
    for (int d = 0; d < plan_.dims; ++d)
      boundary = boundary || (!choice_.grid.periodic[d] && (cell[d] < 0 || cell[d] >= choice_.grid.cells[d]));
    T value = std::numeric_limits<T>::quiet_NaN();
    if (boundary || owned.contains(p))
      value = static_cast<T>(gaussian ? exact(cell) : initial_value(choice_, parameters_, cell));
    std::memcpy(views[0].at(p), &value, sizeof value);
    if (!boundary) value = std::numeric_limits<T>::quiet_NaN();
    if (storage_->slots() > 1) std::memcpy(views[1].at(p), &value, sizeof value);
  });
}

void Simulation::initialise() { initialise(parameters_.initial); }

void Simulation::initialise(std::string initial) {
  const std::string usual = std::exchange(parameters_.initial, std::move(initial));
  choice_.real == "f32" ? fill<float>() : fill<double>();
  if (fields_) fields_->upload(*storage_);
  stale_ = false;
  parameters_.initial = usual;
  time_ = 0;
  slot_ = 0;
}

double Simulation::value(const Index& p) const {
  refresh();
  const std::byte* at = storage_->views()[0][slot_].at(p);
  if (choice_.real == "f32") {
    float v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  double v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

std::uint64_t Simulation::checksum() const {
  refresh();
  const Box global = layout_.owned(plan_.rank);
  const SlotView& view = storage_->views()[0][slot_];
  const std::size_t bytes = static_cast<std::size_t>(view.stride[0]);
  std::uint64_t sum = 0;
  for_each_cell(plan_.owned(0), [&](const Index& p) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, view.at(p), bytes);
    sum += checksum_term(choice_.grid, {global.lo[0] + p[0], global.lo[1] + p[1], global.lo[2] + p[2]}, bits);
  });
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, comm_);
  return sum;
}

Simulation::Norms Simulation::error_norms() const {
  const Box global = layout_.owned(plan_.rank);
  const ExactSolution exact(choice_, parameters_, global, time_);
  double worst = 0, sum = 0;
  for_each_cell(plan_.owned(0), [&](const Index& p) {
    const double e = value(p) - exact({global.lo[0] + p[0], global.lo[1] + p[1], global.lo[2] + p[2]});
    worst = std::max(worst, std::abs(e));
    sum += e * e;
  });
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, comm_);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_);
  const double cells = static_cast<double>(choice_.grid.cells[0] * choice_.grid.cells[1] * choice_.grid.cells[2]);
  return {worst, std::sqrt(sum / cells)};
}

}  // namespace haloscope
