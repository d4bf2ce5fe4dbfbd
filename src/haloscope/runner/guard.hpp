// The guard of an exchange: how many layers of each halo are fresh, and poison in those that are not.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "haloscope/device_stream.hpp"
#include "haloscope/field/poison.hpp"
#include "haloscope/layout.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/runner/device_poison.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// All calls are local, and made by all ranks alike.
class Guard {
 public:
  /// @param plan, views  of the exchange; they outlive the guard. @param device  whose memory the fields are in, which
  ///                     outlives it too; null: host memory.
  Guard(const Layout& layout, const Plan& plan, const Views& views, device::Device* device);

  /// An exchange of the slot has ended.
  void filled(int slot);
  /// Its halos hold something else: an exchange is under way, it was accumulated, it lies elsewhere.
  void overwritten(int slot) { age(slot, 0); }
  /// The fields of the slot lie elsewhere.
  void moved(int slot);
  /// Its own points have changed: layers beyond `fresh` are stale, and poisoned. @param stream  fields of a device:
  /// after what it has been given and before what it is given next. @param waits  the host waits until it is done.
  void changed(int slot, int fresh, DeviceStream stream, bool waits);
  /// @throws UsageError where fewer layers than `depth` are fresh, on all ranks alike.
  void require_fresh(int depth, int slot) const;
  /// @throws UsageError where an own point of this rank holds poison. @param stream  fields of a device: after what it
  /// has been given.
  void check_clean(int slot, DeviceStream stream) const;

 private:
  struct Halo {
    int quantity;
    Box box;
    Side side;
  };
  using Layers = std::array<std::array<int, 2>, 3>;  ///< by dimension and side

  /// The guard of fields on a device.
  struct There {
    explicit There(device::Device& on, const std::vector<Quantity>& quantities, const Views& views);
    void begin(DeviceStream after);
    device::Device& device;
    DevicePoison poison;
    std::unique_ptr<device::Stream> stream;
    std::unique_ptr<device::Event> event;
  };

  void age(int slot, int fresh);
  void find_stale();
  /// The parts of halos beyond the layers that are left.
  const std::vector<PoisonSpot>& stale(int fresh) const;
  std::optional<Leak> find(int quantity, int slot) const;
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
  std::vector<std::vector<PoisonSpot>> stale_;  // by layers that are left
  std::vector<Layers> fresh_;                   // [slot][field]
  std::vector<std::int64_t> last_;              // by slot: number of its last exchange, 0: none
  std::int64_t exchanges_ = 0;
  std::unique_ptr<There> there_;  // null: host memory
};

}  // namespace haloscope
