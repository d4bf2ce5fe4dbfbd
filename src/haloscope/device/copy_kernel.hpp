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

struct CopyBlocks {
  static constexpr int threads = 256;
  const CopyLaunch::Piece* pieces;

  template <class Unit>
  HALOSCOPE_FUNCTION static void move(const Team& team, const CopyLaunch::Piece& p) {
    team.each([&](int thread) {
      HALOSCOPE_UNROLL(4)
      for (std::int32_t i = thread; i < p.units; i += team.threads()) {
        const std::int32_t line = (p.x + i) / p.units_per_row, x = p.x + i - line * p.units_per_row;
        const std::int32_t z = (p.y + line) / p.rows, y = p.y + line - z * p.rows;
        const auto* from = reinterpret_cast<const Unit*>(p.from + z * p.from_plane + y * p.from_row);
        auto* to = reinterpret_cast<Unit*>(p.to + z * p.to_plane + y * p.to_row);
        to[x] = load(from + x);
      }
    });
  }

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const CopyLaunch::Piece p = pieces[team.block()];
    if (p.unit_bytes == 16) return move<Unit16>(team, p);
    if (p.unit_bytes == 8) return move<long long>(team, p);
    if (p.unit_bytes == 4) return move<int>(team, p);
    move<char>(team, p);
  }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
