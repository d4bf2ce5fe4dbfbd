// Log of the iterations of `blocks`: segments of the CPU's time, events of blocks, and hits of the CPU's polling
// (Vanecek 2020, sections 4.3 and 4.4).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "haloscope/core/clock.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope {

/// The level of logging; timed runs log nothing.
enum class Detail : std::uint8_t { off, on, posting };
HALOSCOPE_WORDS(Detail, "detail", "off", "on", "posting");

struct BlockEvent {
  std::string kind;  ///< pack, post, copy-in, copy-out, send, receive, notify, unpack; or a segment, block -1
  int block = -1, chunk = 0;
  double begin_s = 0, end_s = 0;
};

/// Means over iterations, of one block.
struct BlockMeans {
  double packing_s = 0, posting_s = 0, sending_s = 0, unpacking_s = 0;
};

class BlocksLog {
 public:
  BlocksLog(int blocks, Detail detail) : detail_(detail), sums_(static_cast<std::size_t>(blocks)) {}
  bool on() const { return detail_ != Detail::off; }
  Detail detail() const { return detail_; }
  /// Returns the time if it will be logged, else 0.
  double now() const { return on() ? now_s() : 0; }

  /// Begins an iteration. @param counts  in the means; iterations that warm up do not.
  void begin_iteration(bool counts);
  /// Begins the next segment of the CPU; "": the iteration ends.
  void segment(const std::string& name);
  /// Adds an event of the CPU. Thread-safe.
  void event(const std::string& kind, int block, int chunk, double begin_s, double end_s);
  /// Adds times of the device in this iteration.
  void device_times(int block, double packing_s, double posting_s, double unpacking_s);

  /// Returns the events of the last iteration.
  const std::vector<BlockEvent>& events() const { return events_; }
  std::vector<BlockMeans> means() const;
  std::map<std::string, double> segments_s() const;

 private:
  Detail detail_;
  std::mutex mutex_;
  std::vector<BlockEvent> events_;
  std::vector<BlockMeans> sums_;
  std::map<std::string, double> segments_;
  std::string segment_;
  double since_ = 0;
  bool counts_ = true;
  std::int64_t iterations_ = 0;  // that count
};

/// Hits and misses of polling for events: the activity of the CPU, and bursts of events.
class HitProfile {
 public:
  void hit() {
    ++hits_;
    if (run_ > 0) ++after_a_hit_;
    longest_ = std::max(longest_, ++run_);
  }
  void miss() { run_ = 0; }
  /// Ends the run of hits: runs do not continue from one iteration to the next.
  void begin_iteration() { run_ = 0; }
  void add(const HitProfile& other);
  std::int64_t hits() const { return hits_; }
  /// Returns the part of the hits directly after another one.
  double after_a_hit() const { return hits_ > 0 ? static_cast<double>(after_a_hit_) / static_cast<double>(hits_) : 0; }
  std::int64_t longest_run() const { return longest_; }

 private:
  std::int64_t hits_ = 0, after_a_hit_ = 0, longest_ = 0, run_ = 0;
};

}  // namespace haloscope
