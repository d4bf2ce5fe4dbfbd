#include "haloscope/rank/measure/poisson_record.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

/// Seconds of computing by window of iterations and block of lines, summed over ranks: each line has one owner.
Json work_json(MPI_Comm comm, WorkMeter& meter, std::int64_t iterations) {
  const std::int64_t windows = (iterations + meter.window - 1) / meter.window;
  meter.seconds.resize(static_cast<std::size_t>(windows * meter.blocks), 0);
  MPI_Allreduce(MPI_IN_PLACE, meter.seconds.data(), static_cast<int>(meter.seconds.size()), MPI_DOUBLE, MPI_SUM, comm);
  Json rows = Json::array();
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto begin = meter.seconds.begin() + w * meter.blocks;
    rows.push_back(std::vector<double>(begin, begin + meter.blocks));
  }
  return {{"blocks", meter.blocks}, {"window", meter.window}, {"seconds", rows}};
}

}  // namespace

Json poisson_json(MPI_Comm comm, const Request& request, Simulation& simulation, const PoissonSolver& solver,
                  const std::vector<PoissonResult>& results) {
  const PoissonProblem problem = poisson_problem(request.choice, request.parameters);
  std::int64_t bytes = simulation.field_bytes();
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, comm);
  const bool precision = request.goal.precision > 0;
  Json j{{"method", request.choice.form == "gauss-seidel" ? "gauss-seidel" : "jacobi"},
         {"interlines", problem.interlines},
         {"function", problem.function},
         {"termination", precision ? "precision" : "iterations"},
         {"precision", precision ? Json(request.goal.precision) : Json()},
         {"scheme", precision ? Json(solver.scheme()) : Json()},
         {"field_bytes", bytes},
         {"excerpt", solver.excerpt(request.parameters)}};
  bool reached = true;
  for (const PoissonResult& result : results) {
    j["iterations"].push_back(result.iterations);
    j["residuum"].push_back(result.residuum);
    reached = reached && result.reached;
  }
  j["reached"] = reached;
  if (request.work_blocks > 0) j["work"] = work_json(comm, simulation.poisson()->meter(), results.back().iterations);
  return j;
}

std::uint64_t sequential_checksum(MPI_Comm comm, const Request& request) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::uint64_t sum = rank == 0 ? sequential_checksum(request.choice, request.parameters, request.verify) : 0;
  MPI_Bcast(&sum, 1, MPI_UINT64_T, 0, comm);
  return sum;
}

}  // namespace haloscope
