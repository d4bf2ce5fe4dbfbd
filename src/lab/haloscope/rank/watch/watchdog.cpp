#include "haloscope/rank/watch/watchdog.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/extend/program.hpp"

namespace haloscope {

namespace {
using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }
}  // namespace

Watchdog::Watchdog(const StatusBoard& board, RankStatus& mine, int rank, double seconds)
    : board_(board), mine_(mine), rank_(rank), seconds_(seconds) {
  if (mpi_traits.simulated) return;  // SMPI itself ends a run that is stuck; its ranks may have no threads of their own
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

/// Grows as long as any rank moves: a rank that waits for a slow but living one is not stuck.
std::int64_t Watchdog::all_heartbeats() const {
  if (!board_.shared()) return mine_.heartbeat.load(std::memory_order_relaxed);
  std::int64_t sum = 0;
  for (int r = 0; r < board_.ranks(); ++r) sum += board_.of(r).heartbeat.load(std::memory_order_relaxed);
  return sum;
}

/// The rank this one waits for: one that itself waits for no other if the board shows such a rank, else the message's
/// sender.
int Watchdog::blamed() const {
  const std::int32_t phase = mine_.phase.load(), peer = mine_.waiting_for.load();
  const auto waits = [](std::int32_t p) {
    return p == static_cast<std::int32_t>(OpKind::wait) || p == static_cast<std::int32_t>(OpKind::barrier) ||
           p == static_cast<std::int32_t>(OpKind::complete) || p == static_cast<std::int32_t>(OpKind::reduce) ||
           p == static_cast<std::int32_t>(OpKind::reduced);
  };
  if (!waits(phase)) return -1;
  for (int r = 0; board_.shared() && r < board_.ranks(); ++r)
    if (r != rank_ && !waits(board_.of(r).phase.load())) return r;
  return peer;
}

void Watchdog::watch() {
  std::int64_t last = -1;
  auto changed = Clock::now(), reported = changed;
  while (!stop_.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::int64_t beats = all_heartbeats();
    // Set-up and idling between configurations have no operations to count.
    const bool unwatched = mine_.phase.load(std::memory_order_relaxed) >= static_cast<std::int32_t>(Phase::setup);
    if (beats != last || unwatched) {
      last = beats;
      changed = reported = Clock::now();
    } else if (seconds_ > 0 && since(changed) > seconds_) {
      report("made no progress", since(changed));
      end_run();
    } else if (seconds_ == 0 && patience_s() > 0 && since(reported) > patience_s()) {
      report("has waited", since(changed));
      reported = Clock::now();
    }
  }
}

void Watchdog::explain(std::function<std::string()> say) {
  const std::lock_guard lock(saying_);
  say_ = std::move(say);
}

std::string Watchdog::explanation() const {
  const std::lock_guard lock(saying_);
  return say_ ? "; " + say_() : "";
}

void Watchdog::report(const std::string& stuck, double stuck_s) const {
  const std::int32_t phase = mine_.phase.load();
  const int peer = blamed();
  const std::string waiting = peer >= 0 ? ", waiting for rank " + std::to_string(peer) : "";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", stuck_s);
  const std::string text = "haloscope: rank " + std::to_string(rank_) + " " + stuck + " for " + seconds +
                           " s in phase " + phase_name(phase) + " of step " + std::to_string(mine_.step.load()) +
                           waiting + explanation() + "\n";
  std::fputs(text.c_str(), stderr);
}

void Watchdog::end_run() const {
  // The hanging rank reports too: it needs time before the launcher ends every rank of the run.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  _exit(1);
}

}  // namespace haloscope
