// Late and lost ranks in C++: the others wait while rank 1 sleeps for some seconds, or while an exception ends its
// work.
// Each rank prints "right", or "caught: TEXT".
//   usage: late_ranks_haloscope boxes|reorder|blocking|nonblocking|gather SECONDS
//          late_ranks_haloscope throw|throw-shared|more|end-stepper|end-field SECONDS
//          late_ranks_haloscope step SECONDS STRATEGY SCHEDULE
//          late_ranks_haloscope end|end-accumulation|end-alone SECONDS STRATEGY COLUMNS
// With "end-alone", rank 1 ends its exchange only after rank 0 has.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/haloscope.hpp"

namespace {

using namespace haloscope;

void stay_away(int rank, double seconds) {
  if (rank == 1) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void make_grid(const std::string& how, int rank, double seconds) {
  const Box own{{0, rank, 0}, {4, rank + 1, 1}};
  stay_away(rank, seconds);
  if (how == "boxes")
    Grid<2>::of_boxes(MPI_COMM_WORLD, {4, 2}, {true, true}, own);
  else
    Grid<2>{MPI_COMM_WORLD, {.cells = {8, 8}, .reorder = true}};
}

void reduce(const std::string& how, int rank, double seconds) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  Reduction sum{.name = "sum"};
  if (how == "nonblocking") sum.mode = ReduceMode::nonblocking;
  if (how == "gather") sum.by = ReduceBy::gather;
  SweepSpec sweep{.name = "sweep", .reads = {{0, 1}}, .writes = {0}};
  sweep.run = [&](const SweepArgs& args) {
    if (args.step == 2) stay_away(rank, seconds);
  };
  Stepper(grid, {u}, Choice{}, std::vector<Stage>{{.sweeps = {sweep}, .reductions = {sum}}}).run(4);
}

/// Rank 1 comes late to the halos of a step.
void step(int rank, double seconds, const char* strategy, const char* schedule) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .periodic = {true, true}}};
  const bool shared = needs_shared_fields(Strategy(strategy));
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2, .memory = shared ? MemoryKind::shared : MemoryKind::own}};
  const Choice choice{.threads = 2, .schedule = schedule, .strategy = strategy};
  Stepper(grid, {u}, choice, [&](const SweepArgs& args) {
    if (args.step == 2) stay_away(rank, seconds);
  }).run(4);
}

/// Waits, and receives messages of other ranks.
void receive_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  int there = 0;
  for (int polls = 0; polls < 100; ++polls)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

void leave(int rank, double seconds, MemoryKind memory, const char* strategy) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1, .memory = memory}};
  Exchange halo = make_exchange(grid, {u}, strategy);
  halo.exchange();
  if (rank == 1) {
    receive_for(seconds);
    throw std::runtime_error("the input is damaged");
  }
  halo.exchange();
}

/// Ranks in a row. Rank 0 makes one exchange more than the others; rank 2, which is not its neighbour, continues while
/// rank 1 frees its exchange.
void get_out_of_step(int rank, double seconds) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 9}, .periodic = {true, false}, .process_grid = "1x3"}};
  const Field<double, 2> u{grid, {.halo = 1}};
  auto halo = std::make_unique<Exchange>(make_exchange(grid, {u}, "direct/p2p", {.guard = true}));
  try {
    for (int step = 1; step <= 5; ++step) {
      halo->changed();
      halo->exchange();
      if (step == 2 && rank == 0) halo->exchange();
    }
  } catch (const UsageError&) {
    if (rank == 0) return;
    receive_for(seconds);
    halo.reset();
    throw;
  }
}

/// Rank 1 comes late to the end of an exchange of COLUMNS columns.
void end_exchange(const std::string& how, int rank, double seconds, const char* strategy, std::int64_t columns) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {columns, 16}, .periodic = {true, true}, .process_grid = "1x2"}};
  const bool shared = needs_shared_fields(Strategy(strategy));
  const Field<double, 2> u{grid, {.halo = 1, .memory = shared ? MemoryKind::shared : MemoryKind::own}};
  char token = 0;
  {
    Exchange halo = make_exchange(grid, {u}, strategy);
    for (int n = 0; n < 3; ++n) how == "end-accumulation" ? halo.accumulate() : halo.exchange();
    if (how == "end-alone" && rank == 1)
      MPI_Recv(&token, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      stay_away(rank, seconds);
  }
  if (how == "end-alone" && rank == 0) MPI_Send(&token, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

void end_stepper(int rank, double seconds) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  SweepSpec sweep{.name = "sweep", .reads = {{0, 1}}, .writes = {0}};
  sweep.run = [](const SweepArgs&) {};
  const Choice choice{.strategy = "direct/rma-lockall"};
  Stepper stepper(grid, {u}, choice, std::vector<Stage>{{.sweeps = {sweep}, .reductions = {{.name = "sum"}}}});
  stepper.run(4);
  stay_away(rank, seconds);
}

void end_field(int rank, double seconds) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 8}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  stay_away(rank, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string how = argv[1];
  const double seconds = std::atof(argv[2]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (how == "throw")
      leave(rank, seconds, MemoryKind::own, "ordered/rma-fence");
    else if (how == "throw-shared")
      leave(rank, seconds, MemoryKind::shared, "direct/shared");
    else if (how == "more")
      get_out_of_step(rank, seconds);
    else if (how == "boxes" || how == "reorder")
      make_grid(how, rank, seconds);
    else if (how == "end-stepper")
      end_stepper(rank, seconds);
    else if (how == "end-field")
      end_field(rank, seconds);
    else if (how == "step")
      step(rank, seconds, argv[3], argv[4]);
    else if (how.rfind("end", 0) == 0)
      end_exchange(how, rank, seconds, argv[3], std::atoll(argv[4]));
    else
      reduce(how, rank, seconds);
    std::printf("right\n");
  } catch (const std::exception& error) {
    std::printf("caught: %s\n", error.what());
    std::fflush(stdout);
    abort_job();
  }
  MPI_Finalize();
  return 0;
}
