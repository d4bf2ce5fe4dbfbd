#include "haloscope/rank/calibrate/calibrate.hpp"

#include <algorithm>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/rank/calibrate/parts.hpp"
#include "haloscope/rank/calibrate/sampler.hpp"
#include "haloscope/rank/calibrate/sweeps.hpp"
#include "haloscope/rank/measure/bare_exchange.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "haloscope/rank/request_kinds.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;
using Samples = std::vector<double>;

const std::vector<std::string> parts{"kernel", "pack", "exchange", "allreduce", "device-kernel", "device-copy"};

// ---- kernel ---------------------------------------------------------------------------------------------------------

/// One sweep per step: as steps are made, but for the copied halos of fused ones, which need a periodic grid.
Json stencil_points(const Choice& choice, Sampler& sample) {
  const bool fused = choice.substeps == Substeps::blocked;
  RunnerOptions options;
  options.timers = fused;
  Run run(MPI_COMM_SELF, choice, options);
  run.initialise("random");  // zeros would make subnormal numbers
  const auto computing = [&] { return run.seconds()[static_cast<std::size_t>(Timer::compute)]; };
  const Samples sweep = !fused ? sample([&] { run.advance(1); }) : sample.parts<1>([&] {
    const double before = computing();
    run.advance(choice.depth);
    return std::array{(computing() - before) / choice.depth};
  })[0];
  std::int64_t swept = 0;
  for (const Sweep& s : run.program().sweeps) swept += s.cells() * s.levels;
  return {swept_point(run, swept / run.program().steps, sweep)};
}

/// Several sweeps per step.
Json sweep_points(const Choice& choice, Sampler& sample) {
  Run run(MPI_COMM_SELF, choice);
  run.initialise("random");
  return points_of_sweeps(run.candidate().step, [&](int stage, int sweep) {
    return swept_point(run, run.plan().own_cells().volume(), sample([&] { run.sweep_alone(stage, sweep); }));
  });
}

Json kernel_points(const CalibrateRequest& request, Sampler& sample) {
  Choice choice = request.plain.choice;
  choice.ranks = 1;  // every rank alone
  const Step step = Candidate(choice).step;
  const bool plain = step.stages.size() == 1 && step.stages.front().sweeps.size() == 1;
  return plain ? stencil_points(choice, sample) : sweep_points(choice, sample);
}

// ---- exchange -------------------------------------------------------------------------------------------------------

/// The exchange of a choice, for several fields.
ExchangeSpec fields_spec(const CalibrateRequest& request) {
  ExchangeSpec spec = exchange_spec(request.plain.choice);
  spec.quantities.assign(static_cast<std::size_t>(request.fields), spec.quantities.front());
  return spec;
}

/// Rows of memory that a rank sends, bytes of messages with gaps.
struct Sent {
  std::int64_t rows = 0, gapped_bytes = 0;
  Sent(const Plan& plan, const Views& views) {
    for (const Message& m : plan.messages) {
      const bool whole = contiguous_span(views, 0, m) != nullptr;
      if (m.out && whole) rows += 1;
      if (!m.out || whole) continue;
      gapped_bytes += m.bytes;
      for (const Region& r : m.regions) rows += r.box.extent(1) * r.box.extent(2);
    }
  }
};

/// The cache effects of sweeps around an exchange: sweeps write the cells to be sent, whose lines this core then owns,
/// and read the halos, which another core may have written.
class Touching {
 public:
  Touching(const Plan& plan, const Views& views) {
    for (const Message& m : plan.messages) {
      buffers_.emplace_back(static_cast<std::size_t>(m.bytes));
      if (m.out)
        writing_.push_back(make_unpack(views, 0, m, buffers_.back().data()));
      else
        reading_.push_back(make_pack(views, 0, m, buffers_.back().data()));
    }
  }
  void write() const { run(writing_); }
  void read() const { run(reading_); }

 private:
  static void run(const std::vector<CopyList>& lists) {
    for (const CopyList& list : lists) list.run();
  }
  std::vector<Memory> buffers_;
  std::vector<CopyList> writing_, reading_;
};

Json exchange_points(Session& s, const CalibrateRequest& request, Sampler sample) {
  const Choice& choice = request.plain.choice;
  const auto opened = collectively(s.comm, "exchanges", [&] {
    return std::make_unique<BareExchange>(s.comm, choice.strategy, make_layout(choice), fields_spec(request),
                                          more_ranks_than_cores(s.comm));
  });
  BareExchange& open = *opened;
  Touching touching(open.plan, open.storage.views());
  Samples exchanged = sample([&] {
    touching.write();
    open.run();
    touching.read();
  });
  Samples touched = sample([&] {
    touching.write();
    touching.read();
  });
  const double least = *std::min_element(touched.begin(), touched.end());  // a disturbed one would take too much away
  for (double& e : exchanged) e = std::max(e - least, 0.1 * e);
  const Sent sent(open.plan, open.storage.views());
  const auto waits = std::count_if(open.program.ops.begin(), open.program.ops.end(),
                                   [](const Op& op) { return op.kind == OpKind::wait; });
  return {{{"messages", open.plan.messages_out()},
           {"bytes", open.plan.bytes_out()},
           {"rows", sent.rows},
           {"gapped_bytes", sent.gapped_bytes},
           {"rounds", waits},
           {"exchange_s", exchanged}}};
}

// ---- allreduce, allgather -------------------------------------------------------------------------------------------

Json allreduce_points(Session& s, Sampler sample, bool& right) {
  double sum = 1;
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, s.comm));
  right &= sum == s.size;
  const double mine = s.rank;
  std::vector<double> all(static_cast<std::size_t>(s.size));
  const auto gather = [&] { REQUIRE_MPI(MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, s.comm)); };
  gather();
  for (int rank = 0; rank < s.size; ++rank) right &= all[rank] == rank;
  return {{{"allreduce_s", sample([&] {
              double one = 1;
              REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, s.comm));
            })},
           {"allgather_s", sample(gather)}}};
}

Json request_json(const Session& s, const CalibrateRequest& request) {
  Json json = to_json(request.plain.choice);
  json["part"] = request.part;
  json["ranks"] = s.size;
  json["fields"] = request.fields;
  json["seconds"] = request.plain.seconds;
  json["repetitions"] = request.plain.repetitions;
  if (!request.plain.choice.device.empty() && request.plain.choice.device_kernel.empty())
    json["device_kernel"] = "stream";
  return json;
}

}  // namespace

CalibrateRequest calibrate_request(const Json& json, const std::string& id, int ranks) {
  CalibrateRequest r;
  Json plain = json;
  r.part = json.value("part", "");
  if (!has(parts, r.part)) throw UsageError(unknown_name("part of a calibration", r.part, parts));
  const Json fields = json.value("fields", Json(1));
  if (!fields.is_number_integer() || fields.get<double>() < 1 || fields.get<double>() > 9999)
    throw UsageError("a calibration of " + fields.dump() + " fields is not possible; give 1 to 9999");
  r.fields = fields.get<int>();
  plain.erase("part");
  plain.erase("fields");
  r.plain = measurement_request(plain, id, ranks);
  if (r.plain.seconds <= 0) throw UsageError("calibrate needs seconds, the length of a sample; for example 0.001");
  const bool on_device = r.part.rfind("device-", 0) == 0;
  if (on_device == r.plain.choice.device.empty())
    throw UsageError("calibrate " + r.part + (on_device ? " needs a device, such as auto" : " runs without a device"));
  if (r.part == "pack" && r.plain.choice.schedule->in_place)
    throw UsageError(
        "calibrate pack does not work with sweeps in place; use an app with two slots, or a form without them");
  return r;
}

Json calibrate(Session& s, const CalibrateRequest& request) {
  s.board->mine().set(Phase::setup);
  pin_threads(s.comm, request.plain.choice.threads);
  Sampler sample(s, request.plain.seconds, static_cast<int>(request.plain.repetitions));
  Json record{{"id", request.plain.id}, {"kind", "calibration"}, {"request", request_json(s, request)}};
  record["environment"] = s.environment;
  record["environment"]["oversubscribed"] = more_ranks_than_cores(s.comm, request.plain.choice.threads);
  bool mine = true;
  record["points"] = request.part == "kernel"          ? kernel_points(request, sample)
                     : request.part == "pack"          ? pack_points(request, sample, mine)
                     : request.part == "exchange"      ? exchange_points(s, request, sample.of_messages())
                     : request.part == "device-kernel" ? device_kernel_points(s, request, sample)
                     : request.part == "device-copy"   ? device_copy_points(s, request, sample, mine)
                                                       : allreduce_points(s, sample.of_messages(), mine);
  if (const std::string& name = request.plain.choice.device; !name.empty())
    record["environment"]["device"] = device_json(name, *device::find_backend(name).open(0));
  int right = mine;
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, s.comm));
  const bool checked = request.part == "pack" || request.part == "allreduce" || request.part == "device-copy";
  record["verification"] = {{"status", !checked ? "off" : right ? "passed" : "failed"}};
  return record;
}

const RequestKind& calibration_kind() {
  static const RequestKind kind{
      .name = "calibration",
      .serve = [](Session& session, const nlohmann::json& request,
                  const std::string& id) { return calibrate(session, calibrate_request(request, id, session.size)); },
      .refuse = measurement_kind().refuse,
      .thread_level = measurement_kind().thread_level};
  return kind;
}

}  // namespace haloscope
