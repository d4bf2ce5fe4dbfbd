#include "haloscope/apps/star.hpp"

#include "haloscope/apps/kernel_sweeper.hpp"
#include "haloscope/extend/candidate.hpp"

namespace haloscope {

App star_app(const std::string& name, int dims, const std::vector<double>& weights, const std::string& order) {
  const Step step = stencil_step(dims, 1, false, 2 * static_cast<double>(weights.size()) - 1);
  App app;
  app.name = name;
  app.dims = dims;
  app.quantities = step.quantities;
  app.stages = step.stages;
  app.parameters = {{.name = "weights", .value = weights, .help = "The stencil's weights: " + order + "."}};
  app.forms = {"star"};
  app.reals = {"f64", "f32"};
  app.open = [name](const KernelContext& opening) {
    return std::make_unique<KernelSweeper>(opening, name, opening.problem.parameters.reals("weights"));
  };
  app.device = [name](const Problem& problem) { return DeviceKernel{name, problem.parameters.reals("weights")}; };
  app.illegal = [count = weights.size(), order, name](const Candidate& c) -> std::string {
    const std::size_t found = c.problem.parameters.reals("weights").size();
    if (found == count) return "";
    return name + " takes " + std::to_string(count) + " weights, not " + std::to_string(found) + "; give " + order;
  };
  return app;
}

}  // namespace haloscope
