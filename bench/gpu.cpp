// Kernels of a device against its copies: `bench_gpu --device cuda`. The program prints one JSON line with all samples
// per case; each case can be run by name in a separate process (`--list`, `--case`).
//
// The bound of a sweep is a device-to-device copy of the same number of bytes, timed in turn with it. The sizes come
// from the studies; --small shrinks them for an imitated device on the CPU, where only completion is meaningful.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "gpu_overlap.hpp"
#include "gpu_rig.hpp"
#include "haloscope/apps/built_in.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/model/normal.hpp"

namespace haloscope::bench {
namespace {

using Json = nlohmann::json;
using device::BlockShape;
using device::Buffer;
using device::Space;

/// The stage in which a case runs: one figure of each kernel, the shapes that are likely best, or all others.
enum class Stage : std::uint8_t { smoke, bars, depth };
constexpr const char* stage_names[] = {"smoke", "bars", "depth"};

struct Case {
  std::string name;
  Stage stage;
  std::function<Json(const Rig&)> run;
};

double median(const std::vector<double>& values) { return model::quantile(values, 0.5); }

/// Returns the samples of a launch and of its counterpart, and their rates; both move `bytes`.
Json times(const std::vector<double>& own, const std::vector<double>& copy, std::int64_t bytes) {
  const auto moved = static_cast<double>(bytes);
  return {{"bytes", bytes},
          {"seconds", own},
          {"copy_seconds", copy},
          {"gb_per_s", moved / median(own) * 1e-9},
          {"copy_gb_per_s", moved / median(copy) * 1e-9}};
}

// ---- sweeps ---------------------------------------------------------------------------------------------------------

/// The app, form and real of a sweep, and the number of grid cells in each dimension.
struct Swept {
  std::string app, form;
  Real real;
  std::int64_t side;
  Choice choice() const {
    const int dims = find_app(app).dims;
    Choice c;
    c.app = app;
    c.form = form;
    c.real = real;
    c.grid = {dims, {side, side, dims > 2 ? side : 1}, {true, true, true}};
    return c;
  }
  int element_bytes() const { return real == Real::f32 ? 4 : 8; }
  std::string name() const { return app + "-" + form + "-" + std::string(to_word(real)); }
  Json describe() const {
    const Index cells = choice().grid.cells;
    return {{"app", app}, {"form", form}, {"real", to_word(real)}, {"cells", {cells[0], cells[1], cells[2]}}};
  }
};

/// Returns a launch from slot 0 into slot 1 of the whole grid.
device::SweepLaunch launch_of(const Fields& fields, const Swept& swept) {
  device::SweepLaunch launch;
  const auto& slots = fields.views[0];
  launch.in = slots[0].origin;
  launch.out = slots[1].origin;
  launch.row = slots[0].stride[1] / slots[0].stride[0];
  launch.plane = slots[0].stride[2] / slots[0].stride[0];
  launch.region = fields.plan.owned(0);
  const DeviceKernel kernel = find_app(swept.app).device(problem_of(swept.choice()));
  std::copy(kernel.weights.begin(), kernel.weights.end(), launch.weights);
  return launch;
}

device::SweepFunction function_of(const Rig& rig, const Swept& swept, const std::string& variant) {
  const DeviceKernel kernel = find_app(swept.app).device(problem_of(swept.choice()));
  return device::find_sweep(rig.device->kernels(), kernel.form, std::string(to_word(swept.real)), variant);
}

/// Measures one kernel in one block shape against the copy of the same bytes.
Json sweep(const Rig& rig, const Swept& swept, const std::string& variant, const BlockShape& shape, int levels) {
  const Fields fields(rig, swept.choice().grid, 8, swept.element_bytes());
  device::SweepLaunch launch = launch_of(fields, swept);
  launch.shape = shape;
  launch.levels = levels;
  const auto function = function_of(rig, swept, variant);
  const auto& slots = fields.views[0];
  const std::size_t bytes = static_cast<std::size_t>(launch.region.volume() * slots[0].stride[0]);
  const auto [own, copy] = rig.pairs([&] { function(*rig.stream, launch); },
                                     [&] { rig.stream->copy(slots[1].origin, slots[0].origin, bytes); });
  return times(own, copy, static_cast<std::int64_t>(2 * bytes));
}

Case sweep_case(const Swept& swept, Stage stage, const std::string& variant, const BlockShape& shape, int levels) {
  const bool usual = shape.x == 0;
  const std::string block =
      usual ? "default" : std::to_string(shape.x) + "x" + std::to_string(shape.y) + "x" + std::to_string(shape.layers);
  const std::string kernel = levels > 1 ? variant + std::to_string(levels) : variant;
  return {swept.name() + "/" + kernel + "/" + block, stage, [=](const Rig& rig) {
            Json line = swept.describe();
            line["figure"] = "gpu-sweep";
            line["variant"] = variant;
            line["block"] = {shape.x, shape.y, shape.layers};
            line["levels"] = levels;
            line.update(sweep(rig, swept, variant, shape, levels));
            return line;
          }};
}

/// Block shapes: for sweeps of one step the likely best and the others; for fused steps, in addition to the default.
struct Shapes {
  std::vector<BlockShape> likely, others, fusing;
};

void add_sweeps(std::vector<Case>& cases, const Swept& swept, const Shapes& shapes) {
  for (const char* variant : {"stream", "shared", "naive"})
    cases.push_back(sweep_case(swept, Stage::smoke, variant, {}, 1));
  for (const char* variant : {"stream", "shared"}) {
    for (const BlockShape& shape : shapes.likely) cases.push_back(sweep_case(swept, Stage::bars, variant, shape, 1));
    for (const BlockShape& shape : shapes.others) cases.push_back(sweep_case(swept, Stage::depth, variant, shape, 1));
  }
  const int most = find_app(swept.app).device_levels;
  for (int levels : {8, 4, 2, 3, 6}) {
    if (levels > most) continue;
    const bool first = levels == most || levels == 2;
    cases.push_back(sweep_case(swept, first ? Stage::smoke : Stage::bars, "fused", {}, levels));
    for (const BlockShape& shape : shapes.fusing)
      cases.push_back(sweep_case(swept, levels == most ? Stage::bars : Stage::depth, "fused", shape, levels));
  }
}

// ---- packing --------------------------------------------------------------------------------------------------------

/// A device's memory delivers two sectors of 32 bytes per access.
constexpr std::int64_t access_bytes = 64;

/// Returns the number of memory accesses that read the rows of a box.
std::int64_t accesses(const SlotView& view, const Box& box) {
  std::int64_t count = 0;
  for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
    for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y) {
      const auto at = reinterpret_cast<std::intptr_t>(view.at({box.lo[0], y, z}));
      count += (at + box.extent(0) * view.stride[0] + access_bytes - 1) / access_bytes - at / access_bytes;
    }
  return count;
}

/// Launches that gather six faces of four fields, each from different cells into a different buffer: no cache holds the
/// data of the previous launch.
struct PackLaunches {
  PackLaunches(const Rig& rig, std::int64_t n)
      : fields(rig, {3, {n, n, n}, {true, true, true}}, 1, 8, 4),
        rounds(std::clamp<std::int64_t>(n / 32, 1, 8)),
        packed(*rig.device, Space::device, static_cast<std::size_t>(rounds * 4 * 6 * n * n * 8)) {
    std::vector<device::CopyLaunch::Piece> pieces;
    std::byte* to = packed.data();
    for (std::int64_t round = 0; round < rounds; ++round) {
      std::vector<BlockCopy> copies;
      for (int q = 0; q < 4; ++q)
        for (int d = 0; d < 3; ++d)
          for (std::int64_t at : {16 * round, n - 1 - 16 * round}) {
            Box face = fields.plan.owned(0);
            face.lo[d] = at, face.hi[d] = at + 1;
            copies.push_back(region_to_buffer(fields.views[q][0], face, to));
            to += face.volume() * 8;
            touched += access_bytes * accesses(fields.views[q][0], face);
          }
      ends.push_back(static_cast<int>(pieces.size()));
      device::cut_copies(copies, pieces);
    }
    ends.push_back(static_cast<int>(pieces.size()));
    touched = (touched + (to - packed.data())) / rounds;
    list = device::PieceList(*rig.device, pieces);
  }
  device::CopyLaunch next() {
    const auto round = static_cast<std::size_t>(turn++ % rounds);
    return list.range(ends[round], ends[round + 1]);
  }

  Fields fields;
  std::int64_t rounds, touched = 0, turn = 0;  // touched: bytes of a launch, read and written
  Buffer packed;
  std::vector<int> ends;  // begin of the first round's pieces, then the end of each round's pieces
  device::PieceList list;
};

/// Measures a launch that gathers the six faces of four fields against a copy of the accessed memory, and against a
/// launch of one piece.
Json pack(const Rig& rig, std::int64_t n) {
  PackLaunches faces(rig, n);
  const auto moved = static_cast<std::size_t>(faces.touched) / 2;
  const std::size_t apart = round_up(moved, 256);
  const auto rounds = static_cast<std::size_t>(faces.rounds);
  const Buffer from(*rig.device, Space::device, rounds * apart), to(*rig.device, Space::device, rounds * apart);
  const auto& copy_kernel = rig.device->kernels().copy;
  const auto launch = [&] { copy_kernel(*rig.stream, faces.next()); };
  std::size_t turn = 0;
  const auto [own, copy] = rig.pairs(launch, [&] {
    const std::size_t at = turn++ % rounds * apart;
    rig.stream->copy(to.data() + at, from.data() + at, moved);
  });
  const auto [again, least] = rig.pairs(launch, [&] { copy_kernel(*rig.stream, faces.list.range(0, 1)); });
  Json line = times(own, copy, faces.touched);
  line.update(Json{
      {"figure", "gpu-pack"}, {"cells", n}, {"fields", 4}, {"pieces", faces.ends[1]}, {"one_piece_seconds", least}});
  return line;
}

// ---- copying --------------------------------------------------------------------------------------------------------

/// Bytes of a row of the large copy.
constexpr std::int64_t row_bytes = 16 * device::units_per_piece;

/// Measures the project's copy kernel against the device's copy, with the number of bytes that a large sweep moves.
/// This shows whether the copy that sweeps are compared with is the fastest one.
Json own_copy(const Rig& rig, const Swept& swept) {
  const Fields fields(rig, swept.choice().grid, 8, swept.element_bytes());
  const auto& slots = fields.views[0];
  BlockCopy all;
  all.from = slots[0].origin, all.to = slots[1].origin;
  all.rows = fields.plan.owned(0).volume() * slots[0].stride[0] / row_bytes;
  all.row_bytes = all.from_row = all.to_row = row_bytes;
  const device::PieceList list(*rig.device, device::cut_copies({all}));
  const std::int64_t bytes = all.rows * row_bytes;
  const auto [own, copy] =
      rig.pairs([&] { rig.device->kernels().copy(*rig.stream, list.all()); },
                [&] { rig.stream->copy(slots[1].origin, slots[0].origin, static_cast<std::size_t>(bytes)); });
  Json line = times(own, copy, 2 * bytes);
  line.update(Json{{"figure", "gpu-copy"}, {"pieces", list.all().count}});
  return line;
}

// ---- overlap --------------------------------------------------------------------------------------------------------

Json overlap(const Rig& rig, const Swept& swept) {
  const Fields fields(rig, swept.choice().grid, 1, swept.element_bytes(), 1, 3);
  device::SweepLaunch launch = launch_of(fields, swept);
  const auto function = function_of(rig, swept, "");
  OverlapStep step(rig, fields, [&](device::Stream& stream, const Box& box, int slot) {
    launch.out = fields.views[0][static_cast<std::size_t>(slot)].origin;
    launch.region = box;
    function(stream, launch);
  });
  const OverlapTimes found = step.measure();
  if (!step.agrees())
    throw Error(Exit::failed,
                "overlapped steps gave other bytes than sequential steps; streams or kernels of this device are wrong");
  Json line = swept.describe();
  line.update(Json{{"figure", "gpu-overlap"},
                   {"message_bytes", step.message_bytes()},
                   {"serial_seconds", found.serial},
                   {"together_seconds", found.together},
                   {"interior_seconds", found.interior}});
  return line;
}

// ---- all cases ------------------------------------------------------------------------------------------------------

/// Returns all cases, the most valuable first.
std::vector<Case> all_cases(bool small) {
  const std::int64_t flat = small ? 128 : 16384, deep = small ? 24 : 640, cube = small ? 20 : 420;
  const Swept flat_f32{"laplace2d", "star", Real::f32, flat}, flat_f64{"laplace2d", "star", Real::f64, flat},
      deep_f32{"laplace3d", "star", Real::f32, deep}, deep_f64{"laplace3d", "star", Real::f64, deep},
      dense{"advection3d", "dense", Real::f64, cube}, separable{"advection3d", "separable", Real::f64, cube};
  const Shapes rows{{{128, 1, 16}, {64, 1, 16}, {256, 1, 128}},
                    {{64, 1, 64}, {128, 1, 32}, {128, 1, 256}, {256, 1, 64}, {256, 1, 512}, {512, 1, 128}},
                    {{128, 1, 512}, {512, 1, 1024}}};
  const Shapes singles{{{32, 8, 16}, {32, 4, 16}, {64, 8, 64}},
                       {{32, 4, 32}, {32, 8, 64}, {64, 4, 32}, {32, 16, 64}, {64, 16, 64}, {128, 8, 64}, {32, 32, 64}},
                       {{32, 32, 64}, {64, 16, 64}, {64, 12, 128}}};
  const Shapes doubles{
      {{32, 4, 16}, {32, 8, 8}, {64, 8, 64}},
      {{32, 8, 64}, {32, 4, 32}, {64, 4, 32}, {32, 16, 64}, {64, 16, 64}, {128, 8, 64}, {128, 4, 128}, {32, 32, 64}},
      singles.fusing};
  std::vector<Case> cases;
  add_sweeps(cases, flat_f32, rows);
  add_sweeps(cases, deep_f32, singles);
  add_sweeps(cases, deep_f64, doubles);
  add_sweeps(cases, dense, doubles);
  add_sweeps(cases, separable, doubles);
  add_sweeps(cases, flat_f64, rows);
  const std::int64_t faces = small ? 16 : 256;
  cases.push_back({"pack/" + std::to_string(faces), Stage::smoke, [=](const Rig& rig) { return pack(rig, faces); }});
  cases.push_back({"copy", Stage::smoke, [=](const Rig& rig) { return own_copy(rig, flat_f32); }});
  for (const Swept& swept : {flat_f32, deep_f32, deep_f64})
    cases.push_back({"overlap/" + swept.name(), Stage::smoke, [=](const Rig& rig) { return overlap(rig, swept); }});
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.stage < b.stage; });
  return cases;
}

/// Returns the line of a case. It contains any failure: `refused` where the device does not support the case, else
/// `error`.
Json line_of(const Rig& rig, const Case& which) {
  Json line;
  try {
    line = which.run(rig);
  } catch (const Error& error) {
    line[error.exit_code() == Exit::failed ? "error" : "refused"] = error.what();
  } catch (const std::exception& error) {
    line["error"] = error.what();
  }
  line["case"] = which.name;
  if (rig.backend->on_cpu) line["imitated"] = true;  // its times are meaningless
  return line;
}

Json describe(const Rig& rig) {
  const device::Info info = rig.device->info();
  return {{"figure", "gpu-device"},
          {"case", "device"},
          {"device", info.name},
          {"backend", rig.backend->name},
          {"imitated", rig.backend->on_cpu},
          {"total_bytes", info.total_bytes},
          {"free_bytes", info.free_bytes},
          {"multiprocessors", info.multiprocessors}};
}

/// Appends a line to a file by a single write, or prints it to standard output without a path.
void write_line(const std::string& path, const Json& line) {
  const std::string text = line.dump() + "\n";
  if (path.empty()) {
    std::cout << text << std::flush;
    return;
  }
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const bool whole = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  if (!whole) throw Error(Exit::failed, "cannot write to '" + path + "': " + std::strerror(errno));
}

struct Options {
  std::string device = "auto", which, output;
  bool small = false, list = false, info = false, once = false;
};

/// @return true if all cases yielded figures or were refused.
bool run(const Options& options) {
  std::vector<Case> cases = all_cases(options.small);
  if (options.list) {
    for (const Case& c : cases)
      write_line(options.output, {{"case", c.name}, {"stage", stage_names[static_cast<int>(c.stage)]}});
    return true;
  }
  if (!options.which.empty()) {
    std::vector<std::string> names;
    for (const Case& c : cases) names.push_back(c.name);
    if (std::erase_if(cases, [&](const Case& c) { return c.name != options.which; }); cases.empty())
      throw UsageError(unknown_name("case", options.which, names));
  }
  Rig rig(options.device);
  if (options.small) rig.least_s = 1e-4;
  if (options.once) rig.least_s = 0, rig.samples = 1;
  if (options.info || options.which.empty()) write_line(options.output, describe(rig));
  if (options.info) return true;
  bool good = true;
  for (const Case& c : cases) {
    const Json line = line_of(rig, c);
    good = good && !line.contains("error");
    write_line(options.output, line);
  }
  return good;
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  haloscope::bench::Options options;
  CLI::App cli("Kernels of a device against its copies, packing, and the share of an exchange that streams hide");
  cli.add_option("--device", options.device, "cuda, hip, host or auto");
  cli.add_option("--case", options.which, "run only the case of this name; default: all");
  cli.add_option("--output", options.output, "append lines to this file instead of standard output");
  cli.add_flag("--list", options.list, "print the names of all cases, most valuable first, and exit; needs no device");
  cli.add_flag("--info", options.info, "print a description of the device, and exit");
  cli.add_flag("--small", options.small, "small grids, for a device imitated by the CPU");
  cli.add_flag("--once", options.once, "take one sample of one launch, for profilers");
  CLI11_PARSE(cli, argc, argv);
  try {
    return haloscope::bench::run(options) ? 0 : 1;
  } catch (const haloscope::Error& error) {
    std::cerr << "bench_gpu: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
}
