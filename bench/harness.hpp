// Measurements in pairs: variants take turns in one process, so that a disturbance of the machine slows all of them.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "haloscope/field/field.hpp"

namespace haloscope::bench {

/// Returns the CPUs that this process may use, in ascending order.
inline std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) cpus.push_back(c);
  return cpus;
}

/// Pins the calling thread to one CPU.
inline void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// A fixed team of threads, each pinned to a separate CPU; the caller is member 0. Members spin between jobs.
class Team {
 public:
  using Job = std::function<void(int member)>;

  explicit Team(int size) : size_(size), cpus_(usable_cpus()) {
    pin(0);
    for (int member = 1; member < size; ++member)
      threads_.emplace_back([this, member] {
        pin(member);
        for (int turn = 1;; ++turn) {
          while (turn_.load(std::memory_order_acquire) < turn) {
          }
          if (!job_) return;
          (*job_)(member);
          done_.fetch_add(1, std::memory_order_release);
        }
      });
  }
  ~Team() {
    release(nullptr);
    for (auto& t : threads_) t.join();
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int c : cpus_) CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  Team(const Team&) = delete;

  int size() const { return size_; }

  /// Runs `job` on every member and returns when all have finished.
  void run(const Job& job) {
    done_.store(0, std::memory_order_relaxed);
    release(&job);
    job(0);
    while (done_.load(std::memory_order_acquire) < size_ - 1) {
    }
  }

 private:
  void pin(int member) const {
    if (static_cast<int>(cpus_.size()) < size_) return;
    pin_to(cpus_[member]);
  }
  void release(const Job* job) {
    job_ = job;
    turn_.fetch_add(1, std::memory_order_release);
  }

  int size_;
  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
  const Job* job_ = nullptr;
  std::atomic<int> turn_{0}, done_{0};
};

/// Returns the share [first, second) of one member when `count` items are split among `members`.
inline std::pair<std::int64_t, std::int64_t> share(std::int64_t count, int member, int members) {
  return {count * member / members, count * (member + 1) / members};
}

/// Returns slots of one field on one rank, allocated by the library, filled with numbers in [0.5, 1.5) by the team.
inline Storage make_fields(int dims, const Index& cells, int halo, int element_bytes, int slots, Team& team) {
  GridSpec grid{dims, cells, {true, true, true}};
  ExchangeSpec spec;
  for (int d = 0; d < 3; ++d) spec.low[d] = spec.high[d] = d < dims ? halo : 0;
  spec.quantities[0].element_bytes = element_bytes;
  const auto fill = [element_bytes]<class T>(std::span<std::byte> bytes, T) {
    auto* p = reinterpret_cast<T*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / element_bytes; ++i)
      p[i] = T(0.5) + T((i * 2654435761u >> 8) % 65536) / T(65536);
  };
  return Storage(make_plan(Layout(grid, {1, 1, 1}), 0, spec), slots, [&](std::span<std::byte> bytes) {
    team.run([&](int member) {
      const auto lines = static_cast<std::int64_t>(bytes.size() / 64);
      auto [from, to] = share(lines, member, team.size());
      const auto end = member + 1 == team.size() ? bytes.size() : static_cast<std::size_t>(to) * 64;
      const auto mine = bytes.subspan(from * 64, end - from * 64);
      if (element_bytes == 8)
        fill(mine, double{});
      else
        fill(mine, float{});
    });
  });
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One way to do a job, and its seconds in each round.
struct Variant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};
  std::function<void()> prepare = {};  ///< called before each run, not timed
};

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0.0 : 0.5 * (v[(v.size() - 1) / 2] + v[v.size() / 2]);
}

/// Runs all variants `rounds` times in turn after one untimed round, in reverse order every other round.
inline void take_turns(std::vector<Variant>& variants, int rounds) {
  for (auto& v : variants) {
    if (v.prepare) v.prepare();
    v.run();
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      auto& v = variants[round % 2 ? variants.size() - 1 - i : i];
      if (v.prepare) v.prepare();
      const auto start = std::chrono::steady_clock::now();
      v.run();
      v.seconds.push_back(seconds_since(start));
    }
  }
}

/// Returns the variant with the smallest median among the variants whose names start with `prefix`.
inline const Variant& fastest(const std::vector<Variant>& variants, const std::string& prefix) {
  const Variant* best = nullptr;
  for (const auto& v : variants)
    if (v.name.rfind(prefix, 0) == 0 && (!best || median(v.seconds) < median(best->seconds))) best = &v;
  return *best;
}

constexpr double no_bar = std::numeric_limits<double>::quiet_NaN();

/// A figure: a against b, in seconds per round.
struct Result {
  std::string figure, name;
  std::string a, b;
  std::vector<double> samples_a, samples_b;
  std::string value;  ///< "a/b" or "b/a": the quotient of the samples that is the figure
  double bar = 0;     ///< no_bar: the figure is not judged
  std::string direction = ">=";
  int threads = 1;
  std::string notes = {};
  int ranks = 1;
};

inline std::string json_list(const std::vector<double>& v) {
  std::string text = "[";
  char number[32];
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::snprintf(number, sizeof number, "%s%.6g", i ? "," : "", v[i]);
    text += number;
  }
  return text + "]";
}

/// Prints a result as one JSON line on stdout, and its median ratio on stderr for terminal users.
inline void emit(const Result& r) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < r.samples_a.size(); ++i)
    ratios.push_back(r.value == "b/a" ? r.samples_b[i] / r.samples_a[i] : r.samples_a[i] / r.samples_b[i]);
  const auto bar = [&](const char* none) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", r.bar);
    return r.bar == r.bar ? std::string(number) : std::string(none);
  };
  std::printf(
      "{\"figure\":\"%s\",\"case\":\"%s\",\"unit\":\"ratio\",\"a\":\"%s\",\"b\":\"%s\",\"samples_a\":%s,"
      "\"samples_b\":%s,\"value\":\"%s\",\"bar\":%s,\"direction\":\"%s\",\"threads\":%d,\"ranks\":%d,"
      "\"notes\":\"%s\"}\n",
      r.figure.c_str(), r.name.c_str(), r.a.c_str(), r.b.c_str(), json_list(r.samples_a).c_str(),
      json_list(r.samples_b).c_str(), r.value.c_str(), bar("null").c_str(), r.direction.c_str(), r.threads, r.ranks,
      r.notes.c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "%-8s %-44s %.3f (bar %s %s)\n", r.figure.c_str(), r.name.c_str(), median(ratios),
               r.direction.c_str(), bar("none").c_str());
}

inline bool has_flag(int argc, char** argv, const char* flag) {
  return std::any_of(argv + 1, argv + argc, [&](const char* arg) { return std::strcmp(arg, flag) == 0; });
}

}  // namespace haloscope::bench
