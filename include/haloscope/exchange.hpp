// The library call: one halo exchange, prepared once, then started, progressed and finished as often as needed.
#pragma once

#include "haloscope/cxx20.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/device_stream.hpp"
#include "haloscope/error.hpp"
#include "haloscope/field.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

struct ExchangeOptions {
  bool corners = true;                        ///< fill edges and corners (needed by box stencils and by depth > 1)
  int width = -1;                             ///< layers to fill on every side; -1: each field's whole halo
  Widths low{-1, -1, -1}, high{-1, -1, -1};   ///< layers per dimension and side; override `width` where >= 0
  std::vector<ExchangeSpec::Sides> widths{};  ///< of each field, in their order; override the rest. Empty: none
  /// Track how many layers of each halo are fresh, and poison the others: changed(), require_fresh(), check_clean().
  /// HALOSCOPE_GUARD=1 or 0 in the environment of rank 0 overrides it, for every Exchange and Stepper.
  bool guard = false;
};

/// An opened exchange of some fields. Several may be in flight concurrently: those on one communicator share a
/// duplicate of it, with message tags of their own (docs/use/reliability.md).
/// One thread at a time may be in a call on it. Calls after MPI_Finalize, on an Exchange that was moved away, beside
/// another thread's, or on a thread that may not call MPI throw UsageError; the end of an Exchange after MPI_Finalize
/// does nothing.
///
/// Fields may be in the memory of a device (of a back end that the build has, see docs/machine/devices.md): it is
/// recognised by their addresses. Messages are then packed and unpacked there, by strategies of devices; `auto` is
/// direct:merged/auto-device. All fields of an exchange are in one memory, and their points follow each other in x.
/// What the calls wait for on the host: start(), for halos of its slot that an exchange before is still unpacking;
/// finish(), for packing (taskqueue: for its kernel to have begun) and for messages; and without a stream for the
/// halos.
class Exchange {
 public:
  /// Collective over `comm`.
  /// @param layout    how the grid is split; its size must be that of `comm`.
  /// @param spec      what moves; pattern, merging and order are taken from `strategy`.
  /// @param strategy  e.g. "ordered/persistent"; see strategy_names(). Where HALOSCOPE_STRATEGY is set in the
  ///                  environment of rank 0, all ranks use that instead, and rank 0 says so on standard error, once per
  ///                  strategy.
  /// @param views     the fields, one slot or more each; must stay in place as long as the exchange lives, or see
  ///                  rebind(). Large ones in private memory are moved to huge pages, where the system has them for
  ///                  programs that ask and points lie on half of the pages or more:
  ///                  exchanges then take about as long as on fields of the library's. Contents stay.
  /// @param nodes     node of each rank, to emulate nodes on one machine; empty: the real machines.
  /// @param guard   as ExchangeOptions::guard.
  /// @throws on all ranks alike, before any halo is sent: UsageError as make_plan() does, for views that do not fit,
  ///         and where ranks ask for different exchanges; UnavailableError as the transport does; Error where memory is
  ///         exhausted, with the bytes available (docs/use/reliability.md).
  Exchange(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const Strategy& strategy, const Views& views,
           const std::vector<int>& nodes = {}, bool guard = false);
  /// The same for fields, all with the same number of slots.
  /// @throws also UsageError for no field, unequal slots, and more layers than a field has room for.
  Exchange(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& fields, const Strategy& strategy,
           const ExchangeOptions& options = {}, const std::vector<int>& nodes = {});
  /// Finishes what is in flight. Collective: all ranks end their exchanges on a communicator in the same order, and may
  /// wait for each other, see closes_alone() of Link. Where an exception ends it, it waits for no other rank, and
  /// leaves what is in flight.
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Post receives, send what can be sent. Boundary cells of `slot` must not change until finish().
  /// @throws UsageError if the previous exchange has not been finished, or for a slot that does not exist.
  /// Cost: see plan(); no allocation outside MPI.
  void start(int slot = 0);
  /// The same for fields of a device, which without a stream counts as on the default stream: packing comes after what
  /// the stream has been given, so that the host need not wait for it.
  /// @throws also UsageError for fields in host memory.
  void start(int slot, DeviceStream after);
  /// The transpose of start(): what lies in the halos of `slot` is added to the points that own it, and the halos are
  /// cleared, as after a deposition of particles, the assembly of elements, or in an adjoint code. Points that several
  /// ranks hold (nodes and faces between blocks) then get the sum of all holders, the same bits on each. progress() and
  /// finish() carry it on. The boundary points of `slot` (as deep as the halo is wide) and its halos must not be
  /// touched meanwhile.
  /// Results have the same bits by every strategy: contributions are added dimension by dimension from the last to the
  /// first, in each of them first what the lower neighbour gives, then the upper one (core/plan_reverse.cpp).
  /// The values of holders are added last, those apart in z first, then y, then x. Option `corners` counts for halos,
  /// not that of a strategy.
  /// @throws UsageError as start() does and, on all ranks alike, for fields whose points are not made of integers of 1,
  ///         2, 4 or 8 bytes or reals of 4 or 8, see Quantity::number_bytes.
  /// Cost: the messages and bytes of an exchange, and one pass over what arrives; for nodes and faces another round, in
  /// which each rank sends its outer planes to all that hold them. The first call is collective and opens another link,
  /// with memory for what arrives in one exchange; later ones allocate nothing.
  void start_accumulate(int slot = 0);
  /// The same for fields of a device, after what the stream has been given, as start() is.
  /// @throws also UsageError for fields in host memory.
  void start_accumulate(int slot, DeviceStream after);
  /// start_accumulate() and finish().
  void accumulate(int slot = 0) {
    start_accumulate(slot);
    finish();
  }
  void accumulate(int slot, DeviceStream stream) {
    start_accumulate(slot, stream);
    finish(stream);
  }
  /// Let messages (and, in ordered patterns, later rounds) move on. True once everything has arrived. Does not wait;
  /// but with reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence, which complete only in a call of
  /// MPI that waits, the 1000th call of an exchange makes that call, so that a loop ends.
  bool progress();
  /// Wait until all halos of the started slot are filled (or added and cleared) and sent cells may change again.
  /// @throws UsageError, in a guarded exchange, where a neighbour makes another one: of another slot, an accumulation,
  ///         or after own points of only one of the two have changed(). Both throw, and so do all later calls.
  /// @throws Error, as start() and progress() do, where the device of this rank has failed, or the wait would not end
  ///         because the device of another rank has: the text names that rank and the reason. So do all later calls.
  void finish();
  /// The same for fields of a device, but that the host does not wait for the device: what the stream is given later
  /// finds the halos filled, and may change sent cells.
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
  /// The fields of a slot lie elsewhere from now on, with the strides that they had: for codes that swap pointers.
  /// @param first  address of the first owned point of each field, in their order.
  /// All ranks call it in the same order. Fields that share memory then are refused by the next start(), so that two of
  /// them may be exchanged one after the other. Strategies whose neighbours know the fields' addresses (`shared` but
  /// for `shared:packed`, one-sided ones, `neighbor`, `partitioned`) are opened again, which is collective; for others
  /// it is local and takes about as long as looking at each message. Those of devices are opened again too. Plans stay.
  /// @throws UsageError while an exchange is under way, for a slot that does not exist, for another number of addresses
  ///         or a null one; the exchange stays as it is. Where a strategy cannot reach the fields, or MPI refuses a
  ///         call, the exchange is unusable until a later call succeeds; until they are replaced, those fields stay the
  ///         slot's.
  void rebind(std::span<void* const> first, int slot = 0);
  /// Where the fields of a slot lie: the address of the first owned point of each, in their order, as the Exchange was
  /// opened or last rebound with, also where rebind() has failed with them. Local.
  /// @throws UsageError for a slot that does not exist.
  std::vector<void*> first_points(int slot = 0) const;
  // The guard: which halos are stale. Without ExchangeOptions::guard these do nothing but look whether there is one, so
  // that they may stay in a code. Layers are counted per field, dimension and side; an exchange makes all that it fills
  // fresh.

  /// The own points of a slot have changed, as after a sweep: its halos are stale and poisoned, but for the first
  /// `fresh` layers, which the sweep has computed too (deep halos). Reals of 4 and 8 bytes become signalling NaNs that
  /// carry their side on, integers of 1 to 8 bytes and anything else bytes DB (field/poison.hpp). Local, but all ranks
  /// call it, those too whose points stay.
  /// @throws UsageError for a slot that does not exist, a negative number, an exchange under way.
  /// Cost: one store for each number in the halos.
  void changed(int slot = 0, int fresh = 0);
  /// The same for fields of a device, after what the stream has been given and before what it is given next; without a
  /// stream, after what the default stream has been given, and the host waits for the poison.
  /// @throws also UsageError for fields in host memory.
  void changed(int slot, int fresh, DeviceStream stream);
  /// Halos of a slot are read `depth` layers deep from here on. Sides that the exchange does not fill are not looked
  /// at. Local.
  /// @throws UsageError, on all ranks alike, where fewer layers are fresh, naming the field, the side, the layers and
  ///         the number of the last exchange; while one is under way.
  void require_fresh(int depth, int slot = 0) const;
  /// Look for poison in the own points of a slot: a stale halo was read. Collective: a reduction, and one load for each
  /// number.
  /// Finds reals, and copies of integers of 4 or 8 bytes.
  /// @throws UsageError, on all ranks alike, naming the first such point of a rank and the side that the poison came
  ///         from.
  void check_clean(int slot = 0) const;
  /// The same for fields of a device, after what the stream has been given; without a stream, the default one. The host
  /// waits.
  /// @throws also UsageError for fields in host memory.
  void check_clean(int slot, DeviceStream after) const;
  /// Calls of an open Exchange that may be collective.
  enum class Shared : std::uint8_t { accumulate, check_clean, rebind };
  /// For interfaces that check arguments themselves: fails in place of a call that this rank cannot make. Where the
  /// others' call is collective, it fails on them too, with the number of this rank.
  /// @throws what `exit` says, with `text`.
  [[noreturn]] void refuse(Shared call, Exit exit, const std::string& text) const;
  /// Ends the exchange as its destructor does. @throws UsageError where that cannot be: another thread is in a call on
  /// it, or this one may not call MPI; it stays open then.
  void free();
  const Plan& plan() const;
  /// Which strategy moves the halos, what this rank sends in one exchange, and what a transport that chooses, as
  /// `auto`, has chosen, for accumulations too once one was made. One line.
  std::string report() const;

 private:
  struct State;
  /// @throws UsageError for an Exchange that was moved away.
  State& state(const char* call) const;
  std::unique_ptr<State> state_;
};

}  // namespace haloscope
