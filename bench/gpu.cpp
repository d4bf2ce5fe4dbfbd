// Kernels of a device against its own copy: `bench_gpu --device cuda`. One JSON line per case, all samples in it.
//
// The bound of a sweep is a device-to-device copy of as many bytes, timed in turn with it. Sizes are those of the
// studies; --small shrinks them for an imitated device on the CPU, where only running to the end means something.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "haloscope/choice.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope::bench {
namespace {

using Json = nlohmann::json;
using device::BlockShape;
using device::Buffer;
using device::Space;

constexpr int samples = 9;

struct Rig {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<device::Event> begin, end;
  double least_s;  ///< a sample lasts at least this long

  /// Seconds of one of `repeats` launches.
  template <class F>
  double time(int repeats, F launch) const {
    stream->record(*begin);
    for (int i = 0; i < repeats; ++i) launch();
    stream->record(*end);
    end->wait();
    return device->seconds(*begin, *end) / repeats;
  }
  template <class F>
  int repeats(F launch) const {
    time(1, launch);
    return std::clamp(static_cast<int>(least_s / std::max(time(1, launch), 1e-7)), 1, 10000);
  }
  /// Samples of a launch and of its counterpart, in turn.
  template <class F, class G>
  std::pair<std::vector<double>, std::vector<double>> pairs(F one, G other) const {
    const int n = repeats(one), m = repeats(other);
    std::pair<std::vector<double>, std::vector<double>> result;
    for (int s = 0; s < samples; ++s) {
      result.first.push_back(time(n, one));
      result.second.push_back(time(m, other));
    }
    return result;
  }
};

/// Two slots of one field in device memory, laid out as the library does, filled with numbers around 1.
struct Fields {
  Plan plan;
  Storage host;
  Buffer image;
  Views views;

  Fields(const Rig& rig, const GridSpec& grid, int halo, int element_bytes, int quantities = 1)
      : plan(make(grid, halo, element_bytes, quantities)),
        host(plan, 2),
        image(*rig.device, Space::device, host.all().size()),
        views(host.views()) {
    fill(element_bytes);
    for (auto& slots : views)
      for (SlotView& view : slots) view.origin = image.data() + (view.origin - host.all().data());
    rig.stream->copy(image.data(), host.all().data(), image.size());
    rig.stream->finish();
  }

 private:
  static Plan make(const GridSpec& grid, int halo, int element_bytes, int quantities) {
    ExchangeSpec spec;
    spec.quantities.assign(static_cast<std::size_t>(quantities),
                           {"u", element_bytes, ScalarType::real, Centring::cell});
    for (int d = 0; d < 3; ++d) spec.low[d] = spec.high[d] = d < grid.dims ? halo : 0;
    return make_plan(Layout(grid, {1, 1, 1}), 0, spec);
  }
  void fill(int element_bytes) {
    const auto bytes = host.all();
    std::uint64_t state = 1;
    for (std::size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const double value = 0.5 + static_cast<double>(state >> 11) * 0x1p-53;
      const float single = static_cast<float>(value);
      std::memcpy(&bytes[at], element_bytes == 8 ? static_cast<const void*>(&value) : &single, element_bytes);
    }
  }
};

struct Case {
  std::string app, form;
  Real real;
  Index cells;
  Choice choice() const {
    Choice c;
    c.app = app;
    c.form = form;
    c.real = real;
    c.grid = {find_app(app).dims, cells, {true, true, true}};
    return c;
  }
  DeviceKernel kernel() const { return find_app(app).device(problem_of(choice())); }
};

Json describe(const Case& c, const std::string& variant, const BlockShape& shape, int levels) {
  return {{"app", c.app},
          {"form", c.form},
          {"real", to_word(c.real)},
          {"cells", {c.cells[0], c.cells[1], c.cells[2]}},
          {"variant", variant},
          {"block", {shape.x, shape.y, shape.layers}},
          {"levels", levels}};
}

/// One kernel in one block shape against the copy of the same bytes.
void sweep(const Rig& rig, const Fields& fields, const Case& c, const std::string& variant, const BlockShape& shape,
           int levels) {
  device::SweepLaunch launch;
  const auto& slots = fields.views[0];
  launch.in = slots[0].origin;
  launch.out = slots[1].origin;
  launch.row = slots[0].stride[1] / slots[0].stride[0];
  launch.plane = slots[0].stride[2] / slots[0].stride[0];
  launch.region = fields.plan.owned(0);
  launch.shape = shape;
  launch.levels = levels;
  const DeviceKernel kernel = c.kernel();
  std::copy(kernel.weights.begin(), kernel.weights.end(), launch.weights);
  const auto function = device::find_sweep(rig.device->kernels(), kernel.form, to_word(c.real), variant);
  const std::size_t bytes = static_cast<std::size_t>(launch.region.volume() * slots[0].stride[0]);
  Json line = describe(c, variant, shape, levels);
  line["figure"] = "gpu-sweep";
  line["bytes"] = 2 * bytes;
  try {
    const auto [own, copy] = rig.pairs([&] { function(*rig.stream, launch); },
                                       [&] { rig.stream->copy(slots[1].origin, slots[0].origin, bytes); });
    line["seconds"] = own;
    line["copy_seconds"] = copy;
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  std::cout << line.dump() << std::endl;
}

void sweeps(const Rig& rig, const Case& c, const std::vector<BlockShape>& shapes) {
  const Choice choice = c.choice();
  const Fields fields(rig, choice.grid, 8, c.real == Real::f32 ? 4 : 8);
  sweep(rig, fields, c, "naive", {}, 1);
  for (const char* variant : {"stream", "shared"}) {
    sweep(rig, fields, c, variant, {}, 1);
    for (const BlockShape& shape : shapes) sweep(rig, fields, c, variant, shape, 1);
  }
  const bool flat = choice.grid.dims == 2;
  const std::vector<BlockShape> fusing = flat ? std::vector<BlockShape>{{}, {128, 1, 512}, {512, 1, 1024}}
                                              : std::vector<BlockShape>{{}, {32, 32, 64}, {64, 16, 64}, {64, 12, 128}};
  for (int levels : {2, 3, 4, 6, 8})
    for (const BlockShape& shape : fusing)
      if (levels <= find_app(c.app).device_levels) sweep(rig, fields, c, "fused", shape, levels);
}

std::int64_t sectors(const SlotView& view, const Box& box) {
  constexpr std::int64_t sector = 32;
  std::int64_t count = 0;
  for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
    for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y) {
      const auto at = reinterpret_cast<std::intptr_t>(view.at({box.lo[0], y, z}));
      count += (at + box.extent(0) * view.stride[0] + sector - 1) / sector - at / sector;
    }
  return count;
}

/// Launches that gather six faces of four fields, each from other cells into another buffer: no cache holds the data of
/// the previous launch.
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
            touched += 32 * sectors(fields.views[q][0], face);
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
  std::vector<int> ends;  // of the pieces of each round, and where the first ones begin
  device::PieceList list;
};

/// The six faces of four fields, gathered by one launch, against the copy of the sectors touched and a launch of one
/// piece.
void pack(const Rig& rig, std::int64_t n) {
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
  std::cout << Json{{"figure", "gpu-pack"},
                    {"cells", n},
                    {"fields", 4},
                    {"bytes", faces.touched},
                    {"seconds", own},
                    {"copy_seconds", copy},
                    {"pieces", faces.ends[1]},
                    {"one_piece_seconds", least}}
                   .dump()
            << std::endl;
}

void run(const std::string& name, bool small) {
  const device::Backend& backend = device::find_backend(name);
  Rig rig;
  rig.device = backend.open(0);
  rig.stream = rig.device->stream();
  rig.begin = rig.device->event();
  rig.end = rig.device->event();
  rig.least_s = small ? 1e-4 : 0.02;
  const device::Info info = rig.device->info();
  std::cout << Json{{"figure", "gpu-device"},
                    {"device", info.name},
                    {"backend", backend.name},
                    {"total_bytes", info.total_bytes},
                    {"multiprocessors", info.multiprocessors}}
                   .dump()
            << std::endl;
  const std::int64_t flat = small ? 128 : 16384, deep = small ? 24 : 640, cube = small ? 20 : 420;
  sweeps(rig, {"laplace2d", "star", Real::f32, {flat, flat, 1}},
         {{64, 1, 64}, {128, 1, 32}, {128, 1, 256}, {256, 1, 64}, {256, 1, 512}});
  const std::vector<BlockShape> cubes{{32, 4, 32}, {32, 8, 64}, {64, 4, 32}, {64, 8, 64}, {128, 2, 64}, {32, 16, 64}};
  sweeps(rig, {"laplace3d", "star", Real::f32, {deep, deep, deep}}, cubes);
  sweeps(rig, {"advection3d", "dense", Real::f64, {cube, cube, cube}}, cubes);
  sweeps(rig, {"advection3d", "separable", Real::f64, {cube, cube, cube}}, cubes);
  pack(rig, small ? 16 : 256);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  std::string name = "auto";
  bool small = false;
  CLI::App cli("Kernels of a device against its own copy");
  cli.add_option("--device", name, "cuda, hip, host or auto");
  cli.add_flag("--small", small, "grids that a device made of the CPU can sweep");
  CLI11_PARSE(cli, argc, argv);
  try {
    haloscope::bench::run(name, small);
  } catch (const haloscope::Error& error) {
    std::cerr << "bench_gpu: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
}
