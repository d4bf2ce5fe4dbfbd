// Sweeps that read more than their stages name are found by the reference run, whose fields have a poisoned margin.
#include "step_rig.hpp"
#include "texts.hpp"

namespace haloscope::test {
namespace {

/// Registers u' = (u + u there) / 2, where "there" is `by` away, and which names `layers`.
std::string reading(const Index& by, int layers) {
  const auto sweep = [by](const SweepArgs& a) {
    const auto u = a.read<double, 2>(0);
    const auto next = a.write<double, 2>(0);
    for_points(a.region, [&](auto i, auto j) { next(i, j) = 0.5 * (u(i, j) + u(i + by[0], j + by[1])); });
  };
  App app{.name = "test-reads-" + std::to_string(by[0] + 9) + "-" + std::to_string(by[1] + 9) + "-of-" +
                  std::to_string(layers),
          .dims = 2};
  app.quantities = {{.name = "u", .slots = 2}};
  app.stages = {{.name = "move", .sweeps = {{.name = "move", .reads = {{0, layers}}, .writes = {0}, .run = sweep}}}};
  return known(app);
}

/// Returns the error of a reference run; "no error" where no sweep reads the margin.
std::string error_of_reference(Choice choice) {
  choice.strategy = "reference";
  Run run(MPI_COMM_WORLD, choice, {}, usual_hatch_bytes, 1);
  return error_of([&] {
    run.initialise();
    run.advance(3);
    run.require_unread_margin();
  });
}

/// Calls visit(choice, side) for sweeps that read `further` layers more than they name, to each side.
template <class Visit>
void each_sweep(int further, Visit visit) {
  for (const auto& periodic : periodicities)
    for (const int layers : {1, 2})
      for (const int d : {0, 1})
        for (const int side : {-1, 1}) {
          Index by{};
          by[d] = side * (layers + further);
          visit(flat_choice(reading(by, layers), periodic),
                std::string(side < 0 ? "low" : "high") + " side in " + "xy"[d]);
        }
}

TEST(ReferenceMargin, ASweepThatReadsOneLayerMoreThanItNamesIsRefusedWithTheSide) {
  each_sweep(1, [](const Choice& choice, const std::string& side) {
    const std::string error = error_of_reference(choice);
    EXPECT_PART(error, "reads more than its stage names: own point (");
    EXPECT_PART(error, side);
  });
}

TEST(ReferenceMargin, ASweepMayReadAllThatItNames) {
  each_sweep(0, [](const Choice& choice, const std::string&) { EXPECT_EQ(error_of_reference(choice), "no error"); });
}

TEST(ReferenceMargin, TheAppsReadNoMoreThanTheyName) {
  for (const App* app : apps()) {
    if (app->name.starts_with("test-")) continue;
    for (const bool periodic : {true, false}) {
      Choice c{.app = app->name};
      c.grid = {.dims = app->dims, .cells = {12, 11, app->dims == 3 ? 13 : 1}};
      for (int d = 0; d < app->dims; ++d) c.grid.periodic[d] = periodic;
      c.ranks = world_size();
      if (!illegal(c).empty() || c.schedule->in_place) continue;
      EXPECT_EQ(error_of_reference(c), "no error") << app->name;
    }
  }
}

}  // namespace
}  // namespace haloscope::test
