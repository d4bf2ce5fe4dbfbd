#include "schroeter2021/app/work_meter.hpp"

#include <algorithm>
#include <bit>
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

namespace {

double& entry(std::vector<double>& table, const WorkMeter& meter, std::int64_t iteration, int block) {
  const auto place = static_cast<std::size_t>(iteration / meter.window * meter.blocks + block);
  if (place >= table.size()) table.resize((place / meter.blocks + 1) * meter.blocks, 0);
  return table[place];
}

}  // namespace

void WorkMeter::add(std::int64_t iteration, int block, double taken_s) {
  entry(seconds, *this, iteration, block) += taken_s;
}

void WorkMeter::count(std::int64_t iteration, int levels, int block, std::span<const double> values) {
  if (iteration / window == (iteration + levels) / window) return;
  entry(subnormal, *this, iteration, block) += static_cast<double>(count_subnormal(values));
}

std::int64_t count_subnormal(std::span<const double> values) {
  constexpr std::uint64_t exponent = 0x7ff0000000000000, mantissa = 0x000fffffffffffff;
  return std::count_if(values.begin(), values.end(), [](const double& value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return (bits & exponent) == 0 && (bits & mantissa) != 0;
  });
}

}  // namespace haloscope
