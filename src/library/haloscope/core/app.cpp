#include "haloscope/extend/app.hpp"

#include <deque>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/app_kernels.hpp"

namespace haloscope {

namespace {

std::vector<const App*>& known_apps() {
  static std::vector<const App*> all;
  return all;
}

std::vector<const AppKernels*>& added_kernels() {
  static std::vector<const AppKernels*> all;
  return all;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Returns the same point inside the grid, in dimensions that wrap around.
Index wrapped(const GridSpec& grid, Index point) {
  for (int d = 0; d < grid.dims; ++d)
    if (const std::int64_t n = grid.cells[d]; grid.periodic[d]) point[d] = (point[d] % n + n) % n;
  return point;
}

}  // namespace

const std::vector<const App*>& apps() { return known_apps(); }

void add_kernels(const AppKernels& kernels) { added_kernels().push_back(&kernels); }

std::vector<const AppKernels*> known_kernels() {
  std::vector<const AppKernels*> all;
  for (const App* app : known_apps())
    if (app->kernels != nullptr) all.push_back(app->kernels);
  all.insert(all.end(), added_kernels().begin(), added_kernels().end());
  return all;
}

const App& find_app(const std::string& name) { return find_named("app", known_apps(), name); }

namespace {

void check(const App& app, bool good, const std::string& fault) {
  if (!good) throw UsageError("app '" + app.name + "' cannot be run: " + fault);
}

void check_step(const App& app, const std::string& form) {
  Problem problem{GridSpec{app.dims, {8, 8, 8}, {}}, form, from_word<Real>(app.reals.front()), {}};
  for (int d = app.dims; d < 3; ++d) problem.grid.cells[d] = 1;
  problem.parameters = Parameters(parameters_of(app), {}, app.name);
  const Step step = step_of(app, problem);
  for (const Stage& stage : step.stages) {
    for (const SweepSpec& sweep : stage.sweeps) {
      check(app, sweep.run || sweep.launch || app.open,
            "sweep '" + sweep.name + "' of stage '" + stage.name + "' has no code; give it `run`");
      check(app, !sweep.in_place || app.scalars.empty(),
            "ranks that sweep in place are in different steps, so it has no scalars");
      check(app, !sweep.in_place || app.plain, "sweeps in place need `plain`, the loop that results are compared with");
    }
    check(app, stage.repeats == 0 || app.finished, "stage '" + stage.name + "' repeats, and `finished` never ends it");
  }
}

}  // namespace

void check_app(const App& app) {
  check(app, !app.name.empty() && app.name.find_first_of(" /:,=") == std::string::npos,
        "its name must not be empty nor hold blanks, slashes, colons, commas or equals signs");
  check(app, app.dims >= 1 && app.dims <= 3, "it has " + std::to_string(app.dims) + " dimensions; 1 to 3 are possible");
  check(app, !app.forms.empty() && !app.reals.empty(), "it needs at least one form and one scalar type");
  for (const std::string& real : app.reals) from_word<Real>(real);
  for (const std::string& form : app.forms) check_step(app, form);
  check(app, app.scalars.empty() == !app.update, "scalars need `update`, and `update` needs scalars");
}

void add_app(const App& app) {
  static std::deque<App> added;
  require_new("app", known_apps(), app.name);
  check_app(app);
  known_apps().push_back(&added.emplace_back(app));
}

void declare_app(const App& app) {
  static std::deque<App> declared;
  for (App& known : declared)
    if (known.name == app.name) {
      check_app(app);
      known = app;
      return;
    }
  add_app(app);
  for (const App*& known : known_apps())
    if (known->name == app.name) known = &declared.emplace_back(app);
}

Step step_of(const App& app, const Problem& problem) {
  Step step = app.step ? app.step(problem) : Step{app.quantities, app.stages};
  for (Quantity& quantity : step.quantities)
    if (quantity.element_bytes == 0) quantity.element_bytes = problem.real == Real::f32 ? 4 : 8;
  return resolved(std::move(step), app.dims, app.name);
}

std::vector<Parameter> parameters_of(const App& app) {
  std::vector<Parameter> all = app.parameters;
  std::vector<std::string> words = app.initials;
  words.insert(app.starts_random ? words.begin() : words.end(), {"random", "id"});
  all.push_back({.name = "initial", .value = words.front(), .help = "Initial data.", .words = words});
  all.push_back({.name = "seed", .value = std::int64_t{1}, .help = "Seed of random initial data.", .least = 0});
  return all;
}

double random_value(std::uint64_t seed, int quantity, const GridSpec& grid, const Index& point) {
  const Index at = wrapped(grid, point);
  // Points outside the grid get numbers too: shift all coordinates to positive values first.
  std::uint64_t id = 0;
  for (int d = 2; d >= 0; --d) id = id * 0x100000007ull + static_cast<std::uint64_t>(at[d] + (1 << 20));
  if (quantity > 0) id ^= mix(static_cast<std::uint64_t>(quantity));
  return static_cast<double>(mix(id ^ mix(seed)) >> 11) * 0x1p-52 - 1;
}

double id_value(const GridSpec& grid, const Index& point) {
  const Index at = wrapped(grid, point);
  std::int64_t number = 0;
  for (int d = grid.dims - 1; d >= 0; --d) number = number * grid.cells[d] + at[d];
  return static_cast<double>(number);
}

std::function<double(const Index&)> initial_values(const App& app, const Problem& problem, int quantity,
                                                   const Box& points) {
  const std::string& word = problem.parameters.word("initial");
  const bool own = has(app.initials, word);
  if (own && !app.initial && app.exact)
    if (auto exact = app.exact(problem, quantity, points, 0)) return exact;
  const auto initial = app.initial ? app.initial(problem, quantity) : InitialValue();
  const bool ids = word == "id";
  const auto seed = static_cast<std::uint64_t>(problem.parameters.integer("seed"));
  return [=, grid = problem.grid](const Index& point) {
    if (initial)
      if (const auto value = initial(point)) return *value;
    return ids ? id_value(grid, point) : random_value(seed, quantity, grid, point);
  };
}

}  // namespace haloscope
