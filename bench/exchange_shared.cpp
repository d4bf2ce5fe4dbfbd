// Figure `exchange-shared`: transport `shared` against an expert's plain exchange, under the swept protocol. Two ranks.
// Our fields lie in the shared window, or in private memory where the form allows it. The expert's fields are private
// and have the same shape; they lie on huge pages where the system provides them.
#include "haloscope/apps/built_in.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "plain_exchange.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

/// Strategies on fields in the shared window, and on private fields.
struct Forms {
  std::vector<std::string> shared, own;
  std::size_t size() const { return shared.size() + own.size(); }
};

/// Returns the strategies of a block. Contiguous faces: stores into the neighbour's halos. Strided faces: every form,
/// of which the best counts.
Forms forms(const Block& block) {
  if (block.ranks[2] == 2) return {{"ordered:merged,self-first/shared", "ordered:self-first/shared"}, {}};
  Forms all;
  for (const char* pattern : {"ordered:merged", "ordered:merged,self-first", "direct:merged"}) {
    for (const char* mode : {"/shared", "/shared:pull"}) all.shared.push_back(std::string(pattern) + mode);
    all.own.push_back(std::string(pattern) + "/shared:packed");
  }
  return all;
}

bool only_reported(const Block& block) { return block.ranks[2] != 2 && block.n == 128; }

/// Returns the bar of a block. The bar of results that are only reported is the time of the expert.
double bar(const Block& block) {
  const int size = block.n == 32 ? 0 : block.n == 64 ? 1 : 2;
  if (block.ranks[2] == 2) return 0.40 + 0.05 * size + (block.fields > 1 ? 0.05 : 0);
  return only_reported(block) ? 1.0 : 0.7;
}

void measure(const Block& block, int rounds, bool all) {
  const Layout layout = block.layout();
  const Plan plan = make_plan(layout, world_rank(), block.spec());
  const Node node(MPI_COMM_WORLD);
  Storage window(plan, 2, {}, shared_by(node)), own(plan, 2), experts(plan, 2);
  const auto at = corners(block, experts);
  PlainExchange plain(MPI_COMM_WORLD, {block.n, block.n, block.n}, block.ranks, block.fields);
  std::vector<Contender> contenders{
      {"expert plain exchange", seven_point_sweep(block, experts), [&](int slot) { plain.run(at[slot].data()); }}};
  check(contenders[0], block, layout, experts);
  const Forms names = forms(block);
  std::vector<Exchange> in_window, in_own;
  add_strategies(contenders, in_window, names.shared, block, layout, window);
  add_strategies(contenders, in_own, names.own, block, layout, own);
  take_swept_turns(contenders, rounds, steps_per_round(block));
  report(contenders, block.name(), bar(block),
         "swept protocol; best of " + std::to_string(names.size()) + " forms of shared; expert on private fields" +
             (only_reported(block) ? "; only reported" : ""),
         all, "exchange-shared");
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  using namespace haloscope::bench;
  MPI_Init(&argc, &argv);
  const int code = measure_blocks(argc, argv, "bench_exchange_shared", {{1, 1, 2}, {2, 1, 1}}, measure);
  MPI_Finalize();
  return code;
}
