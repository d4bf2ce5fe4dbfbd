// Ghost points that mirror inner ones at the grid's edges, and loops of several stages, against plain loops.
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

enum : int { air, drift_x, drift_y, leak };
constexpr std::array<Edges, 3> room_edges[] = {{Edge::even, Edge::even, Edge::fixed},
                                               {Edge::odd, Edges{Edge::nearest, Edge::even}, Edge::fixed},
                                               {Edge::even, Edge::odd, Edge::fixed},
                                               {Edges{Edge::odd, Edge::nearest}, Edge::fixed, Edge::fixed}};

template <class A, class V>
double next_air(const A& p, const V& u, const V& v, std::int64_t i, std::int64_t j) {
  return 0.5 * p(i, j) + 0.1 * ((p(i - 2, j - 1) + p(i + 2, j + 2)) - (p(i + 1, j - 2) + p(i - 1, j))) +
         0.05 * ((u(i + 2, j) - u(i - 1, j + 1)) + (v(i, j + 2) - v(i + 1, j - 1)));
}
template <class A, class V>
double next_drift(const A& p, const V& v, std::int64_t i, std::int64_t j, int d) {
  const double low = p(i - 1, j - 1), high = p(i, j), other = d == 0 ? p(i, j - 1) : p(i - 1, j);
  return 0.9 * v(i, j) + 0.2 * (high - low) + 0.1 * other;
}
template <class A, class V>
double leak_of(const A& p, const V& u, std::int64_t i, std::int64_t j) {
  return p(i, j) - p(i - 1, j) + 0.5 * (u(i, j) + u(i + 1, j + 1));
}

void sweep_air(const SweepArgs& a) {
  const auto p = a.read<double, 2>(air), u = a.read<double, 2>(drift_x), v = a.read<double, 2>(drift_y);
  const auto next = a.write<double, 2>(air);
  for_points(a.points(air), [&](auto i, auto j) { next(i, j) = next_air(p, u, v, i, j); });
}
void sweep_drift(const SweepArgs& a) {
  const auto p = a.read<double, 2>(air);
  for (int d : {0, 1}) {
    const auto v = a.write<double, 2>(drift_x + d);
    for_points(a.points(drift_x + d), [&](auto i, auto j) { v(i, j) = next_drift(p, v, i, j, d); });
  }
}
void sweep_leak(const SweepArgs& a) {
  const auto p = a.read<double, 2>(air), u = a.read<double, 2>(drift_x);
  const auto f = a.write<double, 2>(leak);
  for_points(a.points(leak), [&](auto i, auto j) { f(i, j) = leak_of(p, u, i, j); });
}

/// The number of runs of the loop of stages `drift` and `leak` in a step: 1, 2, 0, 1, ...
std::int64_t times_in(std::int64_t step) { return (step + 1) % 3; }

Step room_step(const Problem&) {
  Step step;
  step.quantities = {{.name = "air", .slots = 2},
                     {.name = "drift_x", .centring = Centring::node},
                     {.name = "drift_y", .centring = Centring::node},
                     {.name = "leak", .centring = Centring::face_x}};
  for (int q : {air, drift_x, drift_y, leak}) step.quantities[q].edges = room_edges[q];
  step.stages = {{.name = "air",
                  .sweeps = {{.name = "air",
                              .reads = {{air, 2}, {drift_x, 1}, {drift_y, 1}},
                              .writes = {air},
                              .box_stencil = true,
                              .run = sweep_air}}},
                 {.name = "drift",
                  .sweeps = {{.name = "drift",
                              .reads = {{air, 0}, {drift_x, 0}, {drift_y, 0}},
                              .writes = {drift_x, drift_y},
                              .run = sweep_drift}},
                  .repeats = 2,
                  .least = 0},
                 {.name = "leak",
                  .sweeps = {{.name = "leak",
                              .reads = {{air, 0}, {drift_x, 1}},
                              .writes = {leak},
                              .box_stencil = true,
                              .run = sweep_leak}}}};
  return step;
}

const std::string& room() {
  static const App app{.name = "test-room",
                       .dims = 2,
                       .step = room_step,
                       .scalars = {"wanted", "done"},
                       .update =
                           [](const Problem&, const StageStart& at, std::span<double> scalars) {
                             if (at.stage == 0) scalars[0] = static_cast<double>(times_in(at.step));
                             if (at.stage == 0) scalars[1] = 0;
                             if (at.stage == 1) scalars[1] = static_cast<double>(at.times) + 1;
                           },
                       .finished = [](const Problem&, int stage, std::span<const double>,
                                      std::span<const double> s) { return stage == 1 && s[1] >= s[0]; }};
  return known(app);
}

/// A quantity of the whole grid, mirrored at its edges.
class Mirrored {
 public:
  Mirrored(const Choice& c, int quantity) : values_(c, quantity), grid_(c.grid), edges_(room_edges[quantity]) {
    const auto centring = Candidate(c).step.quantities[quantity].centring;
    for (int d : {0, 1}) on_edge_[d] = staggered(centring, d);
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    std::int64_t at[] = {i, j};
    double sign = 1;
    for (int d : {0, 1}) {
      const std::int64_t last = grid_.cells[d] - 1 + on_edge_[d];
      const Edge edge = edges_[d].of(at[d] < 0 ? 0 : 1);
      if (grid_.periodic[d] || edge == Edge::fixed || (at[d] >= 0 && at[d] <= last)) continue;
      const std::int64_t image = at[d] < 0 ? on_edge_[d] - 1 - at[d] : 2 * last + 1 - on_edge_[d] - at[d];
      at[d] = edge == Edge::nearest ? std::clamp<std::int64_t>(at[d], 0, last) : image;
      if (edge == Edge::odd) sign = -sign;
    }
    return sign * values_(at[0], at[1]);
  }
  Whole<double>& whole() { return values_; }
  const Whole<double>& whole() const { return values_; }

 private:
  Whole<double> values_;
  GridSpec grid_;
  std::array<Edges, 3> edges_;
  std::int64_t on_edge_[2] = {0, 0};
};

struct Room {
  Mirrored p, u, v, f;

  explicit Room(const Choice& c) : p(c, air), u(c, drift_x), v(c, drift_y), f(c, leak) {}

  void step(std::int64_t number) {
    const Mirrored p0 = p;
    for_points(p.whole().owned(), [&](auto i, auto j) { p.whole()(i, j) = next_air(p0, u, v, i, j); });
    for (std::int64_t times = 0; times < times_in(number); ++times) {
      const Mirrored u0 = u, v0 = v;
      for_points(u.whole().owned(), [&](auto i, auto j) { u.whole()(i, j) = next_drift(p, u0, i, j, 0); });
      for_points(v.whole().owned(), [&](auto i, auto j) { v.whole()(i, j) = next_drift(p, v0, i, j, 1); });
      for_points(f.whole().owned(), [&](auto i, auto j) { f.whole()(i, j) = leak_of(p, u, i, j); });
    }
  }
};

void expect_room(const Choice& c) {
  SCOPED_TRACE(describe(c));
  constexpr int steps = 5;
  Room expected(c);
  for (int n = 0; n < steps; ++n) expected.step(n);
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(steps, true);
  EXPECT_EQ(wrong_points(run, air, expected.p.whole()), 0);
  EXPECT_EQ(wrong_points(run, drift_x, expected.u.whole()), 0);
  EXPECT_EQ(wrong_points(run, drift_y, expected.v.whole()), 0);
  EXPECT_EQ(wrong_points(run, leak, expected.f.whole()), 0);
  EXPECT_EQ(run.stage(1).executions(), 1 + 2 + 0 + 1 + 2);
  EXPECT_TRUE(run.canaries_alive());
}

TEST(Edges, MirroredGhostPointsAndLoopsOfStagesGiveTheBytesOfTheLoopByEveryScheduleAndTransport) {
  Every one(3, 7);
  for (const auto& periodic : periodicities)
    for (const char* strategy :
         {"reference", "ordered/p2p", "direct:merged/p2p", "ordered/persistent", "ordered/shared", "direct/neighbor",
          "ordered/rma-fence", "direct/shared:pull", "ordered:self-first/p2p", "ordered:fields=type/p2p"}) {
      Choice c = flat_choice(room(), periodic);
      c.strategy = strategy;
      const std::vector<Choice> all = by_schedules(c);
      EXPECT_GE(all.size(), 1u);
      for (const Choice& choice : all) {
        if (!one.skips()) run_if_available([&] { expect_room(choice); });
      }
    }
}

TEST(Edges, WhatCannotBeMirroredIsRefused) {
  Choice c = flat_choice(room(), {false, false});
  EXPECT_EQ(illegal(c), "");
  c.grid.cells = {1, 17, 1};
  c.ranks = 1;
  EXPECT_PART(illegal(c), "2 layers in x");
  const auto fault = [](const Step& step) -> std::string { return error_of([&] { resolved(step, 2, "mine"); }); };
  Step step = room_step({});
  step.stages[1].sweeps.push_back(step.stages[2].sweeps[0]);
  EXPECT_PART(fault(step), "fill beyond the grid's edges");
  step = room_step({});
  step.stages[1].repeats = 3;
  EXPECT_PART(fault(step), "repeats 3 stages");
  step.stages[1].repeats = step.stages[0].repeats = 2;
  EXPECT_PART(fault(step), "nested");
  ExchangeSpec spec;
  spec.quantities[0].type = ScalarType::integer;
  spec.quantities[0].edges[0] = Edge::odd;
  EXPECT_THROW(make_plan(Layout({3, {8, 8, 8}, {}}, {1, 1, 1}), 0, spec), UsageError);
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {4 * world_size(), 3}}};
  Field<std::int64_t, 2> u{grid, {}}, v{grid, {}};
  FieldRef odd = u;
  odd.quantity.edges[1] = Edge::odd;
  redistribute(grid, grid, {odd}, {v});  // ghost points take no part
}

}  // namespace
}  // namespace haloscope::test
