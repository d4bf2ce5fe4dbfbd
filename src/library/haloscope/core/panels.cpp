#include "haloscope/core/panels.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

std::string name_of(const PanelEdge& edge) {
  return std::string("the ") + (edge.side == 0 ? "low " : "high ") + "xy"[edge.d] + " edge of panel " +
         std::to_string(edge.panel);
}

/// Returns the cells along an edge.
std::int64_t length_of(const Panels& panels, const PanelEdge& edge) {
  return panels.boxes[static_cast<std::size_t>(edge.panel)].extent(1 - edge.d);
}

/// Returns the way across a seam, from its first edge to its second one.
Crossing across(const Panels& panels, const PanelEdge& first, const PanelEdge& second, bool reversed) {
  const Box &from = panels.boxes[static_cast<std::size_t>(first.panel)],
            &to = panels.boxes[static_cast<std::size_t>(second.panel)];
  const auto end_of = [](const Box& box, int d, int side) { return 2 * (side == 0 ? box.lo[d] : box.hi[d]); };
  Crossing crossing;
  crossing.panel = second.panel;
  crossing.beyond[first.d] = 2 * first.side - 1;
  const auto add = [&](int d, int e, bool turns, std::int64_t here, std::int64_t there) {
    crossing.turn[d] = turns ? -(e + 1) : e + 1;
    crossing.shift[e] = turns ? there + here : there - here;
  };
  add(first.d, second.d, first.side == second.side, end_of(from, first.d, first.side),
      end_of(to, second.d, second.side));
  const int along = 1 - first.d, there = 1 - second.d;
  add(along, there, reversed, end_of(from, along, 0), end_of(to, there, reversed ? 1 : 0));
  return crossing;
}

/// Returns one crossing, then another one.
Crossing chained(const Crossing& first, const Crossing& second) {
  Crossing both;
  both.panel = second.panel;
  both.turn = haloscope::chained(first.turn, second.turn);
  const Index shift = turned(first.shift, second.turn);
  for (int d = 0; d < 3; ++d) both.shift[d] = shift[d] + second.shift[d];
  return both;
}

/// The ways across the seams of all edges.
class SeamTable {
 public:
  explicit SeamTable(const Panels& panels) : ways_(4 * panels.boxes.size()) {
    for (const Seam& seam : panels.seams) {
      at(seam.first) = across(panels, seam.first, seam.second, seam.reversed);
      at(seam.second) = across(panels, seam.second, seam.first, seam.reversed);
    }
  }
  std::optional<Crossing>& at(const PanelEdge& edge) {
    return ways_[static_cast<std::size_t>(4 * edge.panel + 2 * edge.d + edge.side)];
  }
  /// Returns the way beyond side `side` of dimension d, then beyond side `other_side` of the other one.
  std::optional<Crossing> around_corner(int panel, int d, int side, int other_side) {
    const auto first = at({panel, d, side});
    if (!first) return std::nullopt;
    const int turn = first->turn[1 - d];
    const auto second = at({first->panel, dimension_there(first->turn, 1 - d), turn > 0 ? other_side : 1 - other_side});
    if (!second) return std::nullopt;
    return chained(*first, *second);
  }

 private:
  std::vector<std::optional<Crossing>> ways_;
};

void check_edge(const Panels& panels, const PanelEdge& edge) {
  if (edge.panel < 0 || edge.panel >= static_cast<int>(panels.boxes.size()))
    throw UsageError("a seam names panel " + std::to_string(edge.panel) + ", and the grid has " +
                     std::to_string(panels.boxes.size()) + "; panels are counted from 0");
  if (edge.d < 0 || edge.d > 1 || edge.side < 0 || edge.side > 1)
    throw UsageError("a seam names side " + std::to_string(edge.side) + " of dimension " + std::to_string(edge.d) +
                     "; use dimension 0 (x) or 1 (y), and side 0 (low) or 1 (high)");
}

void check_boxes(const GridSpec& grid) {
  const std::vector<Box>& boxes = grid.panels.boxes;
  const Box all{{0, 0, 0}, grid.cells};
  for (std::size_t n = 0; n < boxes.size(); ++n) {
    if (boxes[n].empty()) throw UsageError("panel " + std::to_string(n) + " has no cells; leave it out");
    if (!all.contains(boxes[n]))
      throw UsageError("panel " + std::to_string(n) + ", from cell " + cell_text(boxes[n].lo, grid.dims) + " to " +
                       cell_text(boxes[n].hi, grid.dims) + ", lies outside the grid of " +
                       cell_text(grid.cells, grid.dims) + " cells; pass global cells, counted from 0");
    if (boxes[n].extent(2) != grid.cells[2])
      throw UsageError("panel " + std::to_string(n) + " does not reach from end to end of z; seams are in x and y");
    for (std::size_t other = 0; other < n; ++other)
      if (!intersect(boxes[n], boxes[other]).empty())
        throw UsageError("panels " + std::to_string(other) + " and " + std::to_string(n) +
                         " overlap; give each cell to one panel");
  }
}

}  // namespace

Turn inverse(const Turn& turn) {
  Turn back{};
  for (int d = 0; d < 3; ++d) back[dimension_there(turn, d)] = turn[d] < 0 ? -(d + 1) : d + 1;
  return back;
}

Turn chained(const Turn& first, const Turn& second) {
  Turn both{};
  for (int d = 0; d < 3; ++d) {
    const int then = second[dimension_there(first, d)];
    both[d] = first[d] < 0 ? -then : then;
  }
  return both;
}

Index turned(const Index& point, const Turn& turn) {
  Index there{};
  for (int d = 0; d < 3; ++d) there[dimension_there(turn, d)] = turn[d] < 0 ? -point[d] : point[d];
  return there;
}

Box turned(const Box& box, const Turn& turn) {
  Box there;
  for (int d = 0; d < 3; ++d) {
    const int e = dimension_there(turn, d);
    there.lo[e] = turn[d] < 0 ? 1 - box.hi[d] : box.lo[d];
    there.hi[e] = turn[d] < 0 ? 1 - box.lo[d] : box.hi[d];
  }
  return there;
}

int half_cells(const Quantity& quantity, int d) {
  return staggered(quantity.centring, d) != 0 ? 0 : quantity.on_high_face[d] ? 2 : 1;
}

namespace {

/// Returns the shift of turned points.
Index shift_of_points(const Crossing& crossing, const Quantity& here, const Quantity& there) {
  Index shift{};
  for (int d = 0; d < 3; ++d) {
    const int e = dimension_there(crossing.turn, d), sign = crossing.turn[d] < 0 ? -1 : 1;
    shift[e] = (crossing.shift[e] + sign * half_cells(here, d) - half_cells(there, e)) / 2;
  }
  return shift;
}

}  // namespace

Box crossed(const Crossing& crossing, const Quantity& here, const Quantity& there, const Box& points) {
  return shifted(turned(points, crossing.turn), shift_of_points(crossing, here, there));
}

Box crossed_back(const Crossing& crossing, const Quantity& here, const Quantity& there, const Box& points) {
  Index back = shift_of_points(crossing, here, there);
  for (std::int64_t& by : back) by = -by;
  return turned(shifted(points, back), inverse(crossing.turn));
}

std::optional<Crossing> find_seam(const Panels& panels, const PanelEdge& edge) {
  for (const Seam& seam : panels.seams) {
    if (seam.first == edge) return across(panels, seam.first, seam.second, seam.reversed);
    if (seam.second == edge) return across(panels, seam.second, seam.first, seam.reversed);
  }
  return std::nullopt;
}

std::vector<std::vector<Crossing>> crossings_of(const Panels& panels) {
  SeamTable seams(panels);
  std::vector<std::vector<Crossing>> all(panels.boxes.size());
  for (int panel = 0; panel < static_cast<int>(all.size()); ++panel) {
    std::vector<Crossing>& ways = all[static_cast<std::size_t>(panel)];
    for (const int side : {0, 1}) {
      for (const int d : {0, 1})
        if (const auto one = seams.at({panel, d, side})) ways.push_back(*one);
      for (const int other : {0, 1}) {
        auto one = seams.around_corner(panel, 0, side, other);
        if (!one || one != seams.around_corner(panel, 1, other, side)) continue;
        one->beyond = {2 * side - 1, 2 * other - 1};
        ways.push_back(*one);
      }
    }
  }
  return all;
}

std::vector<Turn> turns_of(const GridSpec& grid) {
  if (grid.fold != Fold::none) return {{-1, -2, 3}};
  std::set<Turn> turns;
  for (const std::vector<Crossing>& ways : crossings_of(grid.panels))
    for (const Crossing& crossing : ways) turns.insert(crossing.turn);
  turns.erase(not_turned);
  return {turns.begin(), turns.end()};
}

Box points_of(const Box& panel, const Quantity& quantity, int dims) {
  Box points = panel;
  for (int d = 0; d < dims; ++d) points.hi[d] += staggered(quantity.centring, d);
  return points;
}

Box beyond_panel(const Box& points_of_panel, const Crossing& crossing, const Box& box) {
  Box zone = box;
  for (const int d : {0, 1}) {
    const std::int64_t lo = points_of_panel.lo[d], hi = points_of_panel.hi[d];
    if (crossing.beyond[d] >= 0) zone.lo[d] = std::max(zone.lo[d], crossing.beyond[d] > 0 ? hi : lo);
    if (crossing.beyond[d] <= 0) zone.hi[d] = std::min(zone.hi[d], crossing.beyond[d] < 0 ? lo : hi);
  }
  return zone;
}

std::string panels_text(const Panels& panels) {
  std::string text;
  const auto corner = [](const Index& cell) { return std::to_string(cell[0]) + ',' + std::to_string(cell[1]); };
  const auto end = [](const PanelEdge& edge) {
    return std::to_string(edge.panel) + "xy"[edge.d] + std::to_string(edge.side);
  };
  for (const Box& box : panels.boxes) text += corner(box.lo) + '-' + corner(box.hi) + ' ';
  for (const Seam& seam : panels.seams) text += end(seam.first) + (seam.reversed ? '/' : '-') + end(seam.second) + ' ';
  return text;
}

void check_panels(const GridSpec& grid) {
  const Panels& panels = grid.panels;
  if (panels.boxes.empty() && panels.seams.empty()) return;
  if (grid.dims < 2 || grid.periodic[0] || grid.periodic[1] || grid.fold != Fold::none)
    throw UsageError(
        "a grid of panels meets itself at seams alone; make it 2D or 3D, not periodic in x and y, without a fold");
  check_boxes(grid);
  std::vector<PanelEdge> joined;
  for (const Seam& seam : panels.seams) {
    for (const PanelEdge& edge : {seam.first, seam.second}) {
      check_edge(panels, edge);
      if (std::find(joined.begin(), joined.end(), edge) != joined.end())
        throw UsageError(name_of(edge) + " has two seams, or one with itself; an edge meets one other edge");
      joined.push_back(edge);
    }
    if (const auto here = length_of(panels, seam.first), there = length_of(panels, seam.second); here != there)
      throw UsageError(name_of(seam.first) + " has " + std::to_string(here) + " cells and " + name_of(seam.second) +
                       ", which it meets, has " + std::to_string(there) + "; cut panels so that whole edges meet");
  }
}

void require_apart_panels(const GridSpec& grid, const Quantity& quantity, const char* call) {
  const std::vector<Box>& boxes = grid.panels.boxes;
  for (std::size_t n = 0; n < boxes.size(); ++n)
    for (std::size_t other = 0; other < n; ++other)
      if (!intersect(points_of(boxes[n], quantity, 2), points_of(boxes[other], quantity, 2)).empty())
        throw UsageError("panels " + std::to_string(other) + " and " + std::to_string(n) + " touch, so that field '" +
                         quantity.name + "' has several points at one place of the grid, and " + call +
                         " one; leave a cell between panels in global coordinates");
}

// ---- grids ----------------------------------------------------------------------------------------------------------

Panels cubed_sphere(std::int64_t edge, std::int64_t levels) {
  if (edge < 1 || levels < 1 || double(edge) > bound.cells.most || double(levels) > bound.cells.most)
    throw UsageError("a cubed sphere of " + std::to_string(edge) + " cells an edge and " + std::to_string(levels) +
                     " levels is not possible; use at least 1, and 10^15 at most");
  Panels sphere;
  for (int face = 0; face < 6; ++face) {
    sphere.boxes.push_back({{face * edge, 0, 0}, {(face + 1) * edge, edge, levels}});
    const int d = face % 2;  // of the edges that meet without a turn
    sphere.seams.push_back({{face, d, 1}, {(face + 1) % 6, d, 0}, false});
    sphere.seams.push_back({{face, 1 - d, 1}, {(face + 2) % 6, d, 0}, true});
  }
  return sphere;
}

int GridSpec::panel_at(const Index& cell) const {
  if (panels.boxes.empty()) return 0;
  for (int number = 0; number < static_cast<int>(panels.boxes.size()); ++number)
    if (panels.boxes[static_cast<std::size_t>(number)].contains(cell)) return number;
  return -1;
}

Box GridSpec::panel(int number) const {
  if (panels.boxes.empty() || number < 0) return {{0, 0, 0}, cells};
  return panels.boxes[static_cast<std::size_t>(number)];
}

bool GridSpec::meets_itself(int d, int side) const {
  if (fold != Fold::none) return d == 1 && side == 1;
  return std::any_of(panels.seams.begin(), panels.seams.end(), [&](const Seam& seam) {
    return (seam.first.d == d && seam.first.side == side) || (seam.second.d == d && seam.second.side == side);
  });
}

}  // namespace haloscope
