#include "haloscope/best.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "haloscope/advice/program.hpp"
#include "haloscope/agree.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"

namespace haloscope {

namespace {

using nlohmann::json;

/// What rank 0 tells the others: an exit code, and an answer or the text of an error.
struct Outcome {
  Exit exit = Exit::ok;
  std::string text;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The arguments of the Python function haloscope.best.
json asked(const BestRequest& request) {
  const BestOptions& o = request.options;
  const auto dims = static_cast<std::size_t>(request.grid.dims);
  json words{{"ranks", request.ranks},
             {"profile", request.profile},
             {"threads", o.threads},
             {"process_grid", request.process_grid},
             {"real", request.real},
             {"form", o.form},
             {"nodes", o.nodes},
             {"fused", o.fused},
             {"shared_memory", request.shared_memory},
             {"here", {{"mpi_library", mpi_library()}}}};
  words["app"] = o.app.empty() ? json(request.grid.dims) : json(o.app);
  for (std::size_t d = 0; d < dims; ++d) {
    words["cells"].push_back(request.grid.cells[d]);
    words["periodic"].push_back(request.grid.periodic[d]);
  }
  if (request.halo >= 0) words["halo"] = request.halo;
  if (!o.depths.empty()) words["depths"] = o.depths;
  if (o.seconds_per_cell != 0) words["seconds_per_cell"] = o.seconds_per_cell;
  return words;
}

void check(const BestRequest& request) {
  if (request.profile.empty())
    throw UsageError("best() needs a machine profile; make one with `haloscope calibrate -o machine.json`");
  if (request.grid.dims < 1 || request.grid.dims > 3)
    throw UsageError("best() got a grid of " + std::to_string(request.grid.dims) + " dimensions; give 1 to 3");
  if (!(request.options.limit_s > 0)) throw UsageError("best() needs a time limit > 0 s");
}

/// The programs to try, best first.
std::vector<std::string> programs(const BestOptions& options) {
  if (!options.program.empty()) return {options.program};
  if (const char* named = std::getenv("HALOSCOPE_PROGRAM"); named != nullptr && *named != '\0') return {named};
  return {"haloscope"};
}

Ended run_first_of(const std::vector<std::string>& programs, const std::vector<std::string>& words, double limit_s) {
  std::string tried;
  for (const std::string& program : programs) try {
      return run_program(program, words, limit_s);
    } catch (const UnavailableError& error) {
      tried += (tried.empty() ? "" : "; ") + std::string(error.what());
    }
  throw UnavailableError("best() asks the program `haloscope`, which is not here: " + tried +
                         "; install it with pip, or set HALOSCOPE_PROGRAM to its path");
}

/// The program's own error, without what precedes it (warnings of libraries).
std::string complaint(const Ended& ended) {
  static const std::string mark = "haloscope: ";
  const auto at = ended.err.rfind(mark);
  if (at != std::string::npos && (at == 0 || ended.err[at - 1] == '\n'))
    return first_line(ended.err.substr(at + mark.size()));
  const std::string tail = ended.err.substr(ended.err.size() - std::min<std::size_t>(ended.err.size(), 500));
  return "the program that best() asks ended with code " + std::to_string(ended.code) +
         (tail.empty() ? " and said nothing" : ": " + tail);
}

bool is_answer(const std::string& text) {
  const json answer = json::parse(text, nullptr, false);
  return answer.is_object() && answer.value("schema", "") == "haloscope.best" && answer.value("schema_version", 0) == 1;
}

/// Ask, and turn whatever happens into an outcome.
Outcome ask(const BestRequest& request) try {
  check(request);
  const Ended ended = run_first_of(programs(request.options), {"best", asked(request).dump()}, request.options.limit_s);
  if ((ended.code == 0 || ended.code == -1) && is_answer(ended.out)) return {Exit::ok, ended.out};
  if (ended.code == 0)
    return {Exit::failed,
            "the program that best() asked gave no answer that this library understands; install the "
            "same version of Haloscope as the library's, or set HALOSCOPE_PROGRAM"};
  const bool known = ended.code == static_cast<int>(Exit::usage) || ended.code == static_cast<int>(Exit::unavailable);
  return {known ? static_cast<Exit>(ended.code) : Exit::failed, complaint(ended)};
} catch (const Error& error) {
  return {error.exit_code(), error.what()};
} catch (const std::exception& error) {
  return {Exit::failed, error.what()};
}

Best best_from(const std::string& text) try {
  const json j = json::parse(text);
  Best b;
  b.choice = choice_from_json(j.at("choice"));
  j.at("time_s").get_to(b.time_s);
  if (!j.at("interval").is_null()) b.interval = j.at("interval").get<std::array<double, 2>>();
  j.at("reason").get_to(b.reason);
  for (const json& other : j.at("equals")) b.equals.push_back(choice_from_json(other));
  j.at("notes").get_to(b.notes);
  j.at("profile").get_to(b.profile);
  j.at("halo").get_to(b.halo);
  b.memory = j.at("shared_memory").get<bool>() ? MemoryKind::shared : MemoryKind::own;
  return b;
} catch (const std::exception& error) {
  throw Error(Exit::failed, std::string("the answer to best() lacks something (") + error.what() +
                                "); install the same version of Haloscope as this library's");
}

Best result(const Outcome& outcome) {
  if (outcome.exit != Exit::ok) fail(outcome.exit, outcome.text);
  return best_from(outcome.text);
}

/// Give rank 0's outcome to all. It may take long, and the program needs the cores, so the ranks sleep until then.
void share(MPI_Comm comm, Outcome& outcome) {
  std::array<int, 2> head{static_cast<int>(outcome.exit), static_cast<int>(outcome.text.size())};
  MPI_Request request;
  MPI_Ibcast(head.data(), static_cast<int>(head.size()), MPI_INT, 0, comm, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  outcome.exit = static_cast<Exit>(head[0]);
  outcome.text.resize(static_cast<std::size_t>(head[1]));
  MPI_Bcast(outcome.text.data(), head[1], MPI_CHAR, 0, comm);
}

}  // namespace

BestRequest best_request(const Layout& layout, const Quantity& quantity, const std::string& profile,
                         const BestOptions& options) {
  const int bytes = quantity.element_bytes;
  if (bytes != 4 && bytes != 8)
    throw UsageError("best() knows fields of 4 or 8 bytes a point, not of " + std::to_string(bytes) +
                     "; use one of those sizes, or let strategy auto find the transport");
  if (layout.has_holes())
    throw UsageError("best() knows grids without holes only; let strategy direct/auto find the transport");
  std::vector<std::string> ranks;
  for (int d = 0; d < layout.dims(); ++d) ranks.push_back(std::to_string(layout.ranks()[static_cast<std::size_t>(d)]));
  BestRequest request;
  request.grid = layout.grid();
  request.ranks = layout.size();
  request.profile = profile;
  request.process_grid = join(ranks, "x");
  request.real = bytes == 8 ? "f64" : "f32";
  request.options = options;
  return request;
}

Best best(const BestRequest& request) { return result(ask(request)); }

Best best(MPI_Comm comm, const BestRequest& request) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  Outcome outcome;
  if (rank == 0) outcome = ask(request);
  share(comm, outcome);
  return result(outcome);
}

}  // namespace haloscope
