// Whole time steps of a user's fields: the bits of a plain loop over the whole grid, with every choice.
#include "haloscope/stepper.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <limits>
#include <optional>

#include "allocation_counter.hpp"
#include "haloscope/haloscope.hpp"
#include "random_case.hpp"
#include "tori.hpp"

namespace haloscope::test {
namespace {

/// Two fields and the rules for their new values. `together`: both from the old ones. `in_turn`: the second one from
/// the new values of the first, in one stage. `by_stages`: the same in two stages and one slot each.
enum class Form { together, in_turn, by_stages };

struct Stencil {
  Form form = Form::together;
  bool box = false;
  std::array<std::array<int, 2>, 2> reach{{{1, 0}, {0, 1}}};  ///< layers read, [written][read]
  int dims = 2;
  std::uint64_t seed = 1;

  /// The new value of field `q` at a point; `read(from, offset)` is a value close to it.
  template <class T, class Read>
  T value(int q, Read read) const {
    T sum = 0;
    for (int from : {0, 1}) {
      const int r = reach[q][from], ry = dims > 1 ? r : 0, rz = dims > 2 ? r : 0;
      each_point({{-r, -ry, -rz}, {r + 1, ry + 1, rz + 1}}, [&](const Index& offset) {
        if (!box && (offset[0] != 0) + (offset[1] != 0) + (offset[2] != 0) > 1) return;
        sum += static_cast<T>(random_value(seed, 2 * q + from, {}, offset) / 8) * read(from, offset);
      });
    }
    return sum;
  }
  int slots() const { return form == Form::by_stages ? 1 : 2; }

  template <class T>
  SweepSpec sweep(int q) const {
    const auto compute = [*this, q](const SweepArgs& args) {
      const std::array fields{args.read<T, 3>(0), args.read<T, 3>(1)};
      const auto into = args.write<T, 3>(q);
      each_point(args.region, [&](const Index& p) {
        into(p[0], p[1], p[2]) =
            value<T>(q, [&](int from, const Index& o) { return fields[from](p[0] + o[0], p[1] + o[1], p[2] + o[2]); });
      });
    };
    return {.name = q ? "second" : "first",
            .reads = {{0, reach[q][0]}, {1, reach[q][1]}},
            .writes = {q},
            .box_stencil = box,
            .run = compute};
  }
  template <class T>
  std::vector<Stage> stages() const {
    const SweepSpec first = sweep<T>(0), second = sweep<T>(1);
    if (form == Form::by_stages) return {{.name = "one", .sweeps = {first}}, {.name = "two", .sweeps = {second}}};
    if (form == Form::in_turn) return {{.sweeps = {first, second}}};
    SweepSpec both{.name = "both", .writes = {0, 1}, .box_stencil = box};
    for (int from : {0, 1}) both.reads.push_back({from, std::max(reach[0][from], reach[1][from])});
    both.run = [first, second](const SweepArgs& args) {
      first.run(args);
      second.run(args);
    };
    return {{.sweeps = {both}}};
  }
  /// Layers that fields need for some steps per exchange.
  int halo(int depth) const {
    const auto most = [&](int q) { return std::max(reach[q][0], reach[q][1]); };
    return form == Form::in_turn ? depth * (most(0) + most(1)) : std::max(most(0), most(1)) * depth;
  }
};

/// The whole grid on each rank, computed by a plain loop.
template <class T>
class PlainLoop {
 public:
  PlainLoop(const Layout& layout, const Stencil& stencil) : layout_(layout), stencil_(stencil) {
    for (int q : {0, 1}) {
      fields_[q].resize(static_cast<std::size_t>(all().volume()));
      visit([&](const Index& p) { fields_[q][number(p)] = initial(q, p); });
    }
  }
  /// At time 0, and indefinitely where no rank owns the point.
  T initial(int q, const Index& p) const { return static_cast<T>(random_value(7, q, layout_.grid(), p)); }
  /// True if a point is in the grid and changes; it is then wrapped around into the grid.
  bool owned(Index& p) const {
    for (int d = 0; d < layout_.dims(); ++d)
      if (const std::int64_t n = layout_.grid().cells[d]; layout_.grid().periodic[d]) p[d] = (p[d] % n + n) % n;
    return all().contains(p) && layout_.owner(p) >= 0;
  }
  T operator()(int q, Index p) const { return owned(p) ? fields_[q][number(p)] : initial(q, p); }

  void step() {
    std::array<std::vector<T>, 2> next = fields_;
    for (int q : {0, 1}) {
      visit([&](const Index& p) {
        next[q][number(p)] = stencil_.value<T>(q, [&](int from, const Index& o) {
          return (*this)(from, {p[0] + o[0], p[1] + o[1], p[2] + o[2]});
        });
      });
      if (stencil_.form != Form::together) fields_[q] = next[q];
    }
    fields_ = next;
  }

 private:
  Box all() const { return {{0, 0, 0}, layout_.grid().cells}; }
  std::size_t number(const Index& p) const {
    const Index& n = layout_.grid().cells;
    return static_cast<std::size_t>(p[0] + n[0] * (p[1] + n[1] * p[2]));
  }
  template <class See>
  void visit(See see) {
    each_point(all(), [&](const Index& p) {
      if (layout_.owner(p) >= 0) see(p);
    });
  }
  const Layout& layout_;
  Stencil stencil_;
  std::array<std::vector<T>, 2> fields_;
};

/// Two fields in arrays of the user's own, whose rows and planes are longer than necessary, or of the library.
template <class T, int D>
class TwoFields {
 public:
  TwoFields(const Grid<D>& grid, int halo, int slots, bool own, MemoryKind memory) : grid_(grid), halo_(halo) {
    for (int q : {0, 1}) {
      if (own) {
        const Index n = grid.cells();
        const std::int64_t row = n[0] + 2 * halo + 3, plane = row * (n[1] + 2 * halo + 1);
        std::vector<T*> origins;
        for (int slot = 0; slot < slots; ++slot) {
          arrays_.emplace_back(static_cast<std::size_t>(plane * (n[2] + 2 * halo)));
          origins.push_back(arrays_.back().data() + halo * (1 + row + plane));
        }
        refs_.push_back(view<T, D>(grid, origins, row, plane, halo));
      } else {
        const FieldOptions options{.halo = halo, .slots = slots, .name = q ? "v" : "u", .memory = memory};
        refs_.push_back(fields_.emplace_back(grid, options));
      }
    }
  }
  const std::vector<FieldRef>& refs() const { return refs_; }

  /// Writes initial values to slot 0, fixed ones to all slots; everything else is NaN.
  void fill(const PlainLoop<T>& loop) {
    Widths layers{};
    for (int d = 0; d < D; ++d) layers[d] = halo_;
    const Box own{{0, 0, 0}, grid_.cells()};
    for (int q : {0, 1})
      for (int slot = 0; slot < static_cast<int>(refs_[q].slots.size()); ++slot)
        each_point(grown(own, layers, layers), [&](const Index& p) {
          Index at = global(p);
          const bool changes = loop.owned(at);
          const bool known = !changes || (slot == 0 && own.contains(p));
          *place(q, slot, p) = known ? loop.initial(q, at) : std::numeric_limits<T>::quiet_NaN();
        });
  }
  void expect(const PlainLoop<T>& loop, int slot) const {
    for (int q : {0, 1}) {
      std::int64_t wrong = 0;
      each_point({{0, 0, 0}, grid_.cells()}, [&](const Index& p) {
        const T found = *place(q, refs_[q].slots.size() > 1 ? slot : 0, p), right = loop(q, global(p));
        wrong += std::memcmp(&found, &right, sizeof(T)) != 0;
      });
      EXPECT_EQ(wrong, 0) << "cells of field " << q;
    }
  }

 private:
  T* place(int q, int slot, const Index& p) const {
    const SlotView& v = refs_[q].slots[slot];
    return reinterpret_cast<T*>(v.origin + p[0] * static_cast<std::int64_t>(sizeof(T)) + p[1] * v.stride[1] +
                                p[2] * v.stride[2]);
  }
  Index global(Index p) const {
    for (int d = 0; d < 3; ++d) p[d] += grid_.owned().lo[d];
    return p;
  }
  const Grid<D>& grid_;
  int halo_;
  std::vector<std::vector<T>> arrays_;
  std::vector<Field<T, D>> fields_;
  std::vector<FieldRef> refs_;
};

/// A random stencil on a random grid under a random choice that is legal for them.
struct StepperCase {
  Stencil stencil;
  Choice choice;
  GridSpec grid;
  std::vector<Box> boxes;
  bool holes = false, own = false;
  std::vector<int> series;  ///< of steps
};

Choice random_choice(std::mt19937& random, const Stencil& stencil, bool direct) {
  Choice c;
  const std::vector<const char*> all{"ordered/p2p",
                                     "ordered/persistent",
                                     "ordered/p2p:testany",
                                     "ordered/auto",
                                     "ordered/shared",
                                     "ordered/rma-fence",
                                     "direct/p2p",
                                     "direct/auto",
                                     "direct/shared",
                                     "direct/rma-lock",
                                     "direct:merged/persistent",
                                     "direct/p2p:datatype"};
  const int first = direct ? 6 : 0;
  c.strategy = all[static_cast<std::size_t>(pick(random, first, static_cast<int>(all.size()) - 1))];
  const std::vector<const char*> schedules{"bulk", "split", "divided", "comm-thread", "interleaved"};
  c.schedule = schedules[pick(random, 0, c.strategy.pattern == Pattern::ordered ? 4 : 3)];
  if (c.schedule->plain && pick(random, 0, 4) == 0) c.strategy = "reference";
  c.threads = c.schedule->name == "comm-thread" ? 2 : pick(random, 1, 2);
  c.depth = stencil.form == Form::by_stages ? 1 : pick(random, 1, stencil.dims > 2 ? 2 : 3);
  c.substeps = pick(random, 0, 1) && c.depth > 1 ? Substeps::shrink : Substeps::full;
  c.sharing = pick(random, 0, 1) ? Sharing::dynamic : Sharing::guided;
  c.tiles = pick(random, 1, 5);
  c.piece = pick(random, 0, 2);
  c.barrier = pick(random, 0, 3) == 0;
  if (stencil.form == Form::by_stages && !c.strategy.is_reference() && pick(random, 0, 1))
    c.stage_strategies = {{"two", direct ? "direct/p2p" : "ordered/p2p"}};
  return c;
}

StepperCase random_stepper_case(std::mt19937& random) {
  StepperCase c;
  c.stencil = {
      .form = static_cast<Form>(pick(random, 0, 2)), .box = pick(random, 0, 1) == 1, .dims = pick(random, 1, 3)};
  c.stencil.seed = random();
  const int most = c.stencil.dims > 2 ? 1 : 2;
  for (int q : {0, 1})
    for (int from : {0, 1}) c.stencil.reach[q][from] = pick(random, 0, most);
  if (c.stencil.form == Form::by_stages) c.stencil.reach[0][0] = c.stencil.reach[1][1] = 0;
  c.holes = c.stencil.form != Form::in_turn && pick(random, 0, 4) == 0;
  c.choice = random_choice(random, c.stencil, c.holes || pick(random, 0, 1));
  if (c.holes) c.choice.depth = 1;
  c.own = !needs_shared_fields(c.choice.strategy) && pick(random, 0, 1);
  c.grid.dims = c.stencil.dims;
  for (int d = 0; d < c.grid.dims; ++d) c.grid.periodic[d] = pick(random, 0, 1);
  const int halo = c.stencil.halo(c.choice.depth);
  c.boxes = random_boxes(random, c.grid, world_size(), {halo, halo, halo}, c.holes);
  c.series = {pick(random, 0, 5), 0, pick(random, 1, 4)};
  return c;
}

/// @return true if this MPI has the strategy.
template <class T, int D>
bool expect_plain_bits(const StepperCase& c) {
  std::array<std::int64_t, D> cells;
  std::array<bool, D> periodic;
  for (int d = 0; d < D; ++d) {
    cells[d] = c.grid.cells[d];
    periodic[d] = c.grid.periodic[d];
  }
  const auto own = c.boxes[world_rank()];
  const auto grid = Grid<D>::of_boxes(MPI_COMM_WORLD, cells, periodic, own, c.holes);
  const MemoryKind memory = needs_shared_fields(c.choice.strategy) ? MemoryKind::shared : MemoryKind::own;
  TwoFields<T, D> fields(grid, c.stencil.halo(c.choice.depth), c.stencil.slots(), c.own, memory);
  PlainLoop<T> loop(grid.layout(), c.stencil);
  fields.fill(loop);
  MPI_Barrier(MPI_COMM_WORLD);  // fields in shared memory are full before others write into their halos
  std::optional<Stepper> stepper;
  if (!run_if_available([&] { stepper.emplace(grid, fields.refs(), c.choice, c.stencil.template stages<T>()); }))
    return false;
  int steps = 0;
  for (int count : c.series) {
    const int slot = stepper->run(count);
    for (int i = 0; i < count; ++i) loop.step();
    steps += count;
    EXPECT_EQ(slot, c.stencil.slots() == 1 ? 0 : steps % 2);
    EXPECT_EQ(stepper->time(), steps);
    fields.expect(loop, slot);
  }
  return true;
}

template <class T>
bool expect_plain_bits(const StepperCase& c) {
  const Choice& choice = c.choice;
  SCOPED_TRACE(to_string(choice.strategy) + " " + choice.schedule->name + " depth " + std::to_string(choice.depth) +
               " " + to_word(choice.substeps) + " threads " + std::to_string(choice.threads) + " form " +
               std::to_string(static_cast<int>(c.stencil.form)) + " dims " + std::to_string(c.grid.dims) +
               (c.holes ? " holes" : "") + (c.own ? " own arrays" : "") + (c.stencil.box ? " box" : " star"));
  return c.grid.dims == 1   ? expect_plain_bits<T, 1>(c)
         : c.grid.dims == 2 ? expect_plain_bits<T, 2>(c)
                            : expect_plain_bits<T, 3>(c);
}

TEST(Stepper, RandomStepsHaveTheBitsOfAPlainLoop) {
  std::mt19937 random(static_cast<unsigned>(20 + world_size()));
  int ran = 0;
  const int cases = thorough() ? 600 : world_size() < 4 ? 40 : 20;
  for (int i = 0; i < cases; ++i) {
    const StepperCase c = random_stepper_case(random);
    SCOPED_TRACE("case " + std::to_string(i));
    ran += i % 2 ? expect_plain_bits<float>(c) : expect_plain_bits<double>(c);
  }
  EXPECT_GT(ran, cases / 2);
}

/// A grid whose sweeps are large enough for several threads.
TEST(Stepper, ThreadsAndPiecesDoNotChangeTheBits) {
  for (const auto& [schedule, piece] : {std::pair{"bulk", 0}, {"split", 3}, {"comm-thread", 0}}) {
    StepperCase c;
    c.choice.schedule = schedule;
    c.choice.threads = 2;
    c.choice.piece = piece;
    c.choice.depth = 2;
    c.grid = {2, {80 * world_size(), 90, 1}, {true, false, false}};
    for (int r = 0; r < world_size(); ++r) c.boxes.push_back({{80 * r, 0, 0}, {80 * (r + 1), 90, 1}});
    c.series = {3};
    EXPECT_TRUE(expect_plain_bits<double>(c));
  }
}

void average_around(const SweepArgs& args) { average_neighbours(args); }

/// Several fused steps of average_around(), box by box in separate arrays.
void fused_average(const SweepArgs& args) {
  if (args.levels == 1) return average_around(args);
  const auto in = args.read<double, 2>(0);
  const auto out = args.write<double, 2>(0);
  const Box all = grown(args.region, {args.levels, args.levels, 0}, {args.levels, args.levels, 0});
  const std::int64_t row = all.extent(0);
  std::vector<double> a(static_cast<std::size_t>(row * all.extent(1))), b(a.size());
  const auto place = [&](std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>((j - all.lo[1]) * row + i - all.lo[0]);
  };
  for_points(all, [&](auto i, auto j) { a[place(i, j)] = in(i, j); });
  for (int left = args.levels - 1; left >= 0; --left, a.swap(b)) {
    for_points(grown(args.region, {left, left, 0}, {left, left, 0}), [&](auto i, auto j) {
      b[place(i, j)] = 0.25 * (a[place(i - 1, j)] + a[place(i + 1, j)] + a[place(i, j - 1)] + a[place(i, j + 1)]);
    });
  }
  for_points(args.region, [&](auto i, auto j) { out(i, j) = a[place(i, j)]; });
}

/// The bytes of this rank's cells after some steps of the averages of random values.
std::vector<double> averaged(const Choice& choice, int steps, const Stepper::SweepFunction& sweep = average_around,
                             bool fused = false) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 4, .slots = 2}};
  fill_at_random(grid, u[0]);
  Stepper stepper(grid, {u}, choice, sweep, {.fused = fused});
  const int slot = stepper.run(steps);
  return own_values(grid, u[slot]);
}

Choice deep(int depth, Substeps substeps, const char* schedule = "bulk") {
  Choice choice{.schedule = schedule, .depth = depth, .substeps = substeps};
  return choice;
}

TEST(Stepper, AFusedSweepComputesSeveralStepsAtOnce) {
  for (int steps : {1, 4, 7}) {
    const std::vector<double> plain = averaged({}, steps);
    for (const char* schedule : {"bulk", "split"})
      EXPECT_EQ(averaged(deep(3, Substeps::blocked, schedule), steps, fused_average, true), plain) << steps << schedule;
  }
}

TEST(Stepper, ASweepIsToldWhichStepItComputesFrom) {
  std::vector<std::int64_t> steps;
  const auto noted = [&](const SweepArgs& args) {
    steps.push_back(args.step);
    average_around(args);
  };
  averaged(deep(3, Substeps::shrink), 7, noted);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

/// Weighted sums of random values after 3 steps: by a Stepper of some depth, or with 0 by a loop around an Exchange.
std::vector<double> weighted(int depth) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 3, .slots = 2}}, weight{grid, {.halo = 3, .name = "weight"}};
  fill_at_random(grid, u[0]);
  fill_at_random(grid, weight[0], 1);
  const auto sweep = [](const Box& box, const auto& in, const auto& by, const auto& out) {
    for_points(box, [&](auto i, auto j) {
      out(i, j) = by(i, j) * (in(i - 1, j - 1) + in(i + 1, j) + in(i, j - 1) + in(i + 1, j + 1));
    });
  };
  if (depth == 0) {
    Exchange halo = make_exchange(grid, {u}, "ordered/p2p", {.width = 1});
    for (int t = 0; t < 3; ++t) {
      halo.exchange(t % 2);
      sweep({{0, 0, 0}, grid.cells()}, u[t % 2], weight[0], u[(t + 1) % 2]);
    }
  } else {
    const auto run = [&](const SweepArgs& args) {
      sweep(args.region, args.read<double, 2>(0), args.read<double, 2>(1), args.write<double, 2>(0));
    };
    Stepper stepper(grid, {u, weight}, deep(depth, Substeps::full),
                    {.reads = {{0, 1}, {1, 0}}, .writes = {0}, .box_stencil = true, .run = run});
    stepper.run(3);
  }
  return own_values(grid, u[1]);
}

TEST(Stepper, AFieldThatIsOnlyReadMayHaveOneSlot) {
  for (int depth : {1, 2, 3}) EXPECT_EQ(weighted(depth), weighted(0)) << depth;
}

TEST(Stepper, MirroredEdgesKeepTheSum) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 13}}};
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  if (grid.rank() == 0) u[0](0, 0) = 1;
  FieldRef mirrored = u;
  mirrored.quantity.edges = {Edge::even, Edge::even, Edge::fixed};
  Stepper stepper(grid, {mirrored}, {}, average_around);
  const int slot = stepper.run(5);
  double sum = 0;  // of multiples of 1/1024, which is exact
  each_cell(grid, 0, [&](auto i, auto j) { sum += u[slot](i, j); });
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(sum, 1);
}

TEST(Stepper, NumbersOfReductionsAreThoseOfTheLastStep) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  u[0](0, 0) = 1 + grid.rank();
  const auto with_maximum = [](const SweepArgs& args) {
    average_around(args);
    const auto out = args.write<double, 2>(0);
    if (!args.reduced) return;
    for_points(args.region, [&](auto i, auto j) { args.reduced[0] = std::max(args.reduced[0], out(i, j)); });
  };
  const std::vector<Stage> stages{
      {.sweeps = {{.name = "average", .reads = {{0, 1}}, .writes = {0}, .run = with_maximum}},
       .reductions = {{.name = "maximum", .op = ReduceOp::max}}}};
  Stepper stepper(grid, {u}, {}, stages);
  EXPECT_TRUE(stepper.reduced().empty());
  stepper.run(1);
  EXPECT_EQ(stepper.reduced()[0], 0.25 * grid.layout().size());
  EXPECT_PART(error_of([&] { stepper.reduced(1); }), "reduction 1 of stage 0 does not exist");
}

TEST(Stepper, AGridWithRanksWithoutCellsIsRefusedOnAllRanks) {
  if (world_size() == 1) return;
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .active_ranks = 1}};
  const Field<double, 2> u{grid, {.slots = 2}};
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, Choice{}, average_around); }), "needs cells on every rank");
}

TEST(Stepper, NothingIsAllocatedOnceEachLengthOfRoundHasRun) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 3, .slots = 2}};
  Stepper stepper(grid, {u}, deep(3, Substeps::shrink, "split"), average_around);
  stepper.run(5);
  const std::int64_t before = allocations();
  stepper.run(11);
  stepper.run(2);
  EXPECT_EQ(allocations(), before);
}

TEST(Stepper, TheReportSaysWhatTheEnvironmentAndAutoHaveChosen) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 2, .slots = 2}};
  Choice choice = deep(2, Substeps::shrink, "split");
  choice.strategy = "ordered/persistent";
  const std::string usual = Stepper(grid, {u}, choice, average_around).report();
  EXPECT_EQ(usual.rfind("schedule split, depth 2 shrink; ordered/persistent: ", 0), 0u) << usual;
  const Environment only(grid.rank() == 0 ? "HALOSCOPE_STRATEGY" : "HALOSCOPE_OTHER", "direct/auto");
  testing::internal::CaptureStderr();
  const std::string other = Stepper(grid, {u}, choice, average_around).report();
  choice.schedule = "interleaved";
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, choice, average_around); }), "'direct' has one round");
  testing::internal::GetCapturedStderr();
  EXPECT_PART(other, "; direct/auto: ");
  EXPECT_PART(other, "; auto: ");
}

TEST(Stepper, AChoiceMadeForAnotherGridIsRefused) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  const auto refusal = [&](auto change) {
    Choice choice{.grid = grid.layout().grid(), .ranks = world_size()};
    change(choice);
    return error_of([&] { Stepper(grid, {u}, choice, average_around); });
  };
  EXPECT_EQ(refusal([](Choice&) {}), "no error");
  EXPECT_PART(refusal([](Choice& c) { c.grid.cells[0] = 25; }),
              "25x27 cells, periodic in xy, and this one has 24x27 cells, periodic in xy");
  EXPECT_PART(refusal([](Choice& c) { c.grid.periodic[1] = false; }), "periodic in x, and");
  EXPECT_PART(refusal([](Choice& c) { c.ranks += 3; }), "ranks, and the grid is on");
  if (world_size() == 2) {
    EXPECT_PART(refusal([](Choice& c) { c.process_grid = "1x2"; }), "for 1x2 ranks, and the grid is on 2x1");
  }
}

/// The error text of a Stepper of average_around() for a choice and fields.
std::string refusal_of(const Choice& choice, const FieldOptions& options = {.halo = 4, .slots = 2}) {
  const auto grid = torus();
  const Field<double, 2> u{grid, options};
  return error_of([&] { Stepper(grid, {u}, choice, average_around); });
}

TEST(Stepper, ChoicesThatCannotBeAreExplained) {
  EXPECT_PART(refusal_of(deep(3, Substeps::full), {.halo = 2, .slots = 2}),
              "field 'u' has room for 2 ghost layers in x, and depth 3 needs 3");
  EXPECT_PART(refusal_of({}, {.slots = 1}), "two slots");
  EXPECT_PART(refusal_of({}, {.slots = 3}), "3 slots");
  EXPECT_PART(refusal_of(deep(2, Substeps::blocked)), "StepperOptions::fused");
  EXPECT_PART(refusal_of(deep(1, Substeps::full, "comm-thread")), "--threads 2");
  EXPECT_PART(refusal_of(deep(1, Substeps::full, "pipeline")), "sweeps in place");
  EXPECT_PART(refusal_of(deep(1, Substeps::full, "faces")), "for devices");
  EXPECT_PART(refusal_of(deep(0, Substeps::full)), "depth 0");
  Choice device{.device = "host"};
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}}, v{grid, {.halo = 1, .slots = 2, .name = "v"}};
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, device, average_around); }), "the fields are in host memory");
  EXPECT_PART(error_of([&] { Stepper(grid, {}, {}, average_around); }), "at least one field");
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, {}, SweepSpec{}); }), "has no code");
  EXPECT_PART(error_of([&] {
                Stepper(grid, {u}, {}, {.reads = {{1, 1}}, .writes = {0}, .run = average_around});
              }),
              "quantity 1");
  EXPECT_PART(error_of([&] {
                Stepper(grid, {u, v}, {}, {.reads = {{0, 1}, {1, 0}}, .writes = {0}, .run = average_around});
              }),
              "field 'v' has two slots and no sweep writes it");
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, {}, average_around).run(-1); }), "-1 time steps");
  const auto relax = [&](int layers) {
    return SweepSpec{.name = "relax", .reads = {{0, layers}}, .writes = {0}, .in_place = true, .run = average_around};
  };
  const Field<double, 2> one{grid, {.halo = 2}};
  const Choice pipeline = deep(1, Substeps::full, "pipeline");
  Choice two_threads = pipeline;
  two_threads.threads = 2;
  EXPECT_PART(error_of([&] { Stepper(grid, {one}, {}, relax(1)); }), "use --schedule pipeline");
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, pipeline, relax(1)); }), "writes field 'u', which has two slots");
  EXPECT_PART(error_of([&] { Stepper(grid, {one}, pipeline, relax(2)); }),
              "reads 2 layers, of which ranks pass on one");
  EXPECT_PART(error_of([&] { Stepper(grid, {one}, two_threads, relax(1)); }), "use threads 1");
}

TEST(Stepper, RowsAndPlanesThatAreNoWholePointsApartAreRefused) {
  const Grid<3> grid(MPI_COMM_WORLD, {.cells = {6, 6, 6}, .periodic = {true, true, true}});
  const Index own = {grid.cells()[0], grid.cells()[1], grid.cells()[2]};
  std::vector<std::byte> memory(static_cast<std::size_t>(64 * (own[0] + 3) * (own[1] + 3) * (own[2] + 3)));
  const auto error = [&](std::int64_t row, std::int64_t plane) {
    std::vector<double*> first;
    for (int slot : {0, 1})
      first.push_back(reinterpret_cast<double*>(memory.data() + plane + row + 8 + slot * 32 * plane));
    return error_of([&] {
      Stepper(grid, {view<double, 3>(grid, first, {.stride = {8, row, plane}, .low = {1, 1, 1}, .high = {1, 1, 1}})},
              {}, SweepSpec{.name = "s", .reads = {{0, 1}}, .writes = {0}, .run = [](const SweepArgs&) {}});
    });
  };
  const std::int64_t row = 8 * (own[0] + 2), plane = row * (own[1] + 2);
  const std::string odd_row = error(row + 4, plane + 8 * (own[1] + 2)), odd_plane = error(row, plane + 12);
  EXPECT_PART(odd_row, std::to_string(row + 4) + " bytes between points that are neighbours in y");
  EXPECT_PART(odd_plane, std::to_string(plane + 12) + " bytes between points that are neighbours in z");
}

TEST(Stepper, WhatOneRankAsksWronglyFailsOnAll) {
  const auto grid = torus();
  const bool last = grid.rank() + 1 == world_size();
  const Field<double, 2> thin{grid, {.halo = last ? 1 : 2, .slots = 2}};
  EXPECT_PART(error_of([&] { Stepper(grid, {thin}, deep(2, Substeps::full), average_around); }), "room for 1");
  const std::int64_t points = (grid.cells()[0] + 2) * (grid.cells()[1] + 2), row = grid.cells()[0] + 2;
  std::vector<double> memory(static_cast<std::size_t>(2 * points));
  double *const first = memory.data() + row + 1, *const second = first + points;
  const auto error = [&](double* other, std::int64_t pitch) {
    return error_of([&] { Stepper(grid, {view<double, 2>(grid, {first, other}, pitch, 0, 1)}, {}, average_around); });
  };
  EXPECT_EQ(error(second, row), "no error");
  EXPECT_PART(error(second, last ? 0 : row), "points share memory");
  for (double* other : {first, first + 1})
    EXPECT_PART(error(last ? other : second, row), "in slot 1 (number 1) share memory");
}

TEST(Stepper, FieldsThatShareMemoryAreRefusedWhateverIsExchanged) {
  const auto grid = torus();
  const std::int64_t row = grid.cells()[0] + 2, points = row * (grid.cells()[1] + 2);
  std::vector<double> memory(static_cast<std::size_t>(4 * points));
  const auto field = [&](std::vector<int> arrays, const char* name, int halo) {
    std::vector<double*> first;
    for (int array : arrays) first.push_back(memory.data() + array * points + row + 1);
    return view<double, 2>(grid, first,
                           {.stride = {8, 8 * row}, .low = {halo, halo}, .high = {halo, halo}, .name = name});
  };
  const auto error = [&](const std::vector<FieldRef>& fields, const std::optional<std::vector<Access>>& exchange = {}) {
    SweepSpec sweep{.name = "s", .reads = {{0, 1}, {1, 0}}, .writes = {0}};
    sweep.run = [](const SweepArgs&) {};
    if (fields.size() > 2) sweep.reads.push_back({2, 0});
    return error_of([&] { Stepper(grid, fields, {}, std::vector<Stage>{{.sweeps = {sweep}, .exchange = exchange}}); });
  };
  EXPECT_EQ(error({field({0, 1}, "u", 1), field({2}, "c", 0)}), "no error");
  EXPECT_EQ(error({field({0, 1}, "u", 1), field({2}, "c", 0), field({2}, "d", 0)}), "no error")
      << "nothing writes them";
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}}, c{grid, {.halo = 0, .name = "c"}};
  EXPECT_EQ(error({u, c}, std::vector<Access>{{0, 1}}), "no error") << "slots of the library lie close together";
  EXPECT_PART(error({field({0, 1}, "u", 1), field({0}, "c", 0)}), "'u' (number 1) and 'c' (number 2) share memory");
  EXPECT_PART(error({field({0, 1}, "u", 1), field({1}, "c", 0)}),
              "'u' in slot 1 (number 1) and 'c' in slot 0 (number 2) share memory");
}

TEST(Stepper, RanksThatTakeOtherStepsAreRefused) {
  if (world_size() == 1) return;
  const auto grid = torus();
  const bool last = grid.rank() + 1 == world_size();
  const Field<double, 2> u{grid, {.halo = 2, .slots = 2, .name = "u"}}, v{grid, {.halo = 2, .slots = 2, .name = "v"}};
  const auto refused = [&](const std::string& part, const Choice& choice, std::vector<FieldRef> fields, Stage stage,
                           const StepperOptions& options = {}) {
    EXPECT_PART(error_of([&] { Stepper(grid, fields, choice, std::vector<Stage>{stage}, options); }),
                "the ranks request different steps: " + part);
  };
  const auto stage = [&](int layers, std::vector<Reduction> reductions = {}) {
    SweepSpec sweep{.name = "s", .reads = {{0, layers}}, .writes = {0}, .run = [](const SweepArgs&) {}};
    return Stage{.sweeps = {sweep}, .reductions = std::move(reductions)};
  };
  Choice bars{.barrier = last};
  refused("depth: ", last ? deep(2, Substeps::full) : Choice{}, {u}, stage(1));
  refused("barrier: ", bars, {u}, stage(1));
  refused("stages: ", {}, {u}, stage(last ? 1 : 2));
  refused("stages: ", {}, {u}, stage(1, {{.name = "r", .mode = last ? ReduceMode::blocking : ReduceMode::deferred}}));
  refused("stages: ", {}, {u}, stage(1, {{.name = "r", .numbers = last ? 1 : 2}}));
  refused("guard: ", {}, {u}, stage(1), {.guard = last});
  const Field<double, 2> one{grid, {.halo = 2, .name = "u"}};
  refused("fields: ", {}, {last ? one : u}, stage(0));
  const std::vector<FieldRef> some{u, v}, turned{v, u};
  Stage both = stage(1);
  both.sweeps.front().writes = {0, 1};
  refused("order of the fields: ", {}, last ? turned : some, both);
}

TEST(Stepper, AGridWithHolesTakesNoDeepHalos) {
  const Box own{{6 * world_rank(), 0, 0}, {6 * world_rank() + 6, 6, 1}};
  const auto grid = Grid<2>::of_boxes(MPI_COMM_WORLD, {6 * world_size() + 6, 6}, {true, true}, own, true);
  const Field<double, 2> u{grid, {.halo = 2, .slots = 2}};
  Choice choice = deep(2, Substeps::shrink);
  choice.strategy = "direct/p2p";
  EXPECT_PART(error_of([&] { Stepper(grid, {u}, choice, average_around); }), "the grid's holes; use depth 1");
  choice = deep(1, Substeps::full);
  EXPECT_EQ(error_of([&] { Stepper(grid, {u}, choice, average_around); }), "no error");
}

}  // namespace
}  // namespace haloscope::test
