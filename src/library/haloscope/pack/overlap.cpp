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

/// Returns the side with each plane as one row, gaps included.
Side whole_planes(Side s) {
  const std::int64_t reach = s.row * (s.rows - 1);
  return {s.at + std::min<std::int64_t>(0, reach), s.bytes + std::abs(reach), 1, 0, s.planes, s.plane};
}

bool interleave(const Side& a, const Side& b) { return first_byte(a) < end_byte(b) && first_byte(b) < end_byte(a); }

/// The planes and rows of two sides that are compared.
enum class Pairs { all, different_planes, earlier_planes, earlier_rows };

/// Returns true if a plane is compared with the one `distance` planes before it.
bool are_compared(Pairs pairs, std::int64_t distance) {
  if (pairs == Pairs::all) return true;
  if (pairs == Pairs::different_planes) return distance != 0;
  return pairs == Pairs::earlier_planes ? distance > 0 : distance == 0;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }  // b > 0

/// Returns true if rows of `a` and `b` overlap when the first row of `a` begins `apart` bytes after the first row of
/// `b`; rows of both are `row` bytes apart.
/// @param first  least distance of rows that are compared, a's row minus b's row.
bool rows_meet(const Side& a, const Side& b, std::int64_t row, std::int64_t apart, std::int64_t first) {
  if (row == 0) return -a.bytes < apart && apart < b.bytes;
  std::int64_t last = a.rows - 1;
  if (row < 0) first = -std::exchange(last, -first);
  const std::int64_t step = std::abs(row);
  const std::int64_t reaching = std::max(first, floor_divide(-a.bytes - apart, step) + 1);  // the first that ends in b
  return reaching <= last && apart + reaching * step < b.bytes;
}

bool meet(Side a, Side b, Pairs pairs) {
  if (pairs == Pairs::earlier_planes) a = whole_planes(a), b = whole_planes(b);
  if (!interleave(a, b)) return false;
  if (a.planes > 1 && b.planes > 1 && a.plane != b.plane) return true;
  if (a.rows > 1 && b.rows > 1 && a.row != b.row) return true;
  const std::int64_t plane = a.planes > 1 ? a.plane : b.plane, row = a.rows > 1 ? a.row : b.row;
  const std::int64_t first_row = pairs == Pairs::earlier_rows ? 1 : 1 - b.rows;
  for (std::int64_t p = -(b.planes - 1); p < a.planes; ++p)  // plane of a minus plane of b
    if (are_compared(pairs, p) && rows_meet(a, b, row, a.at - b.at + p * plane, first_row)) return true;
  return false;
}

bool clash(const BlockCopy& a, const BlockCopy& b, Pairs pairs) {
  return meet(written_by(a), read_by(b), pairs) || meet(read_by(a), written_by(b), pairs) ||
         meet(written_by(a), written_by(b), pairs);
}

}  // namespace

Reach read_reach(const BlockCopy& copy) { return {first_byte(read_by(copy)), end_byte(read_by(copy))}; }
Reach written_reach(const BlockCopy& copy) { return {first_byte(written_by(copy)), end_byte(written_by(copy))}; }

bool depend(const BlockCopy& a, const BlockCopy& b) { return clash(a, b, Pairs::all); }
bool depend_across_planes(const BlockCopy& a, const BlockCopy& b) { return clash(a, b, Pairs::different_planes); }
bool depend_on_earlier_planes(const BlockCopy& a, const BlockCopy& b) { return clash(a, b, Pairs::earlier_planes); }
bool depend_on_earlier_rows(const BlockCopy& a, const BlockCopy& b) {
  return a.rows > 1 && clash(a, b, Pairs::earlier_rows);
}

bool same_field(const BlockCopy& a, const BlockCopy& b) {
  return interleave(read_by(a), read_by(b)) || interleave(written_by(a), written_by(b));
}

}  // namespace haloscope
