// Kernels for packing, unpacking, own-neighbour halos and the addition of contributions on a device: every region of
// every field and message in one launch.
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

/// The source of a piece: memory that is not written while the kernel runs, or data that has just arrived.
enum class Source { steady, fresh };

/// The change of a unit: none, or a real changes its sign.
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

/// n divided, as Divisor defines it: a GPU has no instruction that divides integers.
HALOSCOPE_FUNCTION std::int32_t quotient(std::int32_t n, const Divisor& d) {
#if HALOSCOPE_ON_GPU
  return static_cast<std::int32_t>(__umulhi(2u * static_cast<unsigned>(n), d.multiplier) >> d.shift);
#else
  return static_cast<std::int32_t>((2 * static_cast<std::uint64_t>(n) * d.multiplier >> 32) >> d.shift);
#endif
}

/// The threads of a block share a piece: write(to, read(from, to)) for each unit of `bytes` bytes. A thread reads
/// several units before it writes one: it then waits for memory once, not for each.
template <int bytes, class Read, class Write>
HALOSCOPE_FUNCTION void each_unit(const Team& team, const CopyLaunch::Piece& piece, Read read, Write write) {
  constexpr int at_once = 4;
  team.each([&](int thread) {
    const CopyLaunch::Piece p = piece;  // the compiler must assume that a write could change the piece
    for (std::int32_t first = thread; first < p.units; first += at_once * team.threads()) {
      decltype(read(p.from, p.to)) units[at_once]{};
      std::byte* to[at_once]{};
      HALOSCOPE_UNROLL()
      for (int k = 0; k < at_once; ++k) {
        const std::int32_t i = first + k * team.threads();
        if (i >= p.units) continue;
        const std::int32_t line = quotient(p.x + i, p.by_row), x = p.x + i - line * p.units_per_row;
        const std::int32_t z = quotient(p.y + line, p.by_plane), y = p.y + line - z * p.rows;
        to[k] = p.to + z * p.to_plane + y * p.to_row + std::int64_t{x} * bytes;
        units[k] = read(p.from + z * p.from_plane + y * p.from_row + std::int64_t{x} * bytes, to[k]);
      }
      HALOSCOPE_UNROLL()
      for (int k = 0; k < at_once; ++k)
        if (first + k * team.threads() < p.units) write(to[k], units[k]);
    }
  });
}

template <Source source, class Unit, class Change = Same>
HALOSCOPE_FUNCTION void copy_units(const Team& team, const CopyLaunch::Piece& p, Change change = {}) {
  const auto read = [&](const std::byte* at, std::byte*) {
    const auto* from = reinterpret_cast<const Unit*>(at);
    if constexpr (source == Source::fresh)
      return change(load_fresh(from));
    else
      return change(load(from));
  };
  each_unit<sizeof(Unit)>(team, p, read, [](std::byte* to, Unit unit) { *reinterpret_cast<Unit*>(to) = unit; });
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
  each_unit<sizeof(Unit)>(
      team, p, [](const std::byte*, std::byte*) { return Unit{}; },
      [](std::byte* to, Unit zero) { *reinterpret_cast<Unit*>(to) = zero; });
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
  const auto added = [=](const std::byte* from, const std::byte* to) {
    T sum, summand;
    if (aligned) {
      sum = *reinterpret_cast<const T*>(to);
      summand = load(reinterpret_cast<const T*>(from));
    } else {
      memcpy(&sum, to, sizeof(T));
      memcpy(&summand, from, sizeof(T));
    }
    return static_cast<T>(negated ? sum - summand : sum + summand);
  };
  each_unit<sizeof(T)>(team, p, added, [=](std::byte* to, T sum) {
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

/// A separate kernel, so that packing has the registers of copies alone.
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
