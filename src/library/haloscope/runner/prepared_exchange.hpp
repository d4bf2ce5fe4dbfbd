// A plan opened on fields: the link that moves its messages, its program, and the progress of the program.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_progress.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/runner/device_lane.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport/link_tags.hpp"

namespace haloscope {

class PreparedExchange {
 public:
  /// Collective over `comm`, as is its end.
  /// @param layout  outlives the movement.
  /// @param plan    of a reverse plan, contributions arrive in separate memory of the movement.
  /// @param fields  views of the fields of the plan.
  /// @param device  device of the fields, which outlives the movement; null: host memory.
  /// @throws as the transport does, on all ranks.
  PreparedExchange(MPI_Comm comm, const Layout& layout, const Plan& plan, const Views& fields, const Strategy& strategy,
                   const std::vector<int>& nodes, device::Device* device = nullptr);
  /// Finishes an exchange in flight; where that fails, or has failed, on this rank or a peer, leaves it as it is.
  ~PreparedExchange();
  /// Returns the first message tag, which no other exchange in use on the communicator has; equal on all ranks.
  int first_tag() const { return context_.tags.first; }
  PreparedExchange(const PreparedExchange&) = delete;
  PreparedExchange& operator=(const PreparedExchange&) = delete;

  // Fields of a device: where the device or the link fails, each call throws an Error that names this rank, its
  // peers, and the failed work; so do all later calls. Other ranks receive the reason, and their calls that would
  // wait throw an Error with the same text.

  /// Begins an exchange; none may be in flight. @param after fields of a device: work already enqueued on this stream
  /// comes before.
  void start(int slot, DeviceStream after = {}) {
    slot_ = slot;
    next_ = enqueued_ = 0;
    fruitless_ = 0;
    ops_->begin(++exchanges_);
    if (lane_) begin_on_device(after);
    progress();
  }
  /// Continues; returns true if all operations are done. Waits only where messages arrive in no other way, and then
  /// rarely.
  bool progress() {
    if (lane_) return progress_on_device();
    while (next_ < program_.ops.size() && ops_->try_run(program_.ops[next_], slot_)) ++next_;
    if (idle()) return true;
    // A program may loop over this call while another rank is in a call of MPI that depends on this one.
    constexpr unsigned calls_per_poll = 16, calls_per_wait = 1000;
    if (++fruitless_ % calls_per_poll == 0) let_mpi_progress(own_->comm());
    if (fruitless_ % calls_per_wait != 0 || !link_->arrives_in_wait()) return false;
    finish();
    return true;
  }
  void finish() {
    if (lane_) return finish_on_device(nullptr);
    const MpiProgress progress(own_->comm());
    for (; next_ < program_.ops.size(); ++next_) ops_->run(program_.ops[next_], slot_);
  }
  /// Fields of a device: later work of this stream finds the halos filled; the host does not wait for the device.
  void finish(DeviceStream before) { finish_on_device(&before); }
  /// Checks for an earlier failure. @throws the failure of an earlier call, as each call does.
  void require_sound() const {
    if (!failure_.empty()) throw Error(Exit::failed, failure_);
  }
  int slot() const { return slot_; }
  /// Returns true if fields may move without a message to other ranks.
  bool follows() const { return link_->follows(); }
  /// Waits for the device, whose work uses objects that follow() frees. @throws as finish().
  void rest();
  /// Makes its destructor wait for no rank: messages in flight, and their memory, stay as they are.
  void leave() { left_ = true; }
  /// Sets the addresses of a slot's fields. Comes after rest(), and before follow().
  void set_origins(std::span<void* const> first, int slot);
  /// Makes the link move the fields at their current addresses. Collective where it is opened again.
  /// @param anew  the link is opened again even where it follows by itself: the last call was refused, on this
  ///              movement or on another one of the same exchange, and no rank has the state of the links of others.
  void follow(int slot, bool anew);

  /// Returns the library's communicator, which other movements share.
  MPI_Comm comm() const { return own_->comm(); }
  const Plan& plan() const { return plan_; }
  /// Returns the names of the fields, for error texts: "u, v".
  std::string name() const;
  FieldViews views() const { return FieldViews(views_).first(fields_); }
  /// Returns the numbers that some fields have in all blocks.
  std::vector<int> in_blocks(const std::vector<int>& fields) const;
  const Link& link() const { return *link_; }

 private:
  /// Returns true if the host has no operation left.
  bool idle() const { return next_ == program_.ops.size(); }
  std::byte* open_landings(const std::vector<int>& nodes);
  void add_landings(std::byte* line);
  void add_turned();
  void open();
  bool closes_alone() const;
  void close();
  void abandon();
  template <class Work>
  auto use_device(Work work);
  /// Records a failure. @throws Error as all later calls do.
  [[noreturn]] void fail(Exit exit, const char* reason, bool by_peer);
  void begin_on_device(DeviceStream after);
  void enqueue_ahead();
  bool progress_on_device();
  bool advance_on_device();
  void finish_on_device(const DeviceStream* before);

  std::shared_ptr<LibraryComm> own_;
  Strategy strategy_;
  Plan plan_;
  Views views_;
  std::size_t fields_;
  /// Memory that messages in flight use, which is not freed where they are abandoned.
  struct Held {
    LinkTags tags;
    /// Memory in which contributions arrive, message after message, the same for all slots: of the host or of the
    /// device.
    Memory landings = {};
    bool landings_in_window = false;  // equal on all ranks
    device::Buffer landings_there = {};
  };
  std::unique_ptr<Held> held_;
  Program program_;
  LinkContext context_;
  std::vector<std::ptrdiff_t> moved_;  // by field
  std::unique_ptr<Link> link_;
  std::unique_ptr<CommOps> ops_;
  device::Device* device_;
  std::unique_ptr<DeviceLane> lane_;  // null: host memory
  std::size_t next_ = 0;              // next operation; program_.ops.size(): nothing is in flight
  std::size_t enqueued_ = 0;          // operations of the device before this one are enqueued
  int slot_ = 0;
  std::int64_t exchanges_ = 0;           // begun so far
  std::string failure_;                  // failure of the device, the link or a peer; empty: none
  std::optional<SharedFailure> shared_;  // fields of a device
  bool left_ = false;                    // see leave()
  unsigned fruitless_ = 0;               // calls of progress() that had to wait
};

}  // namespace haloscope
