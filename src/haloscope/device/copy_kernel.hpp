// Packing, unpacking and own-neighbour halos on a device: every region of every field and message in one launch.
#pragma once

#include "haloscope/device/kernels.hpp"
#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

#if HALOSCOPE_ON_GPU
using Unit16 = longlong2;
#else
struct alignas(16) Unit16 {
  long long x, y;
};
#endif

#if HALOSCOPE_ON_GPU
HALOSCOPE_FUNCTION Unit16 load_fresh(const Unit16* p) {
  Unit16 unit;
  unit.x = load_fresh(&p->x);
  unit.y = load_fresh(&p->y);
  return unit;
}
#endif

/// What a piece is copied from: memory that nothing writes while the kernel runs, or what has just arrived.
enum class Source { steady, fresh };

/// What becomes of a unit: nothing, or a real changes its sign.
struct Same {
  template <class Unit>
  HALOSCOPE_FUNCTION Unit operator()(Unit unit) const {
    return unit;
  }
};
struct Negated {
  HALOSCOPE_FUNCTION long long operator()(long long unit) const { return unit ^ (1ull << 63); }
  HALOSCOPE_FUNCTION int operator()(int unit) const { return unit ^ (1u << 31); }
};

/// The threads of a block copy a piece.
template <Source source, class Unit, class Change = Same>
HALOSCOPE_FUNCTION void copy_units(const Team& team, const CopyLaunch::Piece& p, Change change = {}) {
  team.each([&](int thread) {
    HALOSCOPE_UNROLL(4)
    for (std::int32_t i = thread; i < p.units; i += team.threads()) {
      const std::int32_t line = (p.x + i) / p.units_per_row, x = p.x + i - line * p.units_per_row;
      const std::int32_t z = (p.y + line) / p.rows, y = p.y + line - z * p.rows;
      const auto* from = reinterpret_cast<const Unit*>(p.from + z * p.from_plane + y * p.from_row);
      auto* to = reinterpret_cast<Unit*>(p.to + z * p.to_plane + y * p.to_row);
      if constexpr (source == Source::fresh)
        to[x] = change(load_fresh(from + x));
      else
        to[x] = change(load(from + x));
    }
  });
}

template <Source source>
HALOSCOPE_FUNCTION void copy_piece(const Team& team, const CopyLaunch::Piece& p) {
  if (p.negated != 0)
    return p.unit_bytes == 8 ? copy_units<source, long long>(team, p, Negated{})
                             : copy_units<source, int>(team, p, Negated{});
  if (p.unit_bytes == 16) return copy_units<source, Unit16>(team, p);
  if (p.unit_bytes == 8) return copy_units<source, long long>(team, p);
  if (p.unit_bytes == 4) return copy_units<source, int>(team, p);
  copy_units<source, char>(team, p);
}

struct CopyBlocks {
  static constexpr int threads = 256;
  const CopyLaunch::Piece* pieces;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const { copy_piece<Source::steady>(team, pieces[team.block()]); }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
