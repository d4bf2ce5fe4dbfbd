#include "haloscope/best.hpp"

#include <nlohmann/json.hpp>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/model/best.hpp"

namespace haloscope {

namespace {

using nlohmann::json;

model::BestQuestion question_of(const BestRequest& request) {
  const BestOptions& o = request.options;
  if (request.profile.empty())
    throw UsageError("best() needs a machine profile; make one with `haloscope calibrate -o machine.json`");
  model::BestQuestion q;
  q.assumed_app = o.app.empty();
  q.choice.app = o.app.empty() ? model::standard_app(request.grid.dims) : o.app;
  q.choice.grid = request.grid;
  q.choice.ranks = request.ranks;
  q.choice.process_grid = request.process_grid;
  q.choice.real = from_word<Real>(request.real);
  q.choice.form = o.form;
  q.choice.threads = o.threads;
  q.choice.nodes = o.nodes;
  q.depths = o.depths;
  q.fused = o.fused;
  q.shared_memory = request.shared_memory;
  if (o.seconds_per_cell != 0) q.seconds_per_cell = o.seconds_per_cell;
  if (request.halo >= 0) q.halo = request.halo;
  q.cpu = cpu_model();
  q.mpi_library = mpi_library();
  return q;
}

Best answer_from(model::BestAnswer found) {
  Best b;
  b.choice = found.prediction.choice;
  b.time_s = found.prediction.time_s;
  b.interval = found.prediction.interval;
  b.reason = reason_of(found.prediction);
  b.equals = std::move(found.equals);
  b.notes = std::move(found.notes);
  b.profile = found.prediction.profile;
  b.halo = model::layers_of(b.choice);
  b.memory = needs_shared_fields(b.choice.strategy) ? MemoryKind::shared : MemoryKind::own;
  return b;
}

// ---- from rank 0 to the others ----

json to_json(const Best& b) {
  json equals = json::array();
  for (const Choice& other : b.equals) equals.push_back(to_json(other));
  return {{"choice", to_json(b.choice)},
          {"time_s", b.time_s},
          {"reason", b.reason},
          {"interval", b.interval ? json(*b.interval) : json()},
          {"equals", equals},
          {"notes", b.notes},
          {"profile", b.profile},
          {"halo", b.halo},
          {"shared", b.memory == MemoryKind::shared}};
}

Best best_from(const std::string& text) {
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
  b.memory = j.at("shared").get<bool>() ? MemoryKind::shared : MemoryKind::own;
  return b;
}

/// The message of rank 0 to the others: an exit code, and an answer or the text of an error.
struct Outcome {
  Exit exit = Exit::ok;
  std::string text;
};

/// Answers a request, and converts exceptions to an outcome.
Outcome answer(const BestRequest& request) {
  try {
    return {Exit::ok, to_json(best(request)).dump()};
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  } catch (const std::exception& error) {
    return {Exit::failed, error.what()};
  }
}

void share(MPI_Comm comm, Outcome& outcome) {
  int exit = static_cast<int>(outcome.exit);
  CHECK_MPI(MPI_Bcast(&exit, 1, MPI_INT, 0, comm));
  outcome.exit = static_cast<Exit>(exit);
  outcome.text = text_of_rank(comm, 0, std::move(outcome.text));
}

}  // namespace

BestRequest best_request(const Layout& layout, const Quantity& quantity, const std::string& profile,
                         const BestOptions& options) {
  const int bytes = quantity.element_bytes;
  if (bytes != 4 && bytes != 8)
    throw UsageError("best() supports points of 4 or 8 bytes; this field has " + std::to_string(bytes) +
                     "; use one of those sizes, or let strategy auto find the transport");
  if (layout.has_holes())
    throw UsageError("best() supports only grids without holes; let strategy direct/auto find the transport");
  if (layout.has_several_blocks())
    throw UsageError("best() supports only grids of one block a rank; let strategy auto find the transport");
  if (layout.grid().meets_itself())
    throw UsageError("best() supports only grids without a fold or seams; let strategy auto find the transport");
  BestRequest request;
  request.grid = layout.grid();
  request.ranks = layout.size();
  request.profile = profile;
  request.process_grid = sizes_text(layout.ranks(), layout.dims());
  request.real = bytes == 8 ? "f64" : "f32";
  request.options = options;
  return request;
}

Best best(const BestRequest& request) {
  add_built_in_apps();
  const model::BestQuestion question = question_of(request);
  return answer_from(model::find_best(question, model::read_profile(request.profile)));
}

Best best(MPI_Comm comm, const BestRequest& request) {
  require_communicator(comm);
  Outcome outcome;
  collectively(comm, "advice", [&] {
    add_built_in_apps();
    meet_before(comm);
    if (rank_in(comm) == 0) outcome = answer(request);
    share(comm, outcome);
  });
  if (outcome.exit != Exit::ok) fail(outcome.exit, outcome.text);
  return best_from(outcome.text);
}

}  // namespace haloscope
