#include "vanecek2020/app/blocks.hpp"

#include <algorithm>
#include <array>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/app_kernels.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/watch/texts.hpp"
#include "haloscope/rank/watch/timeline.hpp"

namespace haloscope {
namespace {

using Json = nlohmann::json;

constexpr int most_blocks = 1024, most_threads = device::most_threads;
constexpr std::int64_t most_elements = std::int64_t{1} << 21;  // a full check distinguishes this number of positions

/// Returns the word of a field, or the default.
template <class Enum>
Enum word_of(const Json& json, const std::string& name, Enum usual) {
  return from_word<Enum>(json.value(name, to_word(usual)));
}

int number_of(const Json& json, const std::string& name, int usual, int least, int most) {
  const std::int64_t value = json.value(name, std::int64_t{usual});
  if (value < least || value > most)
    throw UsageError("blocks: " + name + " = " + std::to_string(value) + " is not possible; use " +
                     std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(value);
}

Workload workload_of(const Json& json) {
  Workload work = find_workload(json.value("workload", std::string("M")));
  if (const auto bytes = json.value("bytes", std::vector<std::int64_t>{}); !bytes.empty()) {
    work.elements.clear();
    for (std::int64_t size : bytes) {
      if (size < 8 || size % 8 != 0 || size / 8 > most_elements)
        throw UsageError("blocks: a buffer of " + std::to_string(size) + " bytes is not possible; use multiples of 8 " +
                         "from 8 to " + std::to_string(8 * most_elements));
      work.elements.push_back(size / 8);
    }
    work.name = "";
    work.grid[0] = work.blocks(), work.grid[1] = work.grid[2] = 1;
  }
  work.threads = number_of(json, "threads", work.threads, 1, most_threads);
  return work;
}

Json described(const BlocksRequest& r, int ranks) {
  const BlocksContext& c = r.context;
  Json bytes;
  for (std::int64_t elements : c.workload.elements) bytes.push_back(8 * elements);
  return {{"ranks", ranks},
          {"workload", c.workload.name},
          {"bytes", bytes},
          {"grid", c.workload.grid},
          {"threads", c.workload.threads},
          {"type", to_word(c.type)},
          {"scheme", to_word(c.scheme)},
          {"sides", c.sides},
          {"variant", to_string(c.variant)},
          {"device", r.device},
          {"check", to_word(c.every ? Check::full : Check::sampled)},
          {"detail", to_word(c.detail)},
          {"warmup", r.warmup},
          {"iterations", r.iterations},
          {"repetitions", r.repetitions}};
}

/// Runs all iterations of a test, the warm-up first. Returns seconds of the slowest rank.
std::vector<double> run_test(Session& s, BlocksFlow& flow, const BlocksRequest& r, std::int64_t& iteration) {
  std::vector<double> seconds;
  RankStatus& status = s.board->mine();
  for (int i = 0; i < r.warmup + r.iterations; ++i) {
    status.set(static_cast<std::int32_t>(OpKind::wait));
    status.step.store(iteration, std::memory_order_relaxed);
    seconds.push_back(flow.iterate(iteration++, i >= r.warmup));
  }
  status.set(Phase::idle);
  REQUIRE_MPI(
      MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX, s.comm));
  return seconds;
}

Json counted(const BlocksFlow& flow) {
  const BlocksCounts& c = flow.counts();
  return {{"launches", c.launches.load()},
          {"tasks", c.tasks.load()},
          {"sends", c.sends.load()},
          {"arrivals", c.arrivals.load()},
          {"copies_in", c.copies_in.load()},
          {"copies_out", c.copies_out.load()},
          {"illegal_moves", c.illegal_moves.load()},
          {"misordered_tasks", c.misordered_tasks.load()}};
}

/// Returns the means of rank 0, by block.
Json block_means(BlocksFlow& flow) {
  Json json;
  for (const BlockMeans& m : flow.log().means()) {
    json["packing_s"].push_back(m.packing_s);
    json["posting_s"].push_back(m.posting_s);
    json["sending_s"].push_back(m.sending_s);
    json["unpacking_s"].push_back(m.unpacking_s);
  }
  return json;
}

/// Returns the events of the last iteration on all ranks, in the time of rank 0.
Json timeline_of(MPI_Comm comm, BlocksFlow& flow, const ClockMap& clock) {
  const double offset = clock_offset(comm).seconds;
  std::vector<BlockEvent> events = flow.log().events();
  const std::vector<BlockEvent> device = flow.device_events(clock);
  events.insert(events.end(), device.begin(), device.end());
  Json mine = Json::array();
  for (const BlockEvent& e : events)
    mine.push_back({{"kind", e.kind},
                    {"block", e.block},
                    {"chunk", e.chunk},
                    {"begin_s", e.begin_s - offset},
                    {"end_s", e.end_s - offset}});
  Json all = Json::array();
  for_each_text(duplicate(comm).get(), mine.dump(), [&](int rank, const std::string& text) {
    for (Json& event : Json::parse(text)) {
      event["rank"] = rank;
      all.push_back(event);
    }
  });
  return all;
}

void need_threads(const Variant& variant) {
  int level = MPI_THREAD_SINGLE;
  REQUIRE_MPI(MPI_Query_thread(&level));
  if (variant.cpu_threads > 1 && level < MPI_THREAD_MULTIPLE)
    throw UnavailableError("variant '" + to_string(variant) + "' has several threads that call MPI, and this MPI was " +
                           "started without MPI_THREAD_MULTIPLE or has none; use threads=1");
}

Json look_in_detail(MPI_Comm comm, BlocksFlow& flow, const BlocksRequest& r, const ClockPoint& first,
                    const ClockPoint& last) {
  const ClockMap clock(first, last);
  Json json{{"clock", {{"ticks_per_s", 1 / clock.seconds_per_tick()}, {"precision_s", clock.precision_s()}}},
            {"segments_s", flow.log().segments_s()},
            {"blocks", block_means(flow)}};
  if (r.timeline) json["timeline"] = timeline_of(comm, flow, clock);
  return json;
}

}  // namespace

BlocksRequest blocks_request(const Json& json, const std::string& id) try {
  const std::vector<std::string> known{"workload",   "bytes",    "threads", "scheme",     "sides", "type",
                                       "variant",    "device",   "check",   "detail",     "ranks", "warmup",
                                       "iterations", "timeline", "limit_s", "repetitions"};
  for (const auto& [name, value] : json.items())
    if (!has(known, name)) throw UsageError(unknown_name("field of a request of blocks", name, known));
  BlocksRequest r;
  r.id = id;
  r.device = device::find_backend(json.value("device", std::string("auto"))).name;
  r.context.workload = workload_of(json);
  r.context.type = word_of(json, "type", r.context.type);
  r.context.scheme = word_of(json, "scheme", r.context.scheme);
  r.context.sides = number_of(json, "sides", 1, 1, most_blocks / r.context.workload.blocks());
  r.context.variant = parse_variant(json.value("variant", std::string("baseline")));
  r.context.every = word_of(json, "check", Check::sampled) == Check::full;
  r.timeline = json.value("timeline", false);
  r.context.detail = word_of(json, "detail", r.timeline ? Detail::on : Detail::off);
  if (r.timeline && r.context.detail == Detail::off)
    throw UsageError("blocks: a timeline needs detail 'on' or 'posting'");
  r.context.limit_s = json.value("limit_s", r.context.limit_s);
  if (json.contains("limit_s") && !(r.context.limit_s > 0)) throw UsageError("blocks: limit_s must be above 0");
  r.warmup = number_of(json, "warmup", r.warmup, 0, 1000000);
  r.iterations = number_of(json, "iterations", r.iterations, 1, 1000000);
  r.repetitions = number_of(json, "repetitions", r.repetitions, 1, 1000000);
  return r;
} catch (const Json::exception& error) {
  throw UsageError("a request of blocks cannot be made of " + json.dump() + ": " + error.what());
}

Json run_blocks(Session& s, const BlocksRequest& r) {
  s.board->mine().set(Phase::setup);
  need_threads(r.context.variant);
  const device::Backend& backend = device::find_backend(r.device);
  const Node node(s.comm);
  const auto device = backend.open(node.local(s.rank) % backend.count());
  BlocksContext context = r.context;
  context.comm = s.comm;
  context.device = device.get();
  context.yield = backend.on_cpu || more_ranks_than_cores(s.comm, context.variant.cpu_threads);
  if (s.fault && s.fault->rank == s.rank)
    context.on_posted = [&s] {
      Op send;
      send.kind = OpKind::send;
      Fault::before(s.fault, send, s.board->mine().step.load());
    };
  ClockReader clock(*device, context.yield);
  const auto flow = make_flow(context);
  Json record{{"id", r.id}, {"kind", "blocks"}, {"request", described(r, s.size)}, {"environment", s.environment}};
  record["environment"]["device"] = device_json(r.device, *device);
  for_each_text(duplicate(s.comm).get(), device->info().id,
                [&](int, const std::string& id) { record["environment"]["device"]["of_ranks"].push_back(id); });
  const bool logged = flow->log().on();
  const ClockPoint first = logged ? clock.read() : ClockPoint{};
  const WatchdogHint hint(s.watchdog, [&] { return flow->state(); });
  std::int64_t iteration = 0;
  for (int test = 0; test < r.repetitions; ++test) record["iterations_s"].push_back(run_test(s, *flow, r, iteration));
  record["events"] = counted(*flow);
  const HitProfile profile = flow->profile();
  record["profile"] = {
      {"hits", profile.hits()}, {"after_a_hit", profile.after_a_hit()}, {"longest_run", profile.longest_run()}};
  if (logged) record.update(look_in_detail(s.comm, *flow, r, first, clock.read()));
  record["verification"] = {{"status", "passed"},
                            {"against", r.context.every ? "every element" : "an element for each thread"}};
  return record;
}

extern const AppKernels blocks_kernels;  // made by haloscope_add_kernels()

const RequestKind& blocks_kind() {
  static const RequestKind kind = [] {
    add_kernels(blocks_kernels);
    return RequestKind{
        .name = "blocks",
        .serve = [](Session& session, const nlohmann::json& request,
                    const std::string& id) { return run_blocks(session, blocks_request(request, id)); },
        .refuse = [](const nlohmann::json& request) { return (blocks_request(request, ""), std::string()); },
        .thread_level = [](const nlohmann::json& request) -> int {
          return blocks_request(request, "").context.variant.cpu_threads > 1 ? MPI_THREAD_MULTIPLE
                                                                             : MPI_THREAD_FUNNELED;
        }};
  }();
  return kind;
}

}  // namespace haloscope
