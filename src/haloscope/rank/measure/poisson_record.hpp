// What a record says of poisson2d beside what it says of every app.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "haloscope/rank/measure/request.hpp"
#include "haloscope/run/poisson.hpp"

namespace haloscope {

/// Collective. @param results  one per measured repetition.
nlohmann::json poisson_json(MPI_Comm comm, const Request& request, Simulation& simulation, const PoissonSolver& solver,
                            const std::vector<PoissonResult>& results);

/// Checksum that the request's verification expects of Gauss-Seidel; computed by rank 0. Collective.
std::uint64_t sequential_checksum(MPI_Comm comm, const Request& request);

}  // namespace haloscope
