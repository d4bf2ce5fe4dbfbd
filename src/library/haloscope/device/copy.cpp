#include "haloscope/device/copy.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace haloscope::device {
namespace {

/// The widest unit that divides every row of the copy, and to which every row is aligned.
int widest_unit(const BlockCopy& c) {
  const auto all =
      static_cast<std::uint64_t>(c.row_bytes) | reinterpret_cast<std::uintptr_t>(c.from) |
      reinterpret_cast<std::uintptr_t>(c.to) |
      (c.rows > 1 ? static_cast<std::uint64_t>(c.from_row) | static_cast<std::uint64_t>(c.to_row) : 0) |
      (c.planes > 1 ? static_cast<std::uint64_t>(c.from_plane) | static_cast<std::uint64_t>(c.to_plane) : 0);
  for (int unit : {16, 8, 4, 2})
    if (all % static_cast<unsigned>(unit) == 0) return unit;
  return 1;
}

int unit_of(const BlockCopy& c) {
  if (c.store == Store::add) return bytes_of(c.summand);
  if (c.negated > 0) return c.negated;
  const int widest = widest_unit(c);
  return widest == 2 ? 1 : widest;  // no kernel copies units of two bytes
}

constexpr std::int64_t max_of_a_row = std::int64_t{1} << 30;  // units; so that numbers of units fit 32 bits

void cut(const BlockCopy& copy, std::vector<CopyLaunch::Piece>& pieces) {
  const int unit = unit_of(copy);
  const bool aligned = copy.store != Store::add || widest_unit(copy) >= unit;
  const std::int64_t per_row = copy.row_bytes / unit, per_plane = per_row * copy.rows;
  if (per_row > max_of_a_row) {
    BlockCopy left = copy, right = copy;
    left.row_bytes = max_of_a_row * unit;
    right.row_bytes -= left.row_bytes, right.from += left.row_bytes, right.to += left.row_bytes;
    cut(left, pieces);
    return cut(right, pieces);
  }
  if (per_plane * copy.planes == 0) return;
  const auto narrow = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  const Divisor by_row = divide_by(narrow(per_row)), by_plane = divide_by(narrow(copy.rows));
  for (std::int64_t first = 0; first < per_plane * copy.planes; first += units_per_piece) {
    const std::int64_t plane = first / per_plane, in_plane = first % per_plane;
    const std::int64_t units = std::min<std::int64_t>(units_per_piece, per_plane * copy.planes - first);
    pieces.push_back({copy.from + plane * copy.from_plane, copy.to + plane * copy.to_plane, copy.from_row,
                      copy.from_plane, copy.to_row, copy.to_plane, narrow(per_row), narrow(copy.rows),
                      narrow(in_plane % per_row), narrow(in_plane / per_row), by_row, by_plane, unit, narrow(units),
                      copy.negated > 0, copy.store, copy.summand, aligned});
  }
}

/// Returns the first `units` of a piece, and removes them from it.
CopyLaunch::Piece take_units(CopyLaunch::Piece& piece, std::int32_t units) {
  CopyLaunch::Piece head = piece;
  head.units = units;
  const std::int32_t line = (piece.x + units) / piece.units_per_row, plane = (piece.y + line) / piece.rows;
  piece.x = (piece.x + units) % piece.units_per_row;
  piece.y = (piece.y + line) % piece.rows;
  piece.from += plane * piece.from_plane, piece.to += plane * piece.to_plane;
  piece.units -= units;
  return head;
}

}  // namespace

Divisor divide_by(std::int32_t d) {
  const int shift = std::bit_width(static_cast<std::uint32_t>(d - 1));
  return {static_cast<std::uint32_t>((std::uint64_t{1} << (31 + shift)) / static_cast<std::uint64_t>(d) + 1), shift};
}

std::vector<CopyLaunch::Piece> cut_copies(const std::vector<BlockCopy>& copies) {
  std::vector<CopyLaunch::Piece> pieces;
  cut_copies(copies, pieces);
  return pieces;
}

void cut_copies(const std::vector<BlockCopy>& copies, std::vector<CopyLaunch::Piece>& pieces) {
  for (const BlockCopy& copy : copies) cut(copy, pieces);
}

std::vector<int> cut_parts(std::vector<CopyLaunch::Piece>& pieces, std::size_t first,
                           const std::vector<std::int64_t>& begins) {
  const std::vector<CopyLaunch::Piece> whole(pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end());
  pieces.resize(first);
  std::vector<int> parts;
  std::int64_t at = 0;
  const auto begin_parts = [&] {
    while (parts.size() < begins.size() && begins[parts.size()] == at) parts.push_back(static_cast<int>(pieces.size()));
  };
  for (CopyLaunch::Piece piece : whole) {
    for (;;) {
      begin_parts();
      const std::int64_t bytes = std::int64_t{piece.units} * piece.unit_bytes;
      if (parts.size() == begins.size() || begins[parts.size()] >= at + bytes) {
        pieces.push_back(piece);
        at += bytes;
        break;
      }
      const std::int64_t before = begins[parts.size()] - at;
      pieces.push_back(take_units(piece, static_cast<std::int32_t>(before / piece.unit_bytes)));
      at += before;
    }
  }
  parts.resize(begins.size(), static_cast<int>(pieces.size()));
  parts.push_back(static_cast<int>(pieces.size()));
  return parts;
}

}  // namespace haloscope::device
