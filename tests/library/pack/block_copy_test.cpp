// The copy engine against the plainest loop, on random lists; regions against element-wise access; field memory.
#include "haloscope/pack/block_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "haloscope/field/field.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {
namespace {

std::int64_t pick(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

void run_in_list_order(const std::vector<BlockCopy>& copies) {
  for (const BlockCopy& c : copies)
    for (std::int64_t p = 0; p < c.planes; ++p)
      for (std::int64_t r = 0; r < c.rows; ++r)
        for (std::int64_t b = 0; b < c.row_bytes; ++b)
          c.to[p * c.to_plane + r * c.to_row + b] = c.from[p * c.from_plane + r * c.from_row + b];
}

struct Volume {
  std::vector<std::byte> bytes;
  std::int64_t row, plane, planes;
  Volume(std::mt19937& random)
      : row(pick(random, 24, 200)), plane(row * pick(random, 4, 9)), planes(pick(random, 3, 8)) {
    bytes.resize(plane * planes);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
  }
};

/// Boxes in one volume, often of a shape used before, so that copies join sheets and pairs; reading and writing
/// anywhere, so that many of them depend on each other. No copy overlaps itself.
std::vector<BlockCopy> random_list(std::mt19937& random, const Volume& v, std::byte* base) {
  std::vector<BlockCopy> list;
  const std::int64_t count = pick(random, 1, 8);
  while (static_cast<std::int64_t>(list.size()) < count) {
    BlockCopy c;
    if (!list.empty() && random() % 2) {
      c.row_bytes = list.back().row_bytes, c.rows = list.back().rows, c.planes = list.back().planes;
    } else {
      const std::int64_t usual[] = {4, 8, 12, 16, 24, 32, 64, pick(random, 1, 90)};
      c.row_bytes = std::min(usual[random() % 8], v.row);
      c.rows = pick(random, 1, v.plane / v.row);
      c.planes = pick(random, 1, v.planes);
    }
    c.from_row = c.to_row = v.row;
    c.from_plane = c.to_plane = v.plane;
    const auto corner = [&] {
      return pick(random, 0, v.row - c.row_bytes) + pick(random, 0, v.plane / v.row - c.rows) * v.row +
             pick(random, 0, v.planes - c.planes) * v.plane;
    };
    std::vector<char> touched(v.bytes.size(), 0);
    const std::int64_t from = corner(), to = corner();
    bool overlaps = false;
    for (int write : {0, 1})
      for (std::int64_t p = 0; p < c.planes; ++p)
        for (std::int64_t r = 0; r < c.rows; ++r)
          for (std::int64_t b = 0; b < c.row_bytes; ++b) {
            char& t = touched[(write ? to : from) + p * v.plane + r * v.row + b];
            overlaps |= write && t;
            t = 1;
          }
    if (overlaps) continue;
    c.from = base + from;
    c.to = base + to;
    list.push_back(c);
  }
  return list;
}

/// Compares random lists with copies in list order. `run` runs a list and describes the way.
template <class Run>
void expect_list_order(unsigned seed, int trials, Run run) {
  std::mt19937 random(seed);
  for (int trial = 0; trial < trials; ++trial) {
    Volume engine(random);
    Volume naive = engine;
    std::mt19937 a = random, b = random;
    const CopyList list(random_list(a, engine, engine.bytes.data()));
    run_in_list_order(random_list(b, naive, naive.bytes.data()));
    random = a;
    const std::string way = run(list, random);
    ASSERT_EQ(engine.bytes, naive.bytes) << "trial " << trial << way;
  }
}

/// The numbers of some parts in random order.
std::vector<int> shuffled(int parts, std::mt19937& random) {
  std::vector<int> order(parts);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

TEST(CopyList, GivesWhatListOrderGivesOnRandomDependentCopies) {
  expect_list_order(7, 3000, [](const CopyList& list, std::mt19937&) {
    list.run();
    return "";
  });
}

/// Plane by plane and row by row no order of shares may show: no share may need bytes that another one wrote.
TEST(CopyList, SharesOfStagesInAnyOrderGiveWhatListOrderGives) {
  int shared = 0;
  expect_list_order(8, 6000, [&](const CopyList& list, std::mt19937& random) {
    const int parts = static_cast<int>(pick(random, 1, 5));
    shared += list.stages() == 1 && parts > 1;
    for (int stage = 0; stage < list.stages(); ++stage)
      for (int part : shuffled(parts, random)) list.run_stage(stage, {part, parts});
    return ", " + std::to_string(parts) + " parts, " + std::to_string(list.stages()) + " stages";
  });
  EXPECT_GT(shared, 1000) << "most lists must be shared for this test to say something";
}

TEST(CopyList, SharesOfAnyListInAnyOrderGiveWhatListOrderGives) {
  expect_list_order(9, 3000, [](const CopyList& list, std::mt19937& random) {
    const int parts = static_cast<int>(pick(random, 1, 5));
    for (int part : shuffled(parts, random)) list.run({part, parts});
    return ", " + std::to_string(parts) + " shares";
  });
}

/// Bytes that each share of a list alone changes in a volume of zeros, when it copies ones.
TEST(CopyList, SharesOfPackingAreOfNearlyEqualSize) {
  const std::int64_t n = 34;
  for (const Box& face : {Box{{0, 0, 0}, {1, n, n}}, Box{{0, 0, 0}, {n, 1, n}}, Box{{0, 0, 0}, {n, n, 1}},
                          Box{{0, 0, 0}, {n, n, 2}}, Box{{3, 0, 1}, {17, n, 3}}})
    for (int parts : {2, 3, 4}) {
      std::vector<std::byte> field(n * n * n * 8, std::byte{1});
      const SlotView view{field.data(), {8, n * 8, n * n * 8}};
      std::vector<std::byte> buffer(face.volume() * 8);
      const CopyList list({region_to_buffer(view, face, buffer.data())});
      const double fair = static_cast<double>(buffer.size()) / parts;
      for (int part = 0; part < parts; ++part) {
        std::fill(buffer.begin(), buffer.end(), std::byte{0});
        list.run({part, parts});
        const auto moved = std::count(buffer.begin(), buffer.end(), std::byte{1});
        EXPECT_NEAR(moved, fair, 0.15 * fair) << face.hi[0] << "," << face.hi[1] << "," << face.hi[2];
      }
    }
}

/// A field of random bytes whose dimensions lie in memory in any order and direction, with gaps or without.
struct StridedField {
  std::vector<std::byte> bytes;
  SlotView view;

  StridedField(std::mt19937& random, const Index& extent, std::int64_t element) {
    std::array<int, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t stride = element * pick(random, 1, 2), first = 0;
    view.element = element;
    for (int d : order) {
      const bool backwards = random() % 2;
      view.stride[static_cast<std::size_t>(d)] = backwards ? -stride : stride;
      first += backwards ? stride * (extent[d] - 1) : 0;
      stride = stride * extent[d] + element * pick(random, 0, 1);
    }
    bytes.resize(static_cast<std::size_t>(stride));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    view.origin = bytes.data() + first;
  }
};

/// Calls `visit` with the address of each point of the regions of a message, x fastest.
template <class Visit>
void each_address(const Views& views, const Message& message, Visit visit) {
  for (const auto& [quantity, box] : message.regions)
    for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
      for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
        for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x) visit(views[quantity][0].at({x, y, z}));
}

TEST(Regions, OfAnyStridesArePackedAndUnpackedPointByPoint) {
  std::mt19937 random(5);
  for (int n = 0; n < 300 && !HasFailure(); ++n) {
    const std::int64_t element = std::array{1, 4, 8, 16}[random() % 4];
    const Index extent{pick(random, 1, 6), pick(random, 1, 6), pick(random, 1, 6)};
    std::vector<StridedField> from, to;
    Views source, target;
    Message message;
    for (int q = 0; q < 2; ++q) {
      from.emplace_back(random, extent, element), to.emplace_back(random, extent, element);
      source.push_back({from.back().view}), target.push_back({to.back().view});
      Box box;
      for (int d = 0; d < 3; ++d)
        box.lo[d] = pick(random, 0, extent[d] - 1), box.hi[d] = pick(random, box.lo[d] + 1, extent[d]);
      message.regions.push_back({q, box});
    }
    std::vector<std::byte> expected;
    each_address(source, message, [&](const std::byte* at) { expected.insert(expected.end(), at, at + element); });
    std::vector<std::byte> packed(expected.size());
    make_pack(source, 0, message, packed.data()).run();
    EXPECT_TRUE(packed == expected) << "packing, case " << n;

    const std::vector<std::byte> before[] = {to[0].bytes, to[1].bytes};
    make_unpack(target, 0, message, packed.data()).run();
    const std::byte* next = packed.data();
    each_address(target, message, [&](std::byte* at) {
      EXPECT_TRUE(std::equal(at, at + element, next)) << "unpacking, case " << n;
      next += element;
    });
    for (int q = 0; q < 2; ++q) {
      std::int64_t changed = 0;
      for (std::size_t i = 0; i < before[q].size(); ++i) changed += before[q][i] != to[q].bytes[i];
      EXPECT_LE(changed, message.regions[q].box.volume() * element) << "bytes beside the region, case " << n;
    }
  }
}

TEST(Regions, ThatFollowEachOtherInMemoryAreOneSpan) {
  std::vector<std::byte> field(4 * 5 * 6 * 8);
  const Views views{{{field.data(), {8, 4 * 8, 4 * 5 * 8}}}};
  const auto span = [&](const std::vector<Region>& regions) { return contiguous_span(views, 0, {.regions = regions}); };
  const Region planes{0, {{0, 0, 1}, {4, 5, 3}}}, next{0, {{0, 0, 3}, {4, 5, 4}}}, rows{0, {{0, 0, 4}, {4, 2, 5}}};
  EXPECT_EQ(span({planes, next, rows}), field.data() + 4 * 5 * 8);
  EXPECT_EQ(span({next, planes}), nullptr) << "in another order";
  EXPECT_EQ(span({planes, rows}), nullptr) << "with a gap";
  EXPECT_EQ(span({planes, {0, {{0, 0, 3}, {3, 5, 4}}}}), nullptr) << "whose rows have gaps";
}

TEST(Regions, ATransferMovesEachRegionToItsCounterpart) {
  constexpr std::int64_t n = 6;
  std::mt19937 random(3);
  std::vector<std::byte> bytes[2][2];  // of the sender and the receiver, by field
  Views views[2];
  for (int end : {0, 1})
    for (auto& field : bytes[end]) {
      field.resize(n * n * n * 8);
      for (std::byte& b : field) b = static_cast<std::byte>(random());
      views[end].push_back({{field.data(), {8, n * 8, n * n * 8}}});
    }
  const Message out{.regions = {{0, {{4, 1, 0}, {6, 5, 3}}}, {1, {{0, 0, 2}, {2, 6, 4}}}}};
  const Message in{.regions = {{0, {{0, 1, 2}, {2, 5, 5}}}, {1, {{1, 0, 3}, {3, 6, 5}}}}};
  std::vector<std::byte> expected[2] = {bytes[1][0], bytes[1][1]};
  for (std::size_t r = 0; r < 2; ++r) {
    const Box &from = out.regions[r].box, &to = in.regions[r].box;
    for (std::int64_t z = 0; z < from.extent(2); ++z)
      for (std::int64_t y = 0; y < from.extent(1); ++y)
        for (std::int64_t x = 0; x < 8 * from.extent(0); ++x)
          expected[r][((to.lo[2] + z) * n + to.lo[1] + y) * n * 8 + 8 * to.lo[0] + x] =
              bytes[0][r][((from.lo[2] + z) * n + from.lo[1] + y) * n * 8 + 8 * from.lo[0] + x];
  }
  make_transfer(views[0], out, views[1], in, 0).run();
  for (std::size_t r = 0; r < 2; ++r) EXPECT_TRUE(bytes[1][r] == expected[r]) << "field " << r;
}

/// The wraps of a periodic block: x and y read and write within a plane, z planes contain the cells that they wrote.
TEST(CopyList, WrapsOfThreeDimensionsAreTwoStages) {
  const std::int64_t n = 10, row = (n + 2) * 8, plane = row * (n + 2);
  std::vector<std::byte> field(plane * (n + 2));
  const SlotView view{field.data() + plane + row + 8, {8, row, plane}};
  std::vector<BlockCopy> wraps;
  for (int d : {0, 1, 2})
    for (std::int64_t side : {0, 1}) {
      Box to;
      for (int e = 0; e < 3; ++e) to.lo[e] = e < d ? -1 : 0, to.hi[e] = e < d ? n + 1 : n;
      to.lo[d] = side ? n : -1;
      to.hi[d] = to.lo[d] + 1;
      Index shift{0, 0, 0};
      shift[d] = side ? -n : n;
      wraps.push_back(block_of({{view}}, 0, {.to = to, .shift = shift}));
    }
  EXPECT_EQ(CopyList(std::vector(wraps.begin(), wraps.begin() + 4)).stages(), 1);
  EXPECT_EQ(CopyList(wraps).stages(), 2);
}

TEST(CopyList, WrapsPeriodicBlocksOfEveryElementSizeAndWidth) {
  std::mt19937 random(11);
  for (int element : {1, 2, 4, 8, 12, 16, 24})
    for (int width : {1, 2, 3})
      for (int pad : {0, 1}) {
        const Index n{pick(random, 3, 9), pick(random, 3, 9), pick(random, 3, 9)};
        const std::int64_t row = (n[0] + 2 * width + pad) * element, plane = (n[1] + 2 * width) * row + pad * element;
        std::vector<std::byte> engine(plane * (n[2] + 2 * width) + 64);
        for (auto& b : engine) b = static_cast<std::byte>(random());
        auto naive = engine;
        std::vector<Copy> copies;
        for (int d : {0, 1, 2})
          for (int side : {0, 1}) {
            Copy c;
            for (int e = 0; e < 3; ++e) c.to.lo[e] = e < d ? -width : 0, c.to.hi[e] = n[e] + (e < d ? width : 0);
            c.to.lo[d] = side ? n[d] : -width;
            c.to.hi[d] = c.to.lo[d] + width;
            c.shift[d] = side ? -n[d] : n[d];
            copies.push_back(c);
          }
        const auto blocks = [&](std::vector<std::byte>& bytes) {
          SlotView view{bytes.data() + width * (plane + row + element), {element, row, plane}};
          std::vector<BlockCopy> list;
          for (const Copy& c : copies) list.push_back(block_of({{view}}, 0, c));
          return list;
        };
        CopyList(blocks(engine)).run();
        run_in_list_order(blocks(naive));
        ASSERT_EQ(engine, naive) << element << " bytes, width " << width;
      }
}

/// Rows of any length and place, in a list that exceeds the caches; shares by several threads.
TEST(CopyList, LongRowsOfLargeListsArriveWholeAndAlone) {
  std::mt19937 random(9);
  for (int n = 0; n < 6; ++n) {
    const std::int64_t row = pick(random, 2048, 9000), rows = (std::int64_t{17} << 20) / row + 1;
    const std::int64_t gap = pick(random, 0, 70), begin = pick(random, 0, 70);
    std::vector<std::byte> from(static_cast<std::size_t>(rows * row + begin)),
        to(rows * (row + gap) + begin, std::byte{7});
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    BlockCopy copy{.from = from.data() + begin, .to = to.data() + begin, .row_bytes = row, .rows = rows};
    copy.from_row = row;
    copy.to_row = row + gap;
    const CopyList list({copy});
    for (int part = 0; part < 3; ++part) list.run(Share{part, 3});
    for (std::int64_t r = 0; r < rows; ++r) {
      ASSERT_EQ(std::memcmp(copy.to + r * copy.to_row, copy.from + r * row, static_cast<std::size_t>(row)), 0) << r;
      for (std::int64_t b = row; b < row + gap; ++b) ASSERT_EQ(copy.to[r * copy.to_row + b], std::byte{7}) << r;
    }
  }
}

TEST(CopyList, EmptyAndDegenerateCopiesDoNothing) {
  CopyList({BlockCopy{}, BlockCopy{nullptr, nullptr, 8, 0, 3, 0, 0, 0, 0}}).run();
  EXPECT_TRUE(CopyList({BlockCopy{}}).empty());
}

Plan two_fields(const Index& cells, int width) {
  ExchangeSpec spec{
      .quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}}};
  spec.low = spec.high = {width, width, width};
  return make_plan(Layout({3, cells, {true, true, true}}, {1, 1, 1}), 0, spec);
}

TEST(Storage, SuccessiveFieldsStartAtDifferentPlacesOfAPage) {
  Storage fields(two_fields({62, 14, 8}, 1), 2);
  std::vector<std::size_t> starts;
  for (int q : {0, 1})
    for (int s : {0, 1}) starts.push_back(reinterpret_cast<std::uintptr_t>(fields.bytes(q, s).data()) % 4096);
  for (std::size_t i = 0; i < starts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t apart = (starts[i] - starts[j]) % 4096;
      EXPECT_GE(std::min(apart, 4096 - apart), 128u) << i << " and " << j;
    }
}

TEST(Storage, PitchOf3dBlocksIsDenseExceptThatItIsNeverAWholeNumberOfPages) {
  EXPECT_EQ(field_strides({130, 130, 130}, 8), (std::array<std::int64_t, 3>{8, 1040, 135200}));
  EXPECT_EQ(field_strides({512, 10, 10}, 8), (std::array<std::int64_t, 3>{8, 4160, 41600}));
  EXPECT_EQ(field_strides({256, 32, 10}, 4), (std::array<std::int64_t, 3>{4, 1024, 32768 + 64}));
}

TEST(Storage, RowsOf2dBlocksAreAnOddNumberOfWholeLines) {
  EXPECT_EQ(field_strides({130, 130, 1}, 8)[1], 17 * 64);
  EXPECT_EQ(field_strides({512, 10, 1}, 8)[1], 65 * 64);
  EXPECT_EQ(field_strides({362, 180, 1}, 4)[1], 23 * 64);
}

TEST(Storage, RowsOfAFieldForADeviceBeginAtTheDevicesLines) {
  EXPECT_EQ(device_strides({130, 130, 130}, 4), (std::array<std::int64_t, 3>{4, 640, 640 * 130}));
  EXPECT_EQ(device_strides({512, 10, 1}, 8), (std::array<std::int64_t, 3>{8, 4096, 40960}));
  EXPECT_EQ(device_strides({10, 4, 2}, 24), (std::array<std::int64_t, 3>{24, 240, 960}));
  const Storage fields(two_fields({62, 14, 8}, 1), 2, {}, {}, true);
  for (int q : {0, 1})
    for (int s : {0, 1}) {
      const SlotView& v = fields.views()[q][s];
      for (const Index& first : {Index{0, 0, 0}, Index{0, 13, 0}, Index{0, -1, 7}})
        EXPECT_EQ((v.at(first) - fields.all().data()) % 128, 0) << q << " " << s;
    }
}

TEST(Storage, CanariesNoticeAByteWrittenBesideAField) {
  Storage fields(two_fields({510, 5, 4}, 1), 2);  // rows of 512 doubles are padded
  fields.set_canaries();
  for (int q : {0, 1})
    for (int s : {0, 1}) {
      const SlotView& v = fields.views()[q][s];
      const Box all = two_fields({510, 5, 4}, 1).allocated(q);
      for (auto z = all.lo[2]; z < all.hi[2]; ++z)
        for (auto y = all.lo[1]; y < all.hi[1]; ++y)
          std::memset(v.at({all.lo[0], y, z}), 0, v.stride[0] * all.extent(0));
    }
  EXPECT_TRUE(fields.canaries_alive());
  for (const Index& beside : {Index{-2, -1, -1}, Index{511, 2, 2}, Index{511, 5, 4}}) {
    Storage hit(two_fields({510, 5, 4}, 1), 1);
    hit.set_canaries();
    *hit.views()[0][0].at(beside) = std::byte{0};
    EXPECT_FALSE(hit.canaries_alive()) << beside[0];
  }
}

TEST(Storage, FirstTouchIsLeftToTheCaller) {
  std::vector<std::span<std::byte>> touched;
  Storage fields(two_fields({9, 8, 7}, 2), 3, [&](std::span<std::byte> b) { touched.push_back(b); });
  ASSERT_EQ(touched.size(), 6u);
  EXPECT_EQ(touched[4].data(), fields.bytes(1, 1).data());
  EXPECT_EQ(touched[0].size(), 13u * 12 * 11 * 8);
}

}  // namespace
}  // namespace haloscope
