// Random exchanges of fields that consist of numbers, for tests that add them up.
#pragma once

#include <cstring>
#include <type_traits>

#include "random_case.hpp"

namespace haloscope::test {

/// Fields of every kind of number, each with separate widths.
inline std::vector<Quantity> random_numbers(std::mt19937& random, const GridSpec& grid) {
  const auto centred = [&] {
    return static_cast<Centring>(pick(random, 0, 3) == 0 ? pick(random, 1, 1 + grid.dims) : 0);
  };
  const std::vector<Quantity> known{{"density", 8, ScalarType::real},
                                    {"speed", 4, ScalarType::real},
                                    {"momentum", 24, ScalarType::real, Centring::cell, 1, {}, 8},
                                    {"wave", 8, ScalarType::real, Centring::cell, 1, {}, 4},
                                    {"count", 8, ScalarType::integer},
                                    {"material", 4, ScalarType::integer},
                                    {"short", 2, ScalarType::integer},
                                    {"flags", 3, ScalarType::integer, Centring::cell, 1, {}, 1}};
  constexpr std::array filled{Edge::even, Edge::nearest, Edge::odd};  // the last for plain reals alone
  std::vector<Quantity> chosen;
  for (int n = pick(random, 1, 3); n > 0; --n) {
    chosen.push_back(known[pick(random, 0, 7)]);
    Quantity& q = chosen.back();
    q.centring = centred();
    const bool plain_real = q.type == ScalarType::real && q.number_bytes == 0;
    for (int d = 0; d < grid.dims; ++d)
      for (Edge* edge : {&q.edges[d].low, &q.edges[d].high})
        if (pick(random, 0, 3) == 0) *edge = filled[static_cast<std::size_t>(pick(random, 0, plain_real ? 2 : 1))];
  }
  return chosen;
}

inline Case random_numbers_case(std::mt19937& random) {
  Case c = random_case(random, {});
  c.spec.quantities = random_numbers(random, c.grid);
  if (!c.boxes.empty() && c.spec.corners)  // next to holes
    for (Quantity& q : c.spec.quantities) q.edges = {};
  if (pick(random, 0, 1)) {
    for (std::size_t q = 0; q < c.spec.quantities.size(); ++q) {
      ExchangeSpec::Sides sides{c.spec.low, c.spec.high};
      for (int d = 0; d < c.grid.dims; ++d) {
        sides.low[d] = pick(random, 0, sides.low[d]);
        sides.high[d] = pick(random, 0, sides.high[d]);
      }
      c.spec.widths.push_back(sides);
    }
  }
  for (int d = 0; d < c.grid.dims; ++d)  // mirrored layers are filled in dimensions without neighbours, too
    c.grid.cells[d] = std::max<std::int64_t>({c.grid.cells[d], c.spec.low[d], c.spec.high[d]});
  return c;
}

/// Calls visit(number) for each number of a point, with the number's type.
template <class Visit>
void each_number(const Quantity& q, std::byte* at, Visit visit) {
  const auto all = [&](auto one) {
    for (int b = 0; b < q.element_bytes; b += static_cast<int>(sizeof one)) {
      std::memcpy(&one, at + b, sizeof one);
      visit(one);
      std::memcpy(at + b, &one, sizeof one);
    }
  };
  const int bytes = q.number_bytes == 0 ? q.element_bytes : q.number_bytes;
  if (q.type == ScalarType::real) return bytes == 4 ? all(float{}) : all(double{});
  bytes == 1   ? all(std::uint8_t{})
  : bytes == 2 ? all(std::uint16_t{})
  : bytes == 4 ? all(std::uint32_t{})
               : all(std::uint64_t{});
}

/// Random numbers in a point: integers that wrap around when they are added, reals whose sums are rounded.
inline void set_fractions(const Quantity& q, std::byte* at, std::mt19937_64& values) {
  each_number(q, at, [&](auto& number) {
    using T = std::decay_t<decltype(number)>;
    number = std::is_integral_v<T> ? static_cast<T>(values()) : static_cast<T>(1) / static_cast<T>(1 + values() % 1000);
  });
}

}  // namespace haloscope::test
