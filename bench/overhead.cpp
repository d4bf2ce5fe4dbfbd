// Figure `overhead`: one step's program run by the runner, timers on, against the same calls written by hand; and a
// step of a Stepper against a loop around an Exchange.
// Run it alone (the rank is its own neighbour, copies only) or by mpiexec -n 2 (two messages a step). Block 8^3 per
// rank, laplace3d.
#include <mpi.h>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/runner/runner.hpp"
#include "haloscope/transport/link_tags.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;

struct BlockStep {
  Layout layout;
  Plan plan;
  Storage fields;
  Kernel kernel = find_kernel("laplace3d", Real::f64);
  std::vector<double> weights{0.11, 0.13, 0.17, 0.19, 0.15, 0.12, 0.13};

  BlockStep(int rank, int ranks)
      : layout({3, {8, 8, 8 * ranks}, {true, true, true}}, {1, 1, ranks}),
        plan(make_plan(layout, rank, spec())),
        fields(plan, 2) {
    for (int slot : {0, 1}) {
      auto bytes = fields.bytes(0, slot);
      for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        const double value = 1.0 + static_cast<double>(i % 97) / 97;
        std::memcpy(&bytes[i], &value, 8);
      }
    }
  }
  static ExchangeSpec spec() {
    ExchangeSpec s;
    s.corners = false;
    return s;
  }
  void sweep(const Box& box, int from, int into) const {
    const SlotView& view = fields.views()[0][from];
    KernelArgs args;
    args.in = view.origin;
    args.out = fields.views()[0][into].origin;
    args.row = view.stride[1] / 8;
    args.plane = view.stride[2] / 8;
    args.region = box;
    args.weights = weights.data();
    kernel.sweep(args);
  }
  static void call(void* self, const Sweep&, const Box& box, int from, int into, int) {
    static_cast<BlockStep*>(self)->sweep(box, from, into);
  }
};

/// The bulk step in the form that a careful programmer would write, with the library's copies and link.
class ByHand {
 public:
  ByHand(BlockStep& step, const Program& program, Link& link) : step_(step), link_(link) {
    for (int slot : {0, 1}) {
      urgent_[slot] = make_copies(step.fields.views(), slot, program.copy_sets[0]);
      if (program.copy_sets.size() > 1) rest_[slot] = make_copies(step.fields.views(), slot, program.copy_sets[1]);
    }
    for (int m = 0; m < static_cast<int>(step.plan.messages.size()); ++m)
      (step.plan.messages[m].out ? out_ : in_).push_back(m);
  }
  void run(int slot) {
    if (!in_.empty()) link_.post(in_, slot);
    urgent_[slot].run();
    if (!in_.empty()) {
      link_.pack(out_, slot, {});
      link_.send(out_, slot);
      rest_[slot].run();
      link_.wait(in_, slot);
      link_.unpack(in_, slot, {});
    }
    step_.sweep(step_.plan.owned(0), slot, 1 - slot);
    if (!in_.empty()) link_.complete(out_, slot);
  }

 private:
  BlockStep& step_;
  Link& link_;
  CopyList urgent_[2], rest_[2];
  std::vector<int> in_, out_;
};

/// Two functions compared in turn: seconds per step of the slowest rank.
class Comparison {
 public:
  static constexpr int steps = 2000;

  template <class A, class B>
  Comparison(A&& one, B&& other) {
    for (int pair = -2; pair < 41; ++pair) {
      const double a = seconds_per_step(one), b = seconds_per_step(other);
      if (pair < 0) continue;  // warm-up
      one_.push_back(a * 1e6);
      other_.push_back(b * 1e6);
    }
  }
  void report(const char* name, const char* one, const char* other, const char* notes) const {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank != 0) return;
    std::printf(
        "{\"figure\":\"overhead\",\"case\":\"%s, 8^3 per rank, %d rank%s\",\"unit\":\"us\","
        "\"a\":\"%s\",\"b\":\"%s\",\"samples_a\":%s,\"samples_b\":%s,\"value\":\"a-b\","
        "\"bar\":2,\"direction\":\"<=\",\"threads\":1,\"ranks\":%d,\"notes\":\"%s, %d steps a sample\"}\n",
        name, ranks, ranks > 1 ? "s" : "", one, other, bench::json_list(one_).c_str(), bench::json_list(other_).c_str(),
        ranks, notes, steps);
  }

 private:
  template <class F>
  static double seconds_per_step(F& one) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    for (int t = 0; t < steps; ++t) one(t);
    const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps;
    double worst = 0;
    MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return worst;
  }
  std::vector<double> one_, other_;
};

void compare_runner(int rank, int ranks) {
  BlockStep step(rank, ranks);
  const Program program = find_schedule("bulk").make(stencil_step(3, 1, false).stages[0], step.plan, {});
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  const LinkTags tags(*own, step.plan, 2);
  auto link = open_transport("persistent",
                             {.comm = own->comm(),
                              .layout = &step.layout,
                              .plan = &step.plan,
                              .views = &step.fields.views(),
                              .tags = tags.tags()},
                             {});
  CommOps comm(program, step.fields.views(), *link, MPI_COMM_WORLD);
  Runner runner(program, comm, {&BlockStep::call, &step}, {});
  ByHand by_hand(step, program, *link);
  Comparison([&](int t) { runner.run(t % 2, t); }, [&](int t) { by_hand.run(t % 2); })
      .report("bulk step", "runner", "written out by hand", "timers on");
}

/// Compares a step of the library's call with the loop that a user writes around an Exchange.
void compare_stepper(int ranks) {
  const Grid<3> grid(MPI_COMM_WORLD, {.cells = {8, 8, 8 * ranks}, .periodic = {true, true, true}});
  const Field<double, 3> u(grid, {.halo = 1, .slots = 2}), v(grid, {.halo = 1, .slots = 2});
  const auto average = [](const Box& b, const auto& in, const auto& out) {
    for (auto k = b.lo[2]; k < b.hi[2]; ++k)
      for (auto j = b.lo[1]; j < b.hi[1]; ++j)
        for (auto i = b.lo[0]; i < b.hi[0]; ++i)
          out(i, j, k) = (in(i - 1, j, k) + in(i + 1, j, k) + in(i, j - 1, k) + in(i, j + 1, k) + in(i, j, k - 1) +
                          in(i, j, k + 1)) /
                         6;
  };
  Choice choice;
  choice.strategy = "ordered/persistent";
  Stepper stepper(grid, {u}, choice, [&](const SweepArgs& args) {
    average(args.region, args.read<double, 3>(0), args.write<double, 3>(0));
  });
  Exchange halo = make_exchange(grid, {v}, choice.strategy, {.corners = false});
  const Box own{{0, 0, 0}, grid.cells()};
  const auto by_hand = [&](int t) {
    halo.exchange(t % 2);
    average(own, v[t % 2], v[(t + 1) % 2]);
  };
  Comparison([&](int) { stepper.run(1); }, by_hand)
      .report("step of the library call", "Stepper", "loop around an Exchange", "ordered/persistent");
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  int provided = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto cpus = bench::usable_cpus();
  bench::pin_to(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
  compare_runner(rank, ranks);
  compare_stepper(ranks);
  MPI_Finalize();
}
