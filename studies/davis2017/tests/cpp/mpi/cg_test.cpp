// cg3d: the same bits whatever the ranks, forms, schedules and transports; the residuals and the solution of plain
// loops.
#include <vector>

#include "haloscope/extend/reproducible_sum.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

Choice cg_choice(const std::string& method, const std::string& form, Index cells = {11, 10, 13}) {
  Choice c;
  c.app = "cg3d";
  c.form = form;
  c.grid = {3, cells, {false, false, false}};
  c.ranks = world_size();
  c.set["method"] = method;
  return c;
}

const std::vector<std::string> cg_methods{"standard", "single-reduction", "pipelined"};
const std::vector<std::string> cg_forms{"plain", "fused"};

std::uint64_t checksum_after(MPI_Comm comm, const Choice& choice, int steps) {
  haloscope::Run run(comm, choice);
  run.initialise();
  run.advance(steps, true);
  EXPECT_TRUE(run.canaries_alive());
  return run.checksum();
}

/// Conjugate gradients by plain loops on the whole grid.
class Loop {
 public:
  explicit Loop(const Choice& c) : n_(c.grid.cells), x_(size()), r_(size()), p_(size()), q_(size()) {
    const Candidate candidate(c);
    const auto start = initial_values(candidate.app, candidate.problem, 1, Box{{0, 0, 0}, n_});
    each([&](std::size_t i, const Index& at) { r_[i] = start(at); });
    p_ = b_ = r_;
    rho_ = dot(r_, r_);
  }
  double step() {
    multiply(p_, q_);
    const double alpha = rho_ / dot(p_, q_), old = rho_;
    for (std::size_t i = 0; i < size(); ++i) {
      x_[i] += alpha * p_[i];
      r_[i] -= alpha * q_[i];
    }
    rho_ = dot(r_, r_);
    for (std::size_t i = 0; i < size(); ++i) p_[i] = r_[i] + rho_ / old * p_[i];
    return rho_;
  }
  double x(const Index& at) const { return x_[place(at)]; }

 private:
  std::size_t size() const { return static_cast<std::size_t>(n_[0] * n_[1] * n_[2]); }
  std::size_t place(const Index& p) const { return static_cast<std::size_t>(p[0] + n_[0] * (p[1] + n_[1] * p[2])); }
  template <class F>
  void each(F f) const {
    Index p;
    for (p[2] = 0; p[2] < n_[2]; ++p[2])
      for (p[1] = 0; p[1] < n_[1]; ++p[1])
        for (p[0] = 0; p[0] < n_[0]; ++p[0]) f(place(p), p);
  }
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return static_cast<double>(sum);
  }
  void multiply(const std::vector<double>& v, std::vector<double>& out) const {
    each([&](std::size_t i, const Index& at) {
      double sum = 6 * v[i];
      for (int d = 0; d < 3; ++d)
        for (int side : {-1, 1}) {
          Index other = at;
          other[d] += side;
          if (other[d] >= 0 && other[d] < n_[d]) sum -= v[place(other)];
        }
      out[i] = sum;
    });
  }

  Index n_;
  std::vector<double> x_, r_, p_, q_, b_;
  double rho_ = 0;
};

TEST(ConjugateGradients, RanksFormsSchedulesAndTransportsChangeNoBit) {
  for (const std::string& method : cg_methods) {
    Choice alone = cg_choice(method, "plain");
    alone.ranks = 1;
    const std::uint64_t expected = checksum_after(MPI_COMM_SELF, alone, 12);
    Every one(1, 7);
    for (const std::string& form : cg_forms)
      for (const char* strategy : {"reference", "ordered/p2p", "direct:merged/persistent", "ordered/shared"})
        for (Choice c : by_schedules([&] {
               Choice choice = cg_choice(method, form);
               choice.strategy = strategy;
               return choice;
             }())) {
          if (one.skips()) continue;
          if (form == "plain") c.isa = "baseline";
          SCOPED_TRACE(describe(c));
          EXPECT_EQ(checksum_after(MPI_COMM_WORLD, c, 12), expected);
        }
  }
}

TEST(ConjugateGradients, ThreadsStoresAndLongRowsChangeNoBit) {
  for (const std::string& method : cg_methods) {
    std::vector<std::uint64_t> found;
    for (const std::string& form : cg_forms)
      for (int threads : {1, 2})
        for (Stores stores : {Stores::cached, Stores::streaming}) {
          Choice c = cg_choice(method, form, {67, 9, 12});
          c.threads = threads;
          c.stores = stores;
          found.push_back(checksum_after(MPI_COMM_WORLD, c, 8));
        }
    for (std::uint64_t one : found) EXPECT_EQ(one, found.front());
  }
}

TEST(ConjugateGradients, ResidualsOfTheFirstStepsAreThoseOfPlainLoops) {
  for (const std::string& method : cg_methods)
    for (const std::string& form : cg_forms) {
      const Choice c = cg_choice(method, form);
      SCOPED_TRACE(describe(c));
      const bool lags = method != "standard";  // its sums are of the residual before the step
      Loop loop(c);
      haloscope::Run run(MPI_COMM_WORLD, c);
      run.initialise();
      if (lags) run.advance(1);
      for (int n = 0; n < 20; ++n) {
        run.advance(1);
        const std::vector<double> numbers = numbers_of(run, lags ? 0 : run.stages() - 1, 0);
        const double found = ReproducibleSum::total(numbers.data() + (lags ? ReproducibleSum::parts : 0));
        const double expected = loop.step();
        EXPECT_NEAR(found / expected, 1, 1e-10) << "after step " << n;
      }
    }
}

TEST(ConjugateGradients, ToleranceEndsTheRunWithTheSolution) {
  for (const std::string& method : cg_methods)
    for (const std::string& form : cg_forms) {
      Choice c = cg_choice(method, form);
      c.set["tolerance"] = 1e-12;
      SCOPED_TRACE(describe(c));
      Loop loop(c);
      for (int n = 0; n < 200; ++n) loop.step();
      haloscope::Run run(MPI_COMM_WORLD, c);
      run.initialise();
      const Progress progress = run.advance(500);
      EXPECT_TRUE(progress.finished);
      EXPECT_LT(progress.steps, 100);
      const Box own = run.layout().owned(run.plan().rank);
      double worst = 0;
      Index p;
      for (p[2] = own.lo[2]; p[2] < own.hi[2]; ++p[2])
        for (p[1] = own.lo[1]; p[1] < own.hi[1]; ++p[1])
          for (p[0] = own.lo[0]; p[0] < own.hi[0]; ++p[0]) {
            const Index local{p[0] - own.lo[0], p[1] - own.lo[1], p[2] - own.lo[2]};
            worst = std::max(worst, std::abs(run.value(local, 0) - loop.x(p)));
          }
      EXPECT_LT(worst, 1e-10);
    }
}

TEST(ConjugateGradients, StepsBeyondTheSolutionChangeNothingAndMakeNoSmallNumbers) {
  for (const std::string& method : cg_methods)
    for (const std::string& form : test::sampled(cg_forms)) {
      haloscope::Run run(MPI_COMM_WORLD, cg_choice(method, form, {5, 6, 4}));
      run.initialise();
      run.advance(3000);
      for (int q = 0; q < 4; ++q) {
        const double value = run.value({0, 0, 0}, q);
        EXPECT_TRUE(value == 0 || std::abs(value) > 1e-100) << "quantity " << q << ": " << value;
      }
    }
}

TEST(ConjugateGradients, PipelinedSumsTravelWhileTheVectorIsExchangedAndMultiplied) {
  Choice c = cg_choice("pipelined", "fused");
  const Candidate candidate(c);
  ASSERT_EQ(candidate.step.stages.size(), 2u);
  EXPECT_EQ(candidate.step.stages[1].awaited, std::vector<int>{-1});
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(5);
  EXPECT_EQ(run.counts().reductions, 5) << "one a step";
  EXPECT_EQ(run.counts().exchanges, world_size() > 1 ? 5 : 0);
}

/// b - A x over b, in the Euclidean norm, after this number of steps on one rank.
double relative_residual(const std::string& method, int steps) {
  Choice c = cg_choice(method, "fused", {18, 17, 16});
  c.ranks = 1;
  haloscope::Run run(MPI_COMM_SELF, c);
  run.initialise();
  run.advance(steps);
  const Box grid{{0, 0, 0}, c.grid.cells};
  const auto x = [&](const Index& p) { return grid.contains(p) ? run.value(p, 0) : 0.0; };
  const auto b = initial_values(run.candidate().app, run.candidate().problem, 1, grid);
  double left = 0, all = 0;
  Index p;
  for (p[2] = 0; p[2] < grid.hi[2]; ++p[2])
    for (p[1] = 0; p[1] < grid.hi[1]; ++p[1])
      for (p[0] = 0; p[0] < grid.hi[0]; ++p[0]) {
        double sum = b(p) - 6 * x(p);
        for (int d = 0; d < 3; ++d)
          for (int side : {-1, 1}) {
            Index other = p;
            other[d] += side;
            sum += x(other);
          }
        left += sum * sum;
        all += b(p) * b(p);
      }
  return std::sqrt(left / all);
}

/// Its recurrences of A r and A p drift from these products.
TEST(ConjugateGradients, PipelinedLosesTheLastDigitsOfTheSolution) {
  const double standard = relative_residual("standard", 400), pipelined = relative_residual("pipelined", 400);
  EXPECT_LT(standard, 1e-14);
  EXPECT_LT(pipelined, 1e-9);
  EXPECT_GT(pipelined, standard);
}

TEST(ConjugateGradients, AGridThatWrapsAroundIsRefused) {
  Choice c = cg_choice("standard", "fused");
  c.grid.periodic[1] = true;
  EXPECT_NE(illegal(c).find("--periodic none"), std::string::npos);
}

}  // namespace
}  // namespace haloscope::test
