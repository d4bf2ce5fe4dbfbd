// The oracle. It shares nothing with the plan's regions: every ghost point is traced to the global point it mirrors and
// to that point's owner, and values travel in one collective call. Slow, simple, and right by construction.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "haloscope/comm/own_comm.hpp"
#include "haloscope/error.hpp"
#include "haloscope/transport.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope {
namespace {

/// One ghost point to fill, or one owned point requested.
struct Point {
  std::int64_t quantity = 0;
  Index at{0, 0, 0};  ///< the owner's local coordinates if requested, own ones if to be filled
};

/// Points to or from all ranks, rank by rank.
struct Points {
  std::vector<Point> list;
  std::vector<int> bytes, offsets;  ///< per rank, of the packed values
  std::vector<std::byte> values;
};

/// The owner of a ghost point and its coordinates there; owner -1 beyond a physical edge.
struct Source {
  int owner = -1;
  Index at{0, 0, 0};
};

Source source_of(const Layout& layout, int rank, Centring centring, const Index& ghost) {
  const GridSpec& grid = layout.grid();
  const Box own = layout.owned(rank);
  Index cell, behind{0, 0, 0};  // of the point: it lies on the cell's low side, or on its high side
  for (int d = 0; d < 3; ++d) {
    const std::int64_t cells = grid.cells[d], extent = own.extent(d);
    const int s = d < grid.dims ? staggered(centring, d) : 0;
    if (s != 0 && ghost[d] >= extent) behind[d] = 1;  // of what two ranks share, the nearer one's
    cell[d] = own.lo[d] + ghost[d] - behind[d];
    if (grid.periodic[d]) cell[d] = ((cell[d] % cells) + cells) % cells;
    if (cell[d] < 0 || cell[d] >= cells) return {};
  }
  Source source;
  source.owner = layout.owner(cell);
  if (source.owner < 0) return {};
  const Index origin = layout.owned(source.owner).lo;
  for (int d = 0; d < 3; ++d) source.at[d] = cell[d] + behind[d] - origin[d];
  return source;
}

int dimensions_left(const Box& owned, const Index& p) {
  int left = 0;
  for (int d = 0; d < 3; ++d) left += p[d] < owned.lo[d] || p[d] >= owned.hi[d];
  return left;
}

/// Calls visit(quantity, ghost, source) for every ghost point of the exchange that mirrors a point of the grid.
template <class Visit>
void for_each_ghost(const Layout& layout, const Plan& plan, Visit visit) {
  for (std::size_t q = 0; q < plan.spec.quantities.size(); ++q) {
    const Box owned = plan.owned(static_cast<int>(q)), all = plan.allocated(static_cast<int>(q));
    Index p;
    for (p[2] = all.lo[2]; p[2] < all.hi[2]; ++p[2])
      for (p[1] = all.lo[1]; p[1] < all.hi[1]; ++p[1])
        for (p[0] = all.lo[0]; p[0] < all.hi[0]; ++p[0]) {
          const int left = dimensions_left(owned, p);
          if (left == 0 || (left > 1 && !plan.spec.corners)) continue;
          const Source source = source_of(layout, plan.rank, plan.spec.quantities[q].centring, p);
          if (source.owner >= 0) visit(q, p, source);
        }
  }
}

class ReferenceLink final : public Link {
 public:
  explicit ReferenceLink(const LinkContext& context)
      : own_(context.comm), comm_(own_.get()), plan_(*context.plan), views_(*context.views) {
    int size = 0;
    CHECK_MPI(MPI_Comm_size(comm_, &size));
    std::vector<std::vector<Point>> mine(size), theirs(size);
    for_each_ghost(*context.layout, plan_, [&](std::size_t q, const Index& ghost, const Source& source) {
      mine[source.owner].push_back({static_cast<std::int64_t>(q), ghost});
      theirs[source.owner].push_back({static_cast<std::int64_t>(q), source.at});
    });
    wanted_ = flat(mine);
    asked_ = flat(swapped(theirs));
  }

  void post(Ids, int) override { filled_ = false; }
  void pack(Ids, int, Share) override {}
  void send(Ids, int) override {}
  bool test(Ids, int) override { return filled_; }

  /// The whole exchange, own-neighbour halos included. Collective: every rank calls it once per exchange.
  void wait(Ids, int slot) override {
    transfer(asked_, slot, [](std::byte* value, std::byte* point, std::size_t n) { std::memcpy(value, point, n); });
    REQUIRE_MPI(MPI_Alltoallv(asked_.values.data(), asked_.bytes.data(), asked_.offsets.data(), MPI_BYTE,
                              wanted_.values.data(), wanted_.bytes.data(), wanted_.offsets.data(), MPI_BYTE, comm_));
    transfer(wanted_, slot, [](std::byte* value, std::byte* point, std::size_t n) { std::memcpy(point, value, n); });
    filled_ = true;
  }
  void unpack(Ids, int, Share) override {}
  bool test_complete(Ids, int) override { return true; }
  void complete(Ids, int) override {}
  Blocks blocks() const override { return Blocks::always; }
  int waiting_for(Ids in, int) const override { return filled_ || in.empty() ? -1 : plan_.messages[in[0]].peer; }

 private:
  std::size_t element_bytes(const Point& p) const { return plan_.spec.quantities[p.quantity].element_bytes; }

  template <class Move>
  void transfer(Points& points, int slot, Move move) {
    std::byte* value = points.values.data();
    for (const Point& p : points.list) {
      move(value, views_[p.quantity][slot].at(p.at), element_bytes(p));
      value += element_bytes(p);
    }
  }

  Points flat(const std::vector<std::vector<Point>>& by_rank) const {
    Points points;
    std::int64_t total = 0;
    for (const auto& list : by_rank) {
      points.offsets.push_back(static_cast<int>(total));
      std::int64_t bytes = 0;
      for (const Point& p : list) bytes += static_cast<std::int64_t>(element_bytes(p));
      points.bytes.push_back(static_cast<int>(bytes));
      total += bytes;
      if (total > std::numeric_limits<int>::max())
        throw UsageError("the halos of one rank exceed 2 GiB, too much for strategy 'reference'; use a smaller grid");
      points.list.insert(points.list.end(), list.begin(), list.end());
    }
    points.values.resize(total);
    return points;
  }

  /// What the other ranks have listed for this one.
  std::vector<std::vector<Point>> swapped(const std::vector<std::vector<Point>>& lists) const {
    const std::size_t size = lists.size();
    std::vector<int> out(size), in(size), out_at(size, 0), in_at(size, 0);
    for (std::size_t r = 0; r < size; ++r) out[r] = static_cast<int>(lists[r].size() * sizeof(Point));
    CHECK_MPI(MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_));
    std::partial_sum(out.begin(), out.end() - 1, out_at.begin() + 1);
    std::partial_sum(in.begin(), in.end() - 1, in_at.begin() + 1);
    std::vector<Point> sent, received((in_at.back() + in.back()) / sizeof(Point));
    for (const auto& list : lists) sent.insert(sent.end(), list.begin(), list.end());
    CHECK_MPI(MPI_Alltoallv(sent.data(), out.data(), out_at.data(), MPI_BYTE, received.data(), in.data(), in_at.data(),
                            MPI_BYTE, comm_));
    std::vector<std::vector<Point>> result(size);
    for (std::size_t r = 0; r < size; ++r) {
      const Point* begin = received.data() + in_at[r] / sizeof(Point);
      result[r].assign(begin, begin + in[r] / sizeof(Point));
    }
    return result;
  }

  OwnComm own_;  // wait() is collective, and several exchanges may be in flight
  MPI_Comm comm_;
  Plan plan_;
  Views views_;
  Points wanted_, asked_;
  bool filled_ = false;
};

}  // namespace

std::unique_ptr<Link> open_reference(const LinkContext& context, const std::vector<std::string>&) {
  if (context.plan->spec.pattern != Pattern::direct)
    throw UsageError("transport reference fills all halos at once; make its plan with the direct pattern");
  return std::make_unique<ReferenceLink>(context);
}

}  // namespace haloscope
