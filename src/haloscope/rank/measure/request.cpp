#include "haloscope/rank/measure/request.hpp"

#include <CLI/CLI.hpp>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/denormals.hpp"

namespace haloscope {

namespace {

/// What the parser fills before it is turned into a Request.
struct Raw {
  std::string app, cells = "64", periodic, initial, velocity, weights, isa, stream = "auto";
  std::string memory = "own", timers = "on", timeline = "off", ftz = "off";
  std::string device, block, pack = "first";
  std::int64_t interlines = -1;
};

void declare(CLI::App& cli, Request& r, Raw& raw) {
  cli.add_option("app", raw.app, "advection3d, laplace2d, laplace3d or poisson2d")->required();
  cli.add_option("--id", r.id, "name of the configuration in its record");
  cli.add_option("--cells", raw.cells, "global cells, e.g. 420x420x420; one number: the same in every dimension");
  cli.add_option("--periodic", raw.periodic, "dimensions that wrap around: all, none, or letters of xyz");
  cli.add_option("--process-grid", r.choice.process_grid, "white, valen, davis or ranks per dimension, e.g. 2x1x1");
  cli.add_option("--threads", r.choice.threads, "threads per rank");
  cli.add_option("--strategy", r.choice.strategy, "pattern and transport, e.g. ordered/persistent");
  cli.add_option("--schedule", r.choice.schedule,
                 "bulk, split, interleaved, comm-thread or pipeline; with --device bulk, streams or resident");
  cli.add_option("--depth", r.choice.depth, "time steps per exchange");
  cli.add_option("--region", r.choice.region, "deep halos: full, shrink or blocked");
  cli.add_option("--form", r.choice.form, "kernel form: dense, separable, star; jacobi, gauss-seidel");
  cli.add_option("--real", r.choice.real, "f32 or f64");
  cli.add_option("--sharing", r.choice.sharing, "comm-thread: guided or dynamic");
  cli.add_option("--nodes", r.choice.nodes, "split the ranks into so many nodes; 0: the real machines");
  cli.add_option("--placement", r.choice.placement, "ranks to nodes of --nodes: block or round-robin");
  cli.add_option("--memory", raw.memory,
                 "where fields live: own or shared (strategies that need shared use it anyway)");
  cli.add_option("--device", raw.device,
                 "where the fields live and are swept: cuda, hip, host (devices made of the CPU) or auto");
  cli.add_option("--device-kernel", r.options.device.kernel, "naive, stream or shared; default: stream");
  cli.add_option(
      "--device-block", raw.block,
      "threads of a block in x and y, and layers it passes through, e.g. 32x8x64; default: the kernel's own");
  cli.add_flag("--graph", r.choice.graph, "launch a device's whole program as one graph; for one rank");
  cli.add_option("--box", r.choice.box, "schedules box and box-overlap: layers of the host around the device's block");
  cli.add_option("--pack", raw.pack, "schedule streams: pack first, or beside the interior");
  cli.add_option("--tiles", r.options.tiles, "split: interior tiles, progress is called between them");
  cli.add_option("--initial", raw.initial, "random, gaussian, id; zero (poisson2d, its default)");
  cli.add_option("--seed", r.parameters.seed, "of random initial data");
  cli.add_option("--velocity", raw.velocity, "advection3d: cx,cy,cz");
  cli.add_option("--nu", r.parameters.nu, "advection3d: time step over grid spacing; 0: the largest stable one");
  cli.add_option("--sigma", r.parameters.sigma, "width of the Gaussian, in domain lengths");
  cli.add_option("--weights", raw.weights, "laplace: stencil weights, comma separated");
  cli.add_option("--isa", r.options.isa, "instruction set of the kernels; default: the best this CPU has");
  cli.add_option("--stream", raw.stream, "non-temporal stores: auto, on, off");
  cli.add_option("--interlines", raw.interlines, "poisson2d: I, instead of --cells 8I+7; the matrix has 8I+9 lines");
  cli.add_option("--function", r.parameters.function, "poisson2d: 1 (f = 0) or 2 (f = 2 pi^2 sin(pi x) sin(pi y))");
  cli.add_option("--precision", r.goal.precision,
                 "poisson2d: stop when the residuum is below it, at --steps at latest");
  cli.add_option("--residuum", r.goal.residuum,
                 "poisson2d, --precision: deferred, allreduce; pipeline: chain, chain-pscw, all-to-last, accumulate");
  cli.add_option("--work-blocks", r.work_blocks,
                 "poisson2d: record the seconds of computing of so many blocks of lines");
  cli.add_option("--work-window", r.work_window, "iterations that --work-blocks sums up");
  cli.add_option("--ftz", raw.ftz, "sweeps take subnormal numbers as zero: on or off");
  cli.add_option("--steps", r.steps, "time steps per repetition");
  cli.add_option("--seconds", r.seconds, "choose steps so that a repetition lasts at least this long");
  cli.add_option("--repetitions", r.repetitions, "measured repetitions");
  cli.add_option("--warmup", r.warmup, "repetitions before the measured ones");
  cli.add_option("--verify", r.verify, "steps to compare byte for byte with `reference`; 0: off");
  cli.add_flag("--barrier", r.options.barrier, "barrier before each exchange, timed as desync");
  cli.add_option("--timers", raw.timers, "time every operation: on or off");
  cli.add_option("--trace", r.trace,
                 "write a trace of the last repetition, all ranks (Chrome JSON); implies --timeline");
  cli.add_option("--timeline", raw.timeline, "record each rank's seconds by phase, operation and MPI call: on or off");
}

std::vector<double> numbers(const std::string& text, const std::string& option) {
  std::vector<double> list;
  for (const auto& word : split(text, ',')) {
    std::size_t used = 0;
    double value = 0;
    try {
      value = std::stod(word, &used);
    } catch (const std::exception&) {
    }
    if (used != word.size() || word.empty())
      throw UsageError(option + " '" + text + "' is not a list of numbers like 1,0.5,0.25");
    list.push_back(value);
  }
  return list;
}

GridSpec parse_grid(const std::string& cells, const std::string& periodic, const AppInfo& app) {
  GridSpec grid;
  auto words = split(cells, 'x');
  if (words.size() == 1) words.assign(static_cast<std::size_t>(app.dims), words[0]);
  if (static_cast<int>(words.size()) != app.dims)
    throw UsageError("--cells '" + cells + "' has " + std::to_string(words.size()) + " numbers but " + app.name +
                     " has " + std::to_string(app.dims) + " dimensions; write --cells " +
                     (app.dims == 2 ? "LENGTHxHEIGHT" : "XxYxZ"));
  grid.dims = app.dims;
  for (int d = 0; d < grid.dims; ++d) {
    std::size_t used = 0;
    try {
      grid.cells[d] = std::stoll(words[d], &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != words[d].size())
      throw UsageError("--cells '" + cells + "' is not a number of cells per dimension like 64x64x64");
  }
  for (int d = 0; d < grid.dims; ++d)
    grid.periodic[d] = periodic == "all" || (periodic != "none" && periodic.find("xyz"[d]) != std::string::npos);
  if (periodic != "all" && periodic != "none" && periodic.find_first_not_of("xyz") != std::string::npos)
    throw UsageError("--periodic '" + periodic + "' is neither all, none nor letters of xyz");
  return grid;
}

void check_range(bool good, const std::string& what) {
  if (!good) throw UsageError(what);
}

device::BlockShape parse_block(const std::string& text) {
  device::BlockShape shape;
  int* const into[]{&shape.x, &shape.y, &shape.layers};
  const auto words = split(text, 'x');
  check_range(words.size() <= 3, "--device-block '" + text + "' has more than three numbers; write e.g. 32x8x64");
  for (std::size_t i = 0; i < words.size(); ++i) {
    char* end = nullptr;
    const long value = std::strtol(words[i].c_str(), &end, 10);
    check_range(!words[i].empty() && *end == '\0' && value >= 1 && value <= 1 << 20,
                "--device-block '" + text + "' is not a list of numbers above 0 like 32x8x64");
    *into[i] = static_cast<int>(value);
  }
  check_range(shape.x * std::max(shape.y, 1) <= device::most_threads,
              "--device-block '" + text + "': a block has at most " + std::to_string(device::most_threads) +
                  " threads; use smaller numbers");
  return shape;
}

/// What concerns devices alone.
void take_device(Request& r, const Raw& raw) {
  r.choice.device = raw.device.empty() ? "" : device::find_backend(raw.device).name;
  if (!raw.block.empty()) r.options.device.shape = parse_block(raw.block);
  check_range(raw.pack == "first" || raw.pack == "beside", "--pack is first or beside");
  r.options.device.pack_first = raw.pack == "first";
  check_range(!raw.device.empty() || (raw.block.empty() && r.options.device.kernel.empty()),
              "--device-kernel and --device-block belong to --device");
  check_range(!r.choice.graph || !r.options.barrier, "--graph leaves no moment for a --barrier; drop one of them");
}

/// What concerns poisson2d alone.
void check_poisson(Request& r) {
  if (r.choice.app != "poisson2d") {
    check_range(r.goal.precision == 0 && r.goal.residuum.empty() && r.work_blocks == 0 && r.parameters.function == 1,
                "--precision, --residuum, --work-blocks and --function belong to poisson2d");
    return;
  }
  check_range(r.parameters.function == 1 || r.parameters.function == 2,
              "--function " + std::to_string(r.parameters.function) + " does not exist; use 1 or 2");
  check_range(r.goal.precision >= 0, "--precision must be above 0");
  check_range(r.goal.precision == 0 || r.seconds <= 0,
              "--precision and --seconds both say when a repetition ends; use one of them");
  check_range(r.work_blocks >= 0 && r.work_blocks <= r.choice.grid.cells[1],
              "--work-blocks must be 0 to the number of lines, " + std::to_string(r.choice.grid.cells[1]));
  check_range(r.work_blocks == 0 || r.choice.threads == 1, "--work-blocks needs --threads 1");
  check_range(r.work_window >= 1, "--work-window must be 1 or more");
  if (auto reason = illegal_goal(r.choice, r.goal); !reason.empty()) throw UsageError(reason);
}

}  // namespace

Request parse_request(const std::vector<std::string>& words, int ranks) {
  Request r;
  Raw raw;
  CLI::App cli;
  cli.allow_windows_style_options(false);
  declare(cli, r, raw);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes arguments last first
  try {
    cli.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (in: " + join(words, " ") + ")");
  }
  const AppInfo& app = find_app(raw.app);
  r.choice.app = app.name;
  r.choice.ranks = ranks;
  const bool poisson = app.name == "poisson2d";
  check_range(raw.interlines < 0 || poisson, "--interlines belongs to poisson2d; use --cells");
  check_range(raw.interlines <= 100000, "--interlines " + std::to_string(raw.interlines) + " is beyond 100000");
  if (raw.interlines >= 0) raw.cells = std::to_string(8 * raw.interlines + 7);
  if (raw.periodic.empty()) raw.periodic = poisson ? "none" : "all";
  r.choice.grid = parse_grid(raw.cells, raw.periodic, app);
  r.parameters.initial = !raw.initial.empty() ? raw.initial : poisson ? "zero" : "random";
  check_range(raw.ftz == "on" || raw.ftz == "off", "--ftz is on or off");
  r.options.flush_to_zero = raw.ftz == "on";
  if (r.options.flush_to_zero && !can_flush_to_zero())
    throw UnavailableError("--ftz: this CPU has no such mode, or the build does not know it; run without");
  if (!raw.velocity.empty()) {
    const auto v = numbers(raw.velocity, "--velocity");
    check_range(v.size() == 3, "--velocity needs three numbers, cx,cy,cz");
    r.parameters.velocity = {v[0], v[1], v[2]};
  }
  take_device(r, raw);
  if (!raw.weights.empty()) r.parameters.weights = numbers(raw.weights, "--weights");
  check_range(raw.stream == "auto" || raw.stream == "on" || raw.stream == "off", "--stream is auto, on or off");
  r.options.stream = raw.stream == "auto" ? -1 : raw.stream == "on";
  check_range(raw.memory == "own" || raw.memory == "shared", "--memory is own or shared");
  r.options.memory = raw.memory == "shared" ? MemoryKind::shared : MemoryKind::own;
  check_range(raw.timers == "on" || raw.timers == "off", "--timers is on or off");
  r.options.runner.timers = raw.timers == "on";
  check_range(raw.timeline == "on" || raw.timeline == "off", "--timeline is on or off");
  r.timeline = raw.timeline == "on" || !r.trace.empty();
  check_range(!r.timeline || r.options.runner.timers, "--timeline and --trace need --timers on");
#if !defined(_OPENMP)
  if (r.choice.threads > 1)
    throw UnavailableError("--threads " + std::to_string(r.choice.threads) +
                           ": this build has no OpenMP, so a rank is one thread; use --threads 1");
#endif
  check_range(r.steps >= 1, "--steps " + std::to_string(r.steps) + " is not possible; use 1 or more");
  check_range(r.repetitions >= 1, "--repetitions must be 1 or more");
  check_range(r.warmup >= 0 && r.verify >= 0 && r.seconds >= 0, "--warmup, --verify and --seconds cannot be negative");
  check_range(r.options.tiles >= 1, "--tiles must be 1 or more");
  if (auto reason = illegal(r.choice); !reason.empty()) throw UsageError(reason);
  check_poisson(r);
  kernel_weights(r.choice, r.parameters);  // refuses unstable steps and wrong numbers of weights
  return r;
}

std::string request_help() {
  Request r;
  Raw raw;
  CLI::App cli("One configuration");
  declare(cli, r, raw);
  return cli.help();
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, begun = false;
  for (char c : line) {
    if (c == '"' || c == '\'') {
      quoted = !quoted;
      begun = true;
    } else if (!quoted && std::isspace(static_cast<unsigned char>(c))) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

}  // namespace haloscope
