// One-sided transfers, each under a lock of its own. All locks are shared: the signals keep accesses apart, so none
// conflicts with another, and MPI may be told not to check.
#include <atomic>

#include "haloscope/transport/builtin.hpp"
#include "haloscope/transport/onesided/rma_passive.hpp"

namespace haloscope {
namespace {

class LockLink final : public PassiveLink {
 public:
  LockLink(const LinkContext& context, const RmaOptions& options) : PassiveLink(context, options) {
    open(*context.layout);
  }
  ~LockLink() override { close(); }

 private:
  void enlist(const Window&) override {}
  void retire(const Window&) override {}
  void enter(const Window& window, int target) override {
    MPI_Win_lock(MPI_LOCK_SHARED, target, assertion(MPI_MODE_NOCHECK), window.handle());
  }
  void leave(const Window& window, int target) override { MPI_Win_unlock(target, window.handle()); }

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

class RmaLock final : public Transport {
 public:
  std::string name() const override { return "rma-lock"; }
  std::string summary() const override {
    return "one-sided transfers, each under its own lock; put or get; told of readiness by empty messages or polled "
           "flags; one window, or per-message; plain: no hints, no assertions; separate: precautions of MPI's separate "
           "memory model";
  }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    return std::make_unique<LockLink>(context, RmaOptions::parse(name(), words));
  }
};

}  // namespace

const Transport& rma_lock_transport() {
  static const RmaLock transport;
  return transport;
}

}  // namespace haloscope
