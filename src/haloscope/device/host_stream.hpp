// The host back end's stream: a thread that does what it is given, in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "haloscope/device/device.hpp"

namespace haloscope::device::host {

/// Marks are numbered: each record() is one more, and the event has come to the highest that a stream got to. What
/// streams refer to is shared with them, so that an event may go while they still do.
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

  bool reached() override { return marks_->reached(marks_->last()); }
  void wait() override { marks_->wait_for(marks_->last()); }
  const std::shared_ptr<Marks>& marks() const { return marks_; }

 private:
  std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
};

class HostStream final : public Stream {
 public:
  using Work = std::function<void()>;
  /// @param delay_us  before each piece of work the stream sleeps for a random time up to this: tests find missing
  /// waits.
  HostStream(double delay_us, unsigned seed);
  ~HostStream() override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void finish() override;
  void enqueue(Work work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  bool busy_ = false, closing_ = false;
  double delay_us_;
  std::minstd_rand random_;
  std::thread thread_;
};

}  // namespace haloscope::device::host
