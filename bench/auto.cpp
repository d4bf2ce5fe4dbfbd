// Figure `auto`: strategy `auto` after its trials against the fastest of the transports that it tries, under the swept
// protocol. Fields lie in shared memory. Two ranks.
#include <cstdlib>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

constexpr int most_steps = 20000;

/// Returns whether an exchange by `auto` still tries transports, on any rank.
bool tries(const Exchange& exchange) {
  int now = exchange.report().find("until it has decided") != std::string::npos;
  MPI_Allreduce(MPI_IN_PLACE, &now, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  return now != 0;
}

/// Makes steps in the manner of a program until `auto` has decided. Returns their number.
int make_steps(const Contender& contender, const Exchange& exchange) {
  constexpr int between_looks = 20;
  int steps = 0;
  while (tries(exchange) && steps < most_steps)
    for (const int end = steps + between_looks; steps < end; ++steps) {
      contender.sweep(steps % 2);
      contender.exchange(1 - steps % 2);
    }
  return steps;
}

/// Prints one line for `auto`, contenders[0], against the fastest of the others by member `times`; on rank 0.
void report(const std::vector<Contender>& contenders, std::vector<double> Contender::*times, const Result& common) {
  const auto faster = [&](const Contender& a, const Contender& b) { return median(a.*times) < median(b.*times); };
  const Contender& best = *std::min_element(contenders.begin() + 1, contenders.end(), faster);
  Result result = common;
  result.a = contenders[0].name;
  result.b = best.name;
  result.samples_a = contenders[0].*times;
  result.samples_b = best.*times;
  emit(result);
}

void show(const std::vector<Contender>& contenders, const Block& block) {
  for (const Contender& c : contenders)
    std::fprintf(stderr, "  %-24s %-24s exchange %8.2f us, step %9.2f us\n", block.name().c_str(), c.name.c_str(),
                 1e6 * median(c.samples), 1e6 * median(c.steps));
}

void measure(const Block& block, int rounds, bool all) {
  const Layout layout = block.layout();
  const Node node(MPI_COMM_WORLD);
  Storage fields(make_plan(layout, world_rank(), block.spec()), 2, {}, shared_by(node));
  std::vector<Contender> contenders;
  std::vector<Exchange> automatic, fixed;
  add_strategies(contenders, automatic, {"auto"}, block, layout, fields);
  const int steps = make_steps(contenders[0], automatic[0]);
  add_strategies(
      contenders, fixed,
      {"ordered/p2p", "ordered/p2p:datatype", "ordered/persistent", "ordered/shared:packed", "ordered/shared"}, block,
      layout, fields);
  take_swept_turns(contenders, rounds, steps_per_round(block));
  if (world_rank() != 0) return;
  if (all) show(contenders, block);
  if (all) std::fprintf(stderr, "  %s\n", automatic[0].report().c_str());
  Result result;
  result.figure = "auto";
  result.value = "a/b";
  result.bar = 1.05;
  result.direction = "<=";
  result.ranks = world_size();
  result.notes = "swept protocol, fields in shared memory; decided within " + std::to_string(steps) + " steps";
  result.name = block.name() + ", exchange";
  report(contenders, &Contender::samples, result);
  result.name = block.name() + ", step";
  result.bar = no_bar;  // mostly the sweep
  report(contenders, &Contender::steps, result);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  using namespace haloscope::bench;
  setenv("HALOSCOPE_CACHE", "", 1);  // each launch tries all
  MPI_Init(&argc, &argv);
  const int code = measure_blocks(argc, argv, "bench_auto", {{1, 1, 2}, {2, 1, 1}}, measure);
  MPI_Finalize();
  return code;
}
