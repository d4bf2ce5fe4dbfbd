// One-sided transfers between fences. A fence opens an epoch once every target has finished the previous exchange
// (has unpacked, or has packed anew); the next one closes it. Fences are collective over their window, so every rank
// takes part in every round.
#include <algorithm>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/onesided/window.hpp"

namespace haloscope {
namespace {

class FenceLink final : public WindowLink {
 public:
  FenceLink(const LinkContext& context, const RmaOptions& options) : WindowLink(context, options) {
    const Hints hints{{"no_locks", "true"}};
    if (options.split) {
      make_windows_of_groups(hints);
      return;
    }
    const auto number = numbers_in_round();
    const int most = number.empty() ? 0 : *std::max_element(number.begin(), number.end()) + 1;
    if (options.per_message)
      make_common_windows(most, hints, [&](int id) { return number[id]; });
    else
      make_common_windows(1, hints, [](int) { return 0; });
  }
  ~FenceLink() override {
    finish();
    wait({}, 0);  // a rank without messages takes part too
  }

  void post(Ids in, int slot) override {
    for (int id : in) start(port(id), slot);
  }

  /// Put: opens the epoch, which lasts until wait(). Get: no rank can fetch before all have packed, which only a
  /// fence can ensure; so both fences are in wait().
  void send(Ids out, int slot) override {
    for (int id : out) start(port(id), slot);
    open_ = true;
    if (options().get) return;
    fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE);
    for (int id : out) transfer(port(id));
  }

  /// Returns true only after wait(): a fence blocks, so test() cannot make it.
  bool test(Ids, int) override { return !open_; }

  void wait(Ids in, int) override {
    if (!open_) return;
    if (options().get) {
      fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT);
      for (int id : in) transfer(port(id));
    }
    fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
    open_ = false;
    for (int id : in) port(id).pending.store(false, std::memory_order_relaxed);
  }

  bool test_complete(Ids, int) override { return !open_; }
  Blocks blocks() const override { return Blocks::always; }
  bool arrives_in_wait() const override { return true; }
  /// wait() of the same round has completed the transfers of both directions.
  void complete(Ids out, int) override {
    for (int id : out) port(id).pending.store(false, std::memory_order_relaxed);
  }

 private:
  /// Window x belongs to rank x and its peers: x reaches them through it, and they expose x's segments in it. A rank
  /// exposes nothing in its window. Ranks make windows, and fence, in ascending order of x, hence without deadlock.
  void make_windows_of_groups(const Hints& hints) {
    std::vector<Exposed> exposed;
    const auto owners = members();
    int own = 0;
    const auto table = lists_of_all(comm(), owners);
    for (const std::int64_t owner : owners) {
      if (owner == rank()) own = static_cast<int>(exposed.size());
      OwnedComm group = group_comm(table[static_cast<std::size_t>(owner)]);
      exposed.push_back({group.get(), std::move(group)});
      for (int id = 0; id < messages(); ++id)
        if (moves(id) && !port(id).origin && port(id).peer == owner) exposed.back().ids.push_back(id);
    }
    make_windows(std::move(exposed), hints, own);
  }

  /// Returns this rank and its peers, ascending.
  std::vector<std::int64_t> members() const {
    std::vector<std::int64_t> list{rank()};
    for (int id = 0; id < messages(); ++id)
      if (moves(id)) list.push_back(port(id).peer);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  /// Makes a communicator of `members`. Collective over `members` only.
  OwnedComm group_comm(const std::vector<std::int64_t>& members) const {
    const std::vector<int> ranks(members.begin(), members.end());
    OwnedComm made;
    CHECK_MPI(MPI_Comm_create_group(comm(), group_of(comm(), ranks).get(), tags().group(), made.address()));
    CHECK_MPI(MPI_Comm_set_errhandler(made.get(), MPI_ERRORS_RETURN));  // MPICH 5 does not inherit it from comm()
    return made;
  }

  void fence(int modes) {
    for (const Window& window : windows()) {
      // Where ranks share cores, a rank that spins in a fence blocks the rank that it waits for.
      if (yield()) meet(window.comm(), true);
      REQUIRE_MPI(MPI_Win_fence(assertion(modes), window.handle()));
    }
  }

  bool open_ = false;  // between send() and wait() of a round
};

}  // namespace

std::unique_ptr<Link> open_rma_fence(const LinkContext& context, const std::vector<std::string>& words) {
  return std::make_unique<FenceLink>(context, RmaOptions::parse(words));
}

}  // namespace haloscope
