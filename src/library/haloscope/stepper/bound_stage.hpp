// One stage of a run: its plan, link, reductions and programs, bound to fields and kernels.
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/reduce/reducer.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/runner/runner.hpp"
#include "haloscope/stepper/device_fields.hpp"
#include "haloscope/stepper/device_numbers.hpp"
#include "haloscope/transport/link_tags.hpp"

namespace haloscope {

/// Work that a rank has done.
struct Counts {
  std::int64_t exchanges = 0, messages = 0, message_bytes = 0, copied_bytes = 0, swept_points = 0, reductions = 0;
  Counts& operator+=(const Counts& other);
};

class BoundStage;

/// Data that all stages of a run share.
struct StageContext {
  MPI_Comm comm;     ///< of collective calls
  LibraryComm& own;  ///< links use its communicator, each with separate tags
  const Candidate& candidate;
  const RunnerOptions& options;
  const Views& views;  ///< views of all quantities, by slot; of a device where the host has no fields
  DeviceFields* device;
  Sweeper& sweeper;
  const double* scalars;  ///< of the run
  bool stream;            ///< stores may go around the cache
  std::vector<int> nodes;
  /// All stages, in order, set by StageLoop: reductions of earlier stages may end in a stage.
  const std::vector<std::unique_ptr<BoundStage>>* stages = nullptr;
  bool remembers = false;  ///< LinkContext::remembers: measurements must not depend on earlier ones
};

class BoundStage {
 public:
  /// Collective over context.comm. Everything in the context must outlive the stage.
  BoundStage(const StageContext& context, int number);
  ~BoundStage();
  BoundStage(const BoundStage&) = delete;
  BoundStage& operator=(const BoundStage&) = delete;

  int number() const { return number_; }
  const Stage& stage() const { return context_.candidate.step.stages[number_]; }
  const Plan& plan() const { return plan_; }
  /// Returns views of the exchanged fields, in the order of the plan's quantities.
  const Views& views() const { return views_; }
  /// Returns the program of the whole depth.
  const Program& program() const { return whole_->program; }
  int steps() const { return whole_->program.steps; }
  const Link& link() const { return *link_; }
  const MessageTags& tags() const { return tags_->tags(); }
  /// Stops the link's threads and kernels: other ranks may never answer.
  void stop() {
    if (link_) link_->abandon();
  }
  /// The same, and leaves messages in flight as they are.
  void abandon() {
    stop();
    static_cast<void>(link_.release());
    static_cast<void>(tags_.release());
  }

  /// Binds the programs that a run of `steps` steps needs besides the one of the whole depth; run() binds missing
  /// ones. Local.
  void bind_for(std::int64_t steps);
  /// Executes the program of `steps` steps. @return the slot that holds the result.
  int run(int slot, std::int64_t time, int steps, bool last);
  /// Executes a program of a series (schedule `pipeline`), see Series.
  int run(int slot, std::int64_t time, Series series, bool last = false);
  /// Executes the entry of a step; polls `stop` while it waits and gives up once that returns true. @return true if
  /// it finished.
  bool enter(int slot, std::int64_t time, bool (*stop)(void* context), void* context);
  void finish();

  /// Runs one of its sweeps once, over the rank's own cells.
  void sweep_alone(int sweep, int slot);
  /// The same on the device, like its program, without an exchange. @return the seconds that the device took.
  double seconds_on_device(int sweep, int slot);

  /// Returns the reducer of that number, counted from this stage's first: a negative one is an earlier stage's.
  Reducer& reducer(int number);
  const Reduction& reduction(int number) const;
  int reductions() const { return static_cast<int>(reducers_.size()); }
  /// Waits for deferred reductions still in flight.
  void await_reductions();
  /// The same for a step that is undone: the latest numbers stay.
  void drop_reductions();

  /// Diverts the pipeline's reductions to a function instead of their reducers.
  void divert_reductions(void (*contribute)(void* context, int reduction), void* context);

  std::vector<Runner*> runners() const;
  /// The same with the number of executions of each since reset_counts().
  std::vector<std::pair<const Runner*, std::int64_t>> executed() const;
  Counts counts() const;
  /// Returns the number of executions of its programs since then, not counting opening and closing.
  std::int64_t executions() const;
  void reset_counts();

 private:
  struct Key {
    int steps;
    bool last;
    Series series;
    bool operator==(const Key&) const = default;
  };
  struct Bound {  // a program with its operations and runner
    Key key;
    Program program;
    BoundStage* stage = nullptr;
    std::vector<bool> gathers;  // by sweep of the stage: it gathers numbers of reductions
    std::vector<int> places;    // by sweep of the program: the place for numbers of its first layer; -1: by thread
    std::unique_ptr<CommOps> comm;
    std::unique_ptr<DeviceOps> device;
    std::vector<std::unique_ptr<DeviceNumbers>> device_numbers;  // by sweep of the program; null: none
    std::unique_ptr<Runner> runner;
    Counts once;
    std::int64_t executions = 0;
  };
  Bound& bound(const Key& key);
  std::unique_ptr<Bound> bind(const Key& key);
  void open();
  void make_scratch(const Program& program);
  void bind_device(Bound& bound, bool on_device);
  const device::Buffer& cell_memory(std::size_t place, std::size_t bytes);
  void place_numbers(Bound& bound);
  bool gathers(const Bound& bound, const Sweep& sweep) const;
  void take_device_numbers(int sweep);
  /// Returns the stage of a reduction that is counted from this stage's first, and the reduction's number in it.
  std::pair<const BoundStage*, std::size_t> place_of(int number) const;
  double* numbers_of(const Bound& bound, const Sweep& sweep, const Box& box, int thread) const;
  int execute(Bound& bound, int slot, std::int64_t time);
  Counts count(const Program& program) const;
  SweepArgs sweep_args(int number, int slot, int into) const;
  static void sweep(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread);
  static void pass(void* context, const Sweep& sweep, int slot, int into, device::Stream& stream);
  static void start_reduction(void* context, int reduction);
  static void wait_reduction(void* context, int reduction);

  StageContext context_;
  int number_;
  Plan plan_;
  Views views_;
  std::vector<Centring> centrings_;                      // of all quantities
  std::vector<std::vector<std::vector<SlotView>>> in_;   // by sweep and slot: views for reading each quantity ...
  std::vector<std::vector<std::vector<SlotView>>> out_;  // ... and for writing
  std::unique_ptr<LinkTags> tags_;
  std::unique_ptr<Link> link_;
  std::vector<OwnedComm> reduce_comms_;
  std::vector<std::unique_ptr<Partials>> partials_;  // by sweep of the stage; null: it gathers no numbers
  std::vector<std::unique_ptr<Reducer>> reducers_;
  void (*contribute_)(void*, int) = nullptr;
  void* contribute_context_ = nullptr;
  std::vector<Memory> scratch_;             // per thread; empty where only a device sweeps
  std::deque<device::Buffer> cell_memory_;  // by sweep of a program
  std::vector<std::unique_ptr<Bound>> bounds_;
  Bound* whole_ = nullptr;
  Bound* executed_ = nullptr;  // last
  std::int64_t time_ = 0;
};

}  // namespace haloscope
