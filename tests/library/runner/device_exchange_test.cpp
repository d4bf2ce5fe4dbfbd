// The library's exchange of fields in the memory of an imitated device: the bytes of `reference`, under random delays
// of streams.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "faulty_device.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "numbers_case.hpp"
#include "pmpi_counter.hpp"

namespace haloscope {
namespace {

using namespace test;

/// Memory of an imitated device that fields of the host are copied to, byte for byte.
class Image {
 public:
  Image(const Storage& host, int device)
      : host_(host), memory_(imitated::allocate(host.all().size(), device)), views_(host.views()) {
    for (auto& slots : views_)
      for (SlotView& view : slots) view.origin = place(view.origin);
  }
  ~Image() { imitated::release(memory_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  const Views& views() const { return views_; }
  std::size_t size() const { return host_.all().size(); }
  void* data() const { return memory_; }
  std::byte* place(const std::byte* on_host) const {
    return static_cast<std::byte*>(memory_) + (on_host - host_.all().data());
  }

 private:
  const Storage& host_;
  void* memory_;
  Views views_;
};

/// A case on the host, moved by `right`, and the same on a device.
class Pair {
 public:
  Pair(const Case& c, const Strategy& strategy, int device, const Strategy& right = "reference", bool guarded = false)
      : layout_(c.layout()),
        plan_(plan_of(layout_, c, strategy)),
        host_(plan_, c.slots),
        image_(host_, device),
        right_(MPI_COMM_WORLD, layout_, c.spec, right, host_.views(), {}, guarded),
        halo_(MPI_COMM_WORLD, layout_, c.spec, strategy, image_.views(), {}, guarded) {
    host_.set_canaries();
  }
  Exchange& halo() { return halo_; }
  Exchange& right() { return right_; }
  const Image& image() const { return image_; }
  const Storage& host() const { return host_; }
  /// Copies the fields on the host to the device in the order of a stream.
  void upload(DeviceStream stream) {
    imitated::launch(stream, [this] { std::memcpy(image_.data(), host_.all().data(), image_.size()); });
  }
  /// New values everywhere, halos too.
  void fill(std::mt19937_64& random) {
    each_point([&](const Quantity& q, std::byte* at) {
      for (int b = 0; b < q.element_bytes; ++b) at[b] = static_cast<std::byte>(random());
    });
  }
  void fill_with_fractions(std::mt19937_64& random) {
    each_point([&](const Quantity& q, std::byte* at) { set_fractions(q, at, random); });
  }
  /// Makes an own point of a field a copy of the neighbouring ghost point, here and there, after the work of a stream.
  void leak(int q, int slot, DeviceStream stream) {
    const Box owned = plan_.owned(q);
    const SlotView& view = host_.views()[q][slot];
    const auto bytes = static_cast<std::size_t>(view.element_bytes());
    const auto copy = [=](std::byte* to, const std::byte* from) { std::memcpy(to, from, bytes); };
    for (int d = 0; d < layout_.dims(); ++d) {
      Index own = owned.lo, ghost = owned.lo;
      --ghost[d];
      if (owned.empty() || plan_.spec.low_of(q)[d] == 0) continue;
      copy(view.at(own), view.at(ghost));
      imitated::launch(stream,
                       [=, to = image_.place(view.at(own)), from = image_.place(view.at(ghost))] { copy(to, from); });
      return;
    }
  }
  void expect_same(int slot) {
    right_.exchange(slot);
    expect_same_bytes();
  }
  void expect_same_poison(int slot, int fresh) {
    right_.changed(slot, fresh);
    expect_same_bytes();
  }
  void expect_same_sums(int slot) {
    right_.accumulate(slot);
    expect_same_bytes();
  }
  void expect_same_owners(int slot) {
    right_.share(slot);
    expect_same_bytes();
  }

 private:
  template <class Visit>
  void each_point(Visit visit) {
    for (std::size_t q = 0; q < host_.views().size(); ++q)
      for (const SlotView& view : host_.views()[q])
        test::each_point(plan_.allocated(static_cast<int>(q)),
                         [&](const Index& p) { visit(plan_.spec.quantities[q], view.at(p)); });
  }
  void expect_same_bytes() {
    std::vector<std::byte> found(image_.size());
    imitated::copy(found.data(), image_.data(), image_.size());
    EXPECT_EQ(std::memcmp(found.data(), host_.all().data(), found.size()), 0) << halo_.report();
  }
  Layout layout_;
  Plan plan_;
  Storage host_;
  Image image_;
  Exchange right_, halo_;
};

const char* const strategies[]{"ordered/staged",    "direct/staged:pageable",    "direct:merged/aware",
                               "ordered/taskqueue", "direct/taskqueue:queue",    "direct/taskqueue:device,chunks=3",
                               "ordered/ipc",       "direct:merged/ipc",         "auto",
                               "ordered/aware",     "ordered:self-first/staged", "ordered/staged:stream"};

using Late = std::function<void()>;

/// A stream of an imitated device, as long as this lives.
class OwnStream {
 public:
  explicit OwnStream(int device = 0) : stream_(imitated::make_stream(device)) {}
  ~OwnStream() { imitated::free_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator DeviceStream() const { return stream_; }

 private:
  DeviceStream stream_;
};

/// Exchanges a case with and without streams. @return true if the strategy can serve it.
bool expect_right_halos_on_device(
    const Case& c, const Strategy& strategy, std::mt19937_64& values, const Late& late = [] {}) {
  const int device = world_rank() % 2;
  const OwnStream stream(device);
  std::optional<Pair> pair;
  if (!run_if_available([&] { pair.emplace(c, strategy, device); })) return false;
  for (int turn = 0; turn < 2 * c.slots + 2; ++turn) {
    const int slot = turn % c.slots;
    pair->fill(values);
    late();
    pair->upload(stream);
    if (turn % 3 == 0) {  // the default stream comes after the caller's
      pair->halo().exchange(slot);
    } else if (turn % 3 == 1) {
      pair->halo().start(slot, stream);
      late();
      while (!pair->halo().progress()) late();
      pair->halo().finish(stream);
    } else {
      std::vector<std::byte> found(pair->image().size());
      pair->halo().start(slot, stream);
      late();
      pair->halo().finish(stream);
      imitated::launch(stream, [&] { std::memcpy(found.data(), pair->image().data(), found.size()); });
      imitated::finish(stream);
      imitated::copy(pair->image().data(), found.data(), found.size());
    }
    pair->expect_same(slot);
  }
  return true;
}

/// Equal blocks with equal layers on both sides, so that messages go both ways, as ipc needs them.
void send_both_ways(Case& c) {
  c.boxes.clear();
  c.spec.widths.clear();
  c.spec.low = c.spec.high;
  for (int d = 0; d < c.grid.dims; ++d)
    c.grid.cells[d] = std::max<std::int64_t>(c.grid.cells[d], std::max(c.spec.high[d], 1) * c.ranks[d]);
}

/// Makes a case one that a strategy can serve.
void suit(Case& c, const Strategy& strategy) {
  c.spec.pattern = strategy.transport == "auto" ? Pattern::direct : strategy.pattern;
  if (!c.boxes.empty() && strategy.pattern == Pattern::ordered) c.spec.corners = false;  // there may be holes
  if (strategy.transport == "ipc") send_both_ways(c);
}

TEST(DeviceExchange, RandomExchangesHaveTheBytesOfReference) {
  const Imitated slow("devices=2,delay_us=20");
  std::mt19937 random(static_cast<unsigned>(50 + world_size()));
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  int ran = 0, cases = thorough() ? 400 : 33;
  for (int i = 0; i < cases; ++i) {
    const Strategy strategy(strategies[static_cast<std::size_t>(i) % std::size(strategies)]);
    Case c = random_case(random, {});
    suit(c, strategy);
    SCOPED_TRACE("case " + std::to_string(i) + " " + to_string(strategy) + " " + describe(c));
    ran += expect_right_halos_on_device(c, strategy, values);
  }
  EXPECT_EQ(ran, cases);
}

/// Adds the contributions of a case, with and without streams. @return true if the strategy can serve it.
bool expect_right_sums_on_device(
    const Case& c, const Strategy& strategy, std::mt19937_64& values, const Late& late = [] {}) {
  const int device = world_rank() % 2;
  const OwnStream stream(device);
  std::optional<Pair> pair;
  if (!run_if_available([&] { pair.emplace(c, strategy, device, "direct/p2p"); })) return false;
  for (int turn = 0; turn < 2 * c.slots + 1; ++turn) {
    const int slot = turn % c.slots;
    pair->fill_with_fractions(values);
    pair->upload(stream);
    late();
    if (turn % 3 == 0) {
      pair->halo().accumulate(slot);
    } else if (turn % 3 == 1) {
      pair->halo().start_accumulate(slot, stream);
      late();
      while (!pair->halo().progress()) late();
      pair->halo().finish(stream);
    } else {
      pair->halo().accumulate(slot, stream);
      imitated::finish(stream);
    }
    pair->expect_same_sums(slot);
    pair->fill_with_fractions(values);  // and an exchange after it
    pair->upload(stream);
    pair->halo().exchange(slot, stream);
    imitated::finish(stream);
    pair->expect_same(slot);
    pair->fill_with_fractions(values);
    pair->upload(stream);
    const bool shares = run_if_available([&] {  // ipc needs messages both ways
      pair->halo().start_share({}, slot, stream);
      pair->halo().finish(stream);
    });
    imitated::finish(stream);
    if (shares) pair->expect_same_owners(slot);
  }
  return true;
}

TEST(DeviceExchange, RandomContributionsAddUpToTheBitsOfTheHost) {
  const Imitated slow("devices=2,delay_us=10");
  std::mt19937 random(static_cast<unsigned>(60 + world_size()));
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  int ran = 0, cases = thorough() ? 400 : world_size() > 2 ? 11 : 22;
  for (int i = 0; i < cases; ++i) {
    const Strategy strategy(strategies[static_cast<std::size_t>(i) % std::size(strategies)]);
    Case c = random_numbers_case(random);
    suit(c, strategy);
    SCOPED_TRACE("case " + std::to_string(i) + " " + to_string(strategy) + " " + describe(c));
    ran += expect_right_sums_on_device(c, strategy, values);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(2 * ran, cases);
}

/// Ranks are late by twenty times the time that a kernel that waits for the CPU stays on the device: before exchanges,
/// between their start and their end, and while they progress.
TEST(DeviceExchange, NoNeighbourIsTooLate) {
  const Imitated short_stay("devices=2,stay_us=50");
  std::mt19937 random(static_cast<unsigned>(70 + world_size()));
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  Lateness late(static_cast<unsigned>(world_rank()) + 1);
  int ran = 0, cases = 0;
  for (std::size_t i = 0; i < std::size(strategies); ++i)
    for (const bool sums : {false, true}) {
      if (!thorough() && (static_cast<int>(i) + sums + world_size()) % 2 == 0) continue;
      const Strategy strategy(strategies[i]);
      Case c = sums ? random_numbers_case(random) : random_case(random, {});
      suit(c, strategy);
      SCOPED_TRACE(to_string(strategy) + (sums ? " sums " : " ") + describe(c));
      ran += sums ? expect_right_sums_on_device(c, strategy, values, std::ref(late))
                  : expect_right_halos_on_device(c, strategy, values, std::ref(late));
      ++cases;
      ASSERT_FALSE(HasFailure());
    }
  EXPECT_GT(2 * ran, cases);
}

/// Late in any of the exchanges in which `auto` tries its candidates, and in later ones.
TEST(DeviceExchange, NoNeighbourIsTooLateForAuto) {
  const Imitated short_stay("devices=2,stay_us=50");
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  Lateness late(static_cast<unsigned>(world_rank()) + 1);
  Case c{.grid = {2, {8 * world_size(), 9, 1}, {true, true, false}}, .ranks = {world_size(), 1, 1}};
  c.spec.pattern = Pattern::direct;
  const OwnStream stream(world_rank() % 2);
  Pair pair(c, "auto", world_rank() % 2);
  for (int n = 0; n < 110; ++n) {
    pair.fill(values);
    pair.upload(stream);
    late();
    pair.halo().start(0, stream);
    late();
    pair.halo().finish(stream);
    imitated::finish(stream);
    pair.expect_same(0);
    ASSERT_FALSE(HasFailure()) << "exchange " << n;
  }
}

/// The devices of all ranks fail in the same exchange, with any of its copies and launches: an exchange has its halos
/// or throws.
/// Ranks that race may launch different numbers, and a rank would wait for one that has failed before: their devices
/// fail with the first.
TEST(DeviceExchange, ADeviceThatFailsIsNamedByItsRankAndNoExchangeSucceedsWithoutItsHalos) {
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  Case c{.grid = {2, {8 * world_size(), 9, 1}, {true, false, false}}, .ranks = {world_size(), 1, 1}};
  c.spec.pattern = Pattern::direct;
  c.spec.corners = false;
  int failed = 0;
  for (const char* strategy : {"direct/staged", "direct/staged:stream", "direct/aware", "direct/ipc",
                               "direct/taskqueue", "direct/taskqueue:device,chunks=3", "auto"})
    for (int pieces = thorough() ? 0 : world_size() % 6; pieces < 12; pieces += thorough() ? 1 : 6) {
      SCOPED_TRACE(std::string(strategy) + ", lost after " + std::to_string(pieces));
      Doom doom("stay_us=1e9");
      Pair pair(c, strategy, 0);
      const bool races = std::string(strategy) == "auto";
      std::string text;
      for (int n = 0; n < 12 && text.empty(); ++n) {
        if (n == pieces / 4) doom.come(races ? 0 : pieces % 4);
        pair.fill(values);
        imitated::copy(pair.image().data(), pair.host().all().data(), pair.image().size());
        text = error_of<Error>([&] {
          pair.halo().start(0);
          if (n % 2 == 0) pair.halo().progress();
          pair.halo().finish();
        });
        if (text == "no error") text.clear();
        if (text.empty()) pair.expect_same(0);
      }
      ASSERT_FALSE(HasFailure());
      ++failed;
      EXPECT_PART(text, "rank " + std::to_string(world_rank()) + ": the exchange of slot 0");
      EXPECT_PART(text, world_size() > 1 ? std::to_string((world_rank() + 1) % world_size()) : "");
      EXPECT_PART(text, "the device is lost");
      EXPECT_EQ(error_of<Error>([&] { pair.halo().finish(); }), text);
    }
  EXPECT_EQ(failed, thorough() ? 84 : 14);
}

/// The guard of a case, on the host and on a device: the same poison, the same texts.
void expect_same_guard_on_device(const Case& c, const Strategy& strategy, std::mt19937& random,
                                 std::mt19937_64& values) {
  const int device = world_rank() % 2;
  const Strategy right(strategy.pattern == Pattern::ordered ? "ordered/p2p" : "direct/p2p");
  const OwnStream stream(device);
  Pair pair(c, strategy, device, right, true);
  for (int turn = 0; turn < c.slots + 2; ++turn) {
    const int slot = turn % c.slots, fresh = pick(random, 0, 2),
              q = pick(random, 0, static_cast<int>(c.spec.quantities.size()) - 1);
    pair.fill_with_fractions(values);
    pair.upload(stream);
    if (turn % 2 == 0) {
      pair.halo().changed(slot, fresh);
    } else {
      pair.halo().changed(slot, fresh, stream);
      imitated::finish(stream);
    }
    pair.expect_same_poison(slot, fresh);
    const std::string clean = error_of([&] { pair.right().check_clean(slot); });
    EXPECT_EQ(error_of([&] { pair.halo().check_clean(slot); }), clean);
    pair.leak(q, slot, stream);
    const std::string leak = error_of([&] { pair.right().check_clean(slot); });
    EXPECT_EQ(error_of([&] { pair.halo().check_clean(slot, stream); }), leak);
    EXPECT_EQ(error_of([&] { pair.halo().require_fresh(1, slot); }),
              error_of([&] { pair.right().require_fresh(1, slot); }));
    pair.fill_with_fractions(values);
    pair.upload(stream);
    pair.halo().exchange(slot, stream);
    imitated::finish(stream);
    pair.expect_same(slot);
    EXPECT_EQ(error_of([&] { pair.halo().require_fresh(1, slot); }),
              error_of([&] { pair.right().require_fresh(1, slot); }));
  }
}

TEST(DeviceExchange, TheGuardPoisonsAndFindsWhatItDoesOnTheHost) {
  const Imitated slow("devices=2,threads=2,delay_us=10");
  std::mt19937 random(static_cast<unsigned>(70 + world_size()));
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  for (int i = 0; i < (world_size() > 2 ? 8 : 24); ++i) {
    const Strategy strategy(i % 3 == 0 ? "direct/taskqueue" : i % 3 == 1 ? "ordered/staged" : "direct/staged");
    Case c = random_numbers_case(random);
    c.spec.pattern = strategy.pattern;
    if (!c.boxes.empty() && c.spec.pattern == Pattern::ordered) c.spec.corners = false;  // there may be holes
    SCOPED_TRACE("case " + std::to_string(i) + " " + to_string(strategy) + " " + describe(c));
    expect_same_guard_on_device(c, strategy, random, values);
    ASSERT_FALSE(HasFailure());
  }
}

/// A field of 2 slots in 2 dimensions with one layer around it, in memory of imitated device 0 or of the host.
class Plane {
 public:
  Plane(const Grid<2>& grid, bool on_device, const std::string& name)
      : count_((grid.cells()[0] + 2) * (grid.cells()[1] + 2)) {
    const std::int64_t row = grid.cells()[0] + 2;
    std::vector<double*> first;
    for (int slot : {0, 1}) {
      host_.emplace_back(static_cast<std::size_t>(count_));
      if (on_device) memory_.push_back(imitated::allocate(static_cast<std::size_t>(count_) * sizeof(double)));
      first.push_back((on_device ? static_cast<double*>(memory_.back()) : host_[slot].data()) + row + 1);
    }
    ref_ = view<double, 2>(grid, first, row, 0, 1);
    ref_.quantity.name = name;
  }
  ~Plane() {
    for (void* const memory : memory_) imitated::release(memory);
  }
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;
  FieldRef& ref() { return ref_; }
  double* first(int slot) const { return reinterpret_cast<double*>(ref_.slots[slot].origin); }

 private:
  std::int64_t count_;
  std::vector<std::vector<double>> host_;
  std::vector<void*> memory_;
  FieldRef ref_;
};

/// A grid of 9 rows with all ranks in one of them.
Grid<2> row_of_ranks() {
  return {
      MPI_COMM_WORLD,
      {.cells = {8 * world_size(), 9}, .periodic = {true, true}, .process_grid = std::to_string(world_size()) + "x1"}};
}

TEST(DeviceExchange, WhatCannotBeIsRefusedAndNamed) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  Plane u(grid, true, "u"), v(grid, false, "v"), w(grid, true, "w");
  const auto refusal = [&](const std::vector<FieldRef>& fields, const char* strategy, const ExchangeOptions& of = {}) {
    return error_of([&] { make_exchange(grid, fields, strategy, of); });
  };
  EXPECT_PART(refusal({u.ref(), v.ref()}, "auto"),
              "field 'v' is in host memory (slot 0), and field 'u' in memory of device 0");
  for (const char* strategy : {"ordered/p2p", "direct/shared:packed", "reference"})
    EXPECT_PART(refusal({u.ref()}, strategy), "with one of staged, ");
  EXPECT_PART(refusal({v.ref()}, "direct/staged"), "these are in host memory");
  if (world_size() > 1) {
    EXPECT_PART(refusal({world_rank() == 0 ? u.ref() : v.ref()}, "auto"), "all in host memory or all on devices");
  }
  FieldRef sparse = w.ref();
  for (SlotView& slot : sparse.slots) slot.stride = {16, 2 * slot.stride[1], 0}, slot.element = 8;
  EXPECT_PART(refusal({sparse}, "auto"), "kernels of devices need contiguous points");

  const Environment chosen("HALOSCOPE_STRATEGY", "ordered/taskqueue");
  Exchange halo = make_exchange(grid, {u.ref()});
  EXPECT_PART(halo.report(), "ordered/taskqueue");
  EXPECT_PART(error_of([&] { halo.start(2); }), "slot 2 does not exist");
  std::array<void*, 1> elsewhere{v.first(0)};
  EXPECT_PART(error_of([&] { halo.rebind(elsewhere); }), "rebind() got memory for field 'u' in host memory");
  Exchange on_host = [&] {
    const Environment none("HALOSCOPE_STRATEGY", nullptr);
    return make_exchange(grid, {v.ref()}, "ordered/p2p");
  }();
  EXPECT_PART(error_of([&] { on_host.start(0, DeviceStream{}); }), "in host memory");
  EXPECT_PART(error_of([&] { on_host.start_accumulate(0, DeviceStream{}); }), "in host memory");
  EXPECT_PART(error_of([&] { on_host.finish(DeviceStream{}); }), "in host memory");
  std::array<void*, 1> on_device{u.first(0)};
  EXPECT_PART(error_of([&] { on_host.rebind(on_device); }), "rebind() got memory for field 'v' in memory of device 0");
  EXPECT_PART(error_of([&] { on_host.changed(0, 0, DeviceStream{}); }), "in host memory");
  EXPECT_PART(error_of([&] { on_host.check_clean(0, DeviceStream{}); }), "in host memory");
}

/// True if a decision is in use: the same on all ranks that have messages.
bool decided_alike(const Exchange& halo) {
  std::string report = halo.report();
  const bool lone = has_part(report, "this rank has no message");
  const std::size_t at = report.find("auto: chose ");
  int chose = at != std::string::npos, candidate = chose ? report[at + 12] : 0, most[2] = {candidate, -candidate};
  if (lone) chose = 1, most[0] = 0, most[1] = -127;
  int least = chose;
  MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return least == 1 && (most[0] == -most[1] || most[1] == -127);
}

/// Halos are right before, during and after the decision, which is the same everywhere.
TEST(DeviceExchange, AutoRacesTheStrategiesOfDevicesInTheExchangesOfTheProgram) {
  const Imitated slow("devices=2,delay_us=10,block_delay_us=10");
  std::mt19937 random(static_cast<unsigned>(90 + world_size()));
  std::mt19937_64 values(static_cast<std::uint64_t>(world_rank()));
  for (int i = 0; i < (world_size() > 2 ? 3 : 4); ++i) {
    Case c = random_numbers_case(random);
    c.spec.pattern = Pattern::direct;
    const bool one_sided = i % 4 == 2;  // as ipc cannot
    if (!one_sided) send_both_ways(c);
    SCOPED_TRACE("case " + std::to_string(i) + " " + describe(c));
    const int device = world_rank() % 2;
    const OwnStream stream(device);
    Pair pair(c, "direct/auto:quick", device, "direct/p2p");
    const bool sums = i % 2 == 1;  // the reverse exchange decides separately
    const int exchanges = 2 * 4 * (c.slots + 4) + c.slots * (world_size() + 3);
    for (int n = 0; n < exchanges; ++n) {
      const int slot = n % c.slots;
      pair.fill_with_fractions(values);
      pair.upload(stream);
      if (n % 3 == 0) imitated::finish(stream);
      sums ? pair.halo().accumulate(slot, stream) : pair.halo().exchange(slot, stream);
      imitated::finish(stream);
      sums ? pair.expect_same_sums(slot) : pair.expect_same(slot);
      ASSERT_FALSE(HasFailure()) << "exchange " << n;
    }
    const std::string report = pair.halo().report();
    EXPECT_PART(report, "direct:merged/auto-device:quick: ");
    EXPECT_TRUE(sums || decided_alike(pair.halo())) << report;
    for (const char* candidate : {"staged", "aware", "taskqueue"})
      EXPECT_TRUE(has_part(report, candidate) || has_part(report, "no message")) << report;
  }
}

/// Several exchanges in flight, each with a separate race, by one stream that runs late.
TEST(DeviceExchange, RacesOfSeveralExchangesDoNotDisturbEachOther) {
  const Imitated slow("delay_us=30");
  const Grid<2> grid = row_of_ranks();
  const std::int64_t n = grid.cells()[0];
  Plane u(grid, true, "u"), v(grid, true, "v");
  Exchange of_u = make_exchange(grid, {u.ref()}, "auto:quick"), of_v = make_exchange(grid, {v.ref()}, "auto:quick");
  const OwnStream stream;
  std::atomic<int> wrong{0};
  for (int step = 0; step < 110; ++step) {
    const int slot = step % 2;
    for (Plane* field : {&u, &v}) imitated::launch(stream, [=, at = field->first(slot)] { at[0] = at[n - 1] = step; });
    of_u.start(slot, stream);
    of_v.start(slot, stream);
    of_u.progress();
    of_v.finish(stream);
    of_u.finish(stream);
    for (Plane* field : {&u, &v})
      imitated::launch(stream, [=, &wrong, at = field->first(slot)] { wrong += at[-1] != step || at[n] != step; });
  }
  imitated::finish(stream);
  EXPECT_EQ(wrong, 0);
  EXPECT_PART(of_u.report(), world_size() > 1 ? "chose " : "");
}

/// A forgotten exchange of a field that kernels sweep, on one stream: no call but the last waits for it.
TEST(DeviceExchange, AForgottenExchangeOfADeviceIsFound) {
  const Imitated slow("delay_us=50");
  const Grid<2> grid = row_of_ranks();
  const std::int64_t n = grid.cells()[0], row = n + 2;
  Plane u(grid, true, "u");
  Exchange halo = make_exchange(grid, {u.ref()}, "direct/staged", {.guard = true});
  const OwnStream stream;
  const auto sweep = [=, at = u.first(0)] {
    for (std::int64_t j = 0; j < 9; ++j)
      for (std::int64_t i = n - 1; i >= 0; --i) at[i + j * row] = 0.5 * (at[i + j * row] + at[i - 1 + j * row]);
  };
  halo.exchange(0, stream);
  imitated::launch(stream, sweep);
  halo.changed(0, 0, stream);
  halo.check_clean(0, stream);
  imitated::launch(stream, sweep);
  EXPECT_PART(error_of([&] { halo.check_clean(0, stream); }),
              "own point (0, 0) of field 'u', globally (" + std::to_string(8 * world_rank()) +
                  ", 0), was computed in slot 0 from a stale halo on the low side in x");
  std::array<void*, 1> first{u.first(1)};
  halo.rebind(first, 0);
  halo.changed(0, 0, stream);
  imitated::finish(stream);
  EXPECT_TRUE(std::isnan(u.first(1)[-1]));
}

/// Without messages back no signal announces that a neighbour's buffer may be written again.
TEST(DeviceExchange, AnExchangeOfOneSideIsRefusedByIpc) {
  const Grid<2> grid = row_of_ranks();
  Plane u(grid, true, "u");
  const auto open = [&] { make_exchange(grid, {u.ref()}, "direct/ipc", {.low = {0, 0, 0}, .high = {1, 1, 0}}); };
  if (world_size() > 2)
    EXPECT_PART(error_of<UnavailableError>(open), "receives nothing from it");
  else
    open();
}

/// One rank cannot map its neighbours' memory: all unmap it before any of them frees its memory.
TEST(DeviceExchange, WhereIpcIsRefusedRanksWaitForEachOtherBeforeTheyFree) {
  if (world_size() == 1) GTEST_SKIP() << "a lone rank maps nothing";
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  Plane u(grid, true, "u");
  const Imitated refusing(world_rank() == 0 ? "maps=0" : "");
  const std::int64_t before = calls().barriers;
  const std::string error = error_of<UnavailableError>([&] { make_exchange(grid, {u.ref()}, "direct/ipc"); });
  EXPECT_PART(error, "the system refuses to map memory; use staged");
  if (world_rank() > 0) {
    EXPECT_PART(error, "rank 0");
  }
  EXPECT_EQ(calls().barriers, before + 1);
  Exchange halo = make_exchange(grid, {u.ref()}, "auto:quick");
  halo.exchange();
  EXPECT_PART(halo.report(), "without ipc (");
}

TEST(DeviceExchange, MemoryThatMovesIsFollowed) {
  const Imitated slow("delay_us=20");
  const Grid<2> grid = row_of_ranks();
  for (const char* strategy : {"direct/staged", "direct/staged:stream", "ordered/taskqueue", "ordered/ipc"}) {
    Plane u(grid, true, "u"), v(grid, true, "v");
    Exchange halo = make_exchange(grid, {u.ref()}, strategy);
    const OwnStream stream;
    double *const now = v.first(1), *const before = u.first(1);
    imitated::launch(stream, [=] { *now = 3, *before = 2; });
    halo.exchange(1, stream);
    std::array<void*, 1> first{now};
    halo.rebind(first, 1);
    halo.exchange(1, stream);
    imitated::finish(stream);
    const std::int64_t n = grid.cells()[0];
    if (world_size() == 1) {
      EXPECT_EQ(before[n], 2);
      EXPECT_EQ(now[n], 3);
    }
    EXPECT_EQ(now[9 * (n + 2)], 3) << strategy;  // wraps around in y
    halo.accumulate(1, stream);
    imitated::launch(stream, [=] { *now = 1, now[9 * (n + 2)] = 2; });
    halo.accumulate(1, stream);
    imitated::finish(stream);
    EXPECT_EQ(now[9 * (n + 2)], 0) << strategy;
    EXPECT_EQ(*now, 3) << strategy;
  }
}

/// A rank at the edge may have nothing to exchange; its callers' streams are ordered all the same.
TEST(DeviceExchange, StreamsAreOrderedWhereARankHasNoHalos) {
  using namespace std::chrono_literals;
  Case c{.grid = {1, {4 * world_size(), 1, 1}, {false, false, false}}, .ranks = {world_size(), 1, 1}};
  c.spec.low = c.spec.high = {0, 0, 0};
  for (const char* strategy :
       {"ordered/staged", "direct/staged:stream", "direct:merged/ipc", "ordered/taskqueue", "auto"}) {
    SCOPED_TRACE(strategy);
    Pair pair(c, strategy, 0);
    const OwnStream first, second;
    std::atomic<int> done{0};
    int seen = 0;
    const auto work = [&] {
      std::this_thread::sleep_for(20ms);
      ++done;
    };
    imitated::launch(first, work);
    pair.halo().start(0, first);
    pair.halo().finish(second);
    imitated::launch(second, [&] { seen = done; });
    imitated::finish(second);
    EXPECT_EQ(seen, 1);
    imitated::launch(first, work);
    pair.halo().start(0, first);
    while (!pair.halo().progress()) {
    }
    EXPECT_EQ(done, 2);
    pair.halo().finish();
    imitated::launch(first, work);
    pair.halo().start(0, first);
    pair.halo().finish();
    EXPECT_EQ(done, 3);
  }
}

/// Kernels and exchanges on one stream, several exchanges in flight: the host never waits for the stream, which runs
/// late.
TEST(DeviceExchange, StreamsOrderKernelsAndHalos) {
  const Imitated slow("delay_us=50");
  const Grid<2> grid = row_of_ranks();
  const std::int64_t n = grid.cells()[0], row = n + 2;
  for (const char* strategy :
       {"direct/staged", "direct/staged:stream", "direct/taskqueue", "ordered/aware", "ordered/ipc"}) {
    Plane u(grid, true, "u"), v(grid, true, "v");
    Exchange of_u = make_exchange(grid, {u.ref()}, strategy), of_v = make_exchange(grid, {v.ref()}, strategy);
    const OwnStream stream, other;
    std::atomic<int> wrong{0};
    for (int step = 0; step < 20; ++step) {
      const auto work = [&, step](double* at, double sign) {  // reads the last step's halo, writes all own cells
        for (const std::int64_t halo : {std::int64_t{-1}, n, -row, 9 * row, -row - 1})
          wrong += step > 0 && at[halo] != sign * (step - 1);
        for (std::int64_t j = 0; j < 9; ++j)
          for (std::int64_t i = 0; i < n; ++i) at[i + j * row] = sign * step;
      };
      imitated::launch(stream, [=, at = u.first(0)] { work(at, 1); });
      imitated::launch(other, [=, at = v.first(0)] { work(at, -1); });
      of_u.start(0, stream);
      of_v.start(0, other);
      of_v.finish(other);
      of_u.finish(stream);
    }
    imitated::finish(stream);
    imitated::finish(other);
    EXPECT_EQ(wrong, 0) << strategy;
  }
}

/// Exchanges among ranks in a row, of which the device of one fails.
class OneFails {
 public:
  /// @param mortal  rank whose device fails.
  OneFails(const std::string& strategy, int mortal)
      : mortal_(mortal),
        doom_("stay_us=1e9"),
        grid_(row_of_ranks()),
        u_(grid_, true, "u"),
        v_(grid_, true, "v"),
        of_u_(std::in_place, make_exchange(grid_, {u_.ref()}, strategy)),
        of_v_(std::in_place, make_exchange(grid_, {v_.ref()}, strategy)) {}

  /// The device fails after this many copies and launches.
  void doom(int pieces) {
    if (world_rank() == mortal_) doom_.come(pieces);
  }
  /// @return the error of the exchange; empty: its halos are right.
  std::string exchange_u(int number, bool polls) { return exchange(*of_u_, u_, number, polls); }
  std::string exchange_v(int number, bool polls) { return exchange(*of_v_, v_, number, polls); }
  /// The error that each rank reports.
  void expect_failure(const std::string& text) const {
    EXPECT_PART(text, "rank " + std::to_string(world_rank()) + ": the exchange of slot 0");
    EXPECT_PART(text, "rank " + std::to_string(mortal_) + ": the exchange of slot 0");
    EXPECT_PART(text, "the device is lost");
  }
  Exchange& of_u() { return *of_u_; }
  /// All ranks end the exchanges, and have ended them.
  void end() {
    of_u_.reset();
    of_v_.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  static double value(int rank, int number) { return 1000.0 * ((rank + world_size()) % world_size()) + number; }

  std::string exchange(Exchange& halo, const Plane& plane, int number, bool polls) {
    const std::int64_t n = grid_.cells()[0], row = n + 2;
    double* const at = plane.first(0);
    for (std::int64_t j = 0; j < 9; ++j) std::fill_n(at + j * row, n, value(world_rank(), number));
    const std::string text = error_of<Error>([&] {
      halo.start(0);
      while (polls && !halo.progress()) sched_yield();
      halo.finish();
    });
    if (text != "no error") return text;
    for (std::int64_t j = 0; j < 9; ++j) {
      EXPECT_EQ(at[j * row - 1], value(world_rank() - 1, number));
      EXPECT_EQ(at[j * row + n], value(world_rank() + 1, number));
    }
    return "";
  }

  int mortal_;
  Doom doom_;
  Grid<2> grid_;
  Plane u_, v_;
  std::optional<Exchange> of_u_, of_v_;
};

const char* const failing_strategies[]{"direct/staged",     "ordered/staged:stream",
                                       "direct/aware",      "direct/ipc",
                                       "direct/taskqueue",  "direct/taskqueue:device,chunks=3",
                                       "ordered/taskqueue", "auto"};

/// The number of the exchange in which a device fails, and its number of copies and launches before the failure.
std::vector<std::pair<int, int>> moments() {
  std::vector<std::pair<int, int>> all;
  for (const int number : {0, 3})
    for (int pieces = 0; pieces < 8; ++pieces)
      if (thorough() || (pieces + number) % 5 == world_size() % 5) all.emplace_back(number, pieces);
  return all;
}

/// Before or after its messages are sent, in a launch or a copy. The failure reaches ranks further away through the
/// ranks between.
TEST(DeviceExchange, ADeviceThatFailsOnOneRankIsNamedByAllRanks) {
  constexpr int most = 200;
  for (const char* strategy : failing_strategies)
    for (const auto& [number, pieces] : moments()) {
      const int mortal = pieces % world_size();
      const bool polls = (number + pieces) % 2 == 1;
      SCOPED_TRACE(std::string(strategy) + ", device of rank " + std::to_string(mortal) + " lost in exchange " +
                   std::to_string(number) + " after " + std::to_string(pieces));
      OneFails rig(strategy, mortal);
      std::string text;
      for (int n = 0; n < most && text.empty(); ++n) {
        if (n == number) rig.doom(pieces);
        text = rig.exchange_u(n, polls);
      }
      rig.expect_failure(text);
      EXPECT_EQ(error_of<Error>([&] { rig.of_u().finish(); }), text);
      rig.end();
      ASSERT_FALSE(HasFailure());
    }
}

/// A rank has received everything from the exchange that failed, and waits in the next one of other fields.
TEST(DeviceExchange, ADeviceThatFailsInOneExchangeEndsWaitsInOthers) {
  constexpr int most = 200;
  for (const char* strategy : failing_strategies)
    for (const auto& [number, pieces] : moments()) {
      SCOPED_TRACE(std::string(strategy) + ", lost in exchange " + std::to_string(number) + " after " +
                   std::to_string(pieces));
      OneFails rig(strategy, world_size() - 1);
      std::string text;
      for (int n = 0; n < most && text.empty(); ++n) {
        if (n == number) rig.doom(pieces);
        text = rig.exchange_u(n, false);
        if (text.empty()) text = rig.exchange_v(n, false);
      }
      rig.expect_failure(text);
      rig.end();
      ASSERT_FALSE(HasFailure());
    }
}

/// A rank that has its halos ends its exchanges, with links whose end waits for all ranks.
TEST(DeviceExchange, ExchangesEndWhereADeviceOfAnotherRankHasFailed) {
  for (const char* strategy : failing_strategies)
    for (int pieces = thorough() ? 0 : world_size() % 2; pieces < 6; pieces += thorough() ? 1 : 2)
      for (const int exchanges : {1, 120}) {  // and while `auto` decides
        if (!thorough() && exchanges > 1 && std::string(strategy) != "auto") continue;
        SCOPED_TRACE(std::string(strategy) + ", lost after " + std::to_string(pieces));
        OneFails rig(strategy, pieces % world_size());
        std::string text;
        for (int n = 0; n < exchanges && text.empty(); ++n) {
          if (n == exchanges - 1) rig.doom(pieces);
          text = rig.exchange_u(n, false);
        }
        if (!text.empty()) rig.expect_failure(text);
        rig.end();
        ASSERT_FALSE(HasFailure());
      }
}

}  // namespace
}  // namespace haloscope
