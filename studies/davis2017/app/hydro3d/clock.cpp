#include "davis2017/app/hydro3d/clock.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope::hydro {

namespace {

constexpr double shares = 0.25;  // of a cell's volume or energy that a sub-cycle may change
constexpr double reach = 0.5;    // of a cell that a step may move or deform
constexpr double viscous_share = 4;

double norm_of(std::span<const double> rates, Rate first) {
  const auto r = rates.subspan(first, 3);
  return std::sqrt((r[0] * r[0] + r[1] * r[1]) + r[2] * r[2]);
}

double largest_of(std::span<const double> rates, Rate first, int count) {
  const auto r = rates.subspan(first, static_cast<std::size_t>(count));
  return *std::max_element(r.begin(), r.end());
}

/// Returns the longest stable sub-cycle.
double cycle_limit(const Problem& p, std::span<const double> rates) {
  const double waves = norm_of(rates, sound_rate) + viscous_share * norm_of(rates, viscous_rate);
  return 1 /
         std::max({waves / p.parameters.real("courant"), rates[compression_rate] / shares, rates[work_rate] / shares});
}

/// Returns the longest step whose remap moves everything by less than a cell.
double step_limit(std::span<const double> rates) {
  const double moved = largest_of(rates, advection_rate, 3), deformed = largest_of(rates, deformation, 9);
  return 1 / std::max({moved / reach, deformed / reach, largest_of(rates, acceleration_rate, 3) / std::sqrt(reach)});
}

double count_of(double step, double limit, double most) {
  return std::clamp(std::ceil(step / limit * (1 - 1e-12)), 1.0, most);
}

/// Returns the sub-cycles of a step of a replay, the fewest first.
double replayed_cycles(const std::vector<double>& steps_by_cycles, std::int64_t step) {
  double until = 0;
  for (std::size_t n = 0; n < steps_by_cycles.size(); ++n) {
    until += steps_by_cycles[n];
    if (static_cast<double>(step) < until) return static_cast<double>(n + 1);
  }
  return 1;
}

void begin_step(const Problem& p, const StageStart& at, std::span<double> s) {
  const auto rates = at.reduced.first(rate_count);
  const double limit = cycle_limit(p, rates), before = s[time_step], end = p.parameters.real("end");
  const auto most = static_cast<double>(p.parameters.integer("most_cycles"));
  const std::vector<double>& replay = p.parameters.reals("replay");
  double step = std::min(step_limit(rates), most * limit);
  step = std::min(step, before > 0 ? p.parameters.real("growth") * before : p.parameters.real("first_step") * limit);
  s[cycles] = replay.empty() ? count_of(step, limit, most) : replayed_cycles(replay, at.step);
  step = std::min(step, s[cycles] * limit);
  if (replay.empty() && end > 0 && s[time_now] + step > end * (1 - 1e-12)) step = end - s[time_now];
  if (!(step > p.parameters.real("least_step"))) {
    TextStream text;
    text << "the time step of app 'hydro3d' collapses: step " << at.step << " at " << s[time_now] << " s would take "
         << step << " s, no more than least_step; check the initial state and the viscosity, or use a smaller "
         << "least_step";
    throw Error(Exit::failed, text.str());
  }
  s[time_step] = step;
  s[time_of_cycle] = step / s[cycles];
  s[cycle] = 1;
  s[histogram + static_cast<int>(s[cycles]) - 1] += 1;
}

void refuse_fault(const Problem& p, const StageStart& at, std::span<const double> s, int stage) {
  const double found = at.reduced[static_cast<std::size_t>(Numbers(p).faults + stage - stage_predict)];
  if (!(found > 0)) return;
  const auto code = static_cast<std::int64_t>(found);
  const std::int64_t number = code / 2 - 1;
  const Index& n = p.grid.cells;
  TextStream text;
  text << "app 'hydro3d' has reached a state that is not physical: the " << (code % 2 ? "energy" : "density")
       << " of cell (" << number % n[0] << ", " << number / n[0] % n[1] << ", " << number / n[0] / n[1]
       << ") is not positive in step " << at.step << " at " << s[time_now] << " s, with a time step of " << s[time_step]
       << " s; use a smaller courant, or more viscosity";
  throw Error(Exit::failed, text.str());
}

}  // namespace

bool summarises(const Problem& problem) { return problem.parameters.word("collectives") == "studied"; }

Numbers::Numbers(const Problem& problem)
    : faults(totals + (summarises(problem) ? 0 : total_count)),
      last_totals(faults + 4 + (summarises(problem) ? summary_sums : 0)),
      summary(faults + 4) {}

std::vector<std::string> scalar_names() {
  std::vector<std::string> names{"time",
                                 "time_step",
                                 "time_of_cycle",
                                 "cycles",
                                 "cycle",
                                 "first_mass",
                                 "first_internal_energy",
                                 "first_kinetic_energy",
                                 "first_momentum_x",
                                 "first_momentum_y",
                                 "first_momentum_z",
                                 "first_fraction_mass"};
  for (int n = 1; n <= most_cycles; ++n) names.push_back("steps_of_" + std::to_string(n));
  return names;
}

void update_clock(const Problem& problem, const StageStart& at, std::span<double> s) {
  switch (at.stage) {
    case stage_limits:
      s[time_now] += s[time_step];
      break;
    case stage_predict:
      if (at.step == 0 && !summarises(problem))
        std::copy_n(at.reduced.begin() + Numbers(problem).totals, total_count, s.begin() + first_totals);
      begin_step(problem, at, s);
      break;
    case stage_accelerate:
      refuse_fault(problem, at, s, stage_predict);
      break;
    case stage_predict_again:
      refuse_fault(problem, at, s, at.times == 0 ? stage_accelerate : stage_accelerate_again);
      s[cycle] += 1;
      break;
    case stage_accelerate_again:
      refuse_fault(problem, at, s, stage_predict_again);
      break;
    case stage_cells:
      refuse_fault(problem, at, s, s[cycles] > 1 ? stage_accelerate_again : stage_accelerate);
      break;
    default:
      break;
  }
}

bool has_enough(const Problem& problem, int stage, std::span<const double> s) {
  if (stage == stage_predict_again) return s[cycle] >= s[cycles];
  const std::vector<double>& replay = problem.parameters.reals("replay");
  const double steps = std::accumulate(s.begin() + histogram, s.begin() + histogram + most_cycles, 0.0);
  if (!replay.empty()) return steps >= std::accumulate(replay.begin(), replay.end(), 0.0);
  const double end = problem.parameters.real("end");
  return end > 0 && s[time_now] + s[time_step] >= end * (1 - 1e-12);
}

bool ends_by_itself(const Problem& problem) {
  return problem.parameters.real("end") > 0 || !problem.parameters.reals("replay").empty();
}

}  // namespace haloscope::hydro
