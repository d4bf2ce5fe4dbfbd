// The guard of an exchange: how many layers of each halo are fresh, and poison in those that are not.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "haloscope/field/poison.hpp"
#include "haloscope/layout.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// All calls are local, and made by all ranks alike.
class Guard {
 public:
  /// @param plan, views  of the exchange; they outlive the guard.
  Guard(const Layout& layout, const Plan& plan, const Views& views);

  /// An exchange of the slot has ended.
  void filled(int slot);
  /// Its halos hold something else: an exchange is under way, it was accumulated, it lies elsewhere.
  void overwritten(int slot) { age(slot, 0); }
  /// Its own points have changed: layers beyond `fresh` are stale, and poisoned.
  void changed(int slot, int fresh);
  /// @throws UsageError where fewer layers than `depth` are fresh, on all ranks alike.
  void require_fresh(int depth, int slot) const;
  /// @throws UsageError where an own point of this rank holds poison.
  void check_clean(int slot) const;

 private:
  struct Halo {
    int quantity;
    Box box;
    Side side;
  };
  using Layers = std::array<std::array<int, 2>, 3>;  ///< by dimension and side

  void age(int slot, int fresh);
  bool is_filled(int quantity, int dimension) const;
  Layers& fresh(int slot, int quantity) { return fresh_[static_cast<std::size_t>(slot) * fields_ + quantity]; }
  const Layers& fresh(int slot, int quantity) const {
    return fresh_[static_cast<std::size_t>(slot) * fields_ + quantity];
  }
  int width(int quantity, int dimension, int side) const;
  std::string last_exchange(int slot) const;

  Index first_;  ///< own cell, global
  const Plan& plan_;
  const Views& views_;
  int fields_;
  std::vector<Halo> halos_;
  std::vector<Layers> fresh_;       // [slot][field]
  std::vector<std::int64_t> last_;  // by slot: number of its last exchange, 0: none
  std::int64_t exchanges_ = 0;
};

}  // namespace haloscope
