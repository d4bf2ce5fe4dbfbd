// The host back end's stream: a thread that does its work in order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "haloscope/device/device.hpp"

namespace haloscope::device::host {

class HostStream;
struct HostCapture;

/// The imitated devices' properties, shared by all their streams and events.
struct Imitation {
  int devices = 1;
  std::int64_t bytes = 0;  ///< memory of one device; 0: half of the machine's
  int threads = 1;         ///< threads that share the blocks of a launch
  int resident = 64;       ///< max blocks of a kernel that waits for the CPU
  /// For tests: after this a kernel that waits for the CPU leaves.
  double longest_stay_s = Info().longest_stay_s;
  /// For tests: makes, for a stream's number, the function that its thread calls before each piece of work. Empty: none
  std::function<std::function<void()>(unsigned stream)> before_work = {};
  /// For tests: true if device `index` does its next copy or launch; false: it has failed. Empty: it always does.
  std::function<bool(int index)> works = {};
  /// For tests: true if memory of another process may be mapped. Empty: yes.
  std::function<bool()> may_map = {};
  /// For tests: true if a capture records its next call. Empty: yes.
  std::function<bool()> may_keep = {};
  /// For tests: true if streams write words and wait for them.
  bool words = true;
  /// For tests: called by each block of a kernel that waits for the CPU, as it begins. Empty: no call.
  std::function<void(int block)> before_block = {};
  /// For tests: called by each call of the CPU, with its name and its stream or event. Empty: no call.
  std::function<void(const char* call, const void* object)> on_call = {};
  /// For tests: the rate of the device's clock over its nominal one, for all devices from now on.
  double clock_rate = 1;
};

/// The device's clock as kernels read it: other ticks than the CPU's clock, from another origin.
std::uint64_t imitated_clock();
inline constexpr double imitated_clock_hz = 4e7;

/// @param text  as `devices=2,bytes=1000000,threads=2`; empty: all defaults. @throws UsageError.
Imitation parse_imitation(const std::string& text);
/// Sets the imitation of devices that are opened from now on. Not thread-safe.
void imitate(const Imitation& imitation);
/// The imitation in HALOSCOPE_HOST_DEVICE, unless imitate() was called. @throws UsageError for a malformed text.
const Imitation& imitation();

/// The state of a device: it works, or it has failed.
class Health {
 public:
  using OnCall = std::function<void(const char* call, const void* object)>;
  explicit Health(std::function<bool()> works, OnCall on_call = {})
      : works_(std::move(works)), on_call_(std::move(on_call)) {}
  /// Begins one more copy or launch. @return false: the device has failed, skip it.
  bool go_on() {
    if (works_ && !works_()) failed_ = true;
    return !failed_;
  }
  /// Begins a call of the CPU. @param object  its stream or event. @throws Error: the device has failed, as a driver
  /// reports from every later call.
  void check(const char* call, const void* object) const;

 private:
  std::function<bool()> works_;
  OnCall on_call_;
  std::atomic<bool> failed_{false};
};

/// Marks are numbered: each record() makes a new one, and the event has reached the highest one that a stream got to.
/// Streams share ownership of the objects they refer to, so that an event may be destroyed before them.
class HostEvent final : public Event {
 public:
  class Marks {
   public:
    std::int64_t next() {
      const std::lock_guard lock(mutex_);
      return ++recorded_;
    }
    std::int64_t last() const {
      const std::lock_guard lock(mutex_);
      return recorded_;
    }
    void reach(std::int64_t mark) {
      const std::lock_guard lock(mutex_);
      if (mark <= reached_) return;  // recorded again on another stream, which was faster
      reached_ = mark, at_ = std::chrono::steady_clock::now();
      changed_.notify_all();
    }
    bool reached(std::int64_t mark) const {
      const std::lock_guard lock(mutex_);
      return reached_ >= mark;
    }
    void wait_for(std::int64_t mark) const {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return reached_ >= mark; });
    }
    std::chrono::steady_clock::time_point at() const {
      const std::lock_guard lock(mutex_);
      return at_;
    }

   private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::int64_t recorded_ = 0, reached_ = 0;
    std::chrono::steady_clock::time_point at_;
  };

  explicit HostEvent(std::shared_ptr<const Health> health) : health_(std::move(health)) {}
  /// Notices a device that fails in the work before the mark: its failure comes before the mark.
  bool reached() override {
    const bool reached = marks_->reached(marks_->last());
    health_->check("reached", this);
    return reached;
  }
  void wait() override {
    marks_->wait_for(marks_->last());
    health_->check("wait", this);
  }
  const std::shared_ptr<Marks>& marks() const { return marks_; }

  // Its last record, if a capture recorded it: the capture, the stream, and the number of the stream's calls before.
  std::weak_ptr<HostCapture> capture;
  HostStream* stream = nullptr;
  int recorded = 0;

 private:
  std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  std::shared_ptr<const Health> health_;
};

/// Calls of streams, recorded to be repeated.
struct HostCapture {
  HostStream* origin;
  std::vector<std::function<void()>> calls;
  std::map<HostStream*, int> recorded;  ///< calls recorded from each stream that takes part
  std::map<HostStream*, int> awaited;   ///< the number of them that the origin has waited for
};

class HostStream final : public Stream {
 public:
  using Work = std::function<void()>;
  HostStream(const Imitation& imitation, std::shared_ptr<Health> health, unsigned number);
  ~HostStream() override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void write(std::uint64_t* word, std::uint64_t value) override;
  void wait(const std::uint64_t* word, std::uint64_t value) override;
  void finish() override;
  DeviceStream native() override { return {this}; }
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  /// Enqueues a launch; a device that has failed does not do it.
  void enqueue(Work work);
  int threads() const { return threads_; }

 private:
  void serve();
  void add(Work work);
  void push(Work work);
  void mark(HostEvent& event);
  void pass(HostEvent& event);
  void keep(std::function<void()> call);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  bool busy_ = false, closing_ = false;
  std::function<void()> before_work_;
  std::function<bool()> may_keep_;
  int threads_;
  std::shared_ptr<Health> health_;
  std::shared_ptr<HostCapture> capture_;  // set while work is recorded
  std::thread thread_;
};

}  // namespace haloscope::device::host
