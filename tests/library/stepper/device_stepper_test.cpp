// A Stepper on the memory of an imitated device, with sweeps that its user launches: the bits of the Stepper on the
// CPU.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "faulty_device.hpp"
#include "haloscope/extend/app.hpp"
#include "haloscope/extend/reproducible_sum.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

/// Two fields that each read both: a star, or a box.
struct Mixing {
  int dims = 2;
  bool box = false;

  void run(const SweepArgs& args, int q) const {
    const FieldView<const double, 3> u = args.read<double, 3>(0), v = args.read<double, 3>(1);
    const FieldView<double, 3> into = args.write<double, 3>(q);
    const int rz = dims > 2 ? 1 : 0;
    each_point(args.region, [&](const Index& p) {
      const auto [i, j, k] = p;
      double sum = 0.3 * u(i, j, k) - 0.2 * v(i, j, k) + 0.001 * static_cast<double>(args.step % 7);
      for (int z = -rz; z <= rz; ++z)
        for (int y = -1; y <= 1; ++y)
          for (int x = -1; x <= 1; ++x)
            if (box || std::abs(x) + std::abs(y) + std::abs(z) == 1)
              sum += (0.01 + 0.003 * x + 0.005 * y + 0.007 * z) * (u(i + x, j + y, k + z) - v(i + x, j + y, k + z));
      into(i, j, k) = sum;
    });
  }
  /// Reductions of the cells: the largest and the least value, a sum that does not depend on the order of its terms,
  /// and one that does.
  static std::vector<Reduction> reductions(ReduceMode mode) {
    return {{.name = "largest", .op = ReduceOp::max, .mode = mode},
            {.name = "least", .op = ReduceOp::min, .mode = mode},
            {.name = "exact", .numbers = ReproducibleSum::parts, .mode = mode},
            {.name = "sum", .mode = mode}};
  }
  void gather(const SweepArgs& args, int q) const {
    const ReproducibleSum exact(100, 1e6);
    const FieldView<double, 3> u = args.write<double, 3>(q);
    each_point(args.region, [&](const Index& at) {
      const auto [i, j, k] = at;
      const double x = u(i, j, k);
      double parts[3] = {0, 0, 0};
      exact.add(x, parts);
      if (args.numbers) {  // the cell's contributions to the reductions
        args.numbers(i, j, k, 0) = args.numbers(i, j, k, 1) = args.numbers(i, j, k, 5) = x;
        for (int p = 0; p < 3; ++p) args.numbers(i, j, k, 2 + p) = parts[p];
      } else {
        args.reduced[0] = std::max(args.reduced[0], x);
        args.reduced[1] = std::min(args.reduced[1], x);
        for (int p = 0; p < 3; ++p) args.reduced[2 + p] += parts[p];
        args.reduced[5] += x;
      }
    });
  }
  /// `launched`: through the stream on which a sweep is enqueued.
  SweepSpec sweep(std::vector<int> writes, bool launched) const {
    SweepSpec spec{.name = writes.front() == 0 ? "first" : "second",
                   .reads = {{0, 1}, {1, 1}},
                   .writes = writes,
                   .box_stencil = box};
    const auto compute = [*this, writes](const SweepArgs& args) {
      for (const int q : writes) run(args, q);
      if (args.numbers || args.reduced != nullptr) gather(args, writes.front());
    };
    if (!launched)
      spec.run = compute;
    else
      spec.launch = [compute](const SweepArgs& args) {
        imitated::launch(args.device_stream, [compute, args] { compute(args); });
      };
    return spec;
  }
};

/// Two fields of two slots each, on the host or a device.
class TwoArrays {
 public:
  template <int D>
  TwoArrays(const Grid<D>& grid, int halo, bool on_device) : on_device_(on_device), halo_(halo), owned_(grid.owned()) {
    const Index n = grid.cells();
    row_ = n[0] + 2 * halo, plane_ = row_ * (n[1] + 2 * halo);
    count_ = static_cast<std::size_t>(D == 2 ? plane_ : plane_ * (n[2] + 2 * halo));
    first_ = halo * (1 + row_ + (D == 2 ? 0 : plane_));
    for (int q = 0; q < 2; ++q) {
      std::vector<double*> origins;
      for (int slot = 0; slot < 2; ++slot) {
        auto* const all =
            static_cast<double*>(on_device ? imitated::allocate(bytes()) : std::calloc(count_, sizeof(double)));
        memory_.push_back(all);
        origins.push_back(all + first_);
      }
      refs_.push_back(view<double, D>(grid, origins, row_, D == 2 ? 0 : plane_, halo));
    }
  }
  ~TwoArrays() {
    for (void* const memory : memory_) on_device_ ? imitated::release(memory) : std::free(memory);
  }
  TwoArrays(const TwoArrays&) = delete;
  TwoArrays& operator=(const TwoArrays&) = delete;

  const std::vector<FieldRef>& refs() const { return refs_; }
  /// Writes a number for each global point to both slots of a field, halos too: numbers beyond edges stay.
  void fill(std::uint64_t seed, const GridSpec& grid) {
    for (std::size_t a = 0; a < memory_.size(); ++a) {
      std::vector<double> values(count_);
      for (std::size_t n = 0; n < count_; ++n) {
        const auto at = static_cast<std::int64_t>(n);
        Index p{at % row_ - halo_, at % plane_ / row_ - halo_, grid.dims > 2 ? at / plane_ - halo_ : 0};
        for (int d = 0; d < grid.dims; ++d) {
          p[d] += owned_.lo[d];
          if (grid.periodic[d]) p[d] = (p[d] + 8 * grid.cells[d]) % grid.cells[d];
        }
        values[n] = random_value(seed, static_cast<int>(a / 2), grid, p);
      }
      imitated::copy(memory_[a], values.data(), bytes());
    }
  }
  std::vector<double> own_cells(int q, int slot) const {
    std::vector<double> all(count_), own;
    imitated::copy(all.data(), memory_[2 * q + slot], bytes());
    each_point({{0, 0, 0}, {owned_.extent(0), owned_.extent(1), owned_.extent(2)}},
               [&](const Index& p) { own.push_back(all[first_ + p[0] + p[1] * row_ + p[2] * plane_]); });
    return own;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(double); }

  bool on_device_;
  int halo_;
  Box owned_;
  std::int64_t row_ = 0, plane_ = 0, first_ = 0;
  std::size_t count_ = 0;
  std::vector<void*> memory_;  // by field, then slot
  std::vector<FieldRef> refs_;
};

Choice random_choice_of_devices(std::mt19937& random, const std::string& strategy) {
  Choice c{.strategy = strategy};
  c.device = pick(random, 0, 1) ? "host" : "auto";
  c.schedule = pick(random, 0, 1) ? "bulk" : "streams";
  c.depth = pick(random, 1, 3);
  c.substeps = c.depth > 1 && pick(random, 0, 1) ? Substeps::shrink : Substeps::full;
  c.pack = pick(random, 0, 1) ? Packing::first : Packing::beside;
  c.barrier = pick(random, 0, 4) == 0;
  return c;
}

/// Expects equal numbers of all reductions, but for the sum that is rounded in another order.
void expect_same_numbers(const Stepper& device, const Stepper& cpu, int reductions) {
  for (int r = 0; r < reductions; ++r) {
    const std::span<const double> found = device.reduced(r), right = cpu.reduced(r);
    ASSERT_EQ(found.size(), right.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], right[i], r == 3 ? 1e-10 : 0) << "reduction " << r;
  }
}

template <int D>
void expect_bits_of_the_cpu(
    std::mt19937& random, const std::string& strategy, const std::function<void()>& late = [] {}) {
  const Mixing mixing{.dims = D, .box = pick(random, 0, 1) == 1};
  const bool in_turn = pick(random, 0, 1);  // the second field from the new values of the first
  const Choice choice = random_choice_of_devices(random, strategy);
  std::vector<Reduction> reductions;
  const bool deep = choice.depth > 1, last_only = deep || pick(random, 0, 1);
  if (pick(random, 0, 1)) reductions = Mixing::reductions(static_cast<ReduceMode>(pick(random, 0, last_only ? 1 : 2)));
  for (Reduction& one : reductions) one.last_only = last_only;
  const auto stages = [&](bool launched) -> std::vector<Stage> {
    if (!in_turn) return {{.sweeps = {mixing.sweep({0, 1}, launched)}, .reductions = reductions}};
    return {{.sweeps = {mixing.sweep({0}, launched), mixing.sweep({1}, launched)}, .reductions = reductions}};
  };
  const int halo = choice.depth * (in_turn ? 2 : 1);
  GridOptions<D> options;
  for (int d = 0; d < D; ++d) {
    options.cells[d] = halo * world_size() + pick(random, 1, 4);
    options.periodic[d] = pick(random, 0, 1);
  }
  const Grid<D> grid(MPI_COMM_WORLD, options);
  TwoArrays right(grid, halo, false), found(grid, halo, true);
  const std::uint64_t seed = random();
  right.fill(seed, grid.layout().grid());
  found.fill(seed, grid.layout().grid());
  SCOPED_TRACE(strategy + " " + choice.schedule->name + " depth " + std::to_string(choice.depth) + " dims " +
               std::to_string(D) + (mixing.box ? " box" : " star") + (in_turn ? " in turn" : ""));
  Stepper cpu(grid, right.refs(), {}, stages(false));
  Stepper device(grid, found.refs(), choice, stages(true));
  const DeviceStream stream = imitated::make_stream();
  for (int part = 0; part < 3; ++part) {
    const int steps = pick(random, 0, 5);
    const int slot = cpu.run(steps);
    late();
    if (part == 1) {
      EXPECT_EQ(device.run(steps, stream), slot);
      imitated::finish(stream);
    } else {
      EXPECT_EQ(device.run(steps), slot);
    }
    for (int q : {0, 1}) EXPECT_EQ(found.own_cells(q, slot), right.own_cells(q, slot)) << device.report();
    expect_same_numbers(device, cpu, static_cast<int>(reductions.size()));
  }
  imitated::free_stream(stream);
}

TEST(DeviceStepper, RandomStepsHaveTheBitsOfTheCpu) {
  const Imitated slow("delay_us=20");
  std::mt19937 random(static_cast<unsigned>(80 + world_size()));
  const std::vector<std::string> strategies{
      "auto",          "ordered/staged",    "ordered/staged:stream", "direct/ipc",
      "direct/staged", "ordered/taskqueue", "direct:merged/aware",   "direct/taskqueue:queue,chunks=2"};
  const int cases = thorough() ? 160 : 24;
  for (int i = 0; i < cases; ++i) {
    const std::string& strategy = strategies[static_cast<std::size_t>(i) % strategies.size()];
    i % 3 ? expect_bits_of_the_cpu<2>(random, strategy) : expect_bits_of_the_cpu<3>(random, strategy);
  }
}

/// Ranks are late by fifty times the time that a kernel that waits for the CPU stays on the device.
TEST(DeviceStepper, NoNeighbourIsTooLate) {
  const Imitated short_stay("delay_us=20,stay_us=20");
  std::mt19937 random(static_cast<unsigned>(90 + world_size()));
  Lateness late(static_cast<unsigned>(world_rank()) + 1);
  for (const char* strategy :
       {"ordered/taskqueue", "direct/taskqueue:device,chunks=2", "ordered/staged:stream", "auto"})
    expect_bits_of_the_cpu<2>(random, strategy, std::ref(late));
}

/// A Stepper with reductions or without, and devices of which one fails, or all.
class FailingStepper {
 public:
  /// @param mode  of reductions over all ranks; none: without.
  FailingStepper(const std::string& strategy, const char* schedule, std::optional<ReduceMode> mode)
      : doom_("stay_us=1e9"),
        grid_(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}}),
        arrays_(grid_, 1, true) {
    Choice choice{.schedule = schedule, .strategy = strategy, .barrier = !mode, .device = "host"};
    Stage stage{.sweeps = {Mixing().sweep({0, 1}, true)}};
    if (mode) stage.reductions = Mixing::reductions(*mode);
    step_ = std::make_unique<Stepper>(grid_, arrays_.refs(), choice, std::vector<Stage>{stage});
  }
  /// Runs steps until one fails. @param mortal  rank whose device fails after these steps, copies and launches; -1:
  /// all.
  std::string run_until_it_fails(int mortal, int steps, int pieces, int most = 200) {
    std::string text = "no error";
    for (int n = 0; n < most && text == "no error"; ++n) {
      if (n == steps && (mortal < 0 || world_rank() == mortal)) doom_.come(pieces);
      text = error_of<Error>([&] { step_->run(1 + n % 2); });
    }
    return text;
  }
  std::string run_again() {
    return error_of<Error>([&] { step_->run(1); });
  }
  /// All ranks end the Stepper, and have ended it.
  void end() {
    step_.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  Doom doom_;
  Grid<2> grid_;
  TwoArrays arrays_;
  std::unique_ptr<Stepper> step_;
};

/// In any copy or launch of a step, on one rank or on all: ranks fail at different points of a step.
TEST(DeviceStepper, ADeviceThatFailsIsNamedByAllRanksAndEndsAllLaterSteps) {
  const std::optional<ReduceMode> modes[]{{}, ReduceMode::blocking, ReduceMode::nonblocking};
  int cases = 0;
  for (const char* strategy :
       {"direct/staged", "ordered/staged:stream", "direct/aware", "direct/ipc", "direct/taskqueue", "auto"})
    for (const char* schedule : {"bulk", "streams"})
      for (const int steps : {0, 3})
        for (int pieces = 0; pieces < 9; ++pieces) {
          const int mortal = cases % (world_size() + 1) - 1;
          const std::optional<ReduceMode> mode = modes[++cases % 3];
          if (!thorough() && (cases + world_size()) % 4 != 0) continue;
          SCOPED_TRACE(std::string(strategy) + " " + schedule + ", rank " + std::to_string(mortal) + " lost in step " +
                       std::to_string(steps) + " after " + std::to_string(pieces) + (mode ? " reducing" : ""));
          FailingStepper stepper(strategy, schedule, mode);
          const std::string text = stepper.run_until_it_fails(mortal, steps, pieces);
          EXPECT_PART(text, "rank " + std::to_string(world_rank()) + ": step ");
          const int named = mortal < 0 ? world_rank() : mortal;
          EXPECT_PART(text, "rank " + std::to_string(named) + ": step ");
          EXPECT_PART(text, "the device is lost");
          EXPECT_EQ(has_part(text, "with rank"), world_size() > 1) << text;
          EXPECT_PART(stepper.run_again(), "an earlier step");
          stepper.end();
          ASSERT_FALSE(HasFailure());
        }
}

/// A rank that has done its steps ends its Stepper, with links whose end waits for all ranks.
TEST(DeviceStepper, SteppersEndWhereADeviceOfAnotherRankHasFailed) {
  for (const char* strategy : {"direct/staged", "direct/ipc", "auto"})
    for (int pieces = 0; pieces < 6; ++pieces) {
      SCOPED_TRACE(std::string(strategy) + ", lost after " + std::to_string(pieces));
      FailingStepper stepper(strategy, "streams", {});
      stepper.run_until_it_fails(pieces % world_size(), 2, pieces, 3);
      stepper.end();
    }
}

/// Its rank has not sent the messages that the others wait for.
TEST(DeviceStepper, AnExceptionOfALaunchOnOneRankReachesAllRanks) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  const int thrower = world_size() - 1;
  for (const char* strategy : {"direct/staged", "direct/taskqueue"}) {
    TwoArrays arrays(grid, 1, true);
    Choice choice{.strategy = strategy, .device = "host"};
    SweepSpec sweep = Mixing().sweep({0, 1}, true);
    sweep.launch = [thrower, launch = sweep.launch](const SweepArgs& args) {
      if (world_rank() == thrower && args.step == 2) throw std::runtime_error("no such table");
      launch(args);
    };
    Stepper step(grid, arrays.refs(), choice, sweep);
    const auto run = [&] { step.run(200); };
    if (world_rank() == thrower) {
      EXPECT_THROW(run(), std::runtime_error);
    } else {
      const std::string text = error_of<Error>(run);
      EXPECT_PART(text, "rank " + std::to_string(thrower) + ": step 2");
      EXPECT_PART(text, "no such table");
    }
  }
}

/// Blocks of kernels are combined in their order, whatever the order in which they run.
TEST(DeviceStepper, SumsAreTheSameInEveryRun) {
  const Imitated slow("threads=3,delay_us=10");
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {60 * world_size(), 71}, .periodic = {true, true}});
  const Mixing mixing;
  for (const char* schedule : {"bulk", "streams"}) {
    Choice choice{.schedule = schedule, .strategy = "direct/staged", .device = "host"};
    double first = 0;
    for (int turn = 0; turn < 4; ++turn) {
      TwoArrays fields(grid, 1, true);
      fields.fill(7, grid.layout().grid());
      const Stage stage{.sweeps = {mixing.sweep({0, 1}, true)}, .reductions = Mixing::reductions(ReduceMode::blocking)};
      Stepper step(grid, fields.refs(), choice, std::vector<Stage>{stage});
      step.run(3);
      if (turn == 0) first = step.reduced(3).front();
      EXPECT_EQ(step.reduced(3).front(), first) << schedule;
    }
  }
}

/// A loop that ends by a number that a kernel has found.
TEST(DeviceStepper, LoopsEndByWhatKernelsGather) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  const Mixing mixing;
  std::array<int, 2> calls{};
  std::array<double, 2> largest{};
  for (const bool launched : {false, true}) {
    TwoArrays fields(grid, 1, launched);
    fields.fill(3, grid.layout().grid());
    Choice choice;
    if (launched) choice.device = "host", choice.strategy = "auto", choice.schedule = "streams";
    const Stage stage{.sweeps = {mixing.sweep({0, 1}, launched)},
                      .reductions = Mixing::reductions(ReduceMode::blocking),
                      .repeats = 1,
                      .least = 1,
                      .most = 40};
    const auto enough = [&](int, std::span<const double> reduced) {
      ++calls[launched];
      return reduced[0] - reduced[1] < 1e-3;
    };
    Stepper step(grid, fields.refs(), choice, std::vector<Stage>{stage}, {.finished = enough});
    step.run(1);
    largest[launched] = step.reduced().front();
  }
  EXPECT_GT(calls[0], 2);
  EXPECT_LT(calls[0], 39);
  EXPECT_EQ(calls[1], calls[0]);
  EXPECT_EQ(largest[1], largest[0]);
}

/// The guard of a Stepper reports the same for kernels as for sweeps on the CPU.
TEST(DeviceStepper, SweepsThatReadMoreThanTheySayAreNamedOnDevicesToo) {
  const Imitated slow("delay_us=20");
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  for (const bool reads_corners : {false, true}) {
    std::array<std::string, 2> errors;
    for (const bool launched : {false, true}) {
      TwoArrays fields(grid, 2, launched);
      fields.fill(5, grid.layout().grid());
      Choice choice;
      if (launched) choice.device = "host", choice.strategy = "direct/staged", choice.schedule = "streams";
      SweepSpec sweep = Mixing{.box = reads_corners}.sweep({0, 1}, launched);
      sweep.box_stencil = false;
      Stepper step(grid, fields.refs(), choice, sweep, {.guard = true});
      errors[launched] = error_of([&] { step.run(2); });
    }
    EXPECT_EQ(errors[1], errors[0]);
    EXPECT_EQ(has_part(errors[0], "was computed by sweep 'first' from ghost points"), reads_corners) << errors[0];
  }
}

TEST(DeviceStepper, WhatCannotBeIsRefused) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  const TwoArrays host(grid, 1, false), device(grid, 1, true);
  const Mixing mixing;
  const auto refusal = [&](const TwoArrays& arrays, const Choice& choice, bool launched,
                           const StepperOptions& of = {}) {
    return error_of([&] { Stepper(grid, arrays.refs(), choice, mixing.sweep({0, 1}, launched), of); });
  };
  Choice choice{.device = "host"};
  EXPECT_PART(refusal(host, choice, true), "fields are in host memory");
  EXPECT_PART(refusal(device, {}, true), "set its device to 'host'");
  EXPECT_PART(refusal(device, choice, true), "use 'auto', or 'ordered/' or 'direct/' with one of staged");
  choice.strategy = "auto";
  EXPECT_PART(refusal(device, choice, false), "has no launch");
  EXPECT_PART(refusal(host, {}, true), "has no run");
  for (const char* schedule : {"faces", "resident", "box"}) {
    choice.schedule = schedule;
    EXPECT_PART(refusal(device, choice, true), "use bulk or streams");
  }
  choice.schedule = "split";
  EXPECT_PART(refusal(device, choice, true), "for CPU threads");
  choice.schedule = "bulk";
  choice.capture = true;
  EXPECT_PART(refusal(device, choice, true), "capture");
  choice.capture = false;
  Stepper cpu(grid, host.refs(), {}, mixing.sweep({0, 1}, false));
  EXPECT_PART(error_of([&] { cpu.run(1, DeviceStream{}); }), "in host memory");
}

}  // namespace
}  // namespace haloscope::test
