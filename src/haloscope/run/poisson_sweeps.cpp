#include "haloscope/run/poisson_sweeps.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace haloscope {

namespace {
/// Processor time of this thread: what others on the same core take is no work of a block.
double work_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
}  // namespace

std::int64_t WorkMeter::first_line(int block) const {
  const std::int64_t base = lines / blocks, rest = lines % blocks;
  return block * base + std::min<std::int64_t>(block, rest);
}

int WorkMeter::block_of(std::int64_t line) const {
  const std::int64_t base = lines / blocks, rest = lines % blocks, wide = rest * (base + 1);
  return static_cast<int>(line < wide ? line / (base + 1) : rest + (line - wide) / base);
}

void WorkMeter::add(std::int64_t iteration, int block, double taken_s) {
  const auto place = static_cast<std::size_t>(iteration / window * blocks + block);
  if (place >= seconds.size()) seconds.resize((place / blocks + 1) * blocks, 0);
  seconds[place] += taken_s;
}

PoissonSweeps::PoissonSweeps(const Choice& choice, const AppParameters& parameters, const Layout& layout,
                             const Plan& plan, const std::string& isa, bool stream, int most_fused)
    : in_place_(choice.form == "gauss-seidel"),
      stream_(stream),
      kernel_(find_poisson_kernel(isa)),
      threads_(static_cast<std::size_t>(choice.threads)),
      progress_(static_cast<std::size_t>(choice.threads)) {
  const PoissonProblem problem = poisson_problem(choice, parameters);
  row_factors_ = problem.row_factors();
  column_factors_ = problem.column_factors();
  const Box owned = layout.owned(plan.rank);
  first_ = {owned.lo[0] + 1, owned.lo[1] + 1, 0};
  meter_.lines = layout.grid().cells[1];
  if (in_place_ && most_fused > 1)
    for (PerThread& one : threads_) one.scratch = Memory(kernel_.fused_scratch_bytes(plan.owned(0)));
}

double PoissonSweeps::call(const PoissonArgs& args, const Sweep& sweep, int thread) {
  if (!in_place_) return kernel_.jacobi(args);
  const PoissonShare share{thread, static_cast<int>(threads_.size()), progress_.data()};
  if (sweep.levels == 1) return kernel_.gauss_seidel(args, share);
  kernel_.gauss_seidel_fused(args, share, sweep.levels, nullptr, threads_[thread].scratch.data());
  return 0;
}

void PoissonSweeps::run(const Sweep& sweep, const Box& box, const SlotView& in, const SlotView& out, int thread) {
  PoissonArgs args;
  args.in = reinterpret_cast<const double*>(in.origin);
  args.out = reinterpret_cast<double*>(out.origin);
  args.row = in.stride[1] / in.stride[0];
  args.region = box;
  args.stream = stream_;
  args.residuum = wanted_;
  if (!row_factors_.empty()) {
    args.row_factor = row_factors_.data() + first_[1];
    args.column_factor = column_factors_.data() + first_[0];
  }
  double& residuum = threads_[static_cast<std::size_t>(thread)].residuum;
  if (meter_.blocks == 0) {
    residuum = std::max(residuum, call(args, sweep, thread));
    return;
  }
  // Block by block: the bits of a sweep do not depend on how its region is cut.
  for (std::int64_t line = box.lo[1]; line < box.hi[1];) {
    const int block = meter_.block_of(line + first_[1] - 1);
    const std::int64_t end = block + 1 < meter_.blocks ? meter_.first_line(block + 1) - (first_[1] - 1) : box.hi[1];
    args.region.lo[1] = line;
    args.region.hi[1] = std::min(end, box.hi[1]);
    const double begin_s = work_s();
    residuum = std::max(residuum, call(args, sweep, thread));
    meter_.add(iteration_ + sweep.step, block, work_s() - begin_s);
    line = args.region.hi[1];
  }
}

double PoissonSweeps::take_residuum() {
  double largest = 0;
  for (PerThread& one : threads_) largest = std::max(largest, std::exchange(one.residuum, 0.0));
  return largest;
}

}  // namespace haloscope
