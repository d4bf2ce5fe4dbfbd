#include "haloscope/rank/microbench/microbench.hpp"

#include <algorithm>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/probe.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/microbench/pattern.hpp"
#include "haloscope/rank/request_kinds.hpp"

namespace haloscope {

#define PATTERN(name, kind) void measure_##name(Bench& bench, std::int64_t bytes, nlohmann::json& entry);
#include "haloscope/rank/microbench/patterns.def"
#undef PATTERN

namespace {

using Kind = MicroPattern::Kind;

const std::vector<MicroPattern> patterns{
#define PATTERN(name, kind) {#name, Kind::kind, measure_##name},
#include "haloscope/rank/microbench/patterns.def"
#undef PATTERN
};
const std::vector<std::string> usual{"pingpong", "pingping", "batch", "batches"};

constexpr std::int64_t largest_message = std::int64_t{64} << 20, largest_array = std::int64_t{1} << 40;

bool sends(Kind kind) { return kind == Kind::pairs || kind == Kind::ring; }
bool pairs_ranks(Kind kind) { return kind == Kind::pairs || kind == Kind::onesided; }

std::vector<std::int64_t> usual_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 1; bytes <= std::int64_t{4} << 20; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

void check_sizes(const MicrobenchRequest& r) {
  const Kind kind = r.patterns.front()->kind;
  const bool memory = kind == Kind::memory;
  const std::int64_t min_bytes = memory ? static_cast<std::int64_t>(pass_doubles * sizeof(double)) * r.threads : 1;
  const std::int64_t max_bytes = memory ? largest_array : largest_message;
  for (std::int64_t bytes : r.bytes)
    if (bytes < min_bytes || bytes > max_bytes)
      throw UsageError(std::to_string(bytes) + " bytes are not possible in pattern '" + r.patterns.front()->name +
                       "'; give sizes from " + std::to_string(min_bytes) + " to " + std::to_string(max_bytes));
  const bool adds = std::any_of(r.patterns.begin(), r.patterns.end(),
                                [](const MicroPattern* p) { return std::string(p->name) == "allreduce"; });
  for (std::int64_t bytes : r.bytes)
    if (adds && bytes % 4 != 0)
      throw UsageError("pattern 'allreduce' adds numbers of 4 bytes, and " + std::to_string(bytes) +
                       " bytes are not a multiple of that; give multiples of 4");
}

void take_pairs(MicrobenchRequest& r, int ranks) {
  if (ranks < 2 || ranks % 2 != 0)
    throw UsageError("pairs of ranks need an even number of them, and there are " + std::to_string(ranks) +
                     "; use 2, 4, ...");
  if (r.gap == 0) r.gap = ranks / 2;
  if (r.gap < 1 || ranks % (2 * r.gap) != 0)
    throw UsageError("--gap " + std::to_string(r.gap) + " does not pair " + std::to_string(ranks) +
                     " ranks; twice the gap has to divide their number");
  if (r.pairs == 0) r.pairs = ranks / 2;
  if (r.pairs < 1 || r.pairs > ranks / 2)
    throw UsageError("--pairs " + std::to_string(r.pairs) + " is not possible with " + std::to_string(ranks) +
                     " ranks; use 1 to " + std::to_string(ranks / 2));
}

/// Completes and checks the fields that depend on the patterns and the number of ranks.
void settle(MicrobenchRequest& r, int ranks) {
  const Kind kind = r.patterns.front()->kind;
  for (const MicroPattern* p : r.patterns)
    if (p->kind != kind)
      throw UsageError(std::string("patterns '") + r.patterns.front()->name + "' and '" + p->name +
                       "' need requests of their own");
  if (pairs_ranks(kind)) take_pairs(r, ranks);
  if (kind == Kind::ring && ranks < 2) throw UsageError("a ring needs 2 ranks or more");
  if (sends(kind)) Strategy("direct/" + r.transport);  // refuses unknown names
  if (r.nodes < 0 || r.nodes > ranks)
    throw UsageError("--nodes " + std::to_string(r.nodes) + " is not possible with " + std::to_string(ranks) +
                     " ranks; use 1 to " + std::to_string(ranks));
  if (r.threads < 1) throw UsageError("--threads " + std::to_string(r.threads) + " is not possible; use 1 or more");
  if (r.seconds <= 0 || r.samples < 1) throw UsageError("--seconds and --repetitions must be above 0");
  check_sizes(r);
}

nlohmann::json described(const MicrobenchRequest& r, int ranks) {
  nlohmann::json json{{"ranks", ranks}, {"seconds", r.seconds}, {"repetitions", r.samples}};
  for (const MicroPattern* p : r.patterns) json["patterns"].push_back(p->name);
  const Kind kind = r.patterns.front()->kind;
  if (sends(kind)) json.update({{"transport", r.transport}, {"nodes", r.nodes}, {"fresh", r.fresh}});
  if (kind != Kind::memory) json["bytes"] = r.bytes;
  if (pairs_ranks(kind)) json.update({{"pairs", r.pairs}, {"gap", r.gap}});
  if (kind == Kind::memory) json["threads"] = r.threads;
  return json;
}

std::unique_ptr<PeerGroup> open_peers(const Session& s, const MicrobenchRequest& r, bool yield) {
  const Kind kind = r.patterns.front()->kind;
  if (pairs_ranks(kind)) return PeerGroup::open_pair(s.comm, r.gap, r.pairs, r.nodes, yield);
  return kind == Kind::ring ? PeerGroup::open_ring(s.comm, r.nodes, yield) : nullptr;
}

}  // namespace

const MicroPattern& find_micro_pattern(const std::string& name) { return find_named("pattern", patterns, name); }

MicrobenchRequest microbench_request(const nlohmann::json& json, const std::string& id, int ranks) try {
  MicrobenchRequest r;
  r.id = id;
  const std::vector<std::string> known{"patterns", "transport", "ranks", "gap",     "pairs",      "nodes",
                                       "threads",  "fresh",     "bytes", "seconds", "repetitions"};
  for (const auto& [name, value] : json.items())
    if (!has(known, name)) throw UsageError(unknown_name("field of a micro-benchmark", name, known));
  for (const std::string& name : json.value("patterns", usual)) r.patterns.push_back(&find_micro_pattern(name));
  if (r.patterns.empty()) throw UsageError("a micro-benchmark needs a pattern; the usual one is pingpong");
  r.transport = json.value("transport", r.transport);
  r.gap = json.value("gap", r.gap);
  r.pairs = json.value("pairs", r.pairs);
  r.nodes = json.value("nodes", r.nodes);
  r.threads = json.value("threads", r.threads);
  r.fresh = json.value("fresh", r.fresh);
  r.bytes = json.value("bytes", r.bytes);
  r.seconds = json.value("seconds", r.seconds);
  r.samples = json.value("repetitions", r.samples);
  if (r.bytes.empty()) r.bytes = usual_sizes();
  settle(r, ranks);
  return r;
} catch (const nlohmann::json::exception& error) {
  throw UsageError("a micro-benchmark cannot be made of " + json.dump() + ": " + error.what());
}

nlohmann::json microbench(Session& s, const MicrobenchRequest& request) {
  s.board->mine().set(Phase::setup);
  const Kind kind = request.patterns.front()->kind;
  if (kind == Kind::memory) pin_threads(s.comm, request.threads);
  const bool crowded = more_ranks_than_cores(s.comm, request.threads);
  Bench bench{s, request, Strategy("direct/" + request.transport), open_peers(s, request, crowded)};
  nlohmann::json record{{"id", request.id}, {"kind", "microbench"}, {"environment", s.environment}};
  record["environment"]["oversubscribed"] = crowded;
  record["request"] = described(request, s.size);
  for (std::int64_t bytes : request.bytes) {
    nlohmann::json entry{{"bytes", bytes}};
    for (const MicroPattern* pattern : request.patterns) pattern->measure(bench, bytes, entry);
    record["sizes"].push_back(entry);
  }
  int all_right = bench.right;
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, s.comm));
  record["verification"] = {{"status", all_right ? "passed" : "failed"},
                            {"against", kind == Kind::memory ? "the values written" : "the bytes sent"}};
  return record;
}

const RequestKind& microbench_kind() {
  static const RequestKind kind{.name = "microbench",
                                .serve = [](Session& session, const nlohmann::json& request, const std::string& id) {
                                  return microbench(session, microbench_request(request, id, session.size));
                                }};
  return kind;
}

}  // namespace haloscope
