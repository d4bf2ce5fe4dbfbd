#include "haloscope/rank/simulation.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "haloscope/core/error.hpp"
#include "haloscope/runner/cores.hpp"
#include "haloscope/schedule/schedule.hpp"

namespace haloscope {

namespace {

const Choice& checked(const Choice& choice) {
  if (auto reason = illegal(choice); !reason.empty()) throw UsageError(reason);
  return choice;
}

DeepRegion region_of(const std::string& name) {
  return name == "shrink" ? DeepRegion::shrink : name == "blocked" ? DeepRegion::blocked : DeepRegion::full;
}

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

/// Blocks larger than this gain from stores that go around the cache (two fields of a rank no longer fit a share of L2).
constexpr std::int64_t stream_from_bytes = 8 << 20;

}  // namespace

Simulation::Simulation(MPI_Comm comm, const Choice& choice, const AppParameters& parameters,
                       const SimulationOptions& options)
    : choice_(checked(choice)), parameters_(parameters), options_(options), layout_(make_layout(choice)),
      weights_(kernel_weights(choice, parameters)) {
  int rank = 0, size = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (size != choice.ranks)
    throw UsageError("the configuration is for " + std::to_string(choice.ranks) + " ranks but " + std::to_string(size) +
                     " were started");
  const Real real = choice.real == "f32" ? Real::f32 : Real::f64;
  kernel_ = find_kernel(kernel_form(choice), real, options.isa);
  if (parameters.initial == "gaussian" && !has_exact_solution(choice, parameters))
    throw UsageError("--initial gaussian needs advection3d on a grid periodic in x, y and z; use --initial random");
  plan_ = make_plan(layout_, rank, exchange_spec(choice));

  MPI_Comm_dup(comm, &comm_);
  options_.runner.threads = choice.threads;
  options_.runner.yield = options_.runner.yield || more_ranks_than_cores(comm_, choice.threads);
  storage_ = std::make_unique<Storage>(plan_, 2, [this](std::span<std::byte> bytes) {
#pragma omp parallel for num_threads(choice_.threads) schedule(static)
    for (std::size_t page = 0; page < bytes.size(); page += 4096) bytes[page] = std::byte{0};
  });
  storage_->set_canaries();
  stream_ = options.stream >= 0 ? options.stream == 1
                                : plan_.allocated(0).volume() * (real == Real::f32 ? 4 : 8) >= stream_from_bytes;
  const Strategy strategy = parse_strategy(choice.strategy);
  link_ = find_transport(strategy.transport)
              .open({comm_, &layout_, &plan_, &storage_->views(), options_.runner.yield}, strategy.transport_options);
  full_ = bind(choice.depth);
  if (kernel_.scratch_bytes && choice.region == "blocked")
    for (int t = 0; t < choice.threads; ++t) {
      std::size_t most = 0;
      for (const Sweep& s : full_->program.sweeps) most = std::max(most, kernel_.scratch_bytes(s.region, choice.depth));
      scratch_.emplace_back(most);
    }
}

Simulation::~Simulation() {
  rest_.reset();
  full_.reset();
  link_.reset();
  MPI_Comm_free(&comm_);
}

std::unique_ptr<Simulation::Bound> Simulation::bind(int steps) const {
  const AppInfo& app = find_app(choice_.app);
  ScheduleOptions o;
  o.depth = choice_.depth;
  o.steps = steps;
  o.region = region_of(choice_.region);
  o.tiles = options_.tiles;
  o.sharing = choice_.sharing == "dynamic" ? Sharing::dynamic : Sharing::guided;
  o.barrier = options_.barrier;
  auto bound = std::make_unique<Bound>();
  bound->program = find_schedule(choice_.schedule).make({app.radius, app.box_stencil}, plan_, o);
  bound->comm = std::make_unique<CommOps>(bound->program, storage_->views(), *link_, comm_, options_.runner.yield);
  bound->runner = std::make_unique<Runner>(bound->program, *bound->comm,
                                           SweepCall{&Simulation::sweep, const_cast<Simulation*>(this)}, options_.runner);
  return bound;
}

Simulation::Bound& Simulation::remainder(int steps) {
  if (!rest_ || rest_->program.steps != steps) rest_ = bind(steps);
  return *rest_;
}

void Simulation::sweep(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread) {
  const auto& self = *static_cast<const Simulation*>(context);
  const auto& views = self.storage_->views()[0];
  SweepArgs args;
  args.in = views[slot].origin;
  args.out = views[into].origin;
  args.row = views[slot].stride[1] / views[slot].stride[0];
  args.plane = views[slot].stride[2] / views[slot].stride[0];
  args.region = box;
  args.weights = self.weights_.data();
  args.stream = self.stream_;
  args.levels = sweep.levels;
  if (sweep.levels == 1) return self.kernel_.sweep(args);
  args.scratch = self.scratch_[thread].data();
  self.kernel_.fused(args);
}

void Simulation::run(std::int64_t steps, bool poison) {
  for (std::int64_t left = steps; left > 0;) {
    const bool whole = left >= full_->program.steps;
    Bound& bound = whole ? *full_ : remainder(static_cast<int>(left));
    if (poison) poison_halos(slot_);
    slot_ = bound.runner->run(slot_, time_);
    time_ += bound.program.steps;
    left -= bound.program.steps;
  }
}

void Simulation::poison_halos(int slot) {
  const SlotView& view = storage_->views()[0][slot];
  const std::size_t bytes = static_cast<std::size_t>(view.stride[0]);
  const auto poison = [&](const Box& box) {
    for_each_cell(box, [&](const Index& p) { std::memset(view.at(p), 0xff, bytes); });  // all ones is a NaN
  };
  for (const Message& m : plan_.messages)
    if (!m.out)
      for (const Region& r : m.regions) poison(r.box);
  for (const Copy& c : plan_.copies) poison(c.to);
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
    std::memcpy(views[1].at(p), &value, sizeof value);
  });
}

void Simulation::initialise() {
  choice_.real == "f32" ? fill<float>() : fill<double>();
  time_ = 0;
  slot_ = 0;
}

double Simulation::value(const Index& p) const {
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
  const Box global = layout_.owned(plan_.rank);
  const SlotView& view = storage_->views()[0][slot_];
  const std::size_t bytes = static_cast<std::size_t>(view.stride[0]);
  std::uint64_t sum = 0;
  for_each_cell(plan_.owned(0), [&](const Index& p) {
    std::uint64_t bits = 0, id = 0;
    std::memcpy(&bits, view.at(p), bytes);
    for (int d = 2; d >= 0; --d) id = id * choice_.grid.cells[d] + global.lo[d] + p[d];
    sum += hash(id, bits);
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

void Simulation::reset_timers() {
  full_->runner->reset_timers();
  if (rest_) rest_->runner->reset_timers();
}

std::array<double, timer_count> Simulation::seconds() const {
  auto sum = full_->runner->seconds();
  if (rest_)
    for (int i = 0; i < timer_count; ++i) sum[i] += rest_->runner->seconds()[i];
  return sum;
}

std::int64_t Simulation::swept_points() const {
  std::int64_t points = 0;
  for (const Sweep& s : full_->program.sweeps) points += s.region.volume() * s.levels;
  return points;
}

}  // namespace haloscope
