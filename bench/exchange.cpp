// Figure `exchange`: our two-sided strategies against an expert's plain exchange, on the same fields and under the
// swept protocol. Two ranks.
#include "haloscope/apps/built_in.hpp"
#include "plain_exchange.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

void measure(const Block& block, int rounds, bool all) {
  const Layout layout = block.layout();
  Storage fields(make_plan(layout, world_rank(), block.spec()), 2);
  const auto at = corners(block, fields);
  PlainExchange plain(MPI_COMM_WORLD, {block.n, block.n, block.n}, block.ranks, block.fields);
  std::vector<Contender> contenders{
      {"expert plain exchange", seven_point_sweep(block, fields), [&](int slot) { plain.run(at[slot].data()); }}};
  check(contenders[0], block, layout, fields);
  std::vector<Exchange> exchanges;
  const auto names = two_sided_strategies(block.fields);
  add_strategies(contenders, exchanges, names, block, layout, fields);
  take_swept_turns(contenders, rounds, steps_per_round(block));
  report(contenders, block.name(), block.ranks[2] == 2 ? 0.70 : 1.03,
         "swept protocol; best of " + std::to_string(names.size()) + " two-sided strategies", all);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  using namespace haloscope::bench;
  MPI_Init(&argc, &argv);
  const int code = measure_blocks(argc, argv, "bench_exchange", {{1, 1, 2}, {2, 1, 1}}, measure);
  MPI_Finalize();
  return code;
}
