// The guard of an exchange: the number of fresh layers of each halo, and poison in the others.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/field/poison.hpp"
#include "haloscope/layout.hpp"
#include "haloscope/runner/device_poison.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// Tracks halos of an exchange. All calls are local, and all ranks make the same calls.
class Guard {
 public:
  /// @param plan, views plan and views of the exchange; they outlive the guard. @param device device of the fields,
  ///                     which outlives it too; null: host memory.
  Guard(const Layout& layout, const Plan& plan, FieldViews views, device::Device* device);

  // Fields are numbered within a block; all blocks change together.

  /// Marks layers of fields as fresh: an exchange of them has ended.
  void filled(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers);
  /// Marks halos as overwritten: an exchange of these layers is in flight, or the slot was accumulated.
  void overwritten(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers);
  /// Follows the fields of the slot to other addresses.
  void moved(int slot);
  /// Handles a change of owned points: layers beyond `fresh` become stale, and are poisoned. @param stream fields of
  /// a device: after the work already enqueued on it and before work enqueued later. @param waits the host waits
  /// until it is done.
  void changed(int slot, int fresh, DeviceStream stream, bool waits);
  /// Checks fresh layers. @throws UsageError, on all ranks, where fewer layers than `depth` are fresh.
  void require_fresh(int depth, int slot) const;
  /// Checks owned points. @throws UsageError where an own point of this rank holds poison. @param stream fields of a
  /// device: after the work already enqueued on it.
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
    explicit There(device::Device& on, const std::vector<Quantity>& quantities, FieldViews views);
    void begin(DeviceStream after);
    device::Device& device;
    DevicePoison poison;
    std::unique_ptr<device::Stream> stream;
    std::unique_ptr<device::Event> event;
  };

  void age(int slot, int fresh);
  void find_stale();
  /// Returns the parts of halos beyond the fresh layers.
  const std::vector<PoisonSpot>& stale(int fresh) const;
  std::optional<Leak> find(int quantity, int slot) const;
  bool is_filled(int quantity, int dimension, int side) const;
  Layers& fresh(int slot, int quantity) { return fresh_[static_cast<std::size_t>(slot) * fields_ + quantity]; }
  const Layers& fresh(int slot, int quantity) const {
    return fresh_[static_cast<std::size_t>(slot) * fields_ + quantity];
  }
  int width(int quantity, int dimension, int side) const;
  std::string last_exchange(int slot) const;

  /// Calls change(fresh layers of a field, its layers) for some fields of all blocks.
  template <class Change>
  void for_fields(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers,
                  const Change& change);

  std::vector<Index> first_;  ///< own cell of each block, global
  const Plan& plan_;
  FieldViews views_;
  int fields_;
  std::vector<Halo> halos_;
  std::vector<std::vector<PoisonSpot>> stale_;  // by fresh layers
  std::vector<Layers> fresh_;                   // [slot][field]
  std::vector<std::int64_t> last_;              // by slot: number of its last exchange, 0: none
  std::int64_t exchanges_ = 0;
  std::unique_ptr<There> there_;  // null: host memory
};

}  // namespace haloscope
