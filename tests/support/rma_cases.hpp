// The cases that the tests of one-sided transports share: option lists, grids, patterns.
#pragma once

#include <cstdlib>

#include "random_case.hpp"

namespace haloscope::test {

using WordList = std::vector<std::string>;

/// All ways to take one word of each list; "" is not a word.
inline std::vector<WordList> product(const std::vector<WordList>& lists) {
  std::vector<WordList> all{{}};
  for (const WordList& list : lists) {
    std::vector<WordList> longer;
    for (const WordList& begin : all)
      for (const std::string& word : list) {
        longer.push_back(begin);
        if (!word.empty()) longer.back().push_back(word);
      }
    all = longer;
  }
  return all;
}

/// Every legal option list of a transport.
inline std::vector<WordList> option_lists(const std::string& transport) {
  if (transport == "rma-fence") return product({{"put", "get"}, {"single", "per-message", "split"}, {"", "plain"}});
  if (transport == "rma-pscw") return product({{"put", "get"}, {"single", "per-message"}, {"", "plain"}});
  const WordList ways = transport == "rma-lock" ? WordList{"put", "get"} : WordList{"put", "get", "rget"};
  auto lists = product({ways, {"single", "per-message"}, {"message", "flag"}, {"", "separate"}});
  for (const WordList& words : product({ways, {"message", "flag"}, {"plain"}})) lists.push_back(words);
  const WordList gets(ways.begin() + 1, ways.end());
  for (const WordList& words : product({gets, {"single", "per-message"}, {"barrier"}, {"", "separate", "plain"}}))
    lists.push_back(words);
  return lists;
}

/// One list in `stride`, others at each rank count: ranks that share cores are slow. All in the long tests.
inline std::vector<WordList> sampled_lists(const std::string& transport) {
  const int stride = world_size() <= 2 || thorough() ? 1 : world_size() <= 4 ? 3 : 7;
  std::vector<WordList> some;
  int number = world_size();
  for (const WordList& options : option_lists(transport))
    if (number++ % stride == 0) some.push_back(options);
  return some;
}

inline Case rma_case(const std::string& transport, const WordList& options) {
  Case c{.transport = transport, .options = options};
  c.yield = true;  // whatever the load of the machine, no rank keeps another from its core
  return c;
}

/// Ranks in two dimensions, as close to a square as possible.
inline ProcessGrid square() {
  int height = 1;
  for (int h = 1; h * h <= world_size(); ++h)
    if (world_size() % h == 0) height = h;
  return {world_size() / height, height, 1};
}

/// Sizes that do not divide, halos wider on one side, one periodic dimension of three, two fields.
inline Case uneven(Case c) {
  c.ranks = square();
  c.grid.cells = {3 * c.ranks[0] + 1, 2 * c.ranks[1] + 1, 5};
  c.grid.periodic = {false, true, false};
  c.spec.low = {2, 1, 1};
  c.spec.high = {1, 2, 0};
  c.spec.quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}};
  return c;
}

/// Ranks in a row, split along y, so that halos in y are contiguous.
inline Case row(Case c, bool periodic) {
  c.grid.dims = 2;
  c.ranks = {1, world_size(), 1};
  c.grid.cells = {6, 2 * world_size() + 1, 1};
  c.grid.periodic = {false, periodic, false};
  c.spec.low = c.spec.high = {0, 1, 0};
  return c;
}

inline std::vector<Case> patterns(const Case& c) {
  std::vector<Case> all(3, c);
  all[0].spec.pattern = Pattern::ordered;
  all[1].spec.pattern = all[2].spec.pattern = Pattern::direct;
  all[2].spec.merge_peers = true;
  return all;
}

}  // namespace haloscope::test
