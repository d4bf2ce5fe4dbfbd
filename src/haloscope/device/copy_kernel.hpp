// Packing, unpacking, own-neighbour halos and what contributions are added to, on a device: every region of every field and
// message in one launch.
#pragma once

#include <cstring>

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

/// The threads of a block share a piece: visit(from, to) for each unit of `bytes` bytes.
template <int bytes, class Visit>
HALOSCOPE_FUNCTION void each_unit(const Team& team, const CopyLaunch::Piece& p, Visit visit) {
  team.each([&](int thread) {
    HALOSCOPE_UNROLL(4)
    for (std::int32_t i = thread; i < p.units; i += team.threads()) {
      const std::int32_t line = (p.x + i) / p.units_per_row, x = p.x + i - line * p.units_per_row;
      const std::int32_t z = (p.y + line) / p.rows, y = p.y + line - z * p.rows;
      visit(p.from + z * p.from_plane + y * p.from_row + std::int64_t{x} * bytes,
            p.to + z * p.to_plane + y * p.to_row + std::int64_t{x} * bytes);
    }
  });
}

template <Source source, class Unit, class Change = Same>
HALOSCOPE_FUNCTION void copy_units(const Team& team, const CopyLaunch::Piece& p, Change change = {}) {
  each_unit<sizeof(Unit)>(team, p, [&](const std::byte* at, std::byte* into) {
    const auto* from = reinterpret_cast<const Unit*>(at);
    if constexpr (source == Source::fresh)
      *reinterpret_cast<Unit*>(into) = change(load_fresh(from));
    else
      *reinterpret_cast<Unit*>(into) = change(load(from));
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

template <class Unit>
HALOSCOPE_FUNCTION void clear_units(const Team& team, const CopyLaunch::Piece& p) {
  each_unit<sizeof(Unit)>(team, p, [](const std::byte*, std::byte* to) { *reinterpret_cast<Unit*>(to) = Unit{}; });
}

HALOSCOPE_FUNCTION void clear_piece(const Team& team, const CopyLaunch::Piece& p) {
  if (p.unit_bytes == 16) return clear_units<Unit16>(team, p);
  if (p.unit_bytes == 8) return clear_units<long long>(team, p);
  if (p.unit_bytes == 4) return clear_units<int>(team, p);
  clear_units<char>(team, p);
}

/// Adds numbers, or subtracts them. @param T  unsigned for integers, which wrap around.
template <class T>
HALOSCOPE_FUNCTION void add_numbers(const Team& team, const CopyLaunch::Piece& p) {
  const bool aligned = p.aligned, negated = p.negated != 0;
  each_unit<sizeof(T)>(team, p, [&](const std::byte* from, std::byte* to) {
    T sum, summand;
    if (aligned) {
      sum = *reinterpret_cast<const T*>(to);
      summand = load(reinterpret_cast<const T*>(from));
    } else {
      memcpy(&sum, to, sizeof(T));
      memcpy(&summand, from, sizeof(T));
    }
    sum = static_cast<T>(negated ? sum - summand : sum + summand);
    if (aligned)
      *reinterpret_cast<T*>(to) = sum;
    else
      memcpy(to, &sum, sizeof(T));
  });
}

HALOSCOPE_FUNCTION void add_piece(const Team& team, const CopyLaunch::Piece& p) {
  switch (p.summand) {
    case Summand::i8:
      return add_numbers<unsigned char>(team, p);
    case Summand::i16:
      return add_numbers<unsigned short>(team, p);
    case Summand::i32:
      return add_numbers<unsigned>(team, p);
    case Summand::i64:
      return add_numbers<unsigned long long>(team, p);
    case Summand::f32:
      return add_numbers<float>(team, p);
    case Summand::f64:
      return add_numbers<double>(team, p);
    case Summand::none:
      return;
  }
}

/// A kernel of its own, so that packing has the registers of copies alone.
struct StoreBlocks {
  static constexpr int threads = CopyBlocks::threads;
  const CopyLaunch::Piece* pieces;

  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const CopyLaunch::Piece& p = pieces[team.block()];
    if (p.store == Store::add) return add_piece(team, p);
    if (p.store == Store::clear) return clear_piece(team, p);
    copy_piece<Source::steady>(team, p);
  }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
