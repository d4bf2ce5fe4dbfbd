// Watchers of a measurement: the clock's sampler, the counters of events.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "haloscope/rank/watch/clock_sampler.hpp"
#include "haloscope/rank/watch/events.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

namespace fs = std::filesystem;

/// A file system with the specified files, below a separate folder.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& name) : path_(fs::temp_directory_path() / (name + std::to_string(::getpid()))) {}
  ~FakeRoot() { fs::remove_all(path_); }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

TEST(Clock, IsReadFromCpufreqElseFromCpuinfoElseNotAtAll) {
  const FakeRoot root("clock");
  EXPECT_EQ(clock_source(1, root.path()), "");
  EXPECT_EQ(clock_mhz(1, root.path()), 0);
  root.put("proc/cpuinfo", "processor : 0\ncpu MHz\t: 1200.5\n\nprocessor : 1\ncpu MHz\t: 2600\n");
  EXPECT_EQ(clock_mhz(1, root.path()), 2600);
  EXPECT_EQ(clock_source(1, root.path()), root.path() + "/proc/cpuinfo");
  root.put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3100000\n");
  EXPECT_EQ(clock_mhz(1, root.path()), 3100);
  EXPECT_EQ(clock_mhz(0, root.path()), 1200.5);
}

TEST(Clock, DB5_ARunWhoseMeanFallsByMoreThanFivePercentIsFlagged) {
  EXPECT_EQ(summary_of({3000, 2990, 2900}).warning, "");
  const ClockSummary fallen = summary_of({3000, 2600, 2600});
  EXPECT_PART(fallen.warning, "2733 MHz in the mean, 3000 at most");
  EXPECT_EQ(fallen.least, 2600);
}

TEST(Clock, DB5_IsSampledUntilToldToStop) {
  ClockSampler sampler(0.001);
  if (sampler.source().empty()) return;  // no known machine lacks both
  while (sampler.count() < 3) std::this_thread::yield();
  const std::size_t samples = sampler.stop().size();
  EXPECT_GE(samples, 3u);
  EXPECT_EQ(sampler.stop().size(), samples);
}

TEST(Events, AreCountedOrAbsentWithAReason) {
  EventCounters counters;
  EXPECT_FALSE(counters.names().empty() && counters.absent().empty());
  for (const auto& [name, reason] : counters.absent()) EXPECT_FALSE(reason.empty()) << name;
}

TEST(Events, PageFaultsAreThoseOfNewPages) {
  EventCounters counters;
  const auto at = std::find(counters.names().begin(), counters.names().end(), "page-faults");
  if (at == counters.names().end()) GTEST_SKIP() << counters.absent().at("page-faults");
  const auto number = static_cast<std::size_t>(at - counters.names().begin());
  std::vector<double> before(counters.names().size()), after = before;
  constexpr std::size_t pages = 64;
  const auto size = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  counters.read(before.data());
  for (std::size_t i = 0; i < pages; ++i)  // far apart: neighbours may come together
    static_cast<volatile char*>(memory)[i * size] = 1;
  counters.read(after.data());
  ::munmap(memory, pages * size);
  EXPECT_GE(after[number] - before[number], 1);
}

}  // namespace
}  // namespace haloscope
