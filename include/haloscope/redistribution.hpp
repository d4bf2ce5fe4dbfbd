// Redistributions: fields move between two splits of one grid, such as splits over other numbers of ranks, pencils
// along another dimension, or all cells on one rank.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/grid.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// An opened redistribution of some fields: the points that ranks own in one split of a grid move to the ranks that
/// hold them in another one. Nodes and faces that several ranks hold get their owner's value, see
/// Exchange::start_share(), on all of their holders. Ghost layers neither move nor change; points in a hole of the
/// first split stay as they are in the second one.
/// The rules of Exchange hold for threads, for MPI_Finalize, and for fields of a device.
class Redistribution {
 public:
  /// Opens a redistribution. Collective over `comm`.
  /// @param from, to  splits of one grid over the ranks of `comm`, of which some may own no cells.
  /// @param sources   the fields in the first split. @param targets  the same in the second one: equally many, of the
  ///                  same types, centrings and numbers of slots, in separate memory. Where a rank owns no cells,
  ///                  addresses may be null. Where ranks have several blocks: the fields of the first block, then of
  ///                  the next. Memory must stay in place as long as the redistribution lives.
  /// @param strategy  as for Exchange; its pattern has no effect: a rank sends at most one message to each other rank,
  ///                  or the number that `fields` of the strategy requests. Empty or `reference`: direct/p2p, and
  ///                  direct:merged/auto-device for fields of devices. Buffers are as large as the fields, and `auto`
  ///                  holds buffers of several transports. HALOSCOPE_STRATEGY has no effect.
  /// @param nodes     node of each rank, to emulate nodes on one machine; empty: the real machines.
  /// @throws on all ranks, before any point is moved: UsageError for splits of different grids, fields that do not fit
  ///         them or each other, and where ranks request different redistributions; UnavailableError as the transport
  ///         does; Error where memory is exhausted.
  Redistribution(MPI_Comm comm, const Layout& from, const Layout& to, const std::vector<FieldRef>& sources,
                 const std::vector<FieldRef>& targets, const std::optional<Strategy>& strategy = {},
                 const std::vector<int>& nodes = {});
  /// Finishes the redistribution in flight. Collective, as the end of an Exchange is.
  ~Redistribution();
  Redistribution(Redistribution&&) noexcept;
  Redistribution& operator=(Redistribution&&) noexcept;

  /// Posts receives, and sends all messages. Owned points of `slot` must not change in the sources, and not be read in
  /// the targets, until finish().
  /// @param after  fields of a device: packing runs after the work already enqueued on this stream; empty: on the
  ///               default one.
  /// @throws UsageError while a redistribution is in flight, for a slot that does not exist, and for a stream with
  ///         fields in host memory.
  /// Cost: the messages of plan(); no allocation outside MPI.
  void start(int slot = 0, std::optional<DeviceStream> after = {});
  /// Advances messages. Returns true once everything has arrived. Does not wait, except as Exchange::progress() does.
  bool progress();
  /// Waits until all points of the started slot have arrived, and sent ones may change.
  void finish();
  /// start() and finish().
  void run(int slot = 0) {
    start(slot);
    finish();
  }
  /// Ends the redistribution as its destructor does. @throws UsageError where another thread is in a call on it.
  void free();
  const Plan& plan() const;
  /// Returns one line with the strategy, and the messages and bytes that this rank sends.
  std::string report() const;

 private:
  struct State;
  State& state(const char* call) const;
  std::unique_ptr<State> state_;
};

/// Refuses grids of different communicators. @throws UsageError unless both have the same ranks in the same order.
/// Collective over the first; cost: a reduction.
void require_same_ranks(MPI_Comm first, MPI_Comm second);

/// Opens a redistribution between two grids of one communicator. @throws also UsageError for grids of others.
template <int D>
Redistribution make_redistribution(const Grid<D>& from, const Grid<D>& to, const std::vector<FieldRef>& sources,
                                   const std::vector<FieldRef>& targets, const std::optional<Strategy>& strategy = {}) {
  require_same_ranks(from.comm(), to.comm());
  return Redistribution(from.comm(), from.layout(), to.layout(), sources, targets, strategy, from.nodes());
}

/// Moves fields once, from slot 0 to slot 0. Collective; cost: an opening, the messages, and an end.
template <int D>
void redistribute(const Grid<D>& from, const Grid<D>& to, const std::vector<FieldRef>& sources,
                  const std::vector<FieldRef>& targets, const std::optional<Strategy>& strategy = {}) {
  make_redistribution(from, to, sources, targets, strategy).run();
}

}  // namespace haloscope
