#include "haloscope/transport/composite.hpp"

#include <algorithm>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/transport/shared/shared_link.hpp"

namespace haloscope {
namespace {

/// A link of two parts. Every operation goes to both parts, each with its messages: collective parts rely on calls by
/// all ranks, including ranks without such a message.
class CompositeLink final : public Link {
 public:
  CompositeLink(std::unique_ptr<Link> near, std::unique_ptr<Link> far, std::vector<bool> is_near, bool far_collective,
                bool yield)
      : near_(std::move(near)),
        far_(std::move(far)),
        is_near_(std::move(is_near)),
        far_collective_(far_collective),
        yield_(yield),
        shared_(dynamic_cast<SharedLink*>(near_.get())) {
    scratch_.near.reserve(is_near_.size());
    scratch_.far.reserve(is_near_.size());
  }

  void post(Ids in, int slot) override {
    split(in);
    near_->post(scratch_.near, slot);
    far_->post(scratch_.far, slot);
  }
  /// Far messages first: they take longest.
  void send(Ids out, int slot) override {
    split(out);
    far_->send(scratch_.far, slot);
    near_->send(scratch_.near, slot);
  }
  bool test(Ids in, int slot) override {
    split(in);
    const bool near = near_->test(scratch_.near, slot);
    return far_->test(scratch_.far, slot) && near;
  }
  /// Polls both parts in turn: a blocking part would keep the other from serving its neighbours. A collective part
  /// can only block, so before that, neighbours must have received all messages that they need to reach the same
  /// call.
  void wait(Ids in, int slot) override {
    split(in);
    for (Spin spin(yield_);; spin.again()) {
      const bool far = far_collective_ || far_->test(scratch_.far, slot);
      const bool near = near_->arrives_in_wait() || near_->test(scratch_.near, slot);
      if (near && far && (!far_collective_ || shared_->all_sent())) break;
    }
    near_->wait(scratch_.near, slot);
    far_->wait(scratch_.far, slot);
  }
  bool test_complete(Ids out, int slot) override {
    split(out);
    const bool near = near_->test_complete(scratch_.near, slot);
    return far_->test_complete(scratch_.far, slot) && near;
  }
  void complete(Ids out, int slot) override {
    split(out);
    for (Spin spin(yield_); !far_collective_ && !test_complete(out, slot);) spin.again();
    near_->complete(scratch_.near, slot);
    far_->complete(scratch_.far, slot);
  }

  // Runs on any thread, so it does not use the scratch.
  void pack(Ids out, int slot, Share share) override {
    for (const int& id : out) part(id).pack({&id, 1}, slot, share);
  }
  void unpack(Ids in, int slot, Share share) override {
    for (const int& id : in) part(id).unpack({&id, 1}, slot, share);
  }
  std::int64_t packing_lines(Ids ids, int slot) const override {
    std::int64_t lines = 0;
    for (const int& id : ids) lines += part(id).packing_lines({&id, 1}, slot);
    return lines;
  }
  Blocks blocks() const override { return std::max(near_->blocks(), far_->blocks()); }
  bool arrives_in_wait() const override { return near_->arrives_in_wait() || far_->arrives_in_wait(); }
  bool must_be_awaited() const override { return near_->must_be_awaited() || far_->must_be_awaited(); }
  bool closes_alone() const override { return near_->closes_alone() && far_->closes_alone(); }
  void abandon() override {
    near_->abandon();
    far_->abandon();
  }
  bool follows() const override { return near_->follows() && far_->follows(); }
  void follow(int slot, SlotOffsets moved) override {
    near_->follow(slot, moved);
    far_->follow(slot, moved);
  }
  int waiting_for(Ids ids, int slot) const override {
    for (const int& id : ids)
      if (const int rank = part(id).waiting_for({&id, 1}, slot); rank >= 0) return rank;
    return -1;
  }

 private:
  Link& part(int id) const { return is_near_[static_cast<std::size_t>(id)] ? *near_ : *far_; }
  void split(Ids ids) {
    scratch_.near.clear();
    scratch_.far.clear();
    for (int id : ids) (is_near_[static_cast<std::size_t>(id)] ? scratch_.near : scratch_.far).push_back(id);
  }

  std::unique_ptr<Link> near_, far_;
  std::vector<bool> is_near_;
  bool far_collective_, yield_;
  SharedLink* shared_;
  struct {
    std::vector<int> near, far;
  } scratch_;
};

}  // namespace

std::unique_ptr<Link> open_link(const Strategy& strategy, const LinkContext& context) {
  if (strategy.between.empty()) return open_transport(strategy.transport, context, strategy.transport_options);
  const Node& node = node_of(context.comm, context.nodes);
  LinkContext near = context, far = context;
  std::vector<bool> is_near;
  for (const Message& message : context.plan->messages) is_near.push_back(node.local(message.peer) >= 0);
  near.mine = is_near;
  is_near.flip();
  far.mine = is_near;
  Strategy between;
  between.transport = strategy.between;
  between.transport_options = strategy.between_options;
  auto inside = open_transport(strategy.transport, near, strategy.transport_options);
  auto outside = open_transport(strategy.between, far, strategy.between_options);
  return std::make_unique<CompositeLink>(std::move(inside), std::move(outside), *near.mine, collective_rounds(between),
                                         context.yield);
}

}  // namespace haloscope
