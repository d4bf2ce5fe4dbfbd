#include "haloscope/simulate/small_simulator.hpp"

#include <numeric>

#include "haloscope/simulate/engine.hpp"

namespace haloscope::simulate {

namespace {

std::vector<std::int32_t> numbered(std::size_t count) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

SmallSimulator::SmallSimulator(std::vector<OpList> scripts) : engine_(std::make_unique<Engine>(std::move(scripts))) {}

SmallSimulator::~SmallSimulator() = default;

std::vector<Log> SmallSimulator::run(const Options& options) { return engine_->run_logged(options); }

Engine::Engine(std::vector<OpList> scripts)
    : node_(scripts.size(), 0),
      socket_(scripts.size(), 0),
      class_of_(numbered(scripts.size())),
      scripts_(std::move(scripts)),
      wires_(network_, node_, socket_) {
  measure_scripts();
}

std::vector<Log> Engine::run_logged(const Options& options) {
  reset(options);
  const std::size_t count = ranks_.size();
  logs_.resize(count);
  carry_out();
  std::vector<Log> logs = std::move(logs_);
  logs_.clear();
  for (std::size_t r = 0; r < count; ++r)
    for (int round = 0; round < options.rounds; ++round)
      logs[r].ends.push_back(result_.ends[static_cast<std::size_t>(round) * count + r]);
  return logs;
}

}  // namespace haloscope::simulate
