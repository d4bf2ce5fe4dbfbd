// The library call: one halo exchange, prepared once, then started, progressed and finished as often as needed.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "haloscope/plan.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// An opened exchange of some fields. Several may be in flight at once: each has its own communicator.
class Exchange {
 public:
  /// Collective over `comm`.
  /// @param layout    how the grid is split; its size must be that of `comm`.
  /// @param spec      what moves; pattern, merging and order are taken from `strategy`.
  /// @param strategy  e.g. "ordered/persistent"; see strategy_names(). Where HALOSCOPE_STRATEGY is set in the environment
  ///                  of rank 0, all ranks use that instead, and rank 0 says so on standard error, once per strategy.
  /// @param views     the fields, one slot or more each; must stay in place as long as the exchange lives.
  /// @param nodes     node of each rank, to emulate nodes on one machine; empty: the real machines.
  /// @throws UsageError, UnavailableError as make_plan() and the transport do, before any message is sent.
  Exchange(MPI_Comm comm, const Layout& layout, ExchangeSpec spec, const Strategy& strategy, const Views& views,
           const std::vector<int>& nodes = {});
  /// Finishes what is in flight.
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Post receives, send what can be sent. Boundary cells of `slot` must not change until finish().
  /// @throws UsageError if the previous exchange has not been finished, or for a slot that does not exist.
  /// Cost: see plan(); no allocation outside MPI.
  void start(int slot = 0);
  /// Let messages (and, in ordered patterns, later rounds) move on. Never waits. True once everything has arrived; with
  /// rma-fence and rma-pscw:get never before finish(), because closing their epochs may wait.
  bool progress();
  /// Wait until all halos of the started slot are filled and sent cells may change again.
  void finish();
  /// start() and finish().
  void exchange(int slot = 0) {
    start(slot);
    finish();
  }
  const Plan& plan() const;
  /// Which strategy moves the halos, what this rank sends in one exchange, and what a transport that chooses, as `auto`,
  /// has chosen. One line.
  std::string report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace haloscope
