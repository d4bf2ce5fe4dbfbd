// One-sided transfers under general active target synchronisation: each target exposes its segments to exactly the
// ranks that access them, and each origin opens an epoch to exactly its targets. Pairwise: no collective calls, no
// extra messages. Exposure epochs of one window must not overlap, so each round has a separate window, or each message
// (per-message), which makes messages independent of each other.
#include <algorithm>

#include "haloscope/comm/handles.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/onesided/window.hpp"

namespace haloscope {
namespace {

class PscwLink final : public WindowLink {
 public:
  PscwLink(const LinkContext& context, const RmaOptions& options)
      : WindowLink(context, options), epoch_of_(static_cast<std::size_t>(messages()), -1) {
    const Hints hints{{"no_locks", "true"}};
    if (options.per_message)
      make_message_windows(hints);
    else
      make_common_windows(context.plan->rounds, hints, [&](int id) { return port(id).round; });
    for (int id = 0; id < messages(); ++id)
      if (moves(id)) join_epoch(id);
    for (Epoch& epoch : epochs_) epoch.group = group_of(comm(), peers_of(epoch.ids));
  }
  ~PscwLink() override { finish(); }

  void post(Ids in, int slot) override {
    begin(in, slot);
    if (!options().get) for_each_epoch(in, [&](Epoch& e) { expose(e); });
  }
  /// Put: starts once the targets have posted, and ends the access immediately. Get: announces that the segments are
  /// packed.
  void send(Ids out, int slot) override {
    begin(out, slot);
    for_each_epoch(out, [&](Epoch& e) { options().get ? expose(e) : access(e); });
  }

  /// Get: beginning an access may block until the owner has packed, so only wait() does it.
  bool test(Ids in, int) override { return options().get ? waiting_for(in, 0) < 0 : poll(in); }
  void wait(Ids in, int) override {
    for_each_epoch(in, [&](Epoch& e) { options().get ? fetch(e) : await(e); });
  }
  Blocks blocks() const override { return Blocks::always; }
  bool arrives_in_wait() const override { return options().get; }
  bool test_complete(Ids out, int) override { return options().get ? poll(out) : true; }
  void complete(Ids out, int) override {
    if (options().get) for_each_epoch(out, [&](Epoch& e) { await(e); });
  }

 private:
  /// Messages that begin and end together: the messages of a round in one direction, or a single one.
  struct Epoch {
    int window = 0;
    bool origin = false;
    bool exposed = false;  // to a group that has not completed yet
    OwnedGroup group = {};
    std::vector<int> ids = {};
  };

  void join_epoch(int id) {
    const Port& p = port(id);
    auto found = options().per_message ? epochs_.end() : std::find_if(epochs_.begin(), epochs_.end(), [&](Epoch& e) {
      return e.window == p.window && e.origin == p.origin;
    });
    if (found == epochs_.end()) found = epochs_.insert(found, Epoch{p.window, p.origin});
    found->ids.push_back(id);
    epoch_of_[id] = static_cast<int>(found - epochs_.begin());
  }
  std::vector<int> peers_of(const std::vector<int>& ids) const {
    std::vector<int> peers;
    for (int id : ids) peers.push_back(port(id).peer);
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  /// Calls `visit` for every epoch that the messages belong to, once. The messages form whole epochs: single messages
  /// need per-message windows.
  template <class Visit>
  void for_each_epoch(Ids ids, Visit visit) {
    for (int id : ids)
      if (Epoch& e = epochs_[static_cast<std::size_t>(epoch_of_[id])]; e.ids.front() == id) visit(e);
  }
  MPI_Win window(const Epoch& e) const { return windows()[static_cast<std::size_t>(e.window)].handle(); }

  void begin(Ids ids, int slot) {
    for (int id : ids) start(port(id), slot);
  }
  void settled(const Epoch& e) {
    for (int id : e.ids) port(id).pending.store(false, std::memory_order_relaxed);
  }

  void expose(Epoch& e) {
    REQUIRE_MPI(MPI_Win_post(e.group.get(), assertion(options().get ? MPI_MODE_NOPUT : MPI_MODE_NOSTORE), window(e)));
    e.exposed = true;
  }
  void access(Epoch& e) {
    REQUIRE_MPI(MPI_Win_start(e.group.get(), 0, window(e)));
    for (int id : e.ids) transfer(port(id));
    REQUIRE_MPI(MPI_Win_complete(window(e)));
    settled(e);
  }
  void fetch(Epoch& e) {
    if (port(e.ids.front()).pending.load(std::memory_order_relaxed)) access(e);
  }
  bool look(Epoch& e) {
    int done = 1;
    if (e.exposed) REQUIRE_MPI(MPI_Win_test(window(e), &done));
    if (!done) return false;
    e.exposed = false;
    settled(e);
    return true;
  }
  bool poll(Ids ids) {
    bool all = true;
    for_each_epoch(ids, [&](Epoch& e) { all = look(e) && all; });
    return all;
  }
  /// Polls, so that the core can be yielded where ranks share cores.
  void await(Epoch& e) {
    Spin spin(yield());
    while (!look(e)) spin.again();
  }

  std::vector<Epoch> epochs_;
  std::vector<int> epoch_of_;  // by message
};

}  // namespace

std::unique_ptr<Link> open_rma_pscw(const LinkContext& context, const std::vector<std::string>& words) {
  return std::make_unique<PscwLink>(context, RmaOptions::parse(words));
}

}  // namespace haloscope
