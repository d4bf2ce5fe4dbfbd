// Lines of fields that exchanges access, and the part of a profile with the cost of fetching them again.
#include "haloscope/model/refetch.hpp"

#include <gtest/gtest.h>

#include <set>

#include "each_point.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/profile.hpp"
#include "texts.hpp"

namespace haloscope::model {
namespace {

constexpr double line = 64;

Plan plan_of(int cells, int width, int bytes, Pattern pattern) {
  const Layout layout({3, {3 * cells, 3 * cells, 3 * cells}, {true, true, true}}, {3, 3, 3});
  ExchangeSpec spec{.quantities = {Quantity{"u", bytes}}};
  spec.low = spec.high = {width, width, width};
  spec.pattern = pattern;
  return make_plan(layout, 0, spec);
}

/// Counts lines one by one, in a field whose rows follow each other.
Touched counted(const Plan& plan) {
  const Box field = plan.allocated(0);
  const std::int64_t bytes = plan.spec.quantities[0].element_bytes;
  std::set<std::int64_t> all, written;
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      test::each_point(region.box, [&](const Index& p) {
        const std::int64_t row = (p[2] - field.lo[2]) * field.extent(1) + p[1] - field.lo[1];
        const std::int64_t at = (row * field.extent(0) + p[0] - field.lo[0]) * bytes / static_cast<std::int64_t>(line);
        all.insert(at);
        if (!message.out) written.insert(at);
      });
  return {line * static_cast<double>(all.size()), line * static_cast<double>(written.size())};
}

/// A mean over alignments, so that the alignment of this field may differ a little.
TEST(Refetch, LinesAreThoseThatTheBytesOfAHaloLieIn) {
  for (const int cells : {21, 40, 64})
    for (const int width : {1, 2, 5})
      for (const int bytes : {4, 8})
        for (const Pattern pattern : {Pattern::ordered, Pattern::direct}) {
          const Plan plan = plan_of(cells, width, bytes, pattern);
          const Touched found = touched_lines(plan, 0, line), exact = counted(plan);
          EXPECT_NEAR(found.lines / exact.lines, 1, 0.12) << cells << " " << width << " " << bytes;
          EXPECT_NEAR(found.dirty / exact.dirty, 1, 0.12) << cells << " " << width << " " << bytes;
        }
}

TEST(Refetch, AHaloAsWideAsTheBlockTouchesAllOfTheField) {
  const Plan plan = plan_of(4, 4, 8, Pattern::direct);
  EXPECT_DOUBLE_EQ(touched_lines(plan, 0, line).lines, 12.0 * 12 * 12 * 8);
}

TEST(Refetch, TheMemoryOfAProfileIsReadAndItsFaultsAreNamed) {
  const auto profile = [](const std::string& memory) {
    return profile_from_json(
        R"({"schema": "haloscope-profile", "schema_version": 1, "name": "hand", "origin": "published",
      "source": "", "machine": {"host": "", "cpu": "c", "nodes": 1, "sockets_per_node": 1, "cores_per_socket": 6},
      "transports": {"p2p": {"field_returns": 0.5, "one_buffer": true}}, "memory": )" +
        memory + "}");
  };
  const Profile p = profile(R"({"cache_bytes": 1e6, "bytes_per_s": 2e10})");
  ASSERT_TRUE(p.memory);
  EXPECT_EQ(p.memory->cache_bytes, 1e6);
  EXPECT_EQ(p.memory->line_bytes, 64);
  EXPECT_EQ(p.memory->scatter, 1);
  EXPECT_EQ(p.surcharge("p2p").field_returns, 0.5);
  EXPECT_TRUE(p.surcharge("p2p").one_buffer);
  EXPECT_FALSE(p.surcharge("p2p").from_fields);
  EXPECT_PART(test::error_of([&] { profile(R"({"cache_bytes": 1e6})"); }),
              "memory: 'bytes_per_s' is a required property");
}

}  // namespace
}  // namespace haloscope::model
