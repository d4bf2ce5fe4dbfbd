#include "haloscope/rank/watch/clock_sampler.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>

namespace haloscope {

namespace {

std::string cpufreq_file(int core, const std::string& root) {
  return root + "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq";
}

/// The line "cpu MHz : 2600.0" of a core in /proc/cpuinfo, whose entries are in the order of the cores.
double cpuinfo_mhz(int core, const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");
  int number = -1;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("processor", 0) == 0) number = std::atoi(line.substr(line.find(':') + 1).c_str());
    if (number == core && line.rfind("cpu MHz", 0) == 0) return std::atof(line.substr(line.find(':') + 1).c_str());
  }
  return 0;
}

}  // namespace

std::string clock_source(int core, const std::string& root) {
  if (std::ifstream(cpufreq_file(core, root)).good()) return cpufreq_file(core, root);
  return cpuinfo_mhz(core, root) > 0 ? root + "/proc/cpuinfo" : "";
}

double clock_mhz(int core, const std::string& root) {
  double khz = 0;
  if (std::ifstream file(cpufreq_file(core, root)); file >> khz) return khz / 1000;
  return cpuinfo_mhz(core, root);
}

ClockSummary summary_of(const std::vector<double>& mhz) {
  const auto [least, most] = std::minmax_element(mhz.begin(), mhz.end());
  ClockSummary summary{std::accumulate(mhz.begin(), mhz.end(), 0.0) / static_cast<double>(mhz.size()), *least, *most,
                       ""};
  if (summary.mean < 0.95 * summary.most)
    summary.warning = "the clock fell: " + std::to_string(std::lround(summary.mean)) + " MHz in the mean, " +
                      std::to_string(std::lround(summary.most)) + " at most";
  return summary;
}

ClockSampler::ClockSampler(double interval_s) : core_(sched_getcpu()), source_(clock_source(core_)) {
  if (!source_.empty()) thread_ = std::thread([this, interval_s] { sample(interval_s); });
}

void ClockSampler::sample(double interval_s) {
  std::unique_lock lock(mutex_);
  do {
    if (const double mhz = clock_mhz(core_); mhz > 0) samples_.push_back(mhz);
  } while (!ended_.wait_for(lock, std::chrono::duration<double>(interval_s), [this] { return end_; }));
}

std::size_t ClockSampler::count() {
  const std::lock_guard lock(mutex_);
  return samples_.size();
}

const std::vector<double>& ClockSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
  return samples_;
}

}  // namespace haloscope
