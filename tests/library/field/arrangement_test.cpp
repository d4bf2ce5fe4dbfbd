// Layouts of fields in memory: rows and gaps cover all bytes, and parts of a copy add up to the whole copy.
#include "haloscope/field/arrangement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Cells of 8 bytes in two slots, nodes of 4 in one, with two layers around.
Plan cells_and_nodes(int dims, const Index& cells) {
  ExchangeSpec spec{
      .quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}}};
  for (int d = 0; d < dims; ++d) spec.low[d] = spec.high[d] = 2;
  return make_plan(Layout({dims, cells, {false, false, false}}, {1, 1, 1}), 0, spec);
}

std::int64_t point_bytes(const Plan& plan) {
  return 2 * 8 * plan.allocated(0).volume() + 4 * plan.allocated(1).volume();
}

std::vector<ByteRange> parts_of(const Arrangement& fields, std::size_t most) {
  std::vector<ByteRange> parts;
  for (ByteRange rest{0, fields.bytes()}; rest.size() > 0; rest.begin = parts.back().end)
    parts.push_back(fields.cut(rest, most));
  return parts;
}

using Point = std::tuple<int, int, Index, std::size_t>;  // quantity, slot, coordinates, offset

std::vector<Point> listed_points(const Arrangement& fields, const std::vector<ByteRange>& parts) {
  std::vector<Point> points;
  for (const ByteRange& part : parts)
    fields.each_row(part, [&](const RowPart& row) {
      const std::size_t element = row.quantity == 0 ? 8 : 4;
      EXPECT_EQ(row.bytes.size(), element * static_cast<std::size_t>(row.points));
      EXPECT_TRUE(part.begin <= row.bytes.begin && row.bytes.end <= part.end);
      for (std::int64_t i = 0; i < row.points; ++i)
        points.push_back({row.quantity,
                          row.slot,
                          {row.first[0] + i, row.first[1], row.first[2]},
                          row.bytes.begin + static_cast<std::size_t>(i) * element});
    });
  return points;
}

const std::vector<std::pair<int, Index>> grids{{1, {37, 1, 1}}, {2, {21, 13, 1}}, {3, {11, 6, 5}}, {3, {16, 1, 3}}};

TEST(Arrangement, RowsAndGapsShareOutAllBytes) {
  for (const auto& [dims, cells] : grids)
    for (const bool on_device : {true, false}) {
      const Plan plan = cells_and_nodes(dims, cells);
      const Arrangement fields(plan, {2, 1}, on_device);
      for (const std::size_t most : {std::size_t{8}, std::size_t{77}, fields.bytes()}) {
        std::vector<std::byte> all(fields.bytes(), std::byte{1});
        std::size_t in_rows = 0;
        for (const ByteRange& part : parts_of(fields, most)) {
          fields.set_canaries(part, all.data() + part.begin);
          fields.each_row(part, [&](const RowPart& row) { in_rows += row.bytes.size(); });
        }
        EXPECT_EQ(in_rows, static_cast<std::size_t>(point_bytes(plan)));
        EXPECT_EQ(static_cast<std::size_t>(std::count(all.begin(), all.end(), std::byte{1})), in_rows);
      }
    }
}

TEST(Arrangement, PartsOfAnySizeHaveThePointsOfTheWholeInTheirOrder) {
  for (const auto& [dims, cells] : grids) {
    const Plan plan = cells_and_nodes(dims, cells);
    const Arrangement fields(plan, {2, 1}, true);
    const std::vector<Point> whole = listed_points(fields, {{0, fields.bytes()}});
    EXPECT_EQ(whole.size(), static_cast<std::size_t>(2 * plan.allocated(0).volume() + plan.allocated(1).volume()));
    std::vector<std::byte> memory(fields.bytes());
    const Views views = fields.views(memory.data());
    for (const auto& [q, slot, at, byte] : whole) EXPECT_EQ(views[q][slot].at(at), memory.data() + byte);
    for (const std::size_t most : {8, 9, 20, 128, 129, 1000}) {
      const auto parts = parts_of(fields, most);
      for (const ByteRange& part : parts) EXPECT_LE(part.size(), most);
      EXPECT_TRUE(listed_points(fields, parts) == whole) << most;
    }
  }
}

TEST(Arrangement, ARangeOfABoxGoesFromItsFirstToItsLastPoint) {
  const Arrangement fields(cells_and_nodes(3, {11, 6, 5}), {2, 1}, true);
  const Box box{{1, 2, -1}, {4, 5, 6}};
  const ByteRange range = fields.range(0, 1, box);
  std::vector<std::byte> memory(fields.bytes());
  const SlotView view = fields.views(memory.data())[0][1];
  EXPECT_EQ(memory.data() + range.begin, view.at({1, 2, -1}));
  EXPECT_EQ(memory.data() + range.end, view.at({4, 4, 5}));
  EXPECT_EQ(fields.range(0, 1, Box{}).size(), 0u);
  std::int64_t points = 0;
  fields.each_row(range, [&](const RowPart& row) { points += intersect(row, box).points; });
  EXPECT_EQ(points, box.volume());
}

TEST(Arrangement, ACanaryOfAPartThatHasChangedIsNoticed) {
  const Arrangement fields(cells_and_nodes(2, {21, 13, 1}), {2, 1}, true);
  std::vector<std::byte> all(fields.bytes());
  fields.set_canaries({0, fields.bytes()}, all.data());
  std::size_t gaps = 0;
  for (const ByteRange& part : parts_of(fields, 60)) {
    std::vector<std::byte> here(all.begin() + static_cast<std::ptrdiff_t>(part.begin),
                                all.begin() + static_cast<std::ptrdiff_t>(part.end));
    EXPECT_TRUE(fields.canaries_alive(part, here.data()));
    std::size_t points = 0;
    fields.each_row(part, [&](const RowPart& row) { points += row.bytes.size(); });
    for (std::byte& b : here) b = static_cast<std::byte>(~static_cast<unsigned>(b));
    EXPECT_EQ(fields.canaries_alive(part, here.data()), points == part.size());
    gaps += points < part.size();
  }
  EXPECT_GT(gaps, 13u);
}

TEST(Arrangement, FewerBytesThanAPointHasAreRefused) {
  const Arrangement fields(cells_and_nodes(1, {37, 1, 1}), {2, 1}, true);
  const ByteRange first = fields.range(0, 0);
  EXPECT_THROW(fields.cut(first, 7), UsageError);
  EXPECT_EQ(fields.cut(first, 8).size(), 8u);
  EXPECT_EQ(fields.cut(first, 23).size(), 16u);
}

}  // namespace
}  // namespace haloscope
