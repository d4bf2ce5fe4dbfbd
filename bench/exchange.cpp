// Figure `exchange`: our two-sided strategies against an expert's plain exchange, on the same fields and under the
// swept protocol. Two ranks.
#include "plain_exchange.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

void measure(const Block& block, int rounds, bool all) {
  const Layout layout = block.layout();
  Storage fields(make_plan(layout, world_rank(), block.spec()), 2);
  std::vector<std::vector<double*>> corners(2);
  for (int slot : {0, 1})
    for (int f = 0; f < block.fields; ++f)
      corners[slot].push_back(reinterpret_cast<double*>(fields.views()[f][slot].at({-1, -1, -1})));
  PlainExchange plain(MPI_COMM_WORLD, {block.n, block.n, block.n}, block.ranks, block.fields);
  std::vector<Contender> contenders{
      {"expert plain exchange", seven_point_sweep(block, fields), [&](int slot) { plain.run(corners[slot].data()); }}};
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
  using namespace haloscope::bench;
  MPI_Init(&argc, &argv);
  if (!two_ranks("bench_exchange")) return MPI_Finalize(), 2;
  pin_rank();
  for (const std::array<int, 3>& ranks : {std::array{1, 1, 2}, std::array{2, 1, 1}})
    for (int n : {32, 64, 128})
      for (int fields : {1, 4}) {
        const Block block{ranks, n, fields};
        if (wanted(argc, argv, block.name()))
          measure(block, has_flag(argc, argv, "--quick") ? 5 : 31, has_flag(argc, argv, "--all"));
      }
  MPI_Finalize();
  return 0;
}
