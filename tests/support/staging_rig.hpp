// Shared by tests of staging buffers: runs on an imitated device through buffers of several sizes.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <bit>
#include <vector>

#include "app_problem.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope::test {

/// Everything that a run reports about its fields after some steps.
struct RunReport {
  std::uint64_t checksum = 0;
  std::vector<std::uint64_t> numbers;  ///< values of own points, a sum over them and errors, as bits
  bool canaries = false;
  bool operator==(const RunReport&) const = default;
};

inline RunReport report_of(const Choice& choice, std::size_t hatch_bytes = usual_hatch_bytes) {
  haloscope::Run run(MPI_COMM_WORLD, choice, {}, hatch_bytes);
  run.initialise();
  run.advance(5, true);
  RunReport report{run.checksum(), {}, run.canaries_alive()};
  const auto add = [&](double number) { report.numbers.push_back(std::bit_cast<std::uint64_t>(number)); };
  add(run.sum_of(0, [](const Index& point, double value) { return value * static_cast<double>(point[0] + 3); }));
  if (run.has_exact_solution()) {
    const auto norms = run.error_norms();
    add(norms.max), add(norms.l2);
  }
  const Index cells = run.layout().local_cells(run.plan().rank);
  for (std::int64_t z = 0; z < cells[2]; z += 3)
    for (std::int64_t y = 0; y < cells[1]; y += 4)
      for (std::int64_t x = 0; x < cells[0]; x += 2) add(run.value({x, y, z}));
  return report;
}

/// Expects the same report of a choice on an imitated device, through each of these staging buffers, as on the host
/// with `reference`.
inline void expect_same_through(Choice choice, const std::vector<std::size_t>& hatches) {
  Choice plain = choice;
  plain.device.clear();
  plain.schedule = "bulk";
  plain.strategy = "reference";
  const RunReport expected = report_of(plain);
  EXPECT_TRUE(expected.canaries);
  for (const std::size_t bytes : hatches)
    EXPECT_TRUE(report_of(choice, bytes) == expected)
        << choice.app << " " << to_word(choice.real) << " through " << bytes << " bytes";
}

inline Choice device_choice(const AppProblem& problem, bool periodic, const char* schedule = "bulk") {
  Choice c = choice_for(problem, periodic);
  c.device = "host";
  c.schedule = schedule;
  c.strategy = "ordered/staged";
  return c;
}

}  // namespace haloscope::test
