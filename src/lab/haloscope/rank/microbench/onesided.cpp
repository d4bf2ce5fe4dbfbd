// One-sided operations of the first rank of each pair, which a flush completes: no signals, no locks per operation.
#include <memory>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/rank/microbench/pattern.hpp"
#include "haloscope/transport/onesided/window.hpp"

namespace haloscope {

namespace {

enum class Operation { put, get };

/// A buffer of the first rank of a pair, and memory of the second that it puts into or gets from, in one epoch.
class Remote {
 public:
  /// Collective over the pair. @param bytes  of all places together.
  Remote(MPI_Comm pair, int side, Operation operation, std::size_t bytes)
      : pair_(pair), side_(side), operation_(operation), buffer_(side == origin ? bytes : 0) {
    require_windows_apart(pair);
    const std::size_t exposed = side == target ? bytes : 0;
    require_window_memory(pair, exposed);
    window_ = std::make_unique<Window>(pair, OwnedComm{}, exposed, Hints{});
    window_->lock_all(0);
  }

  /// Moves `count` places of `bytes` each, then waits until all are complete at both ranks.
  void run(int bytes, int count) {
    if (side_ != origin) return;
    const MPI_Win window = window_->handle();
    for (int i = 0; i < count; ++i) {
      const std::int64_t at = std::int64_t{i} * bytes;
      if (operation_ == Operation::put)
        REQUIRE_MPI(MPI_Put(&buffer_[at], bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, window));
      else
        REQUIRE_MPI(MPI_Get(&buffer_[at], bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, window));
    }
    REQUIRE_MPI(MPI_Win_flush(target, window));
  }

  /// Moves all places once. Collective. @return true if the bytes that arrive on this rank are the other rank's.
  bool moves_right(int bytes, int count) {
    const int receiver = operation_ == Operation::put ? target : origin;
    std::byte* const mine = side_ == origin ? buffer_.data() : window_->data();
    const std::int64_t size = std::int64_t{bytes} * count;
    for (std::int64_t i = 0; i < size; ++i) mine[i] = side_ == receiver ? ~value(i) : value(i);
    meet();
    run(bytes, count);
    meet();
    bool right = true;
    for (std::int64_t i = 0; i < size && side_ == receiver; ++i) right = right && mine[i] == value(i);
    return right;
  }

 private:
  static constexpr int origin = 0, target = 1;  // in the pair

  static std::byte value(std::int64_t i) { return static_cast<std::byte>(i * 131 + (i >> 8) * 29 + (i >> 16) * 17); }
  /// Makes the stores of each rank visible to operations of the other, and the other way round. Collective.
  void meet() {
    REQUIRE_MPI(MPI_Win_sync(window_->handle()));
    REQUIRE_MPI(MPI_Barrier(pair_));
    REQUIRE_MPI(MPI_Win_sync(window_->handle()));
  }

  MPI_Comm pair_;
  int side_;
  Operation operation_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<Window> window_;
};

/// Adds the samples of one operation with a flush to `<name>_s`, of a batch with one flush to `<name>_batch_s`.
void measure(Bench& bench, Operation operation, std::int64_t bytes, const std::string& name, nlohmann::json& entry) {
  const PeerGroup& pair = *bench.peers;
  const int size = static_cast<int>(bytes), window = window_of(bytes);
  std::unique_ptr<Remote> remote;
  if (!pair.idle()) {
    remote = collectively(pair.comm(), "memory of one-sided operations", [&] {
      return std::make_unique<Remote>(pair.comm(), pair.rank(), operation, static_cast<std::size_t>(bytes * window));
    });
    bench.session.board->mine().set(static_cast<std::int32_t>(OpKind::wait), pair.partner());
    bench.right &= remote->moves_right(size, window);
  }
  Sampler sample = bench.sampler().of_messages();
  const auto time = [&](int count) {
    return sample([&] {
      if (remote) remote->run(size, count);
    });
  };
  entry["window"] = window;
  entry[name + "_s"] = time(1);
  entry[name + "_batch_s"] = time(window);
}

}  // namespace

/// Puts into memory of the other rank: one with a flush, and a batch with one flush. Source: OSU's osu_put_latency and
/// osu_put_bw, by their options for windows that MPI allocates and for flushes.
void measure_put(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  measure(bench, Operation::put, bytes, "put", entry);
}

/// Gets from memory of the other rank, likewise. Source: osu_get_latency and osu_get_bw.
void measure_get(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  measure(bench, Operation::get, bytes, "get", entry);
}

}  // namespace haloscope
