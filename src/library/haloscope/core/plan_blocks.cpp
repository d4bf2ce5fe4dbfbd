// Plans of ranks that own several blocks. Each block has the plan that it would have as the only one of a rank; these
// plans are joined. Blocks of the same rank copy each other's points, and all messages between two ranks with the same
// tag are one, whose regions are listed by sending block, then by receiving block.
#include <algorithm>
#include <map>
#include <tuple>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Joins the plans of a rank's blocks.
class Joined {
 public:
  Joined(const Layout& layout, int rank, const ExchangeSpec& request) : layout_(layout), rank_(rank) {
    ExchangeSpec spec = request;
    if (apart(spec.merge)) spec.merge = Merge::none;  // fields of all blocks share rounds
    first_ = layout.first_block(rank);
    const int blocks = layout.blocks_of(rank);
    for (int block = 0; block < blocks; ++block) plans_.push_back(make_plan(layout.by_block(), first_ + block, spec));
    if (blocks == 0) {
      const int idle = layout.by_block().size();
      plans_.push_back(make_plan(layout.by_block().with_idle_ranks(idle + 1), idle, spec));
    }
    fields_ = static_cast<int>(request.quantities.size());
  }

  Plan take() {
    plan_ = plans_.front();
    plan_.rank = rank_;
    plan_.messages.clear();
    plan_.copies.clear();
    plan_.fields_of_block = fields_;
    plan_.further_blocks.assign(plans_.begin() + 1, plans_.end());
    repeat_quantities();
    add_local();
    for (int block = 0; block < blocks(); ++block) add_copies(block);
    for (int block = 0; block < blocks(); ++block) add_messages(block);
    finish_messages();
    std::stable_sort(plan_.copies.begin(), plan_.copies.end(),
                     [](const Copy& a, const Copy& b) { return a.round < b.round; });
    return std::move(plan_);
  }

 private:
  /// Regions of the message of one block to another.
  struct Share {
    int from, to;  // blocks
    std::vector<Region> regions;
  };

  int blocks() const { return static_cast<int>(plans_.size()); }
  /// Returns the number, in the joined plan, of quantity q of a block. The fields of all blocks come first.
  int number_of(int block, int q) const {
    const int landings = static_cast<int>(plans_.front().spec.quantities.size()) - fields_;
    return q < fields_ ? block * fields_ + q : blocks() * fields_ + block * landings + q - fields_;
  }
  Region region_of(int block, const Region& region) const { return {number_of(block, region.quantity), region.box}; }

  void repeat_quantities() {
    const ExchangeSpec& one = plans_.front().spec;
    ExchangeSpec& all = plan_.spec;
    all.blocks = blocks();
    all.quantities.resize(one.quantities.size() * plans_.size());
    if (!one.widths.empty()) all.widths.resize(all.quantities.size());
    for (int block = 0; block < blocks(); ++block)
      for (int q = 0; q < static_cast<int>(one.quantities.size()); ++q) {
        Quantity& quantity = all.quantities[number_of(block, q)] = one.quantities[q];
        if (quantity.lands >= 0) quantity.lands = number_of(block, quantity.lands);
        if (quantity.turns >= 0) quantity.turns = number_of(block, quantity.turns);
        if (!one.widths.empty()) all.widths[number_of(block, q)] = one.widths[q];
      }
  }
  void add_copies(int block) {
    for (Copy copy : plans_[block].copies) {
      copy.quantity = number_of(block, copy.quantity);
      if (copy.source >= 0) copy.source = number_of(block, copy.source);
      plan_.copies.push_back(copy);
    }
  }
  /// Returns the place of a block in this rank's list; -1 for a block of another rank.
  int place_of(int block) const { return layout_.rank_of_block(block) == rank_ ? block - first_ : -1; }

  /// Adds copies for messages between blocks of the rank.
  void add_local() {
    for (int to = 0; to < blocks(); ++to)
      for (const Message& in : plans_[to].messages)
        if (const int from = place_of(in.peer); !in.out && from >= 0) {
          const Message& out = other_end(plans_[from], first_ + to, in);
          for (std::size_t i = 0; i < in.regions.size(); ++i)
            add_local(region_of(from, out.regions[i]), region_of(to, in.regions[i]), in.round);
        }
  }
  void add_local(const Region& from, const Region& to, int round) {
    Copy copy{.quantity = to.quantity, .round = round, .to = to.box, .source = from.quantity};
    for (int d = 0; d < 3; ++d) copy.shift[d] = from.box.lo[d] - to.box.lo[d];
    plan_.copies.push_back(copy);
  }
  static const Message& other_end(const Plan& plan, int peer, const Message& in) {
    for (const Message& out : plan.messages)
      if (out.out && out.peer == peer && out.tag == in.tag && out.round == in.round) return out;
    throw Error(Exit::failed, "a block sends no counterpart of a message of block " + std::to_string(peer));
  }

  void add_messages(int block) {
    for (const Message& message : plans_[block].messages) {
      if (place_of(message.peer) >= 0) continue;
      const int peer = layout_.rank_of_block(message.peer);
      const auto [at, fresh] = message_of_.try_emplace({message.round, message.out, peer, message.tag}, shares_.size());
      if (fresh) {
        plan_.messages.push_back(message);
        plan_.messages.back().peer = peer;
        plan_.messages.back().bytes = 0;
        shares_.emplace_back();
      }
      Share share{message.peer, first_ + block, {}};
      if (message.out) std::swap(share.from, share.to);
      for (const Region& region : message.regions) share.regions.push_back(region_of(block, region));
      plan_.messages[at->second].bytes += message.bytes;
      shares_[at->second].push_back(std::move(share));
    }
  }
  void finish_messages() {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      std::sort(shares_[i].begin(), shares_[i].end(),
                [](const Share& a, const Share& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
      plan_.messages[i].regions.clear();
      for (const Share& share : shares_[i])
        plan_.messages[i].regions.insert(plan_.messages[i].regions.end(), share.regions.begin(), share.regions.end());
    }
    std::stable_sort(plan_.messages.begin(), plan_.messages.end(), [](const Message& a, const Message& b) {
      return std::tuple(a.round, a.out) < std::tuple(b.round, b.out);
    });
  }

  const Layout& layout_;
  int rank_, first_ = 0, fields_ = 0;
  std::vector<Plan> plans_;  // of the blocks
  Plan plan_;
  std::map<std::tuple<int, bool, int, int>, std::size_t> message_of_;  // by round, direction, peer, tag
  std::vector<std::vector<Share>> shares_;                             // of each message
};

}  // namespace

Plan make_plan_of_blocks(const Layout& layout, int rank, const ExchangeSpec& spec) {
  return Joined(layout, rank, spec).take();
}

}  // namespace haloscope
