#include "haloscope/rank/microbench/transfer.hpp"

#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/rank/measure/bare_exchange.hpp"
#include "haloscope/runner/comm_ops.hpp"

namespace haloscope {

std::unique_ptr<PeerGroup> PeerGroup::open_pair(MPI_Comm all, int gap, int pairs, int nodes, bool yield) {
  int rank = 0;
  REQUIRE_MPI(MPI_Comm_rank(all, &rank));
  const Paired mine = find_pair(rank, gap);
  std::unique_ptr<PeerGroup> group(new PeerGroup);
  REQUIRE_MPI(MPI_Comm_split(all, mine.pair < pairs ? mine.pair : MPI_UNDEFINED, mine.side, &group->comm_));
  group->rank_ = mine.side;
  group->size_ = 2;
  group->yield_ = yield;
  if (group->idle()) return group;
  group->partner_ = mine.partner;
  group->take_nodes(all, nodes);
  return group;
}

std::unique_ptr<PeerGroup> PeerGroup::open_ring(MPI_Comm all, int nodes, bool yield) {
  std::unique_ptr<PeerGroup> group(new PeerGroup);
  REQUIRE_MPI(MPI_Comm_dup(all, &group->comm_));
  REQUIRE_MPI(MPI_Comm_rank(all, &group->rank_));
  REQUIRE_MPI(MPI_Comm_size(all, &group->size_));
  group->ring_ = true;
  group->yield_ = yield;
  group->partner_ = (group->rank_ + 1) % group->size_;
  group->take_nodes(all, nodes);
  return group;
}

PeerGroup::~PeerGroup() {
  if (!idle()) REQUIRE_MPI(MPI_Comm_free(&comm_));
}

/// Numbers of the nodes of this group's ranks, in the order in which they first appear.
void PeerGroup::take_nodes(MPI_Comm all, int emulated) {
  if (emulated == 0) return;
  int ranks = 0, rank = 0;
  REQUIRE_MPI(MPI_Comm_size(all, &ranks));
  REQUIRE_MPI(MPI_Comm_rank(all, &rank));
  const std::vector<int> of_all = emulated_nodes(ranks, emulated, Placement::block);
  nodes_.resize(static_cast<std::size_t>(size_));
  REQUIRE_MPI(MPI_Allgather(&of_all[rank], 1, MPI_INT, nodes_.data(), 1, MPI_INT, comm_));
  std::vector<int> seen;
  for (int& node : nodes_) {
    const auto known = std::find(seen.begin(), seen.end(), node);
    const int number = static_cast<int>(known - seen.begin());
    if (known == seen.end()) seen.push_back(node);
    node = number;
  }
}

struct Transfer::Open : BareExchange {
  Open(const PeerGroup& on, const Strategy& strategy, Way way, std::int64_t bytes, int messages)
      : BareExchange(on.comm_, strategy,
                     Layout({1, {on.size_ * bytes, 1, 1}, {on.ring_, false, false}}, {on.size_, 1, 1}),
                     spec(strategy, way, bytes, messages), on.yield_, on.nodes_),
        group(on) {
    for (const Message& m : plan.messages)
      if (m.out) {
        fresh.emplace_back(static_cast<std::size_t>(m.bytes));
        rewriting.push_back(make_unpack(storage.views(), 0, m, fresh.back().data()));
      }
  }

  bool right(RankStatus& status) {
    status.set(static_cast<std::int32_t>(OpKind::wait));  // watched, unlike set-up
    for_each_halo([](std::byte* at, std::byte expected) { *at = ~expected; });
    for (std::size_t q = 0; q < storage.views().size(); ++q)
      for (std::int64_t x = 0; x < plan.cells[0]; ++x) *cell(q, x) = value(q, group.rank_, x);
    run();
    bool good = true;
    for_each_halo([&](const std::byte* at, std::byte expected) { good = good && *at == expected; });
    return good;
  }

  static ExchangeSpec spec(const Strategy& strategy, Way way, std::int64_t bytes, int messages) {
    ExchangeSpec spec;
    const int width = static_cast<int>(bytes);
    spec.quantities.assign(static_cast<std::size_t>(messages), Quantity{"u", 1, ScalarType::integer, Centring::cell});
    spec.low = {way == Way::back ? 0 : width, 0, 0};
    spec.high = {way == Way::forth ? 0 : width, 0, 0};
    spec.pattern = strategy.pattern;
    spec.merge = Merge::none;  // one message per quantity
    return spec;
  }
  std::byte* cell(std::size_t quantity, std::int64_t x) { return storage.views()[quantity][0].at({x, 0, 0}); }
  static std::byte value(std::size_t quantity, int rank, std::int64_t x) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(x) * 131 + (static_cast<std::uint64_t>(x) >> 8) * 29 +
                                  quantity * 31 + static_cast<std::uint64_t>(rank) * 17);
  }
  /// Calls f(position, value from the neighbour on that side) for every byte of the halos.
  template <class F>
  void for_each_halo(F f) {
    const std::int64_t cells = plan.cells[0];
    for (const Message& m : plan.messages) {
      if (m.out) continue;
      for (const Region& r : m.regions)
        for (std::int64_t x = r.box.lo[0]; x < r.box.hi[0]; ++x) {
          const int sender = (group.rank_ + (x < 0 ? group.size_ - 1 : 1)) % group.size_;
          const auto q = static_cast<std::size_t>(r.quantity);
          f(cell(q, x), value(q, sender, x < 0 ? x + cells : x - cells));
        }
    }
  }

  const PeerGroup& group;
  std::vector<Memory> fresh;
  std::vector<CopyList> rewriting;
};

Transfer::Transfer(const PeerGroup& group, const Strategy& strategy, Way way, std::int64_t bytes, int messages) {
  if (group.idle()) return;
  open_ = collectively(group.comm_, "a transfer",
                       [&] { return std::make_unique<Open>(group, strategy, way, bytes, messages); });
}
Transfer::~Transfer() = default;

void Transfer::rewrite() const {
  if (!open_) return;
  for (const CopyList& list : open_->rewriting) list.run();
}
void Transfer::run() {
  if (open_) open_->run();
}
bool Transfer::right(RankStatus& status) { return !open_ || open_->right(status); }

}  // namespace haloscope
