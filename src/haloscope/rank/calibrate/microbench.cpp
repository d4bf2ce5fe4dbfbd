#include "haloscope/rank/calibrate/microbench.hpp"

#include <algorithm>
#include <cstring>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/rank/calibrate/sampler.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/schedule.hpp"
#include "haloscope/transport/composite.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t largest_bytes = std::int64_t{4} << 20;
constexpr std::int64_t batch_bytes = std::int64_t{4} << 20;  // in flight at once, where messages are large
constexpr int least_window = 4, most_window = 64;

/// One of a pair of ranks, with a communicator of the two. Ranks 0..P/2-1 send first.
struct Pair {
  MPI_Comm comm = MPI_COMM_NULL;
  int side = 0;
  bool yield = false;
  std::vector<int> nodes;  ///< of the two; empty: as MPI says

  Pair(const Session& s, int emulated) {
    const int half = s.size / 2;
    side = s.rank / half;
    MPI_Comm_split(s.comm, s.rank % half, side, &comm);
    yield = more_ranks_than_cores(s.comm);
    if (emulated == 0) return;
    const std::vector<int> all = emulated_nodes(s.size, emulated, Placement::block);
    const int first = s.rank % half;
    nodes = {0, all[first] == all[first + half] ? 0 : 1};
  }
  ~Pair() { MPI_Comm_free(&comm); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
};

enum class Way { forth, back, both };

/// Messages of one size between the two of a pair: the halo exchange of a line of two blocks of `bytes` one-byte cells,
/// with a halo on one side (one way) or on both.
class Transfer {
 public:
  Transfer(const Pair& pair, const Strategy& strategy, Way way, std::int64_t bytes, int messages)
      : pair_(pair),
        node_(pair.comm, pair.nodes),
        layout_({1, {2 * bytes, 1, 1}, {false, false, false}}, {2, 1, 1}),
        plan_(make_plan(layout_, pair.side, spec(strategy, way, bytes, messages))),
        storage_(plan_, 1, {}, needs_shared_fields(strategy) ? shared_by(node_) : Allocator{}),
        program_(exchange_program(plan_, false, collective_rounds(strategy))) {
    LinkContext context{pair.comm, &layout_, &plan_, &storage_.views(), pair.yield};
    context.nodes = pair.nodes;
    link_ = open_link(strategy, context);
    ops_ = std::make_unique<CommOps>(program_, storage_.views(), *link_, pair.comm, pair.yield);
    for (const Message& m : plan_.messages)
      if (m.out) {
        fresh_.emplace_back(static_cast<std::size_t>(m.bytes));
        rewriting_.push_back(make_unpack(storage_.views(), 0, m, fresh_.back().data()));
      }
  }

  /// Write what this rank sends, as computing does: the bytes are then only in its own cache.
  void rewrite() const {
    for (const CopyList& list : rewriting_) list.run();
  }

  void run() {
    for (const Op& op : program_.ops) ops_->run(op, 0);
  }

  /// Whether the bytes that arrive are those that were sent.
  bool right(RankStatus& status) {
    status.set(static_cast<std::int32_t>(OpKind::wait));  // watched, unlike set-up
    for_each_halo([](std::byte* at, std::byte expected) { *at = ~expected; });
    for (std::size_t q = 0; q < storage_.views().size(); ++q)
      for (std::int64_t x = 0; x < plan_.cells[0]; ++x) *cell(q, x) = value(q, pair_.side, x);
    run();
    bool good = true;
    for_each_halo([&](const std::byte* at, std::byte expected) { good = good && *at == expected; });
    return good;
  }

 private:
  static ExchangeSpec spec(const Strategy& strategy, Way way, std::int64_t bytes, int messages) {
    ExchangeSpec spec;
    const int width = static_cast<int>(bytes);
    spec.quantities.assign(static_cast<std::size_t>(messages), Quantity{"u", 1, ScalarType::integer, Centring::cell});
    spec.low = {way == Way::back ? 0 : width, 0, 0};
    spec.high = {way == Way::forth ? 0 : width, 0, 0};
    spec.pattern = strategy.pattern;
    spec.merge = Merge::none;  // one message per quantity
    return spec;
  }
  std::byte* cell(std::size_t quantity, std::int64_t x) { return storage_.views()[quantity][0].at({x, 0, 0}); }
  static std::byte value(std::size_t quantity, int side, std::int64_t x) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(x) * 131 + (static_cast<std::uint64_t>(x) >> 8) * 29 +
                                  quantity * 31 + static_cast<std::uint64_t>(side) * 17);
  }
  template <class F>
  void for_each_halo(F f) {
    const std::int64_t cells = plan_.cells[0];
    for (const Message& m : plan_.messages) {
      if (m.out) continue;
      for (const Region& r : m.regions)
        for (std::int64_t x = r.box.lo[0]; x < r.box.hi[0]; ++x)
          f(cell(static_cast<std::size_t>(r.quantity), x),
            value(static_cast<std::size_t>(r.quantity), 1 - pair_.side, x < 0 ? x + cells : x - cells));
    }
  }

  const Pair& pair_;
  Node node_;
  Layout layout_;
  Plan plan_;
  Storage storage_;
  Program program_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<CommOps> ops_;
  std::vector<Memory> fresh_;
  std::vector<CopyList> rewriting_;
};

/// Samples of transfers one after another; `fresh`: each sends what has just been written, and the writing is not
/// counted.
class Timing {
 public:
  Timing(Sampler& sample, bool fresh) : sample_(sample), fresh_(fresh) {}

  /// @return seconds of `first` and, where given, `second` after it.
  std::vector<double> operator()(Transfer& first, Transfer* second = nullptr) {
    const auto one = [this](Transfer& t) {
      if (fresh_) t.rewrite();
      t.run();
    };
    std::vector<double> samples = sample_([&] {
      one(first);
      if (second) one(*second);
    });
    if (!fresh_) return samples;
    double writing = least(sample_([&] { first.rewrite(); }));
    if (second) writing += least(sample_([&] { second->rewrite(); }));  // other ranks than before: one after the other
    for (double& s : samples) s = std::max(s - writing, 0.1 * s);
    return samples;
  }

 private:
  static double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
  Sampler& sample_;
  bool fresh_;
};

int window_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>(batch_bytes / bytes, least_window, most_window));
}

/// All samples of one message size; `right` turns false where bytes arrived wrong.
Json measure_size(const Pair& pair, const Strategy& strategy, std::int64_t bytes, Timing& time, RankStatus& status,
                  bool& right) {
  const int window = window_of(bytes);
  Json entry{{"bytes", bytes}, {"window", window}};
  {
    Transfer forth(pair, strategy, Way::forth, bytes, 1), back(pair, strategy, Way::back, bytes, 1);
    right &= forth.right(status);
    right &= back.right(status);
    std::vector<double> trips = time(forth, &back);
    for (double& t : trips) t /= 2;
    entry["latency_s"] = trips;
  }
  {
    Transfer both(pair, strategy, Way::both, bytes, 1);
    right &= both.right(status);
    entry["exchange_s"] = time(both);
  }
  {
    Transfer batch(pair, strategy, Way::forth, bytes, window), reply(pair, strategy, Way::back, 1, 1);
    right &= batch.right(status);
    entry["batch_s"] = time(batch, &reply);
  }
  Transfer batches(pair, strategy, Way::both, bytes, window);
  right &= batches.right(status);
  entry["both_batch_s"] = time(batches);
  return entry;
}

std::vector<std::int64_t> all_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 1; bytes <= largest_bytes; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

}  // namespace

MicrobenchRequest microbench_request(const Json& json, const std::string& id, int ranks) try {
  MicrobenchRequest r;
  r.id = id;
  const std::vector<std::string> known{"transport", "ranks", "pairs",   "nodes",
                                       "fresh",     "bytes", "seconds", "repetitions"};
  for (const auto& [name, value] : json.items())
    if (!has(known, name)) throw UsageError(unknown_name("field of a micro-benchmark", name, known));
  r.transport = json.value("transport", r.transport);
  r.nodes = json.value("nodes", r.nodes);
  r.fresh = json.value("fresh", r.fresh);
  r.bytes = json.value("bytes", r.bytes);
  r.seconds = json.value("seconds", r.seconds);
  r.samples = json.value("repetitions", r.samples);
  for (std::int64_t bytes : r.bytes)
    if (bytes < 1 || bytes > 16 * largest_bytes)
      throw UsageError("messages of " + std::to_string(bytes) + " bytes are not possible; give sizes from 1 to " +
                       std::to_string(16 * largest_bytes));
  if (r.bytes.empty()) r.bytes = all_sizes();
  if (ranks < 2 || ranks % 2 != 0)
    throw UsageError("micro-benchmarks run between pairs of ranks, and " + std::to_string(ranks) +
                     " is not an even number of them; use 2, 4, ...");
  if (r.nodes < 0 || r.nodes > ranks)
    throw UsageError("--nodes " + std::to_string(r.nodes) + " is not possible with " + std::to_string(ranks) +
                     " ranks; use 1 to " + std::to_string(ranks));
  if (r.seconds <= 0 || r.samples < 1) throw UsageError("--seconds and --repetitions must be above 0");
  Strategy("direct/" + r.transport);  // refuses unknown names
  return r;
} catch (const Json::exception& error) {
  throw UsageError("a micro-benchmark cannot be made of " + json.dump() + ": " + error.what());
}

Json microbench(Session& s, const MicrobenchRequest& request) {
  s.board->mine().set(Phase::setup);
  const Strategy strategy = Strategy("direct/" + request.transport);
  const Pair pair(s, request.nodes);
  Sampler sample(s, request.seconds, request.samples, (s.rank + s.size / 2) % s.size);
  Timing time(sample, request.fresh);
  Json record{{"id", request.id}, {"kind", "microbench"}, {"environment", s.environment}};
  record["environment"]["oversubscribed"] = pair.yield;
  record["request"] = {{"transport", request.transport}, {"ranks", s.size},        {"pairs", s.size / 2},
                       {"nodes", request.nodes},         {"fresh", request.fresh}, {"seconds", request.seconds},
                       {"repetitions", request.samples}};
  bool right = true;
  for (std::int64_t bytes : request.bytes)
    record["sizes"].push_back(measure_size(pair, strategy, bytes, time, s.board->mine(), right));
  int all_right = right;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, s.comm);
  record["verification"] = {{"status", all_right ? "passed" : "failed"}, {"against", "the bytes sent"}};
  return record;
}

}  // namespace haloscope
