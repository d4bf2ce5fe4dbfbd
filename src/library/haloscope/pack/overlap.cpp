#include "haloscope/pack/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace haloscope {
namespace {

/// The bytes that one side of a copy accesses.
struct Side {
  std::intptr_t at;
  std::int64_t bytes, rows, row, planes, plane;
};

Side read_by(const BlockCopy& c) {
  return {reinterpret_cast<std::intptr_t>(c.from), c.row_bytes, c.rows, c.from_row, c.planes, c.from_plane};
}

Side written_by(const BlockCopy& c) {
  return {reinterpret_cast<std::intptr_t>(c.to), c.row_bytes, c.rows, c.to_row, c.planes, c.to_plane};
}

std::intptr_t first_byte(const Side& s) {
  return s.at + std::min<std::int64_t>(0, s.row * (s.rows - 1)) + std::min<std::int64_t>(0, s.plane * (s.planes - 1));
}

std::intptr_t end_byte(const Side& s) {
  return s.at + s.bytes + std::max<std::int64_t>(0, s.row * (s.rows - 1)) +
         std::max<std::int64_t>(0, s.plane * (s.planes - 1));
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }  // b > 0

/// Returns true if rows of `a` and `b` overlap when the first row of `a` begins `apart` bytes after the first row of
/// `b`; rows of both are `row` bytes apart.
bool rows_meet(const Side& a, const Side& b, std::int64_t row, std::int64_t apart) {
  if (row == 0) return -a.bytes < apart && apart < b.bytes;
  std::int64_t before = b.rows - 1, after = a.rows - 1;  // a's row minus b's row: from -before to after
  if (row < 0) std::swap(before, after);
  const std::int64_t step = std::abs(row);
  const std::int64_t reaching =
      std::max(-before, floor_divide(-a.bytes - apart, step) + 1);  // the first that ends in b
  return reaching <= after && apart + reaching * step < b.bytes;
}

bool meet(const Side& a, const Side& b, bool same_plane_too) {
  if (first_byte(a) >= end_byte(b) || first_byte(b) >= end_byte(a)) return false;
  if (a.planes > 1 && b.planes > 1 && a.plane != b.plane) return true;
  if (a.rows > 1 && b.rows > 1 && a.row != b.row) return true;
  const std::int64_t plane = a.planes > 1 ? a.plane : b.plane, row = a.rows > 1 ? a.row : b.row;
  for (std::int64_t p = -(b.planes - 1); p < a.planes; ++p)  // plane of a minus plane of b
    if ((p != 0 || same_plane_too) && rows_meet(a, b, row, a.at - b.at + p * plane)) return true;
  return false;
}

bool clash(const BlockCopy& a, const BlockCopy& b, bool same_plane_too) {
  return meet(written_by(a), read_by(b), same_plane_too) || meet(read_by(a), written_by(b), same_plane_too) ||
         meet(written_by(a), written_by(b), same_plane_too);
}

}  // namespace

bool depend(const BlockCopy& a, const BlockCopy& b) { return clash(a, b, true); }
bool depend_across_planes(const BlockCopy& a, const BlockCopy& b) { return clash(a, b, false); }

}  // namespace haloscope
