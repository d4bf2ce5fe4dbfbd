// The library call for halo exchanges: prepared once, then started, progressed and finished any number of times.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/field.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

struct ExchangeOptions {
  bool corners = true;                        ///< fill edges and corners (needed by box stencils and by depth > 1)
  int width = -1;                             ///< layers to fill on every side; -1: each field's whole halo
  Widths low{-1, -1, -1}, high{-1, -1, -1};   ///< layers per dimension and side; override `width` where >= 0
  std::vector<ExchangeSpec::Sides> widths{};  ///< of each field, in order; override the rest. Empty: none
  /// Tracks the number of fresh layers of each halo, and poisons the others: changed(), require_fresh(),
  /// check_clean(). HALOSCOPE_GUARD=1 or 0 in the environment of rank 0 overrides it, for every Exchange and
  /// Stepper.
  bool guard = false;
};

/// A part of an exchange, passed to its calls: some of its fields, fewer layers, some sides.
struct ExchangePart {
  std::vector<int> only{};                   ///< numbers of the fields, from 0, in any order; empty: all
  int depth = -1;                            ///< layers on every side that the exchange fills; -1: all of its layers
  Widths low{-1, -1, -1}, high{-1, -1, -1};  ///< layers per dimension and side; override `depth` where >= 0
  /// Messages also carry the ghost layers that the exchange fills in dimensions where the part fills none: for callers
  /// that have computed these layers.
  bool ghost_rows = false;
  bool operator==(const ExchangePart&) const = default;
};

/// An opened exchange of some fields. Several may be in flight concurrently: exchanges on one communicator share a
/// duplicate of it, each with separate message tags (docs/use/reliability.md).
/// One thread at a time may be in a call on it. Calls after MPI_Finalize, on a moved-from Exchange, during another
/// thread's call, or on a thread that may not call MPI throw UsageError. The destructor does nothing after
/// MPI_Finalize.
///
/// Fields may be in the memory of a device (of a back end that the build has, see docs/machine/devices.md), which is
/// recognised by their addresses. Messages are then packed and unpacked there, by device strategies; `auto` is
/// direct:merged/auto-device. All fields of an exchange are in one memory space, contiguous in x. On
/// the host, start() waits for halos of its slot that an earlier exchange is still unpacking; finish() waits for
/// packing (taskqueue: for its kernel to have begun) and for messages, and without a stream for the halos too.
class Exchange {
 public:
  /// Opens an exchange. Collective over `comm`.
  /// @param layout    split of the grid; its size must be the size of `comm`.
  /// @param spec      quantities and widths; pattern, merging and order are taken from `strategy`.
  /// @param strategy  e.g. "ordered/persistent"; see strategy_names(). Where HALOSCOPE_STRATEGY is set in the
  ///                  environment of rank 0, all ranks use that instead, and rank 0 reports it on standard error,
  ///                  once per strategy.
  /// @param views     the fields, one slot or more each; must stay in place as long as the exchange lives, or see
  ///                  rebind(). Large fields in private memory are moved to huge pages, where the system provides
  ///                  huge pages on request and points lie on half of the pages or more:
  ///                  exchanges then take about as long as on fields of the library. Addresses and contents stay;
  ///                  HALOSCOPE_HUGE_PAGES=0 leaves the pages as they are.
  /// @param nodes     node of each rank, to emulate nodes on one machine; empty: the real machines.
  /// @param guard   as ExchangeOptions::guard.
  /// @throws on all ranks, before any halo is sent: UsageError as make_plan() does, for views that do not fit, and
  ///         where ranks request different exchanges; UnavailableError as the transport does; Error where memory is
  ///         exhausted, with the bytes available (docs/use/reliability.md).
  Exchange(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const Strategy& strategy, const Views& views,
           const std::vector<int>& nodes = {}, bool guard = false);
  /// The same for fields, all with the same number of slots.
  /// @throws also UsageError for no field, unequal slots, and more layers than a field has room for.
  Exchange(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& fields, const Strategy& strategy,
           const ExchangeOptions& options = {}, const std::vector<int>& nodes = {});
  /// Finishes the exchange in flight. Collective: all ranks end their exchanges on a communicator in the same
  /// order, and may wait for each other, see closes_alone() of Link. During stack unwinding it does not wait for
  /// other ranks, and leaves the exchange in flight unfinished.
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Posts receives, and sends all messages that are ready. Boundary cells of `slot` must not change until
  /// finish().
  /// @throws UsageError if the previous exchange has not been finished, or for a slot that does not exist.
  /// Cost: see plan(); no allocation outside MPI.
  void start(int slot = 0);
  /// The same for fields of a device, on a stream; start() without one uses the default stream. Packing runs after
  /// the work already enqueued on the stream, so that the host need not wait for it.
  /// @throws also UsageError for fields in host memory.
  void start(int slot, DeviceStream after);
  /// Starts a part of the exchange: `halo.start({.only = {0, 2}, .depth = 1})`. progress() and finish() continue it.
  /// Plans and links of a part are made by its first call and used again by later ones; parts of the same fields and
  /// layers share them.
  /// @param after  as above; empty: no stream was passed.
  /// @throws UsageError as start() does, for a field that the exchange lacks or that is named twice, and for more
  ///         layers than it fills; on all ranks, where they request different parts in a first call.
  /// Cost: the messages of the part; the first call of a part is collective, with the cost of opening an exchange.
  /// Later ones allocate nothing if the caller keeps the ExchangePart.
  void start(const ExchangePart& part, int slot = 0, std::optional<DeviceStream> after = {});
  /// The transpose of start(): values in the halos of `slot` are added to the owned points that they are copies of,
  /// and the halos are cleared, as after a deposition of particles, the assembly of elements, or in an adjoint
  /// code. Points that several ranks hold (nodes and faces between blocks) then get the sum of all holders, the
  /// same bits on each. progress() and finish() continue it. The boundary points of `slot` (as deep as the halo is
  /// wide) and its halos must not be accessed until then.
  /// Results have the same bits by every strategy: contributions are added dimension by dimension from the last to
  /// the first, in each dimension first from the lower neighbour, then from the upper one (core/plan_reverse.cpp).
  /// The values of holders are added last: first of holders apart in z, then y, then x. Corners of halos are added by
  /// ExchangeOptions::corners, not by `corners` of the strategy.
  /// @throws UsageError as start() does and, on all ranks, for fields whose points are not made of integers of 1,
  ///         2, 4 or 8 bytes or reals of 4 or 8, see Quantity::number_bytes.
  /// Cost: the messages and bytes of an exchange, and one pass over the arrived data; for nodes and faces another
  /// round, in which each rank sends its outer planes to all other holders. The first call is collective and opens
  /// another link, with memory for the data that arrive in one exchange; later ones allocate nothing.
  void start_accumulate(int slot = 0);
  /// The same for fields of a device, after the work already enqueued on the stream, as start().
  /// @throws also UsageError for fields in host memory.
  void start_accumulate(int slot, DeviceStream after);
  /// The same for a part of the exchange: contributions in other halos stay where they are.
  void start_accumulate(const ExchangePart& part, int slot = 0, std::optional<DeviceStream> after = {});
  /// start_accumulate() and finish().
  void accumulate(int slot = 0) {
    start_accumulate(slot);
    finish();
  }
  void accumulate(int slot, DeviceStream stream) {
    start_accumulate(slot, stream);
    finish(stream);
  }
  void accumulate(const ExchangePart& part, int slot = 0) {
    start_accumulate(part, slot);
    finish();
  }
  /// Starts to copy each point that several ranks hold (nodes and faces between blocks) from its owner to the other
  /// holders; both ends of a periodic dimension count. The owner is the rank whose cell begins at the point, in each
  /// dimension; where the grid ends there, or has a hole, the next block around the point, the same for all holders.
  /// Halos keep their contents; progress() and finish() continue the call. For codes in which holders may differ by
  /// rounding, as AMReX's OverrideSync. Cells are not moved.
  /// @param part  its fields; empty: all. It names no layers.
  /// @throws UsageError as start() does, and for a part that names layers.
  /// Cost: a message to each rank that holds points of this rank's. The first call is collective, with the cost of
  /// opening an exchange; later ones allocate nothing.
  void start_share(const ExchangePart& part = {}, int slot = 0, std::optional<DeviceStream> after = {});
  /// start_share() and finish().
  void share(int slot = 0) { share({}, slot); }
  void share(const ExchangePart& part, int slot = 0) {
    start_share(part, slot);
    finish();
  }
  /// Advances messages (and, in ordered patterns, later rounds). Returns true once everything has arrived. Does not
  /// wait, with one exception: reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence complete
  /// only in a call of MPI that waits. With these, the 1000th call of an exchange makes that MPI call, so that a
  /// loop ends.
  bool progress();
  /// Waits until all halos of the started slot are filled (or added and cleared) and sent cells may change again.
  /// @throws UsageError, in a guarded exchange, where a neighbour starts a different exchange: of another slot, an
  ///         accumulation, or after changed() was called on only one of the two. Both throw, and so do all later
  ///         calls.
  /// @throws Error, as start() and progress() do, where the device of this rank has failed, or the wait would not end
  ///         because the device of another rank has: the text names that rank and the reason. So do all later calls.
  void finish();
  /// The same for fields of a device, except that the host does not wait for the device: work enqueued on the
  /// stream later finds the halos filled, and may change sent cells.
  /// @throws UsageError for fields in host memory.
  void finish(DeviceStream before);
  /// start() and finish().
  void exchange(int slot = 0) {
    start(slot);
    finish();
  }
  void exchange(int slot, DeviceStream stream) {
    start(slot, stream);
    finish(stream);
  }
  /// start() and finish() of a part.
  void exchange(const ExchangePart& part, int slot = 0) {
    start(part, slot);
    finish();
  }
  /// Moves a slot to other addresses of the fields, with unchanged strides: for codes that swap pointers.
  /// @param first  address of the first owned point of each field, in order.
  /// All ranks call it in the same order. Only the next start() refuses fields that then share memory, so that two
  /// fields may be swapped in two calls. Strategies whose neighbours hold the fields' addresses (`shared` except
  /// `shared:packed`, one-sided ones, `neighbor`, `partitioned`) are opened again, which is collective; for others
  /// the call is local and costs about one pass over the list of messages. Device strategies are opened again too.
  /// Plans stay.
  /// @throws UsageError while an exchange is in flight, for a slot that does not exist, for another number of
  ///         addresses or a null one; the exchange stays as it is. Where a strategy cannot access the fields, or MPI
  ///         refuses a call, the exchange is unusable until a later call succeeds; until they are replaced, the new
  ///         addresses stay the slot's.
  void rebind(std::span<void* const> first, int slot = 0);
  /// Exchanges other arrays by the plans of this exchange: rebind(), where arrays of the slot lie elsewhere than in the
  /// last call, then exchange(). All ranks call it in the same order; their arrays may move in different calls.
  /// @param first  as for rebind().
  /// @throws as rebind() and exchange().
  /// Cost: rebind(), if arrays have moved, and exchange(). With strategies that open again, also a reduction in each
  /// call, so that ranks agree.
  void exchange_at(std::span<void* const> first, int slot = 0);
  /// Returns the address of the first owned point of each field of a slot, in order, as passed when the Exchange
  /// was opened or last rebound, even if that rebind() failed. Local.
  /// @throws UsageError for a slot that does not exist.
  std::vector<void*> first_points(int slot = 0) const;
  // The guard tracks stale halos. Without ExchangeOptions::guard these calls only check that it is off, so that
  // they may stay in a code. Layers are counted per field, dimension and side; an exchange makes all layers that it
  // fills fresh.

  /// Declares that owned points of a slot have changed, as after a sweep. Its halos become stale and are poisoned,
  /// except the first `fresh` layers, which the sweep has computed too (deep halos). Reals of 4 and 8 bytes become
  /// signalling NaNs that encode their side, integers of 1 to 8 bytes and all other data become bytes DB
  /// (field/poison.hpp). Local, but all ranks call it, even ranks whose points stay.
  /// @throws UsageError for a slot that does not exist, a negative number, an exchange in flight.
  /// Cost: one store for each number in the halos.
  void changed(int slot = 0, int fresh = 0);
  /// The same for fields of a device, after the work already enqueued on the stream and before work enqueued later;
  /// without a stream, after the work already enqueued on the default stream, and the host waits for the poison.
  /// @throws also UsageError for fields in host memory.
  void changed(int slot, int fresh, DeviceStream stream);
  /// Declares that halos of a slot are read `depth` layers deep from here on. Sides that the exchange does not fill
  /// are not checked. Local.
  /// @throws UsageError, on all ranks, where fewer layers are fresh, naming the field, the side, the layers and the
  ///         number of the last exchange; while an exchange is in flight.
  void require_fresh(int depth, int slot = 0) const;
  /// Checks the owned points of a slot for poison, which means that a stale halo was read. Collective: a reduction,
  /// and one load for each number.
  /// Finds reals, and copies of integers of 4 or 8 bytes.
  /// @throws UsageError, on all ranks, naming the first such point of a rank and the side that the poison came
  ///         from.
  void check_clean(int slot = 0) const;
  /// The same for fields of a device, after the work already enqueued on the stream; without a stream, on the
  /// default one. The host waits.
  /// @throws also UsageError for fields in host memory.
  void check_clean(int slot, DeviceStream after) const;
  /// Calls of an open Exchange that may be collective.
  enum class Shared : std::uint8_t { accumulate, check_clean, rebind, share, run_at };
  /// For interfaces that check arguments themselves: fails in place of a call that this rank cannot make. Where the
  /// others' call is collective, it fails on them too, with the number of this rank.
  /// @throws the exception of `exit`, with `text`.
  [[noreturn]] void refuse(Shared call, Exit exit, const std::string& text) const;
  /// Ends the exchange as its destructor does. @throws UsageError where another thread is in a call on it, or this
  /// thread may not call MPI; the exchange then stays open.
  void free();
  const Plan& plan() const;
  /// Returns one line with the strategy that moves the halos, the messages that this rank sends in one exchange,
  /// and the choice of a transport that chooses, such as `auto`, for opened parts and accumulations too.
  std::string report() const;

 private:
  struct State;
  /// @throws UsageError for a moved-from Exchange.
  State& state(const char* call) const;
  std::unique_ptr<State> state_;
};

}  // namespace haloscope
