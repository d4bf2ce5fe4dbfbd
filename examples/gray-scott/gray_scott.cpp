// Gray-Scott: two substances that diffuse and react. Both fields travel in one exchange.
#include <haloscope/device/kernels.hpp>
#include <haloscope/extend/app.hpp>
#include <haloscope/kernels/kernel.hpp>

namespace haloscope {

extern const AppKernels gray_scott_kernels;  // made by haloscope_add_app()

namespace {

enum { u, v };  // numbers of the quantities

/// Computes one explicit step on some cells of du/dt = Du lap(u) - u v^2 + F (1 - u),
/// dv/dt = Dv lap(v) + u v^2 - (F + k) v.
void react(const SweepArgs& args) {
  const Parameters& set = args.problem->parameters;
  const double feed = set.real("feed"), kill = set.real("kill"), dt = set.real("dt");
  const double du = set.real("du"), dv = set.real("dv");
  const auto old_u = args.read<double, 2>(u), old_v = args.read<double, 2>(v);
  const auto new_u = args.write<double, 2>(u), new_v = args.write<double, 2>(v);
  const auto laplacian = [](const auto& f, auto i, auto j) {
    return f(i - 1, j) + f(i + 1, j) + f(i, j - 1) + f(i, j + 1) - 4 * f(i, j);
  };
  for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
    for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i) {
      const double a = old_u(i, j), b = old_v(i, j), reaction = a * b * b;
      new_u(i, j) = a + dt * (du * laplacian(old_u, i, j) - reaction + feed * (1 - a));
      new_v(i, j) = b + dt * (dv * laplacian(old_v, i, j) + reaction - (feed + kill) * b);
    }
}

/// Runs the kernels of kernels.hpp and device.hpp, or the plain function above.
class Reaction final : public Sweeper {
 public:
  explicit Reaction(const KernelContext& context) : plain_(context.problem.form == "plain") {
    const Parameters& set = context.problem.parameters;
    int i = 0;
    for (const char* name : {"feed", "kill", "du", "dv", "dt"}) rates_[i++] = set.real(name);
    if (!plain_) kernel_ = find_kernel("gray-scott", context.problem.real, context.isa);
  }
  void sweep(const SweepArgs& args) override {
    if (plain_ && args.device == nullptr) return react(args);
    Operand operands[2];
    for (int q : {u, v}) {
      const auto from = args.read<double, 2>(q);
      const auto to = args.write<double, 2>(q);
      operands[q] = {.from = from.origin, .to = to.origin, .row = to.row};
    }
    KernelArgs k;
    k.operands = operands;
    k.weights = rates_;
    k.region = k.points = args.region;
    args.device != nullptr ? args.device->run(k) : kernel_.sweep(k);
  }
  std::string isa() const override { return kernel_.isa; }

 private:
  bool plain_;
  double rates_[5];
  Kernel kernel_;
};

/// Returns the start values: u = 1 and v = 0, except for a square in the middle.
InitialValue spot(const Problem& problem, int quantity) {
  const Index cells = problem.grid.cells;
  return [cells, quantity](const Index& at) -> std::optional<double> {
    const bool inside = std::abs(2 * at[0] - cells[0]) < cells[0] / 8 && std::abs(2 * at[1] - cells[1]) < cells[1] / 8;
    return quantity == u ? (inside ? 0.5 : 1.0) : (inside ? 0.25 : 0.0);
  };
}

App make_app() {
  App app;
  app.name = "gray-scott";
  app.summary = "two substances that diffuse and react, in 2D";
  app.dims = 2;
  app.quantities = {{.name = "u", .slots = 2}, {.name = "v", .slots = 2}};
  app.stages = {{.sweeps = {{.name = "react",
                             .reads = {{u, 1}, {v, 1}},  // each cell and one layer around it
                             .writes = {u, v},
                             .flops_per_point = 25,
                             .run = react}}}};
  app.parameters = {{.name = "feed", .value = 0.037, .help = "Feed rate F.", .least = 0, .most = 1},
                    {.name = "kill", .value = 0.06, .help = "Kill rate k.", .least = 0, .most = 1},
                    {.name = "du", .value = 0.2, .help = "Diffusion of u.", .least = 0, .most = 0.25},
                    {.name = "dv", .value = 0.1, .help = "Diffusion of v.", .least = 0, .most = 0.25},
                    {.name = "dt", .value = 1.0, .help = "Time step.", .least = 0, .most = 1}};
  app.forms = {"vector", "plain"};
  app.kernels = &gray_scott_kernels;
  app.open = [](const KernelContext& context) { return std::make_unique<Reaction>(context); };
  app.device = [](const Problem&) { return DeviceKernel{"gray-scott", {}}; };
  app.device_levels = 1;
  app.initials = {"spot"};
  app.starts_random = false;
  app.initial = spot;
  return app;
}

}  // namespace

const App& gray_scott_app() {
  static const App app = make_app();
  return app;
}

}  // namespace haloscope
