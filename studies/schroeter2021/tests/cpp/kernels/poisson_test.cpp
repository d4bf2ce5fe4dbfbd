// Every poisson2d kernel computes the bytes of the plain loop and exact residuals; the plain loop computes the
// published values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <thread>

#include "haloscope/core/denormals.hpp"
#include "haloscope/error.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "schroeter2021/app/problem.hpp"

namespace haloscope {
namespace {

/// A field of random numbers with a border of one cell, guards around it that no kernel may write, and factors.
struct Field {
  std::int64_t columns, lines, row, first;
  std::vector<double> in, out, row_factors, column_factors;

  Field(std::int64_t columns_, std::int64_t lines_, int pad, std::mt19937_64& rng)
      : columns(columns_), lines(lines_), row(columns + 2 + pad), first(pad + 1 + row) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    in.resize(static_cast<std::size_t>(pad + row * (lines + 2)));
    for (auto& x : in) x = uniform(rng);
    out = in;
    for (std::int64_t y = 0; y < lines; ++y) row_factors.push_back(uniform(rng));
    for (std::int64_t x = 0; x < columns; ++x) column_factors.push_back(uniform(rng));
  }
  PoissonArgs args(int function) {
    PoissonArgs a;
    a.in = in.data() + first, a.out = out.data() + first, a.row = row;
    a.region = {{0, 0, 0}, {columns, lines, 1}};
    if (function == 2) a.row_factor = row_factors.data(), a.column_factor = column_factors.data();
    return a;
  }
};

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

constexpr double canary = 1e300;  // in and around scratch space: reading it unset spoils the results

/// Threads that call a shared sweep; the same progress for all calls, as a team has it.
class Team {
 public:
  explicit Team(int members) : progress_(members) {}
  int size() const { return static_cast<int>(progress_.size()); }

  template <class F>
  void run(const F& f) {
    std::vector<std::thread> threads;
    for (int member = 1; member < size(); ++member)
      threads.emplace_back([&, member] { f(TeamShare{member, size(), progress_.data()}); });
    f(TeamShare{0, size(), progress_.data()});
    for (auto& t : threads) t.join();
  }
  double gauss_seidel(const Kernel& kernel, const PoissonArgs& args) {
    std::vector<double> parts(progress_.size());
    run([&](const TeamShare& share) {
      PoissonArgs own = args;
      own.team = share, own.change = args.change ? &parts[share.member] : nullptr;
      kernel.sweep(own);
    });
    return *std::max_element(parts.begin(), parts.end());
  }
  std::vector<double> fused(const Kernel& kernel, const PoissonArgs& args, int sweeps, bool residuals) {
    std::vector<std::vector<double>> parts(progress_.size(), std::vector<double>(sweeps, -1));
    run([&](const TeamShare& share) {
      const std::size_t bytes = kernel.scratch_bytes(args.region, sweeps);
      std::vector<double> block(bytes / 8 + 40, canary);
      double* scratch = block.data();
      while (reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0) ++scratch;
      PoissonArgs own = args;
      own.team = share, own.levels = sweeps, own.scratch = scratch;
      own.change = residuals ? parts[share.member].data() : nullptr;
      kernel.fused(own);
      const auto kept = [](double x) { return x == canary; };
      EXPECT_TRUE(std::all_of(block.data(), scratch, kept)) << "wrote before the scratch space";
      EXPECT_TRUE(std::all_of(scratch + bytes / 8, block.data() + block.size(), kept)) << "wrote beyond it";
    });
    for (const auto& part : parts)
      for (int k = 0; k < sweeps; ++k) parts[0][k] = std::max(parts[0][k], part[k]);
    return parts[0];
  }

 private:
  std::vector<TeamProgress> progress_;
};

std::string where(std::int64_t columns, std::int64_t lines, int function, int members = 1) {
  return std::to_string(columns) + " x " + std::to_string(lines) + ", function " + std::to_string(function) + ", " +
         std::to_string(members) + " members";
}

class Poisson : public testing::TestWithParam<std::string> {
 protected:
  const Kernel jacobi = find_kernel("poisson2d-jacobi", Real::f64, GetParam());
  const Kernel gauss_seidel = find_kernel("poisson2d-gauss-seidel", Real::f64, GetParam());

  void expect_jacobi(std::int64_t columns, std::int64_t lines, int pad, int function, bool stream,
                     std::mt19937_64& rng) {
    Field field(columns, lines, pad, rng), plain = field;
    for (const bool residual : {false, true}) {
      double found = 0, unused = 0;
      auto args = field.args(function), expected = plain.args(function);
      args.stream = stream;
      if (residual) args.change = &found, expected.change = &unused;
      jacobi.sweep(args);
      EXPECT_EQ(found, jacobi_plain(expected)) << where(columns, lines, function);
      EXPECT_TRUE(same(field.out, plain.out)) << where(columns, lines, function) << ", stream " << stream;
      field.out = plain.out = field.in;
    }
  }
  void expect_gauss_seidel(std::int64_t columns, std::int64_t lines, int pad, int function, Team& team,
                           std::mt19937_64& rng) {
    Field field(columns, lines, pad, rng), plain = field;
    for (const bool residual : {false, true}) {
      double wanted = 0;
      auto args = field.args(function), expected = plain.args(function);
      if (residual) args.change = expected.change = &wanted;
      const double found = team.gauss_seidel(gauss_seidel, args);
      EXPECT_EQ(found, gauss_seidel_plain(expected));
      EXPECT_TRUE(same(field.out, plain.out)) << where(columns, lines, function, team.size());
    }
  }
  void expect_fused(std::int64_t columns, std::int64_t lines, int pad, int sweeps, int function, bool residuals,
                    Team& team, std::mt19937_64& rng) {
    Field field(columns, lines, pad, rng), plain = field;
    const auto found = team.fused(gauss_seidel, field.args(function), sweeps, residuals);
    for (int k = 0; k < sweeps; ++k) {
      double wanted = 0;
      auto args = plain.args(function);
      if (residuals) args.change = &wanted;
      const double expected = gauss_seidel_plain(args);
      if (!residuals) continue;
      EXPECT_EQ(found[k], expected) << "sweep " << k << " of " << sweeps << ", "
                                    << where(columns, lines, function, team.size());
    }
    EXPECT_TRUE(same(field.out, plain.out)) << sweeps << " sweeps, " << where(columns, lines, function, team.size());
  }
};

TEST_P(Poisson, SA3_JacobiGivesTheBytesOfThePlainLoop) {
  std::mt19937_64 rng(1);
  for (std::int64_t columns = 1; columns <= 40; ++columns)
    for (std::int64_t lines : {1, 2, 3, 4, 5, 7, 8, 13})
      for (const bool stream : {false, true})
        expect_jacobi(columns, lines, static_cast<int>(rng() % 20), 1 + (columns + lines + stream) % 2, stream, rng);
  for (const int function : {1, 2})
    for (const bool stream : {false, true}) {
      expect_jacobi(333, 29, 9, function, stream, rng);
      expect_jacobi(246, 11, 8, function, stream, rng);   // 246 + 2 + 8 = 256: rows have equal alignment
      expect_jacobi(40001, 6, 3, function, stream, rng);  // cut into blocks
    }
}

TEST_P(Poisson, SA3_JacobiWritesOnlyItsRegion) {
  std::mt19937_64 rng(2);
  for (int round = 0; round < 40; ++round) {
    Field field(70, 20, round % 5, rng), plain = field;
    double found = 0, unused = 0;
    auto args = field.args(1 + round % 2), expected = plain.args(1 + round % 2);
    args.change = &found, expected.change = &unused;
    const auto x = static_cast<std::int64_t>(rng() % 60), y = static_cast<std::int64_t>(rng() % 20);
    args.region = expected.region = {{x, y, 0}, {70 - x / 4, y + 1 + x % 7 * (y < 13), 1}};
    args.stream = round % 3 == 0;
    jacobi.sweep(args);
    EXPECT_EQ(found, jacobi_plain(expected));
    EXPECT_TRUE(same(field.out, plain.out)) << "round " << round;
  }
}

TEST_P(Poisson, SA3_OneGaussSeidelSweepGivesTheBytesOfThePlainLoop) {
  std::mt19937_64 rng(3);
  for (const int members : {1, 2, 3}) {
    Team team(members);
    for (std::int64_t columns : {1, 2, 3, 5, 7, 8, 9, 16, 31, 40})
      for (std::int64_t lines = 1; lines <= 40; lines += members > 1 ? 7 : 1)
        expect_gauss_seidel(columns, lines, static_cast<int>(rng() % 5), 1 + (columns + lines) % 2, team, rng);
    for (const int function : {1, 2}) expect_gauss_seidel(701, 333, 3, function, team, rng);
  }
}

TEST_P(Poisson, SB2_SweepingTheFirstMiddleAndLastLinesGivesTheBytesOfOneSweep) {
  std::mt19937_64 rng(4);
  Team team(2);
  for (const int function : {1, 2}) {
    Field field(57, 23, 2, rng), plain = field;
    double found = 0, wanted = 0;
    const std::int64_t from[] = {0, 1, 22, 23};
    for (int part = 0; part < 3; ++part) {
      auto args = field.args(function);
      args.change = &wanted;
      args.region.lo[1] = from[part], args.region.hi[1] = from[part + 1];
      found = std::max(found, team.gauss_seidel(gauss_seidel, args));
    }
    auto expected = plain.args(function);
    expected.change = &wanted;
    EXPECT_EQ(found, gauss_seidel_plain(expected));
    EXPECT_TRUE(same(field.out, plain.out));
  }
}

TEST_P(Poisson, SA3_FusedGaussSeidelGivesTheBytesAndResidualsOfSingleSweeps) {
  std::mt19937_64 rng(5);
  Team alone(1);
  for (std::int64_t columns = 1; columns <= 40; columns += 3)
    for (std::int64_t lines = 1; lines <= 40; ++lines)
      expect_fused(columns, lines, static_cast<int>(rng() % 5), static_cast<int>(rng() % 40), 1 + (columns + lines) % 2,
                   rng() % 2, alone, rng);
  for (const int function : {1, 2})
    for (const bool residuals : {false, true})
      for (const int sweeps : {0, 1, 7, 8, 16, 37}) expect_fused(301, 157, 4, sweeps, function, residuals, alone, rng);
}

TEST_P(Poisson, SA3_FusedGaussSeidelSharedByTwoOrThreeGivesTheBytesOfSingleSweeps) {
  std::mt19937_64 rng(6);
  for (const int members : {2, 3}) {
    Team team(members);  // one team for all calls: its progress carries over
    for (const std::int64_t lines : {1, 7, 8, 9, 17, 40, 150})
      for (const int sweeps : {0, 3, 8, 16, 24, 32, 53, 100})
        expect_fused(static_cast<std::int64_t>(1 + rng() % 90), lines, 3, sweeps, 1 + sweeps % 2, lines % 2, team, rng);
  }
}

TEST_P(Poisson, EmptyRegionsAreLeftAlone) {
  std::mt19937_64 rng(7);
  Field field(20, 9, 3, rng);
  const auto before = field.out;
  for (const Box region : {Box{{3, 3, 0}, {3, 9, 1}}, Box{{0, 5, 0}, {20, 4, 1}}}) {
    auto args = field.args(2);
    double found = -1;
    args.region = region, args.change = &found;
    Team team(2);
    jacobi.sweep(args);
    EXPECT_EQ(found, 0);
    EXPECT_EQ(team.gauss_seidel(gauss_seidel, args), 0);
    EXPECT_EQ(team.fused(gauss_seidel, args, 17, true), std::vector<double>(17, 0.0));
    EXPECT_TRUE(same(field.out, before));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Poisson, testing::ValuesIn(kernel_isas()), [](const auto& info) { return info.param; });

TEST(PoissonChoice, RefusesAnUnknownInstructionSetAndSinglePrecision) {
  for (const char* form : {"poisson2d-jacobi", "poisson2d-gauss-seidel"}) {
    EXPECT_THROW(find_kernel(form, Real::f64, "mmx"), UsageError);
    EXPECT_THROW(find_kernel(form, Real::f32), UsageError);
  }
}

/// The sequential program: both methods, both terminations.
struct Sequential {
  PoissonProblem problem;
  bool jacobi;
  std::int64_t iterations = 0;
  double residual = 0;
  std::vector<double> field, other;

  Sequential(bool jacobi_, std::int64_t interlines, int function) : problem{interlines, function}, jacobi(jacobi_) {
    for (std::int64_t line = 0; line < problem.lines(); ++line)
      for (std::int64_t column = 0; column < problem.lines(); ++column) field.push_back(problem.start(line, column));
    other = field;
  }
  Sequential& run(std::int64_t most, double precision = 0) {
    const auto rows = problem.row_factors(), columns = problem.column_factors();
    const Kernel kernel = find_kernel(jacobi ? "poisson2d-jacobi" : "poisson2d-gauss-seidel", Real::f64);
    PoissonArgs args;
    args.row = problem.lines(), args.change = &residual;
    args.region = {{1, 1, 0}, {problem.lines() - 1, problem.lines() - 1, 1}};
    args.row_factor = rows.empty() ? nullptr : rows.data();
    args.column_factor = columns.empty() ? nullptr : columns.data();
    for (residual = 1; iterations < most && !(residual < precision); ++iterations) {
      if (jacobi) field.swap(other);
      args.in = other.data(), args.out = field.data();
      kernel.sweep(args);
    }
    return *this;
  }
  double error() const {
    double largest = 0;
    const double h = std::numbers::pi / static_cast<double>(problem.intervals());
    for (std::int64_t line = 0; line < problem.lines(); ++line)
      for (std::int64_t column = 0; column < problem.lines(); ++column)
        largest = std::max(
            largest, std::abs(field[line * problem.lines() + column] -
                              std::sin(h * static_cast<double>(line)) * std::sin(h * static_cast<double>(column))));
    return largest;
  }
};

/// Seven digits, as "%e" prints them.
std::string digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6e", x);
  return text;
}

TEST(PoissonProblem, SA1_HasEightInterlinesPlusNineLinesAndTheBorderOfThePaper) {
  const PoissonProblem p{512, 1};
  EXPECT_EQ(p.lines(), 4105);
  EXPECT_NEAR(static_cast<double>(p.lines() * p.lines()) * 8e-6, 134.8, 0.05);
  const std::int64_t n = p.intervals();
  EXPECT_EQ(p.start(0, 0), 1);
  EXPECT_EQ(p.start(n, n), 1);
  EXPECT_EQ(p.start(0, n), 0);
  EXPECT_EQ(p.start(n, 0), 0);
  EXPECT_EQ(p.start(n / 4, 0), 0.75);
  EXPECT_EQ(p.start(0, n / 4), 0.75);
  EXPECT_EQ(p.start(n / 4, n), 0.25);
  EXPECT_EQ(p.start(n, n / 4), 0.25);
  EXPECT_EQ(p.start(1, 1), 0);
  EXPECT_EQ((PoissonProblem{512, 2}.start(n / 4, 0)), 0);
}

TEST(PoissonProblem, SA2_FunctionTwoConvergesToTheExactSolution) {
  const auto jacobi = Sequential(true, 10, 2).run(200000, 1e-8), gs = Sequential(false, 10, 2).run(200000, 1e-8);
  EXPECT_EQ(jacobi.iterations, 17357);
  EXPECT_EQ(digits(jacobi.residual), "9.999971e-09");
  EXPECT_NEAR(jacobi.error(), 9.05e-5, 0.005e-5);
  EXPECT_EQ(gs.iterations, 9223);
  EXPECT_EQ(digits(gs.residual), "9.997805e-09");
  EXPECT_NEAR(gs.error(), 9.84e-5, 0.005e-5);
}

TEST(PoissonProblem, SA3_ResidualsAfterSoManyIterationsAreThePublishedOnes) {
  const struct {
    bool jacobi;
    std::int64_t interlines;
    int function;
    std::int64_t iterations;
    const char* residual;
  } cases[] = {
      {true, 0, 1, 10, "2.581787e-02"},    {true, 0, 2, 10, "3.781185e-02"},     {false, 0, 1, 10, "2.984447e-02"},
      {false, 0, 2, 10, "3.752985e-02"},   {true, 10, 1, 1000, "2.332824e-04"},  {false, 10, 1, 1000, "2.832813e-04"},
      {true, 10, 2, 1000, "3.371101e-04"}, {false, 10, 2, 1000, "3.567021e-04"}, {true, 30, 1, 500, "6.475146e-04"},
      {true, 50, 1, 500, "6.758782e-04"},  {false, 30, 1, 500, "6.378240e-04"},  {false, 50, 1, 500, "6.790967e-04"},
      {true, 100, 1, 100, "3.544251e-03"}};
  for (const auto& c : cases)
    EXPECT_EQ(digits(Sequential(c.jacobi, c.interlines, c.function).run(c.iterations).residual), c.residual)
        << (c.jacobi ? "Jacobi" : "Gauss-Seidel") << ", I = " << c.interlines << ", function " << c.function;
}

TEST(PoissonProblem, SA3_PrecisionRunsStopAtThePublishedIteration) {
  const struct {
    bool jacobi;
    int function;
    double precision;
    std::int64_t iterations;
    const char* residual;
  } cases[] = {{true, 1, 1e-4, 2570, "9.991622e-05"},  {false, 1, 1e-4, 1833, "9.997393e-05"},
               {true, 1, 1e-8, 17028, "9.990392e-09"}, {false, 1, 1e-8, 9059, "9.989966e-09"},
               {true, 2, 1e-4, 2907, "9.997606e-05"},  {false, 2, 1e-4, 1998, "9.995439e-05"}};
  for (const auto& c : cases) {
    const auto run = Sequential(c.jacobi, 10, c.function).run(200000, c.precision);
    EXPECT_EQ(run.iterations, c.iterations);
    EXPECT_EQ(digits(run.residual), c.residual);
  }
}

TEST(FlushToZero, SH3_LastsAsLongAsTheObjectAndOnlyOnItsThread) {
  EXPECT_FALSE(flushes_to_zero());
  {
    const FlushToZero flush;
    EXPECT_EQ(flushes_to_zero(), can_flush_to_zero());
    { const FlushToZero unwanted(false); }
    EXPECT_EQ(flushes_to_zero(), can_flush_to_zero());
  }
  EXPECT_FALSE(flushes_to_zero());
  std::thread([] {
    const FlushToZero flush;
    EXPECT_EQ(flushes_to_zero(), can_flush_to_zero());
  }).join();
  EXPECT_FALSE(flushes_to_zero());
}

}  // namespace
}  // namespace haloscope
