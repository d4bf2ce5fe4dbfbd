// One-sided transfers, each under a separate lock. All locks are shared ones: the signals separate accesses, so that
// locks never conflict, and MPI need not check (MPI_MODE_NOCHECK).
#include <atomic>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/onesided/rma_passive.hpp"

namespace haloscope {
namespace {

class LockLink final : public PassiveLink {
 public:
  LockLink(const LinkContext& context, const RmaOptions& options) : PassiveLink(context, options) { open(); }
  ~LockLink() override { close(); }

 private:
  void enlist(const Window&) override {}
  void retire(const Window&) override {}
  void enter(const Window& window, int target) override {
    REQUIRE_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, assertion(MPI_MODE_NOCHECK), window.handle()));
  }
  void leave(const Window& window, int target) override { REQUIRE_MPI(MPI_Win_unlock(target, window.handle())); }

  void synchronise(const Window& window) override {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (unified()) return;
    enter(window, rank());
    leave(window, rank());
  }
  /// A rank can hold one lock per window and target, so each transfer ends before the next begins.
  void issue(int id) override {
    const Window& window = windows()[static_cast<std::size_t>(port(id).window)];
    enter(window, port(id).target);
    transfer(port(id));
    leave(window, port(id).target);
  }
  bool completed(int) override { return true; }
};

}  // namespace

std::unique_ptr<Link> open_rma_lock(const LinkContext& context, const std::vector<std::string>& words) {
  return std::make_unique<LockLink>(context, RmaOptions::parse(words));
}

}  // namespace haloscope
