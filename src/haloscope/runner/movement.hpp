// A plan opened on fields: the link that moves its messages, its program, and how far that has come.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "haloscope/field/memory.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

class Movement {
 public:
  /// Collective over `comm`, as is its end.
  /// @param layout  outlives the movement.
  /// @param plan    of a reverse plan, contributions arrive in memory of the movement's own.
  /// @param fields  views of the fields of the plan.
  /// @throws as the transport does, on all ranks alike.
  Movement(MPI_Comm comm, const Layout& layout, const Plan& plan, const Views& fields, const Strategy& strategy,
           const std::vector<int>& nodes);
  /// Finishes what is in flight.
  ~Movement();
  Movement(const Movement&) = delete;
  Movement& operator=(const Movement&) = delete;

  /// Begin; nothing may be in flight.
  void start(int slot) {
    slot_ = slot;
    next_ = 0;
    progress();
  }
  /// Go on without waiting; true when all operations are done.
  bool progress() {
    while (next_ < program_.ops.size() && ops_->try_run(program_.ops[next_], slot_)) ++next_;
    return idle();
  }
  void finish() {
    for (; next_ < program_.ops.size(); ++next_) ops_->run(program_.ops[next_], slot_);
  }
  bool idle() const { return next_ == program_.ops.size(); }
  int slot() const { return slot_; }
  /// The fields of a slot lie elsewhere. Collective where the link cannot follow.
  void move(std::span<void* const> first, int slot);

  /// Its own.
  MPI_Comm comm() const { return comm_; }
  const Plan& plan() const { return plan_; }
  const Views& views() const { return views_; }
  const Link& link() const { return *link_; }

 private:
  void add_landings(const std::vector<int>& nodes);
  void open();

  MPI_Comm comm_ = MPI_COMM_NULL;
  Strategy strategy_;
  Plan plan_;
  Views views_;
  std::size_t fields_;
  Memory landings_;  ///< where contributions arrive, message after message; the same for all slots
  Program program_;
  LinkContext context_;
  std::vector<std::ptrdiff_t> moved_;  // by field
  std::unique_ptr<Link> link_;
  std::unique_ptr<CommOps> ops_;
  std::size_t next_ = 0;  // next operation; program_.ops.size(): nothing is in flight
  int slot_ = 0;
};

}  // namespace haloscope
