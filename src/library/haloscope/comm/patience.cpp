#include "haloscope/comm/patience.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

constexpr double default_s = 30;

bool ends_stalled_jobs() {
  static const bool ends = [] {
    const char* const text = std::getenv("HALOSCOPE_STALL");
    return text != nullptr && std::strcmp(text, "end") == 0;
  }();
  return ends;
}

double read_patience() {
  const char* const text = std::getenv("HALOSCOPE_PATIENCE");
  if (text == nullptr || *text == '\0') return default_s;
  double seconds = 0;  // not by strtod, which expects a comma in some locales
  const char* const end = text + std::strlen(text);
  const auto [last, fault] = std::from_chars(text, end, seconds);
  if (fault == std::errc{} && last == end && seconds >= 0) return seconds;
  std::fprintf(stderr, "haloscope: HALOSCOPE_PATIENCE is '%s', not a number of seconds; %g is used\n", text, default_s);
  return default_s;
}

/// This thread checks waits of others, and makes no calls of MPI.
thread_local bool oversees = false;

/// Checks all overseen waits, from a thread that never ends.
class Overseer {
 public:
  static Overseer& only() {
    static Overseer* const made = new Overseer;
    return *made;
  }
  void add(WatchedWait* wait) {
    const std::lock_guard lock(mutex_);
    waits_.push_back(wait);
    if (!runs_) runs_ = starts();
  }
  void remove(WatchedWait* wait) {
    const std::lock_guard lock(mutex_);
    std::erase(waits_, wait);
  }

 private:
  Overseer() {
    stay_loaded();
    waits_.reserve(64);
  }
  /// Starts the thread. @return true if it could; where no threads or memory are left, the next wait tries again.
  bool starts() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the program handles signals
    bool started = true;
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::exception&) {
      started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }
  void run() {
    oversees = true;
    const std::chrono::duration<double> nap(std::clamp(patience_s() / 8, 0.01, 1.0));
    for (;;) {
      std::this_thread::sleep_for(nap);
      const std::lock_guard lock(mutex_);
      for (WatchedWait* wait : waits_) wait->look();
    }
  }

  std::mutex mutex_;
  std::vector<WatchedWait*> waits_;
  bool runs_ = false;
};

/// Returns the name of this rank. The first call is on a thread that may call MPI, which the overseer's may not.
const std::string& reporter() {
  static const std::string name = []() -> std::string {
    try {
      const ErrorsReturned returned(MPI_COMM_WORLD);
      return "rank " + std::to_string(rank_in(MPI_COMM_WORLD));
    } catch (const MpiError& error) {  // destructors call this too
      end_job(error.what());
    }
  }();
  return name;
}

}  // namespace

double patience_s() {
  static const double seconds = read_patience();
  return seconds;
}

void report_wait(double seconds, const char* event) {
  constexpr const char* ending = "; HALOSCOPE_STALL=end ends the job";
  std::array<char, 1024> text;
  std::snprintf(text.data(), text.size(), "has waited for %.0f s: %s", seconds, event);
  const bool ends = ends_stalled_jobs();
  if (ends && !oversees) end_job(text.data(), ending);
  std::fprintf(stderr, "haloscope: %s%s %s%s\n", reporter().c_str(), ends ? ":" : "", text.data(), ends ? ending : "");
  if (!ends) return;
  std::fflush(stderr);
  _exit(static_cast<int>(Exit::failed));  // the launcher ends a job that loses a rank
}

double ReportClock::due() {
  const double now = now_s();
  if (since_ == 0) since_ = reported_ = now;
  if (patience_s() == 0 || now - reported_ < patience_s()) return 0;
  reported_ = now;
  return now - since_;
}

void ReportedWait::look() {
  report_due(clock_, [this] { return describe(); });
}

Overseen::Overseen(WatchedWait& wait)
    : wait_(patience_s() > 0 && !mpi_traits.simulated ? &wait : nullptr) {  // SMPI's clock is for its threads
  if (wait_ == nullptr) return;
  static_cast<void>(reporter());
  try {
    Overseer::only().add(wait_);
    current_wait = nullptr;
  } catch (const std::bad_alloc&) {  // the wait goes on without a report
    wait_ = nullptr;
  }
}

Overseen::~Overseen() {
  if (wait_ == nullptr) return;
  Overseer::only().remove(wait_);
  current_wait = wait_;
}

}  // namespace haloscope
