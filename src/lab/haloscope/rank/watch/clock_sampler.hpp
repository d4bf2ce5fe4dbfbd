// The processor's clock during a measurement, sampled by a separate thread (Davis 2017, section 5.8).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace haloscope {

/// The source of a core's clock: a file of cpufreq, or the core's line in /proc/cpuinfo; "" if neither exists.
/// @param root  of the file system, for tests.
std::string clock_source(int core, const std::string& root = "");
/// The clock of a core now, in MHz; 0 where it cannot be read.
double clock_mhz(int core, const std::string& root = "");

/// The mean, least and most of some samples, and a warning where the mean is more than 5 % below the most; else "".
struct ClockSummary {
  double mean = 0, least = 0, most = 0;
  std::string warning;
};
/// @param mhz  at least one sample.
ClockSummary summary_of(const std::vector<double>& mhz);

class ClockSampler {
 public:
  /// Samples the core that the calling thread runs on, every `interval_s` seconds from now on.
  explicit ClockSampler(double interval_s = 0.07);
  ~ClockSampler() { stop(); }
  ClockSampler(const ClockSampler&) = delete;
  ClockSampler& operator=(const ClockSampler&) = delete;

  /// End sampling. @return the samples, in MHz.
  const std::vector<double>& stop();
  const std::string& source() const { return source_; }
  std::size_t count();

 private:
  void sample(double interval_s);

  int core_;
  std::string source_;
  std::vector<double> samples_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace haloscope
