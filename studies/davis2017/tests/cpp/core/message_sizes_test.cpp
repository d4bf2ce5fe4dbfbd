// The published message sizes: several quantities with their own centrings, merged by type.
#include <gtest/gtest.h>

#include <set>

#include "haloscope/extend/plan.hpp"
#include "tests/published.hpp"

namespace haloscope {
namespace {

/// One exchange stage of table 5.6: the numbers of quantities of each kind that it lists.
ExchangeSpec spec_of_stage(const std::string& stage) {
  ExchangeSpec spec;
  spec.quantities.clear();
  spec.merge = Merge::type;
  const std::vector<std::pair<std::string, Centring>> kinds{{"cell_centred", Centring::cell},
                                                            {"nodal", Centring::node},
                                                            {"face_x", Centring::face_x},
                                                            {"face_y", Centring::face_y},
                                                            {"face_z", Centring::face_z}};
  for (const Row& row : published("davis2017/data/exchange_stages.csv")) {
    if (row.at("stage") != stage) continue;
    const bool real = row.at("data_type") == "real";
    for (const auto& [column, centring] : kinds)
      for (int i = 0; i < number(row, column); ++i)
        spec.quantities.push_back({column, real ? 8 : 4, real ? ScalarType::real : ScalarType::integer, centring});
    const int h = number(row, "halo");
    spec.low = spec.high = {h, h, h};
  }
  return spec;
}

/// Blocks of 100 cubed. A published size along a dimension in which 1x1x2 has no neighbour is the size of two ranks
/// there.
std::pair<Layout, int> blocks_of_100(const std::string& name, int direction) {
  if (name == "centre_of_3x3x3") return {Layout({3, {300, 300, 300}, {}}, {3, 3, 3}), 13};
  if (name == "pe0_of_2x2x2") return {Layout({3, {200, 200, 200}, {}}, {2, 2, 2}), 0};
  GridSpec grid{3, {100, 100, 100}, {}};
  ProcessGrid ranks{1, 1, 1};
  grid.cells[direction] = 200;
  ranks[direction] = 2;
  return {Layout(grid, ranks), 0};
}

TEST(MessageSizes, DC3_EverySizeOfThe2017StudyIsByteExact) {
  const auto rows = published("davis2017/data/message_sizes.csv");
  ASSERT_EQ(rows.size(), 72u);
  for (const Row& row : rows) {
    const int direction = row.at("direction")[0] - 'X';
    const auto [layout, rank] = blocks_of_100(row.at("case"), direction);
    const Plan plan = make_plan(layout, rank, spec_of_stage(row.at("stage")));
    const ScalarType type = row.at("data_type") == "real" ? ScalarType::real : ScalarType::integer;
    int found = 0;
    for (const Message& m : plan.messages) {
      if (!m.out || m.round != direction || plan.spec.quantities[m.regions[0].quantity].type != type) continue;
      EXPECT_EQ(m.bytes, number(row, "message_bytes")) << row.at("case") << " " << row.at("stage");
      ++found;
    }
    EXPECT_EQ(found, row.at("case") == "centre_of_3x3x3" ? 2 : 1);
  }
}

TEST(MessageSizes, DA3_AtMostTwelveMessagesPerStageToFaceNeighboursOnly) {
  for (const char* stage : {"Lartvis", "Mlagh1", "Mlagh2", "Madv", "Madvm"}) {
    const Plan plan = make_plan(Layout({3, {300, 300, 300}, {}}, {3, 3, 3}), 13, spec_of_stage(stage));
    EXPECT_LE(plan.messages_out(), 12);
    for (const Message& m : plan.messages) EXPECT_TRUE(std::set<int>({4, 10, 12, 14, 16, 22}).contains(m.peer));
  }
}

}  // namespace
}  // namespace haloscope
