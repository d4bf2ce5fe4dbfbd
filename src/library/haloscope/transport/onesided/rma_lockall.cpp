// One-sided transfers inside one epoch to all ranks, from opening to closing: flushes complete them, or requests
// (rget).
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/onesided/rma_passive.hpp"

namespace haloscope {
namespace {

class LockAllLink final : public PassiveLink {
 public:
  LockAllLink(const LinkContext& context, const RmaOptions& options)
      : PassiveLink(context, options), requests_(static_cast<std::size_t>(messages()), MPI_REQUEST_NULL) {
    open();
  }
  ~LockAllLink() override { close(); }
  /// A get into the fields cannot be cancelled.
  bool must_be_awaited() const override { return options().rget || PassiveLink::must_be_awaited(); }

 private:
  void enlist(const Window& window) override {
    window.lock_all(assertion(MPI_MODE_NOCHECK));  // no rank ever locks exclusively
  }
  void retire(const Window& window) override { window.unlock_all(); }
  void enter(const Window&, int) override {}
  void leave(const Window& window, int target) override { REQUIRE_MPI(MPI_Win_flush(target, window.handle())); }
  void synchronise(const Window& window) override { REQUIRE_MPI(MPI_Win_sync(window.handle())); }

  void issue(int id) override { transfer(port(id), options().rget ? &requests_[id] : nullptr); }
  bool completed(int id) override {
    if (!options().rget) {
      leave(windows()[static_cast<std::size_t>(port(id).window)], port(id).target);
      return true;
    }
    int done = 0;
    REQUIRE_MPI(MPI_Test(&requests_[id], &done, MPI_STATUS_IGNORE));
    return done;
  }

  std::vector<MPI_Request> requests_;  // by message
};

}  // namespace

std::unique_ptr<Link> open_rma_lockall(const LinkContext& context, const std::vector<std::string>& words) {
  return std::make_unique<LockAllLink>(context, RmaOptions::parse(words));
}

}  // namespace haloscope
