// Grids of panels: cubed spheres, and plans of random panels and seams against walks from cell to cell.
#include "haloscope/core/panels.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>

#include "haloscope/error.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using namespace test;

// ---- walks ----------------------------------------------------------------------------------------------------------

/// A cell of a panel, and the directions there of x, y, z of the panel that the walk began in.
struct Cell {
  int panel = 0;
  Index at{0, 0, 0};
  std::array<int, 3> axis{0, 1, 2}, sign{1, 1, 1};
  bool operator==(const Cell&) const = default;
};

/// Returns the cells along an edge, the low end first.
std::vector<Index> cells_along(const Panels& panels, const PanelEdge& edge, std::int64_t z) {
  const Box& box = panels.boxes[static_cast<std::size_t>(edge.panel)];
  std::vector<Index> cells;
  for (std::int64_t n = 0; n < box.extent(1 - edge.d); ++n) {
    Index cell{0, 0, z};
    cell[edge.d] = edge.side == 0 ? box.lo[edge.d] : box.hi[edge.d] - 1;
    cell[1 - edge.d] = box.lo[1 - edge.d] + n;
    cells.push_back(cell);
  }
  return cells;
}

/// Returns the cell next to a cell in direction `sign` of dimension d of the first panel.
std::optional<Cell> next_cell(const GridSpec& grid, Cell cell, int d, int sign) {
  const int e = cell.axis[d], step = sign * cell.sign[d];
  Index next = cell.at;
  next[e] += step;
  if (grid.panels.boxes[static_cast<std::size_t>(cell.panel)].contains(next)) {
    cell.at = next;
    return cell;
  }
  for (const Seam& seam : grid.panels.seams)
    for (const bool back : {false, true}) {
      const PanelEdge &here = back ? seam.second : seam.first, &there = back ? seam.first : seam.second;
      if (here.panel != cell.panel || here.d != e || here.side != (step > 0)) continue;
      const auto own = cells_along(grid.panels, here, cell.at[2]), others = cells_along(grid.panels, there, cell.at[2]);
      const auto n = static_cast<std::size_t>(std::find(own.begin(), own.end(), cell.at) - own.begin());
      Cell moved{there.panel, others[seam.reversed ? others.size() - 1 - n : n], cell.axis, cell.sign};
      for (int f = 0; f < 2; ++f) {  // directions of the first panel
        const bool across = cell.axis[f] == e;
        moved.axis[f] = across ? there.d : 1 - there.d;
        const int inwards = there.side == 0 ? 1 : -1;  // where the walk went outwards
        moved.sign[f] = across ? cell.sign[f] * step * inwards : cell.sign[f] * (seam.reversed ? -1 : 1);
      }
      return moved;
    }
  return std::nullopt;
}

std::optional<Cell> walk(const GridSpec& grid, std::optional<Cell> cell, int d, std::int64_t steps) {
  for (; steps != 0 && cell; steps += steps > 0 ? -1 : 1) cell = next_cell(grid, *cell, d, steps > 0 ? 1 : -1);
  return cell;
}

/// A point of a field, in global coordinates, and the sign of its value in another panel.
struct Point {
  int field = 0;
  int panel = 0;
  Index at{0, 0, 0};
  int sign = 1;
};

/// Returns the point that a point beyond its panel is a copy of, if there is one.
std::optional<Point> original(const GridSpec& grid, const std::vector<Quantity>& fields, const Point& point) {
  const Quantity& field = fields[static_cast<std::size_t>(point.field)];
  const Box panel = grid.panel(point.panel), held = points_of(panel, field, grid.dims);
  Index inside, offset{};  // the cell of the panel that is next to the point; the point in its cell, in half cells
  std::array<std::int64_t, 2> steps{};
  for (int d = 0; d < 3; ++d) {
    const std::int64_t position = 2 * point.at[d] + half_cells(field, d);
    const bool below = point.at[d] < held.lo[d], above = point.at[d] >= held.hi[d];
    std::int64_t cell = position >= 0 ? position / 2 : -((1 - position) / 2);
    if (position % 2 == 0 && (below || (!above && cell >= panel.hi[d]))) --cell;
    offset[d] = position - 2 * cell;
    inside[d] = d == 2 ? cell : std::clamp(cell, panel.lo[d], panel.hi[d] - 1);
    if (d < 2) steps[d] = cell - inside[d];
  }
  const Cell first{point.panel, inside};
  const auto x = walk(grid, walk(grid, first, 0, steps[0]), 1, steps[1]);
  const auto y = walk(grid, walk(grid, first, 1, steps[1]), 0, steps[0]);
  if (!x || x != y) return std::nullopt;
  Point there{point.field, x->panel, {}, 1};
  if (field.vector != 0) {
    there.sign = x->sign[field.along];
    for (int q = 0; q < static_cast<int>(fields.size()); ++q)
      if (fields[q].vector == field.vector && fields[q].along == x->axis[field.along]) there.field = q;
  }
  const Quantity& other = fields[static_cast<std::size_t>(there.field)];
  for (int d = 0; d < 3; ++d) {
    const int e = x->axis[d];
    const std::int64_t in_cell = x->sign[d] > 0 ? offset[d] : 2 - offset[d];
    const std::int64_t twice = 2 * x->at[e] + in_cell - half_cells(other, e);
    EXPECT_EQ(twice % 2, 0);
    there.at[e] = twice / 2;
  }
  if (!points_of(grid.panel(there.panel), other, grid.dims).contains(there.at)) return std::nullopt;
  return there;
}

/// Returns the value of a point, or of the point that it is a copy of; none: no exchange fills it.
std::optional<double> value_at(const GridSpec& grid, const std::vector<Quantity>& fields, Point point) {
  const std::int64_t levels = grid.cells[2];
  if (grid.periodic[2]) point.at[2] = ((point.at[2] % levels) + levels) % levels;
  const Box held = points_of(grid.panel(point.panel), fields[static_cast<std::size_t>(point.field)], grid.dims);
  if (point.at[2] < held.lo[2] || point.at[2] >= held.hi[2]) return std::nullopt;
  if (!held.contains(point.at)) {
    const auto from = original(grid, fields, point);
    if (!from) return std::nullopt;
    point = *from;
  }
  const double number = 1.0 + static_cast<double>(point.at[0]) + 100.0 * static_cast<double>(point.at[1]) +
                        1e4 * static_cast<double>(point.at[2]) + 1e6 * point.field + 1e7 * point.panel;
  return point.sign * number;
}

// ---- random grids ---------------------------------------------------------------------------------------------------

/// Panels in a row, next to each other or apart, some of whose edges of equal lengths meet.
GridSpec random_panels(std::mt19937& random) {
  GridSpec grid{.dims = pick(random, 2, 3), .cells = {0, 0, 1}, .periodic = {}};
  if (grid.dims == 3) grid.cells[2] = pick(random, 2, 4);
  grid.periodic[2] = grid.dims == 3 && pick(random, 0, 1) != 0;
  std::vector<PanelEdge> edges;
  for (int n = 0, panels = pick(random, 1, 4); n < panels; ++n) {
    const std::int64_t first = grid.cells[0] + (n > 0 ? pick(random, 0, 1) : 0);
    const Index end{first + pick(random, 4, 5), pick(random, 4, 5), grid.cells[2]};
    grid.panels.boxes.push_back({{first, 0, 0}, end});
    grid.cells = {end[0], std::max(grid.cells[1], end[1]), end[2]};
    for (const int d : {0, 1})
      for (const int side : {0, 1}) edges.push_back({n, d, side});
  }
  std::shuffle(edges.begin(), edges.end(), random);
  const auto length = [&](const PanelEdge& edge) { return grid.panel(edge.panel).extent(1 - edge.d); };
  for (; edges.size() > 1; edges.pop_back())
    for (std::size_t n = 0; n + 1 < edges.size(); ++n)
      if (length(edges[n]) == length(edges.back()) && pick(random, 0, 4) != 0) {
        grid.panels.seams.push_back({edges[n], edges.back(), pick(random, 0, 1) != 0});
        edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(n));
        break;
      }
  return grid;
}

/// Deals blocks of panels to ranks at random.
Layout random_deal_of_panels(std::mt19937& random, const GridSpec& grid, int ranks) {
  std::vector<std::int64_t> rows{0, 4, grid.cells[1]}, levels{0, grid.cells[2]};
  if (pick(random, 0, 1) != 0) rows.push_back(2);
  if (grid.dims == 3 && pick(random, 0, 1) != 0) levels.push_back(1);
  for (auto* cuts : {&rows, &levels}) {
    std::sort(cuts->begin(), cuts->end());
    cuts->erase(std::unique(cuts->begin(), cuts->end()), cuts->end());
  }
  std::vector<std::vector<Box>> owned(static_cast<std::size_t>(ranks));
  for (const Box& panel : grid.panels.boxes) {
    std::vector<std::int64_t> columns{panel.lo[0], panel.hi[0]};
    if (pick(random, 0, 1) != 0) columns.insert(columns.begin() + 1, panel.lo[0] + pick(random, 1, 3));
    for (std::size_t z = 1; z < levels.size(); ++z)
      for (std::size_t y = 1; y < rows.size(); ++y)
        for (std::size_t x = 1; x < columns.size(); ++x)
          if (const Box block =
                  intersect(panel, {{columns[x - 1], rows[y - 1], levels[z - 1]}, {columns[x], rows[y], levels[z]}});
              !block.empty())
            owned[static_cast<std::size_t>(pick(random, 0, ranks - 1))].push_back(block);
  }
  GridSpec plain = grid;
  plain.panels = {};
  return Layout::of_blocks(plain, owned, true).joined(grid.panels);
}

/// Fields of cells and nodes, and vectors at centres of cells, on faces, and on high faces in arrays of cells.
ExchangeSpec random_winds(std::mt19937& random, const GridSpec& grid) {
  ExchangeSpec spec;
  spec.quantities = {{"T"}, {"F"}, {"U"}, {"V"}, {"W"}};
  spec.quantities[1].centring = Centring::node;
  const int kind = pick(random, 0, 2);
  for (int d = 0; d < grid.dims; ++d) {
    Quantity& component = spec.quantities[static_cast<std::size_t>(2 + d)];
    component.vector = 1;
    component.along = d;
    if (kind == 1) component.centring = d == 0 ? Centring::face_x : d == 1 ? Centring::face_y : Centring::face_z;
    component.on_high_face[d] = kind == 2;
  }
  for (std::size_t q = 0; q < spec.quantities.size(); ++q) {
    ExchangeSpec::Sides& sides = spec.widths.emplace_back();
    for (int d = 0; d < grid.dims; ++d) {
      sides.low[d] = pick(random, 0, 2);
      sides.high[d] = pick(random, 0, 2);
    }
  }
  spec.beyond = true;
  spec.corners = pick(random, 0, 3) != 0;
  spec.merge = static_cast<Merge>(pick(random, 0, 4));
  return spec;
}

/// Returns the first case among some random ones in which a point has a wrong value.
TEST(Panels, PointsBeyondSeamsHaveTheValuesThatAWalkLeadsTo) {
  std::mt19937 random(71);
  std::int64_t filled = 0, left_alone = 0, turned_points = 0;
  for (int n = 0; n < 300; ++n) {
    const GridSpec grid = random_panels(random);
    const Layout layout = random_deal_of_panels(random, grid, pick(random, 1, 6));
    const ExchangeSpec spec = random_winds(random, grid);
    SimulatedPlans plans(layout, spec);
    const auto for_points = [&](const auto& visit) {
      for (int block = 0; block < layout.by_block().size(); ++block) {
        if (!layout.by_block().owns_cells(block)) continue;
        const int rank = layout.rank_of_block(block), first = (block - layout.first_block(rank)) * 5;
        const Index origin = layout.by_block().owned(block).lo;
        for (int q = 0; q < 5; ++q) {
          const Box owned = plans.plan(rank).owned(first + q);
          each_point(plans.plan(rank).allocated(first + q), [&](const Index& p) {
            int outside = 0;
            for (int d = 0; d < 3; ++d) outside += p[d] < owned.lo[d] || p[d] >= owned.hi[d];
            visit(plans.at(rank, first + q, p),
                  Point{q, grid.panel_at(origin), {p[0] + origin[0], p[1] + origin[1], p[2] + origin[2]}}, outside);
          });
        }
      }
    };
    for_points([&](double& value, const Point& point, int outside) {
      value = outside > 0 ? -1e9 : value_at(grid, spec.quantities, point).value();
    });
    plans.run();
    for_points([&](double value, const Point& point, int outside) {
      if (outside > 1 && !spec.corners) return;
      const auto right = value_at(grid, spec.quantities, point);
      ASSERT_EQ(value, right.value_or(-1e9))
          << "case " << n << ", " << spec.quantities[point.field].name << " at " << point.at[0] << ", " << point.at[1]
          << ", " << point.at[2] << "; " << panels_text(grid.panels);
      (right ? filled : left_alone) += outside > 0;
      turned_points += right && *right < 0;
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(filled, 50000);
  EXPECT_GT(left_alone, 10000);
  EXPECT_GT(turned_points, 2000);
}

/// Returns the same blocks on one panel that meets itself where the grid is periodic in x and y.
Layout on_one_panel(const Layout& torus) {
  std::vector<std::vector<Box>> owned(static_cast<std::size_t>(torus.size()));
  for (int block = 0; block < torus.by_block().size(); ++block)
    if (torus.by_block().owns_cells(block))
      owned[static_cast<std::size_t>(torus.rank_of_block(block))].push_back(torus.by_block().owned(block));
  GridSpec plain = torus.grid();
  plain.periodic = {};
  const Panels panel{{{{0, 0, 0}, plain.cells}}, {{{0, 0, 0}, {0, 0, 1}, false}, {{0, 1, 1}, {0, 1, 0}, false}}};
  return Layout::of_blocks(plain, owned, true).joined(panel);
}

TEST(Panels, ThatMeetThemselvesAsATorusFillWhatAPeriodicGridDoes) {
  std::mt19937 random(73);
  int holes = 0;
  for (int n = 0; n < 100; ++n) {
    const GridSpec grid{2, {pick(random, 5, 8), pick(random, 5, 8), 1}, {true, true}};
    const Layout torus = random_deal(random, grid, pick(random, 1, 4), 16, pick(random, 0, 3) != 0);
    const Layout panel = on_one_panel(torus);
    EXPECT_EQ(panel.has_holes(), torus.has_holes());
    holes += torus.has_holes();
    ExchangeSpec spec;
    spec.pattern = Pattern::direct;
    spec.corners = pick(random, 0, 3) != 0;
    spec.low = spec.high = {1, 1, 0};
    SimulatedPlans one(torus, spec), other(panel, spec);
    const auto each = [&](const auto& visit) {
      for (int rank = 0; rank < torus.size(); ++rank)
        for (int q = 0; q < fields_in(one.plan(rank).spec); ++q)
          each_point(one.plan(rank).allocated(q), [&](const Index& p) { visit(rank, q, p); });
    };
    double number = 0;
    each([&](int rank, int q, const Index& p) { one.at(rank, q, p) = other.at(rank, q, p) = ++number; });
    one.run();
    other.run();
    each([&](int rank, int q, const Index& p) {
      EXPECT_EQ(one.at(rank, q, p), other.at(rank, q, p))
          << n << ": " << rank << " " << q << ", " << p[0] << " " << p[1];
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(holes, 20);
}

TEST(Panels, ApartLeaveNoHoles) {
  const std::vector<Box> boxes{{{0, 0, 0}, {4, 4, 1}}, {{5, 0, 0}, {9, 4, 1}}};
  const Layout apart({2, {9, 4, 1}, {}}, boxes, true);
  EXPECT_TRUE(apart.has_holes());
  EXPECT_FALSE(apart.joined({boxes, {{{0, 0, 1}, {1, 0, 0}, false}}}).has_holes());
  EXPECT_TRUE(apart.joined({{{{0, 0, 0}, {9, 4, 1}}}, {}}).has_holes());
}

// ---- cubed spheres --------------------------------------------------------------------------------------------------

TEST(Panels, OfACubedSphereMeetAtEightCornersOfThreeFaces) {
  const Panels sphere = cubed_sphere(4);
  ASSERT_EQ(sphere.boxes.size(), 6u);
  ASSERT_EQ(sphere.seams.size(), 12u);
  std::array<int, 24> corner{};  // of each face, by x and y: the first corner that is the same one
  std::iota(corner.begin(), corner.end(), 0);
  const auto number = [](const PanelEdge& edge, int end) {
    const int x = edge.d == 0 ? edge.side : end, y = edge.d == 0 ? end : edge.side;
    return static_cast<std::size_t>(4 * edge.panel + 2 * y + x);
  };
  for (const Seam& seam : sphere.seams)
    for (const int end : {0, 1}) {
      const int one = corner[number(seam.first, end)],
                other = corner[number(seam.second, seam.reversed ? 1 - end : end)];
      for (int& which : corner)
        if (which == other) which = one;
    }
  std::map<int, int> faces;
  for (const int which : corner) ++faces[which];
  EXPECT_EQ(faces.size(), 8u);
  for (const auto& [which, count] : faces) EXPECT_EQ(count, 3) << which;
  for (const Turn& turn : turns_of({.dims = 2, .cells = {24, 4, 1}, .panels = sphere})) {
    const bool swapped = dimension_there(turn, 0) == 1, opposite = (turn[0] < 0) != (turn[1] < 0);
    EXPECT_EQ(swapped, opposite) << "a face is seen from inside";
  }
}

Layout sphere_of(const Panels& panels) {
  std::vector<Box> owned;
  for (int face = 0; face < 6; ++face) owned.push_back({{4 * face, 0, 0}, {4 * face + 4, 4, 1}});
  return Layout({2, {24, 4, 1}, {}}, owned).joined(panels);
}

TEST(Panels, OfACubedSphereSendEachOtherFaceOneMessage) {
  ExchangeSpec spec;
  spec.corners = true;
  const Layout sphere = sphere_of(cubed_sphere(4));
  for (int rank = 0; rank < 6; ++rank) {
    const Plan plan = make_plan(sphere, rank, spec);
    EXPECT_EQ(plan.messages_out(), 4);
    EXPECT_EQ(plan.bytes_out(), 4 * 4 * 8);
    for (const int d : {0, 1})
      for (const int side : {0, 1}) EXPECT_TRUE(sphere.has_neighbour(rank, d, side));
    EXPECT_EQ(sphere.neighbour(rank, {1, 0, 0}), -1);  // faces are neighbours at seams only
  }
}

// ---- refusals -------------------------------------------------------------------------------------------------------

std::string refusal(const std::function<void(Panels&)>& change) {
  Panels panels = cubed_sphere(4);
  change(panels);
  return error_of([&] { sphere_of(panels); });
}

TEST(Panels, ThatDoNotFitAreRefusedWithTheReason) {
  EXPECT_PART(refusal([](Panels& p) { p.boxes[1].lo[0] = 3; }), "panels 0 and 1 overlap");
  EXPECT_PART(refusal([](Panels& p) { p.boxes[5].hi[0] = 25; }),
              "panel 5, from cell (20, 0) to (25, 4), lies outside the grid of (24, 4)");
  EXPECT_PART(refusal([](Panels& p) { p.boxes.pop_back(); }), "a seam names panel 5, and the grid has 5");
  EXPECT_PART(refusal([](Panels& p) { p.seams[0].first.d = 2; }), "use dimension 0 (x) or 1 (y)");
  EXPECT_PART(refusal([](Panels& p) { p.seams[0].second = p.seams[0].first; }),
              "the high x edge of panel 0 has two seams, or one with itself");
  EXPECT_PART(refusal([](Panels& p) { p.boxes[0].hi[1] = 3; }), "has 3 cells and");
  EXPECT_PART(refusal([](Panels& p) { p.seams.clear(), p.boxes.pop_back(); }),
              "the block that begins at cell (20, 0) lies in no panel");
  EXPECT_PART(refusal([](Panels& p) { p.seams.clear(), p.boxes[0].hi[0] = 3; }), "reaches beyond panel 0");
  EXPECT_PART(error_of([] {
                Layout({2, {24, 4, 1}, {true, false}}, {6, 1, 1}).joined(cubed_sphere(4));
              }),
              "not periodic in x and y");
  EXPECT_PART(error_of([] { cubed_sphere(0); }), "use at least 1");
  EXPECT_PART(error_of([] { cubed_sphere(std::int64_t{1} << 62); }), "10^15 at most");
}

TEST(Panels, RefuseFieldsThatAreOthersAcrossASeam) {
  const Layout sphere = sphere_of(cubed_sphere(4));
  const auto refused = [&](std::vector<Quantity> fields, int layers = 1) {
    ExchangeSpec spec;
    spec.quantities = std::move(fields);
    spec.low = spec.high = {layers, layers, 0};
    spec.beyond = true;
    return error_of([&] { make_plan(sphere, 0, spec); });
  };
  Quantity u{"u"}, v{"v"};
  u.vector = v.vector = 1;
  v.along = 1;
  EXPECT_PART(refused({u}), "field 'u' is component x of a vector, which is component y across a seam");
  v.centring = Centring::face_z;
  EXPECT_PART(refused({u, v}), "field 'u' has values on faces in z, and across a seam 'v' has none on these faces");
  u.centring = Centring::face_x;
  EXPECT_PART(refused({u, v}), "field 'u' has values on faces in x, and across a seam 'v' has none on these faces");
  v.centring = Centring::face_y;
  v.element_bytes = 4;
  EXPECT_PART(refused({u, v}), "have points of different types");
  u.element_bytes = v.element_bytes = 16;
  EXPECT_PART(refused({u, v}), "only reals of 4 or 8 bytes can be negated");
  u.element_bytes = 8, u.vector = 0;
  EXPECT_PART(refused({u}), "make it a component of a vector");
  EXPECT_PART(refused({Quantity{}}, 5), "has 5 layers, and the smallest panel has 4 cells");
  EXPECT_PART(refused({v, v}), "fields 'v' and 'v' are both component y of one vector");
  ExchangeSpec sum;
  sum.motion = Motion::accumulate;
  EXPECT_PART(error_of([&] { make_plan(sphere, 0, sum); }), "accumulations do not move points across a seam");
}

}  // namespace
}  // namespace haloscope
