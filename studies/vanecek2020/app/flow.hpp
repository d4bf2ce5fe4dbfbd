// One exchange of `blocks` per iteration: the common part of all flows.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/comm/long_wait.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/rank/pace/clock_map.hpp"
#include "vanecek2020/app/launches.hpp"
#include "vanecek2020/app/log.hpp"
#include "vanecek2020/app/setup.hpp"
#include "vanecek2020/app/variant.hpp"

namespace haloscope {

class BlocksFlow;

/// The check of unpacking blocks: an element for each thread, or every element and its position.
enum class Check : std::uint8_t { sampled, full };
HALOSCOPE_WORDS(Check, "check", "sampled", "full");

HALOSCOPE_WORDS(device::ElementType, "type", "double", "float", "int");

struct BlocksContext {
  MPI_Comm comm = MPI_COMM_NULL;
  device::Device* device = nullptr;
  Workload workload;
  device::ElementType type = device::ElementType::f64;  ///< of the elements; buffers have the workload's bytes
  Scheme scheme = Scheme::pairs;
  int sides = 1;  ///< of this process, on its one device
  Variant variant;
  bool every = false;  ///< check every element and its position
  Detail detail = Detail::off;
  double limit_s = 0;  ///< without any event, in loops that wait for events; 0: no limit
  bool yield = false;
  /// For tests: called when a chunk has arrived, before its block is notified; false: the block is never notified.
  std::function<bool(BlocksFlow&, int block, int chunk)> on_arrival = {};
  /// For tests and injected faults: called when all receives have been posted.
  std::function<void()> on_posted = {};
};

/// Counts of operations, over all iterations.
struct BlocksCounts {
  std::atomic<std::int64_t> launches{0}, sends{0}, arrivals{0}, tasks{0}, copies_in{0}, copies_out{0};
  std::atomic<std::int64_t> illegal_moves{0};     ///< of the states of copies
  std::atomic<std::int64_t> checked_lists{0};     ///< of tasks, where every element is checked
  std::atomic<std::int64_t> misordered_tasks{0};  ///< lists of them that were not a permutation of all tasks
};

/// Memory, tables and messages of this process' blocks; block b of its side s has number s x (blocks of a side) + b.
class BlocksFlow {
 public:
  /// Collective. @throws UsageError if the flow needs all blocks resident concurrently and the device cannot hold them.
  explicit BlocksFlow(const BlocksContext& context);
  virtual ~BlocksFlow();
  BlocksFlow(const BlocksFlow&) = delete;
  BlocksFlow& operator=(const BlocksFlow&) = delete;

  /// Runs one exchange of all blocks, up to the barrier of all ranks. Collective.
  /// @param counts  in the log's means. @return its seconds.
  /// @throws Error if a block found a wrong value, or nothing happened for too long; names blocks and their state.
  double iterate(std::int64_t iteration, bool counts = true);
  /// Returns the progress of every block in this iteration.
  std::string state() const;

  int blocks() const { return static_cast<int>(elements_.size()); }
  std::int64_t elements(int block) const { return elements_[static_cast<std::size_t>(block)]; }
  template <class T = double>
  T* received(int block) const {
    return at<T>(receive_, block);
  }
  template <class T = double>
  T* packed(int block) const {
    return at<T>(send_, block);
  }
  const BlocksCounts& counts() const { return counts_; }
  BlocksLog& log() { return log_; }
  virtual HitProfile profile() const { return {}; }
  /// Returns the events of the device in the last iteration, by its stamps.
  std::vector<BlockEvent> device_events(const ClockMap& clock) const;

 protected:
  virtual void exchange() = 0;

  struct Progress {
    std::atomic<int> packed{0}, sent{0}, arrived{0}, notified{0};
  };
  Progress& progress(int block) { return progress_[static_cast<std::size_t>(block)]; }
  int chunks(int block) const { return device::chunks_of(elements(block), context_.variant.chunks); }
  std::int64_t begin_of(int block, int chunk) const {
    return device::chunk_begin(elements(block), chunks(block), chunk);
  }
  /// Returns the first byte of a chunk in its buffer.
  std::size_t byte_of(int block, int chunk) const {
    return static_cast<std::size_t>(begin_of(block, chunk) * device::bytes_of(context_.type));
  }

  void post_receives();
  void send(int block, int chunk);
  /// Finds a chunk that has arrived, if MPI has one. @return its number, block x chunks + chunk; -1: none.
  int test_receives();
  /// Called once for each chunk that has arrived. @return true if its block is to be notified.
  bool note_arrival(int task);
  void wait_for_sends();
  /// Calls `take()`, which polls for an event and returns true if it found one, until `events` have been found, or
  /// another thread has given up. @throws as look_elsewhere().
  /// @param idle  called now and then while no events occur.
  template <class Take, class Idle = decltype([] {})>
  void take_events(int events, HitProfile& profile, const char* missing, Take take, Idle idle = {});
  /// Reports a wait if it is long. @throws Error if it is longer than the limit.
  void look_elsewhere(class StallTimer& lookout, const char* missing) const;
  /// @throws Error with the state of all blocks.
  [[noreturn]] void give_up(const std::string& why) const;

  BlocksContext context_;
  device::Device& device_;
  const device::BlocksKernels& kernels_ = find_blocks_kernels(device_.kernels());
  BlocksCounts counts_;
  BlocksLog log_;
  device::BlocksLaunch launch_;
  std::vector<MPI_Request> receives_, sends_;  // by block x chunks + chunk
  std::vector<device::Buffer> staging_;        // device memory to pack into; empty: kernels pack into send_
  std::atomic<bool> given_up_{false};

 private:
  template <class T>
  static T* at(const std::vector<device::Buffer>& buffers, int block) {
    return reinterpret_cast<T*>(buffers[static_cast<std::size_t>(block)].data());
  }
  struct Peer {
    int to, to_tag, from, from_tag;
  };
  void lay_out(int rank, int ranks);
  void start_dummies();
  void add_stamps();
  void refuse_faults(std::int64_t iteration) const;

  std::vector<std::int64_t> elements_;
  std::vector<Peer> peers_;
  std::vector<device::Buffer> send_, receive_;
  device::Buffer entries_, faults_, stamps_, dummy_;
  std::vector<int> dummy_to_, dummy_from_;
  std::vector<MPI_Request> dummies_;
  std::vector<Progress> progress_;
  std::int64_t iteration_ = 0;
  double tick_s_;  // of the device's clock
};

/// Paces repeated polling.
class StallTimer {
 public:
  StallTimer(const BlocksContext& context, int backoff_us)
      : yield_(context.yield), backoff_us_(backoff_us), spin_(context.yield), wait_(context.yield) {}
  void found();
  /// Rests briefly. @return true if polling has been without success for a while: time to check something else.
  bool rest();
  /// Returns the seconds without success.
  double vain_s() const { return vain_s_; }
  LongWait& wait() { return wait_; }

 private:
  bool yield_;
  int backoff_us_, looks_ = 0;
  double since_ = 0, vain_s_ = 0;
  Spin spin_;
  LongWait wait_;
};

template <class Take, class Idle>
void BlocksFlow::take_events(int events, HitProfile& profile, const char* missing, Take take, Idle idle) {
  StallTimer lookout(context_, context_.variant.backoff_us);
  profile.begin_iteration();
  while (events > 0) {
    if (take()) {
      profile.hit();
      lookout.found();
      --events;
      continue;
    }
    profile.miss();
    if (given_up_) return;
    if (!lookout.rest()) continue;
    look_elsewhere(lookout, missing);
    idle();
  }
}

/// Returns the flow of the variant. Collective. @throws as the flow.
std::unique_ptr<BlocksFlow> make_flow(const BlocksContext& context);

std::unique_ptr<BlocksFlow> make_baseline(const BlocksContext& context);
std::unique_ptr<BlocksFlow> make_taskqueue(const BlocksContext& context);
std::unique_ptr<BlocksFlow> make_kernels(const BlocksContext& context);

}  // namespace haloscope
