// The swept protocol: a seven-point sweep of every field precedes each exchange, flags in shared memory align the
// ranks, only the exchange is timed, and the slowest rank counts. Repeated exchanges of unchanged data would appear too
// fast: their cache lines stay with the last reader.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "haloscope/exchange.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/layout.hpp"
#include "harness.hpp"

namespace haloscope::bench {

inline int world_rank() {
  int r;
  return MPI_Comm_rank(MPI_COMM_WORLD, &r), r;
}
inline int world_size() {
  int n;
  return MPI_Comm_size(MPI_COMM_WORLD, &n), n;
}

/// Pins each rank to a separate core if enough cores exist.
inline void pin_rank() {
  const auto cpus = usable_cpus();
  if (static_cast<int>(cpus.size()) < world_size()) return;
  pin_to(cpus[world_rank()]);
}

/// All ranks of one node leave meet() within a fraction of a microsecond of each other.
class FlagBarrier {
 public:
  FlagBarrier() {
    void* base = nullptr;
    MPI_Win_allocate_shared(apart, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window_);
    for (int r = 0; r < world_size(); ++r) {
      MPI_Aint size;
      int unit;
      void* theirs;
      MPI_Win_shared_query(window_, r, &size, &unit, &theirs);
      flags_.push_back(static_cast<std::atomic<long>*>(theirs));
    }
    *flags_[world_rank()] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~FlagBarrier() { MPI_Win_free(&window_); }
  FlagBarrier(const FlagBarrier&) = delete;

  void meet() {
    flags_[world_rank()]->store(++epoch_, std::memory_order_release);
    for (auto* flag : flags_)
      while (flag->load(std::memory_order_acquire) < epoch_) {
      }
  }

 private:
  static constexpr MPI_Aint apart = 128;
  MPI_Win window_;
  std::vector<std::atomic<long>*> flags_;
  long epoch_ = 0;
};

struct Block {
  std::array<int, 3> ranks;
  int n;  ///< cells per rank and dimension
  int fields;
  std::string name() const {
    std::string text;
    for (int d = 0; d < 3; ++d) text += (d ? "x" : "") + std::to_string(ranks[d]);
    return text + " " + std::to_string(n) + "^3 " + std::to_string(fields) + (fields > 1 ? " fields" : " field");
  }
  Layout layout() const {
    GridSpec grid{3, {}, {true, true, true}};
    for (int d = 0; d < 3; ++d) grid.cells[d] = static_cast<std::int64_t>(n) * ranks[d];
    return Layout(grid, ranks);
  }
  ExchangeSpec spec() const {
    ExchangeSpec spec;
    spec.quantities.assign(fields, Quantity{});
    for (int f = 0; f < fields; ++f) spec.quantities[f].name = "u" + std::to_string(f);
    return spec;
  }
};

/// A way to exchange: `sweep` reads slot s and writes slot 1 - s, `exchange` fills the ghosts of a slot.
struct Contender {
  std::string name;
  std::function<void(int slot)> sweep;
  std::function<void(int slot)> exchange;
  std::vector<double> samples = {};  ///< seconds of the slowest rank's exchange; median over the steps of a round
  std::vector<double> steps = {};    ///< the same for a whole step, including sweep and alignment of the ranks
};

inline std::function<void(int)> seven_point_sweep(const Block& block, const Storage& fields) {
  const Kernel kernel = find_kernel("laplace3d", Real::f64);
  return [&fields, block, kernel](int slot) {
    static const double weights[7] = {0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    for (int f = 0; f < block.fields; ++f) {
      const SlotView& in = fields.views()[f][slot];
      KernelArgs args;
      args.in = in.origin;
      args.out = fields.views()[f][1 - slot].origin;
      args.row = in.stride[1] / 8;
      args.plane = in.stride[2] / 8;
      args.region = {{0, 0, 0}, {block.n, block.n, block.n}};
      args.weights = weights;
      kernel.sweep(args);
    }
  };
}

/// Runs all contenders in turn, `rounds` times `steps` steps each, every round in another order that is equal on all
/// ranks.
inline void take_swept_turns(std::vector<Contender>& contenders, int rounds, int steps) {
  FlagBarrier flags;
  std::vector<std::size_t> order(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(1);
  std::vector<double> mine(2 * steps), slowest(2 * steps);  // of exchanges, then of whole steps
  for (int round = -1; round < rounds; ++round) {           // round -1 warms up
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i : order) {
      Contender& c = contenders[i];
      for (int step = -1; step < steps; ++step) {  // step -1 brings the contender's buffers back into the cache
        const int slot = (step + 1) % 2;
        const auto step_start = std::chrono::steady_clock::now();
        c.sweep(slot);
        flags.meet();
        const auto start = std::chrono::steady_clock::now();
        c.exchange(1 - slot);
        if (step < 0) continue;
        mine[step] = seconds_since(start);
        mine[steps + step] = seconds_since(step_start);
      }
      MPI_Allreduce(mine.data(), slowest.data(), 2 * steps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round < 0) continue;
      c.samples.push_back(median({slowest.begin(), slowest.begin() + steps}));
      c.steps.push_back(median({slowest.begin() + steps, slowest.end()}));
    }
  }
}

inline int steps_per_round(const Block& block) {
  const long cells = static_cast<long>(block.n) * block.n * block.n * block.fields;
  return static_cast<int>(std::clamp(4'000'000 / cells, 5L, 40L));
}

/// Returns pseudo-random values that every rank can compute.
inline double value_at(const Index& global, int field) {
  std::uint64_t h = field + 1;
  for (std::int64_t g : global) h = (h ^ static_cast<std::uint64_t>(g)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return 0.5 + static_cast<double>(h >> 11) * 0x1p-53;
}

/// Calls visit(address, field, global point, owned) for every allocated point of a slot.
template <class Visit>
void for_each_point(const Block& block, const Layout& layout, const Storage& fields, int slot, Visit visit) {
  const Index first = layout.owned(world_rank()).lo;
  const Box owned{{0, 0, 0}, {block.n, block.n, block.n}}, all = grown(owned, {1, 1, 1}, {1, 1, 1});
  for (int f = 0; f < block.fields; ++f) {
    Index p;
    for (p[2] = all.lo[2]; p[2] < all.hi[2]; ++p[2])
      for (p[1] = all.lo[1]; p[1] < all.hi[1]; ++p[1])
        for (p[0] = all.lo[0]; p[0] < all.hi[0]; ++p[0]) {
          Index global;
          for (int d = 0; d < 3; ++d) global[d] = (first[d] + p[d] + layout.grid().cells[d]) % layout.grid().cells[d];
          visit(reinterpret_cast<double*>(fields.views()[f][slot].at(p)), f, global, owned.contains(p));
        }
  }
}

/// Checks an exchange before it is timed: ends the program if a ghost differs from the point that it mirrors.
inline void check(const Contender& contender, const Block& block, const Layout& layout, const Storage& fields) {
  long wrong = 0;
  for (int slot : {0, 1}) {
    for_each_point(block, layout, fields, slot, [](double* at, int f, const Index& global, bool owned) {
      *at = owned ? value_at(global, f) : std::numeric_limits<double>::quiet_NaN();
    });
    contender.exchange(slot);
    for_each_point(block, layout, fields, slot,
                   [&](const double* at, int f, const Index& global, bool) { wrong += *at != value_at(global, f); });
  }
  if (wrong == 0) return;
  std::fprintf(stderr, "%s: %s leaves %ld wrong points on rank %d\n", block.name().c_str(), contender.name.c_str(),
               wrong, world_rank());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Returns the strategies; the fastest one determines the figure.
inline std::vector<std::string> two_sided_strategies(int fields) {
  std::vector<std::string> patterns{"ordered", "ordered:merged", "ordered:self-first", "ordered:merged,self-first",
                                    "direct:merged"};
  if (fields > 1) patterns.insert(patterns.end(), {"ordered:self-first,fields=none", "ordered:fields=none"});
  std::vector<std::string> names;
  for (const auto& pattern : patterns)
    for (const char* transport : {"p2p", "persistent", "p2p:datatype", "persistent:datatype"})
      names.push_back(pattern + "/" + transport);
  return names;
}

/// Opens one Exchange per strategy on the same fields, checks it and adds it to the contenders.
inline void add_strategies(std::vector<Contender>& contenders, std::vector<Exchange>& exchanges,
                           const std::vector<std::string>& names, const Block& block, const Layout& layout,
                           const Storage& fields) {
  for (const auto& name : names) exchanges.emplace_back(MPI_COMM_WORLD, layout, block.spec(), name, fields.views());
  for (std::size_t i = 0; i < names.size(); ++i) {
    contenders.push_back(
        {names[i], seven_point_sweep(block, fields), [&exchanges, i](int slot) { exchanges[i].exchange(slot); }});
    check(contenders.back(), block, layout, fields);
  }
}

/// Prints one line for the fastest contender against contenders[0], the counterpart; on rank 0.
inline void report(const std::vector<Contender>& contenders, const std::string& name, double bar,
                   const std::string& notes, bool all, const std::string& figure = "exchange") {
  if (world_rank() != 0) return;
  const auto faster = [](const Contender& a, const Contender& b) { return median(a.samples) < median(b.samples); };
  const Contender& best = *std::min_element(contenders.begin() + 1, contenders.end(), faster);
  if (all)
    for (const Contender& c : contenders)
      std::fprintf(stderr, "  %-30s %-46s %8.2f us\n", name.c_str(), c.name.c_str(), 1e6 * median(c.samples));
  Result result;
  result.figure = figure;
  result.name = name;
  result.a = best.name;
  result.b = contenders[0].name;
  result.samples_a = best.samples;
  result.samples_b = contenders[0].samples;
  result.value = "a/b";
  result.bar = bar;
  result.direction = "<=";
  result.ranks = world_size();
  result.notes = notes;
  emit(result);
}

/// Returns whether `--case TEXT` names this case (a part of its name suffices) or is absent.
inline bool wanted(int argc, char** argv, const std::string& name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--case") == 0) return name.find(argv[i + 1]) != std::string::npos;
  return true;
}

/// Returns the first allocated element (a corner ghost) of every field, by slot.
inline std::vector<std::vector<double*>> corners(const Block& block, const Storage& fields) {
  std::vector<std::vector<double*>> list(2);
  for (int slot : {0, 1})
    for (int f = 0; f < block.fields; ++f)
      list[slot].push_back(reinterpret_cast<double*>(fields.views()[f][slot].at({-1, -1, -1})));
  return list;
}

/// Returns whether the program runs on two ranks; prints a message if not.
inline bool two_ranks(const char* program) {
  if (world_size() != 2 && world_rank() == 0)
    std::fprintf(stderr, "%s needs 2 ranks, but has %d: mpiexec -n 2 %s\n", program, world_size(), program);
  return world_size() == 2;
}

/// Calls measure(block, rounds, all) for the requested blocks of a figure, on 2 ranks. Returns the exit code.
template <class Measure>
int measure_blocks(int argc, char** argv, const char* program, std::vector<std::array<int, 3>> process_grids,
                   Measure measure) {
  if (!two_ranks(program)) return 2;
  pin_rank();
  for (const auto& ranks : process_grids)
    for (int n : {32, 64, 128})
      for (int fields : {1, 4})
        if (const Block block{ranks, n, fields}; wanted(argc, argv, block.name()))
          measure(block, has_flag(argc, argv, "--quick") ? 5 : 11, has_flag(argc, argv, "--all"));
  return 0;
}

}  // namespace haloscope::bench
