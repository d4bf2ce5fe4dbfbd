// Plans without MPI: the messages of rank 0 of 8 in one exchange of a 64^3 grid.
#include <cstdio>
#include <haloscope/extend/plan.hpp>

int main() {
  const haloscope::GridSpec grid{3, {64, 64, 64}, {true, true, true}};
  const haloscope::Layout layout(grid, haloscope::process_grid("cubic", 8, grid));
  const haloscope::Plan plan = haloscope::make_plan(layout, 0, haloscope::ExchangeSpec{});
  std::printf("%d messages, %lld bytes\n", plan.messages_out(), static_cast<long long>(plan.bytes_out()));
}
