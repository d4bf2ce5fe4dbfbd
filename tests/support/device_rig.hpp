// Fields on imitated devices, joined by a link.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app_problem.hpp"
#include "faulty_device.hpp"
#include "link_rig.hpp"

namespace haloscope::test {

/// Expects the bytes of `reference` on imitated devices by these strategies and schedules, in one case in `stride`, at
/// several depths. @return the number of cases.
inline int expect_bytes_of_reference(const std::vector<AppProblem>& problems,
                                     const std::vector<const char*>& strategies,
                                     const std::vector<const char*>& schedules, int stride) {
  int ran = 0, turn = world_size();
  for (const AppProblem& problem : problems)
    for (const bool periodic : {true, false}) {
      Choice c = choice_for(problem, periodic);
      c.strategy = "reference";
      const std::uint64_t expected = checksum_of(c);
      c.device = "host";
      for (const char* strategy : strategies)
        for (const char* schedule : schedules) {
          c.strategy = strategy;
          c.schedule = schedule;
          c.depth = turn % 3 == 2 ? 2 : 1;
          if (!illegal(c).empty()) c.depth = 1;
          if (!illegal(c).empty() || turn++ % stride != 0) continue;
          EXPECT_EQ(checksum_of(c), expected)
              << problem.app << " " << strategy << " " << schedule << " depth " << c.depth;
          ++ran;
        }
    }
  return ran;
}

/// A ring of ranks whose fields lie on an imitated device.
struct DeviceRig {
  Case c;
  Layout layout;
  Plan plan;
  std::unique_ptr<device::Device> device = open_device();
  Storage fields;
  std::shared_ptr<LibraryComm> own = LibraryComm::on(MPI_COMM_WORLD);
  LinkTags tags;
  std::unique_ptr<device::Stream> stream = device->stream();
  std::vector<int> in, out;
  std::unique_ptr<Link> link;

  static std::unique_ptr<device::Device> open_device() {
    return device::find_backend("host").open(world_rank() % device::host::imitation().devices);
  }
  static Case ring(bool one_way) {
    Case c{.grid = {2, {8 * world_size(), 600, 1}, {true, false, false}}, .ranks = {world_size(), 1, 1}};
    c.spec.pattern = Pattern::direct;
    c.spec.corners = false;
    if (one_way) c.spec.high = {0, 0, 0}, c.grid.periodic = {false, false, false};
    return c;
  }
  /// @param one_way  a line of ranks, the first of which only sends and the last only receives.
  explicit DeviceRig(const std::string& strategy, bool one_way = false)
      : c(ring(one_way)),
        layout(c.grid, c.ranks),
        plan(make_plan(layout, world_rank(), c.spec)),
        fields(plan, 2),
        tags(*own, plan, 2) {
    for (int id = 0; id < static_cast<int>(plan.messages.size()); ++id)
      (plan.messages[id].out ? out : in).push_back(id);
    link = open_link(Strategy(strategy), {.comm = own->comm(),
                                          .layout = &layout,
                                          .plan = &plan,
                                          .views = &fields.views(),
                                          .yield = true,
                                          .device = device.get(),
                                          .tags = tags.tags()});
  }
  DeviceLink& moves() { return static_cast<DeviceLink&>(*link); }
  void begin() {
    moves().post(in, 0);
    moves().pack_on(*stream, out, 0);
  }
  /// Sends, receives and unpacks the messages of an exchange that has begun.
  void end() {
    moves().send(out, 0);
    link->wait(in, 0);
    link->complete(out, 0);
    unpack();
  }
  double* value(int slot, int x, int y) { return reinterpret_cast<double*>(fields.views()[0][slot].at({x, y, 0})); }
  /// Sets values next to both neighbours that are different in every exchange, and halos that occur in none.
  void set(int exchange) {
    for (int y = 0; y < 600; ++y) {
      *value(0, 0, y) = number(world_rank(), exchange, y);
      *value(0, 7, y) = -number(world_rank(), exchange, y);
      *value(0, -1, y) = *value(0, 8, y) = 0;
    }
  }
  /// Expects the halos of an exchange.
  void expect(int exchange) {
    const int left = (world_rank() + world_size() - 1) % world_size(), right = (world_rank() + 1) % world_size();
    for (int y = 0; y < 600 && world_size() > 1; ++y) {
      ASSERT_EQ(*value(0, -1, y), -number(left, exchange, y)) << "row " << y;
      ASSERT_EQ(*value(0, 8, y), number(right, exchange, y)) << "row " << y;
    }
  }
  static double number(int rank, int exchange, int y) { return 1000.0 * (rank + 1 + 100 * exchange) + y; }
  void unpack() {
    moves().unpack_on(*stream, in, 0);
    stream->finish();
  }
};

}  // namespace haloscope::test
