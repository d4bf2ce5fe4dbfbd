// Lists of copies in one launch: packing, unpacking and own-neighbour halos.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "device_here.hpp"

namespace haloscope::device {
namespace {

using test::below;

std::vector<char> random_bytes(std::int64_t size, std::mt19937_64& rng) {
  std::vector<char> bytes(static_cast<std::size_t>(size));
  for (char& byte : bytes) byte = static_cast<char>(rng());
  return bytes;
}

/// A block of rows in an arena: `begin` is its first byte.
struct Block {
  std::int64_t begin, row, plane, bytes;
};

/// Rows and planes of random distance, all multiples of `unit`, from `begin` on.
Block random_block(const BlockCopy& c, std::int64_t begin, int unit, std::mt19937_64& rng) {
  Block b{begin + unit * below(5, rng), c.row_bytes + unit * below(3, rng), 0, 0};
  b.plane = b.row * c.rows + unit * below(7, rng);
  b.bytes = b.plane * c.planes;
  return b;
}

/// The copy's size, and the offsets of its rows in the arena read and in the arena written.
struct Case {
  BlockCopy copy;
  Block from, to;
};

void expect_plain_loops(const std::vector<Case>& cases, std::mt19937_64& rng) {
  std::int64_t from_bytes = 64, to_bytes = 64;
  for (const Case& c : cases) {
    from_bytes = std::max(from_bytes, c.from.begin + c.from.bytes);
    to_bytes = std::max(to_bytes, c.to.begin + c.to.bytes);
  }
  const auto source = random_bytes(from_bytes, rng);
  auto expected = random_bytes(to_bytes, rng);
  Device& device = test::here();
  const Buffer from = test::on_device(device, source), to = test::on_device(device, expected);

  std::vector<BlockCopy> copies;
  for (const Case& c : cases) {
    copies.push_back(c.copy);
    copies.back().from = from.data() + c.from.begin, copies.back().to = to.data() + c.to.begin;
    copies.back().from_row = c.from.row, copies.back().from_plane = c.from.plane;
    copies.back().to_row = c.to.row, copies.back().to_plane = c.to.plane;
    for (std::int64_t z = 0; z < c.copy.planes; ++z)
      for (std::int64_t y = 0; y < c.copy.rows; ++y)
        std::memcpy(expected.data() + c.to.begin + z * c.to.plane + y * c.to.row,
                    source.data() + c.from.begin + z * c.from.plane + y * c.from.row,
                    static_cast<std::size_t>(c.copy.row_bytes));
  }
  test::run_copies(device, copies);
  EXPECT_EQ(test::from_device<char>(device, to), expected);
  EXPECT_EQ(test::from_device<char>(device, from), source);
}

TEST(DeviceCopy, RandomListsEqualPlainLoopsAndTouchNothingElse) {
  std::mt19937_64 rng(15);
  for (int round = 0; round < 120; ++round) {
    std::vector<Case> cases(1 + rng() % 7);
    std::int64_t free = 0;  // of the arena written: blocks there do not overlap
    for (Case& c : cases) {
      const int unit = 1 << below(5, rng);
      c.copy.row_bytes = unit * (1 + below(round % 4 ? 12 : 3000, rng));
      c.copy.rows = 1 + below(round % 5 ? 9 : 400, rng), c.copy.planes = 1 + below(6, rng);
      if (c.copy.row_bytes * c.copy.rows > 200000) c.copy.rows = 3;
      if (rng() % 9 == 0) c.copy.rows = 0;
      c.from = random_block(c.copy, 16 * below(50, rng), unit, rng);
      c.to = random_block(c.copy, free, unit, rng);
      free = (c.to.begin + c.to.bytes + 15) / 16 * 16;
    }
    expect_plain_loops(cases, rng);
  }
}

TEST(DeviceCopy, RealsThatAreMirroredChangeTheirSignAndNothingElse) {
  const auto device = test::Imitated("").open();
  for (int bytes : {4, 8}) {
    const auto mirrored = [&](auto number) {
      using T = decltype(number);
      const std::vector<T> source{T(1.5), T(-0.0), T(-2), T(0), std::numeric_limits<T>::infinity(), T(7)};
      const Buffer from = test::on_device(*device, source), to = test::on_device(*device, std::vector<T>(6, T(3)));
      BlockCopy copy{.from = from.data() + bytes, .to = to.data(), .row_bytes = 4 * bytes};
      copy.negated = bytes;
      test::run_copies(*device, {copy});
      const auto found = test::from_device<T>(*device, to);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(found[i], -source[i + 1]);
        EXPECT_NE(std::signbit(found[i]), std::signbit(source[i + 1]));
      }
      EXPECT_EQ(found[4], T(3));
    };
    bytes == 4 ? mirrored(1.0f) : mirrored(1.0);
  }
}

/// Additions and clearings of a list on the device, against CopyList on the host.
TEST(DeviceCopy, NumbersAreAddedAndClearedAsOnTheHostAtAnyAddress) {
  std::mt19937_64 rng(16);
  Device& device = test::here();
  for (const Summand summand : {Summand::i8, Summand::i16, Summand::i32, Summand::i64, Summand::f32, Summand::f64})
    for (const int shift : {0, 1, 4})
      for (const bool negated : {false, true}) {
        const std::int64_t row = 3 * 8 + 16, plane = 5 * row;
        std::vector<char> values(4096), sums(4096);
        for (auto* all : {&values, &sums})
          for (std::size_t i = 0; i + 8 <= all->size(); i += 4) {
            const auto number = static_cast<float>(1) / static_cast<float>(1 + rng() % 999);
            std::memcpy(all->data() + i, &number, sizeof number);
          }
        const Buffer from = test::on_device(device, values), to = test::on_device(device, sums);
        const auto list = [&](const void* source, const void* target) {
          const auto* const a = static_cast<const std::byte*>(source) + shift;
          auto* const b = static_cast<std::byte*>(const_cast<void*>(target)) + 3 * shift;
          BlockCopy add{.from = a, .to = b, .row_bytes = 24, .rows = 4, .planes = 3};
          add.from_row = add.to_row = row, add.from_plane = add.to_plane = plane;
          add.store = Store::add, add.summand = summand, add.negated = negated;
          BlockCopy clear = add, copy = add;
          clear.to += 4 * plane, clear.from = clear.to, clear.store = Store::clear;
          clear.negated = copy.negated = 0;
          clear.summand = copy.summand = Summand::none;
          copy.to += 8 * plane, copy.store = Store::replace;
          return std::vector<BlockCopy>{add, clear, copy};
        };
        test::run_copies(device, list(from.data(), to.data()), true);
        CopyList(list(values.data(), sums.data())).run();
        EXPECT_EQ(test::from_device<char>(device, to), sums) << static_cast<int>(summand) << " at " << shift;
      }
}

TEST(DeviceCopy, AListOfNothingIsNoWork) {
  std::mt19937_64 rng(0);
  expect_plain_loops({}, rng);
  BlockCopy none;
  EXPECT_TRUE(cut_copies({none, none}).empty());
}

// All faces of a block together, within one field: the copies of each step of a rank that is its own neighbour.
TEST(DeviceCopy, OwnNeighbourHalosOfOneDimensionAreOneLaunch) {
  const std::int64_t row = 7, plane = 7 * 6, cells = plane * 5;
  std::vector<double> field(cells);
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = static_cast<double>(i);
  Device& device = test::here();
  const Buffer memory = test::on_device(device, field);
  const auto face = [&](std::int64_t from, std::int64_t to) {
    BlockCopy c;
    c.from = memory.data() + from * 8, c.to = memory.data() + to * 8;
    c.row_bytes = 8, c.rows = 6, c.planes = 5;
    c.from_row = c.to_row = row * 8, c.from_plane = c.to_plane = plane * 8;
    return c;
  };
  test::run_copies(device, {face(5, 0), face(1, 6)});
  const auto result = test::from_device<double>(device, memory);
  for (std::size_t i = 0; i < field.size(); ++i) {
    const auto x = i % 7;
    EXPECT_EQ(result[i], static_cast<double>(x == 0 ? i + 5 : x == 6 ? i - 5 : i));
  }
}

TEST(DeviceCopy, PiecesUseTheWidestUnitAndHoldEachUnitOnce) {
  alignas(16) static std::byte memory[1 << 16];
  for (int unit : {1, 4, 8, 16})
    for (std::int64_t rows : {1, 3, 700}) {
      BlockCopy c;
      c.from = memory + unit, c.to = memory + 2 * unit;
      c.row_bytes = 5 * unit, c.rows = rows, c.planes = 2;
      c.from_row = c.to_row = 7 * unit, c.from_plane = c.to_plane = c.from_row * rows;
      std::int64_t units = 0;
      for (const auto& piece : cut_copies({c})) {
        EXPECT_EQ(piece.unit_bytes, unit);
        EXPECT_LE(piece.units, units_per_piece);
        const auto plane = (piece.from - c.from) / c.from_plane;
        EXPECT_EQ((plane * rows + piece.y) * 5 + piece.x, units) << "the piece does not begin where the last one ended";
        units += piece.units;
      }
      EXPECT_EQ(units, 5 * rows * 2);
    }
  BlockCopy one_row;  // strides of dimensions that have one member do not matter
  one_row.from = memory, one_row.to = memory + 32, one_row.row_bytes = 32, one_row.from_row = 3, one_row.to_plane = 5;
  EXPECT_EQ(cut_copies({one_row}).at(0).unit_bytes, 16);
}

TEST(DeviceCopy, ADivisorDividesEveryNumberBelow2To31) {
  std::mt19937_64 rng(31);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (int round = 0; round < 4000; ++round) {
    const std::int64_t d = round < 2000 ? 1 + round : 1 + below(most >> (round % 31), rng);
    const Divisor by = divide_by(static_cast<std::int32_t>(d));
    const std::int64_t last = most / d * d;
    for (const std::int64_t n : {std::int64_t{0}, d - 1, d, last - 1, last, most, below(most, rng)})
      ASSERT_EQ(static_cast<std::int64_t>((2 * static_cast<std::uint64_t>(n) * by.multiplier >> 32) >> by.shift), n / d)
          << n << " / " << d;
  }
}

TEST(DeviceCopy, RowsOfMoreUnitsThan32BitsHoldAreCut) {
  const std::int64_t bytes = (std::int64_t{1} << 31) + 12345;
  BlockCopy c;  // never run: the addresses point to no memory
  c.from = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);
  c.to = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 41);
  c.row_bytes = bytes;
  std::int64_t total = 0;
  for (const auto& piece : cut_copies({c})) {
    ASSERT_EQ(piece.from - c.from + piece.x * piece.unit_bytes, total);
    ASSERT_EQ(piece.to - c.to, piece.from - c.from);
    ASSERT_LE(std::int64_t{piece.x} + piece.units, std::numeric_limits<std::int32_t>::max());
    total += std::int64_t{piece.units} * piece.unit_bytes;
  }
  EXPECT_EQ(total, bytes);
}

}  // namespace
}  // namespace haloscope::device
