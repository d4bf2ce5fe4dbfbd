// Bandwidths of memory and caches: the four kernels of STREAM, and CacheBench's three over working sets of any size.
#include <algorithm>

#include "haloscope/field/memory.hpp"
#include "haloscope/kernels/probe.hpp"
#include "haloscope/rank/microbench/pattern.hpp"

namespace haloscope {

namespace {

constexpr std::size_t unit_bytes = pass_doubles * sizeof(double);
constexpr std::size_t min_moved = std::size_t{1} << 20;  // bytes: next to their time a start of the threads is short

template <class F>
void run_team(int threads, F work) {
  if (threads == 1) return work(0);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) work(thread);
}

/// One array of doubles, of which every thread has a part of the same size and writes it first.
class Array {
 public:
  /// @param number  arrays with successive numbers start at different places of a page.
  Array(int number, std::size_t part_bytes, int threads)
      : part_(part_bytes / sizeof(double)),
        threads_(threads),
        memory_(part_bytes * static_cast<std::size_t>(threads) + 2 * small_page),
        first_(reinterpret_cast<double*>(memory_.data() + staggered_offset(0, static_cast<std::uint64_t>(number)))) {}

  double* of(int thread) const { return first_ + part_ * static_cast<std::size_t>(thread); }
  std::size_t part() const { return part_; }

  /// @param value  of an index.
  template <class F>
  void fill(F value) const {
    run_team(threads_, [&](int thread) {
      for (std::size_t i = 0; i < part_; ++i) of(thread)[i] = value(index(thread, i));
    });
  }
  template <class F>
  bool holds(F value) const {
    bool good = true;
    for (int thread = 0; thread < threads_; ++thread)
      for (std::size_t i = 0; i < part_; ++i) good = good && of(thread)[i] == value(index(thread, i));
    return good;
  }

 private:
  std::size_t index(int thread, std::size_t i) const { return part_ * static_cast<std::size_t>(thread) + i; }

  std::size_t part_;
  int threads_;
  Memory memory_;
  double* first_;
};

/// Small integers, whose sums and products are exact.
double small_number(std::size_t i) { return static_cast<double>(1 + i % 7); }

std::size_t whole_units(std::int64_t bytes) { return static_cast<std::size_t>(bytes) / unit_bytes * unit_bytes; }

}  // namespace

/// Seconds of each kernel over arrays of `bytes` bytes, shared by the threads. Source: STREAM, by its rules: 16 bytes
/// per element are moved by copy and scale, 24 by add and triad; data that a store reads first do not count.
void measure_stream(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  const int threads = bench.request.threads;
  const std::size_t part = whole_units(bytes / threads);
  const Array a(0, part, threads), b(1, part, threads), c(2, part, threads);
  a.fill(small_number);
  for (const Array* array : {&b, &c}) array->fill([](std::size_t) { return 0.0; });
  const double q = 3;
  Sampler sample = bench.sampler();
  const auto time = [&](Pass pass, const Array& to, const Array& from, const Array& other) {
    const MemoryPass run = find_memory_pass(pass);
    return sample([&] { run_team(threads, [&](int t) { run(to.of(t), from.of(t), other.of(t), q, to.part()); }); });
  };
  const auto times = [](double factor) { return [factor](std::size_t i) { return factor * small_number(i); }; };
  entry["bytes"] = part * static_cast<std::size_t>(threads);
  entry["copy_s"] =
      sample([&] { run_team(threads, [&](int t) { copy_bytes(CopyKind::plain, c.of(t), a.of(t), part); }); });
  bench.right &= c.holds(times(1));
  entry["scale_s"] = time(Pass::scale, b, c, a);
  bench.right &= b.holds(times(3));
  entry["add_s"] = time(Pass::add, c, a, b);
  bench.right &= c.holds(times(4));
  entry["triad_s"] = time(Pass::triad, a, b, c);
  bench.right &= a.holds(times(15));
}

/// Seconds of one pass over a working set of `bytes` bytes that every thread has for itself: reading, writing, both.
void measure_cache(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  const int threads = bench.request.threads;
  const std::size_t part = whole_units(bytes), passes = std::max<std::size_t>(1, min_moved / part);
  const Array a(0, part, threads);
  a.fill(small_number);
  Sampler sample = bench.sampler();
  std::vector<double> sums(static_cast<std::size_t>(threads));
  double runs = 0;  // of all passes of one kind
  const auto time = [&](Pass pass, double q) {
    const MemoryPass run = find_memory_pass(pass);
    runs = 0;
    std::vector<double> samples = sample([&] {
      run_team(threads, [&](int t) {
        double sum = 0;
        for (std::size_t p = 0; p < passes; ++p) sum += run(a.of(t), nullptr, nullptr, q, a.part());
        sums[t] = sum;
      });
      runs += static_cast<double>(passes);
    });
    for (double& s : samples) s /= static_cast<double>(passes);
    return samples;
  };
  entry["bytes"] = part;
  entry["read_s"] = time(Pass::read, 0);
  for (int t = 0; t < threads; ++t) {
    double once = 0;
    for (std::size_t i = 0; i < a.part(); ++i) once += a.of(t)[i];
    bench.right &= sums[t] == static_cast<double>(passes) * once;
  }
  entry["write_s"] = time(Pass::write, 7);
  bench.right &= a.holds([](std::size_t) { return 7.0; });
  entry["update_s"] = time(Pass::update, 1);
  bench.right &= a.holds([&](std::size_t) { return 7 + runs; });
}

}  // namespace haloscope
