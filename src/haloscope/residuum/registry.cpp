#include <algorithm>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/residuum/mail.hpp"
#include "haloscope/residuum/residuum.hpp"

namespace haloscope {

const std::vector<ResiduumScheme>& residuum_schemes() {
  static const std::vector<ResiduumScheme> schemes{
      {"deferred", "nonblocking reduction of an iteration while the next one runs; that one is taken back at the end",
       nullptr},
      {"allreduce", "MPI_Allreduce after each iteration", nullptr},
      {"chain", "each rank adds its own to the largest so far and passes it on, by messages", chain_residuum},
      {"chain-pscw", "the same, put into the next rank's window under post, start, complete, wait",
       chain_pscw_residuum},
      {"all-to-last", "each rank sends its own to the last rank", all_to_last_residuum},
      {"accumulate", "each rank accumulates its own into one of 2P slots of the last rank's window",
       accumulate_residuum},
  };
  return schemes;
}

const ResiduumScheme& find_residuum_scheme(const std::string& name, bool pipeline) {
  std::vector<std::string> valid;
  for (const auto& scheme : residuum_schemes()) {
    if ((scheme.open != nullptr) != pipeline) continue;
    if (scheme.name == name || name.empty()) return scheme;
    valid.push_back(scheme.name);
  }
  throw UsageError(
      unknown_name(std::string("residuum scheme of ") + (pipeline ? "Gauss-Seidel" : "Jacobi"), name, valid));
}

void MaxReduction::start(double mine) {
  value_ = mine;
  MPI_Iallreduce(MPI_IN_PLACE, &value_, 1, MPI_DOUBLE, MPI_MAX, comm_, &request_);
}

double MaxReduction::wait() {
  settle(request_, yield_);
  return value_;
}

}  // namespace haloscope
