// Panels of a grid, and the ways of points across the seams between them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"

namespace haloscope {

inline constexpr Turn not_turned{1, 2, 3};

/// Returns the dimension at the source that dimension d of a turn is.
inline int dimension_there(const Turn& turn, int d) { return (turn[d] < 0 ? -turn[d] : turn[d]) - 1; }
/// Returns the turn back.
Turn inverse(const Turn& turn);
/// Returns a turn, and then another one.
Turn chained(const Turn& first, const Turn& second);
/// Returns a point, turned about the origin.
Index turned(const Index& point, const Turn& turn);
/// Returns the box of turned points.
Box turned(const Box& box, const Turn& turn);

/// The way of positions, in half cells of global coordinates, to a panel across one seam, or across two at a corner.
struct Crossing {
  int panel = 0;  ///< the one that it leads to
  Turn turn = not_turned;
  Index shift{0, 0, 0};         ///< of turned positions
  std::array<int, 2> beyond{};  ///< side of the first panel that the positions lie beyond, per dimension: -1, 0, +1
  bool operator==(const Crossing& other) const {  // leads to the same place
    return panel == other.panel && turn == other.turn && shift == other.shift;
  }
};

/// Returns the way across the seam at an edge; none: the edge has no seam.
std::optional<Crossing> find_seam(const Panels& panels, const PanelEdge& edge);
/// Returns the ways beyond edges of each panel, and beyond its corners, where both orders of two seams lead to one
/// place.
std::vector<std::vector<Crossing>> crossings_of(const Panels& panels);
/// Returns the turns of the fold or of the seams of a grid, without those that turn nothing.
std::vector<Turn> turns_of(const GridSpec& grid);

/// Returns the points of a field that lie beyond a panel as a crossing requires, among the points of a box.
Box beyond_panel(const Box& points_of_panel, const Crossing& crossing, const Box& box);
/// Returns the points of a field that a panel holds.
Box points_of(const Box& panel, const Quantity& quantity, int dims);

/// Returns the distance of a field's points from the low faces of their cells, in half cells.
int half_cells(const Quantity& quantity, int d);
/// Returns the points of a field at the end of a crossing, for points of a field at its beginning.
Box crossed(const Crossing& crossing, const Quantity& here, const Quantity& there, const Box& points);
/// Returns the points at the beginning.
Box crossed_back(const Crossing& crossing, const Quantity& here, const Quantity& there, const Box& points);

/// Returns panels and seams as text: "0,0-8,8 8,0-16,8 0x1-1x0 ", with a slash for reversed seams.
std::string panels_text(const Panels& panels);
/// @throws UsageError for panels and seams that Layout::joined() refuses.
void check_panels(const GridSpec& grid);
/// @throws UsageError where two panels hold points of a field with the same global coordinates. @param call  for the
///         error text: "files hold".
void require_apart_panels(const GridSpec& grid, const Quantity& quantity, const char* call);

}  // namespace haloscope
