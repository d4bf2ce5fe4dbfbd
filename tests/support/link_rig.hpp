// Drives one Link through whole exchanges, in round order, and checks every point of every field afterwards.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport/link_tags.hpp"
#include "rig_fields.hpp"
#include "world.hpp"

namespace haloscope::test {

/// Calls that the PMPI wrappers of pmpi_counter.cpp have seen on this thread.
struct Sent {
  std::int64_t messages = 0, bytes = 0;
};
Sent& sent();

struct Case {
  GridSpec grid = {};
  ProcessGrid ranks{1, 1, 1};
  ExchangeSpec spec = {};
  std::string transport = "p2p";
  std::vector<std::string> options = {};
  int slots = 2;
  bool yield = false;
  bool poll = false;            ///< spin on test() before wait()
  int threads = 1;              ///< that share packing and unpacking
  bool shared_fields = false;   ///< in memory that the ranks of a node share
  std::vector<int> nodes = {};  ///< emulated; empty: the real ones
  std::string between = {};     ///< transport between nodes, joined with `transport`
  std::vector<std::string> between_options = {};
  std::vector<Box> boxes = {};  ///< owned by the ranks; empty: the boxes of `ranks`
  RankOrder order{0, 1, 2};
  unsigned strided = 0;  ///< fields are arrays of random strides, by this seed; 0: laid out as in a run
  int delay_us = 0;      ///< max delay before each call of a link; of random length, different on each rank

  Layout layout() const { return boxes.empty() ? Layout(grid, ranks, order) : Layout(grid, boxes, true); }
};

/// This rank's plan for a case under a strategy.
inline Plan plan_of(const Layout& layout, const Case& c, const Strategy& strategy) {
  ExchangeSpec spec = c.spec;
  apply(strategy, layout, spec);
  return make_plan(layout, world_rank(), spec);
}

/// @param shared  in memory that the ranks of a node share; otherwise as the case has its fields.
inline RigFields allocate_fields(const Plan& plan, const Case& c, bool shared) {
  if (shared) return RigFields(Storage(plan, c.slots, {}, shared_by(Node(MPI_COMM_WORLD, c.nodes))));
  if (c.strided == 0) return RigFields(Storage(plan, c.slots));
  return RigFields(StridedArrays(plan, c.slots, c.strided + static_cast<unsigned>(world_rank())));
}

class Rig {
 public:
  explicit Rig(const Case& c)
      : case_(c),
        layout(c.layout()),
        plan(make_plan(layout, world_rank(), c.spec)),
        fields(allocate_fields(plan, c, c.shared_fields)),
        tags_(*own_, plan, c.slots) {
    fields.set_canaries();
    for (int s = 0; s < c.slots; ++s)
      for (int r = 0; r < plan.rounds; ++r) copies_.push_back(make_copies(fields.views(), s, copies_of(r)));
    for (int r = 0; r < plan.rounds; ++r)
      for (bool out : {false, true}) sets_.push_back(set_of(r, out));
    Strategy strategy;
    strategy.transport = c.transport;
    strategy.transport_options = c.options;
    strategy.between = c.between;
    strategy.between_options = c.between_options;
    link = open_link(strategy, context());
  }
  /// The context in which a link on the rig's fields is opened, one at a time or in turn.
  LinkContext context() const {
    return {.comm = own_->comm(),
            .layout = &layout,
            .plan = &plan,
            .views = &fields.views(),
            .yield = case_.yield,
            .threads = case_.threads,
            .nodes = case_.nodes,
            .tags = tags_.tags()};
  }

  const std::vector<int>& in(int round) const { return sets_[2 * round]; }
  const std::vector<int>& out(int round) const { return sets_[2 * round + 1]; }

  /// One exchange; allocates nothing itself.
  void exchange(int slot) {
    for (int r = 0; r < plan.rounds; ++r) {
      copy(r, slot);
      start(r, slot);
      if (case_.poll && case_.transport != "reference")
        while (!link->test(in(r), slot)) {
        }
      finish(r, slot);
    }
  }

  /// Copies the own-neighbour halos that precede a round.
  void copy(int round, int slot) { copies_[slot * plan.rounds + round].run(); }
  void start(int round, int slot) {
    delay();
    link->post(in(round), slot);
    delay();
    by_team([&](Share share) { link->pack(out(round), slot, share); });
    delay();
    link->send(out(round), slot);
  }

  void finish(int round, int slot) {
    delay();
    link->wait(in(round), slot);
    by_team([&](Share share) { link->unpack(in(round), slot, share); });
    delay();
    link->complete(out(round), slot);
  }

  /// Owned points get the id of their global point (another one in every `epoch`), ghosts are poisoned.
  void fill(int slot, int epoch) {
    visit(slot, [&](std::byte* at, const Point& p) { write(at, p, epoch); });
  }

  /// Number of points with a wrong value.
  std::int64_t wrong_points(int slot, int epoch) {
    std::int64_t wrong = 0;
    visit(slot, [&](std::byte* at, const Point& p) {
      std::byte expected[64];
      write(expected, p.mirrors ? Point{p.quantity, p.bytes, true, true, p.global} : p, epoch);
      wrong += std::memcmp(at, expected, p.bytes) != 0;
    });
    return wrong;
  }

 private:
  template <class Work>
  void by_team(Work work) {
    const int threads = case_.threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; ++thread) work(Share{thread, threads});
  }
  void delay() {
    if (case_.delay_us > 0) usleep(random_() % case_.delay_us);
  }

  struct Point {
    int quantity, bytes;
    bool owned, mirrors;  ///< mirrors: an owned point, or a ghost that the exchange must fill
    Index global;         ///< after periodic wrap
  };

  static void write(std::byte* at, const Point& p, int epoch) {
    for (int b = 0; b < p.bytes; b += 8) {
      std::uint64_t id = 0x9E3779B97F4A7C15u * (1 + epoch * 64 + p.quantity * 8 + b);
      for (std::int64_t g : p.global) id = (id ^ static_cast<std::uint64_t>(g)) * 0xD6E8FEB86659FD93u, id ^= id >> 32;
      if (!p.owned) id = ~std::uint64_t{0};  // NaN as a real, -1 as an integer
      std::memcpy(at + b, &id, std::min(8, p.bytes - b));
    }
  }

  template <class Visit>
  void visit(int slot, Visit visit) {
    for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q) {
      const Box owned = plan.owned(q);
      each_point(plan.allocated(q),
                 [&](const Index& p) { visit(fields.views()[q][slot].at(p), classify(q, p, owned)); });
    }
  }

  Point classify(int q, const Index& p, const Box& owned) const {
    Point point{q, plan.spec.quantities[q].element_bytes, owned.contains(p), true, {}};
    std::array<int, 3> way{};
    int displaced = 0;
    for (int d = 0; d < 3; ++d) {
      const std::int64_t n = layout.grid().cells[d];
      const bool periodic = layout.grid().periodic[d];
      const std::int64_t last =
          n - 1 + (d < layout.dims() && !periodic ? staggered(plan.spec.quantities[q].centring, d) : 0);
      std::int64_t g = layout.owned(plan.rank).lo[d] + p[d];
      if (periodic) g = (g + 4 * n) % n;
      point.mirrors &= g >= 0 && g <= last;
      point.global[d] = g;
      way[d] = p[d] < owned.lo[d] ? -1 : p[d] >= owned.hi[d];
      displaced += way[d] != 0;
    }
    point.mirrors = point.mirrors && layout.neighbour(plan.rank, way) >= 0;  // else towards a hole
    point.mirrors &= displaced < 2 || plan.spec.corners;
    return point;
  }

  std::vector<Copy> copies_of(int round) const {
    std::vector<Copy> list;
    for (const Copy& c : plan.copies)
      if (c.round == round) list.push_back(c);
    return list;
  }
  std::vector<int> set_of(int round, bool out) const {
    std::vector<int> ids;
    for (std::size_t i = 0; i < plan.messages.size(); ++i)
      if (plan.messages[i].round == round && plan.messages[i].out == out) ids.push_back(static_cast<int>(i));
    return ids;
  }

  Case case_;

 public:
  Layout layout;
  Plan plan;
  RigFields fields;

 private:
  std::shared_ptr<LibraryComm> own_ = LibraryComm::on(MPI_COMM_WORLD);
  LinkTags tags_;

 public:
  std::unique_ptr<Link> link;

 private:
  std::minstd_rand random_{static_cast<unsigned>(world_rank() + 1)};
  std::vector<CopyList> copies_;
  std::vector<std::vector<int>> sets_;
};

/// Every legal combination of a transport's options.
inline std::vector<Case> transport_variants() {
  std::vector<Case> variants;
  const auto add = [&](const char* transport, std::vector<std::string> options) {
    Case c;
    c.transport = transport;
    c.options = std::move(options);
    variants.push_back(c);
  };
  add("reference", {});
  for (const char* transport : {"p2p", "persistent"})
    for (bool testany : {false, true})
      for (bool datatype : {false, true}) {
        std::vector<std::string> options;
        if (testany) options.push_back("testany");
        if (datatype) options.push_back("datatype");
        add(transport, options);
      }
  add("p2p", {"blocking"});
  add("p2p", {"blocking", "datatype"});
  return variants;
}

inline std::string describe(const Case& c) {
  const auto three = [](const auto& a) {
    return std::to_string(a[0]) + "," + std::to_string(a[1]) + "," + std::to_string(a[2]);
  };
  std::string text = c.transport + ":" + join(c.options, ",");
  if (!c.between.empty()) text += "+" + c.between + ":" + join(c.between_options, ",");
  for (int node : c.nodes) text += " node " + std::to_string(node);
  text += " cells " + three(c.grid.cells) + " dims " + std::to_string(c.grid.dims) + " periodic " +
          three(c.grid.periodic) + " ranks " + three(c.ranks) + " low " + three(c.spec.low) + " high " +
          three(c.spec.high) + " order " + three(c.spec.order) + " rank order " + three(c.order);
  for (const Box& box : c.boxes) text += " " + three(box.lo) + ".." + three(box.hi);
  text += " strided " + std::to_string(c.strided);
  text += c.spec.pattern == Pattern::direct ? " direct" : " ordered";
  text += c.spec.merge_peers ? " merged" : "";
  text += c.spec.corners ? " corners" : "";
  for (const Quantity& q : c.spec.quantities) text += " " + q.name + "/" + std::to_string(q.element_bytes);
  return text + " merge " + std::to_string(static_cast<int>(c.spec.merge));
}

}  // namespace haloscope::test
