// Figure `own_app`: the kernels that haloscope_add_app() generates for an external app against its plain function, for
// the app of examples/gray-scott. One time step of two fields on one core, in the cache of a core and in memory.
#include "haloscope/extend/app.hpp"
#include "haloscope/extend/candidate.hpp"
#include "harness.hpp"

namespace haloscope {
const App& gray_scott_app();
}

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr const char* forms[] = {"vector", "plain"};

/// Returns a job that makes time steps of a form by the app's sweeper; the fields are swapped from step to step.
std::function<void()> steps_job(const std::string& form, const Index& cells, int steps, const Storage& u,
                                const Storage& v) {
  Choice choice;
  choice.app = "gray-scott";
  choice.form = form;
  choice.grid = {2, cells, {true, true, true}};
  const auto problem = std::make_shared<Problem>(problem_of(choice));
  const auto step = std::make_shared<Step>(step_of(gray_scott_app(), *problem));
  const std::shared_ptr<Sweeper> sweeper =
      gray_scott_app().open({.problem = *problem, .step = *step, .first = {}, .cells = cells, .isa = ""});
  return [=, &u, &v] {
    for (int s = 0; s < steps; ++s) {
      const std::size_t from = s % 2;
      const SlotView in[] = {u.views()[0][from], v.views()[0][from]};
      const SlotView out[] = {u.views()[0][1 - from], v.views()[0][1 - from]};
      SweepArgs args;
      args.problem = problem.get();
      args.region = args.whole = {{0, 0, 0}, cells};
      args.in = in, args.out = out;
      args.dims = 2;
      sweeper->sweep(args);
    }
  };
}

void measure(std::int64_t n, int steps, int rounds) {
  Team team(1);
  const Index cells{n, n, 1};
  const Storage u = make_fields(2, cells, 1, 8, 2, team), v = make_fields(2, cells, 1, 8, 2, team);
  std::vector<Variant> variants;
  for (const char* form : forms) variants.push_back({form, steps_job(form, cells, steps, u, v)});
  take_turns(variants, rounds);
  const std::string size = std::to_string(n);
  emit({"own_app", "gray-scott, " + size + " x " + size, "kernels of haloscope_add_app()", "plain function",
        variants[0].seconds, variants[1].seconds, "b/a", no_bar, ">=", 1,
        std::to_string(steps) + " steps a sample, two fields, double"});
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_app(haloscope::gray_scott_app());
  const int rounds = has_flag(argc, argv, "--quick") ? 5 : 21;
  measure(128, 500, rounds);
  measure(4096, 2, rounds);
  return 0;
}
