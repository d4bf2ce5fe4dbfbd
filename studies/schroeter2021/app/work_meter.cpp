#include "schroeter2021/app/work_meter.hpp"

#include <algorithm>
#include <ctime>

namespace haloscope {

double work_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t WorkMeter::first_line(int block) const {
  const std::int64_t base = lines / blocks, rest = lines % blocks;
  return block * base + std::min<std::int64_t>(block, rest);
}

int WorkMeter::block_of(std::int64_t line) const {
  const std::int64_t base = lines / blocks, rest = lines % blocks, wide = rest * (base + 1);
  return static_cast<int>(line < wide ? line / (base + 1) : rest + (line - wide) / base);
}

void WorkMeter::add(std::int64_t iteration, int block, double taken_s) {
  const auto place = static_cast<std::size_t>(iteration / window * blocks + block);
  if (place >= seconds.size()) seconds.resize((place / blocks + 1) * blocks, 0);
  seconds[place] += taken_s;
}

}  // namespace haloscope
