// Patterns of messages between the two ranks of a pair, and between the neighbours of a ring.
#include <algorithm>

#include "haloscope/rank/microbench/pattern.hpp"

namespace haloscope {

namespace {

constexpr std::int64_t batch_bytes = std::int64_t{4} << 20;  // in flight concurrently, if messages are large
constexpr int min_window = 4, max_window = 64;

/// Returns samples of sequential transfers, seconds of all. With `fresh` each sends freshly written data, and the
/// writing is not counted.
std::vector<double> time_transfers(const Bench& bench, Transfer& first, Transfer* second = nullptr) {
  Sampler sample = bench.sampler().of_messages();
  const auto least = [](const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); };
  const auto one = [&](Transfer& t) {
    if (bench.request.fresh) t.rewrite();
    t.run();
  };
  std::vector<double> samples = sample([&] {
    one(first);
    if (second) one(*second);
  });
  if (!bench.request.fresh) return samples;
  double writing = least(sample([&] { first.rewrite(); }));
  if (second) writing += least(sample([&] { second->rewrite(); }));  // other ranks than before: one after the other
  for (double& s : samples) s = std::max(s - writing, 0.1 * s);
  return samples;
}

/// A transfer over the bench's peers; the arrived data are checked immediately.
struct Checked : Transfer {
  Checked(Bench& bench, Way way, std::int64_t bytes, int messages = 1)
      : Transfer(*bench.peers, bench.strategy, way, bytes, messages) {
    bench.right &= right(bench.session.board->mine());
  }
};

}  // namespace

int window_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>(batch_bytes / bytes, min_window, max_window));
}

/// Half a round trip of one message.
void measure_pingpong(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  Checked forth(bench, Way::forth, bytes), back(bench, Way::back, bytes);
  std::vector<double> trips = time_transfers(bench, forth, &back);
  for (double& t : trips) t /= 2;
  entry["latency_s"] = trips;
}

/// One message each way at the same time.
void measure_pingping(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  Checked both(bench, Way::both, bytes);
  entry["exchange_s"] = time_transfers(bench, both);
}

/// `window` messages one way, then a reply of one byte.
void measure_batch(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  entry["window"] = window_of(bytes);
  Checked batch(bench, Way::forth, bytes, window_of(bytes)), reply(bench, Way::back, 1);
  entry["batch_s"] = time_transfers(bench, batch, &reply);
}

/// `window` messages each way.
void measure_batches(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  entry["window"] = window_of(bytes);
  Checked batches(bench, Way::both, bytes, window_of(bytes));
  entry["both_batch_s"] = time_transfers(bench, batches);
}

/// One message to and one from each of the two neighbours of a ring, at the same time.
void measure_exchange(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  Checked both(bench, Way::both, bytes);
  entry["ring_s"] = time_transfers(bench, both);
}

}  // namespace haloscope
