#include "davis2017/app/hydro3d/states.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "davis2017/app/hydro3d/fields.hpp"

namespace haloscope::hydro {

namespace {

constexpr double cold = 1e-6;              // specific energy in front of a blast
constexpr double wave_height = 1e-5;       // relative to the density
constexpr double blast_energy = 0.851072;  // of the whole sphere; with gamma 1.4 the shock is at r = t^(2/5)

struct State {
  double density = 1, energy = 1, fraction = 0;
};

/// Shares of a blast's energy by place in each dimension: all in the first cell, or a Gaussian of a specified width.
/// Empty for other initial states.
using BlastShares = std::array<std::vector<double>, 3>;

BlastShares blast_shares(const Problem& p) {
  BlastShares shares;
  if (p.parameters.word("initial") != "sedov") return shares;
  const auto size = cell_size(p);
  const double radius = p.parameters.real("blast_radius");
  for (std::size_t d = 0; d < 3; ++d) {
    for (std::int64_t i = 0; i < p.grid.cells[d]; ++i)
      shares[d].push_back(radius > 0 ? std::exp(-std::pow((static_cast<double>(i) + 0.5) * size[d] / radius, 2))
                                     : (i == 0 ? 1.0 : 0.0));
    const double sum = std::accumulate(shares[d].begin(), shares[d].end(), 0.0);
    for (double& share : shares[d]) share /= sum;
  }
  return shares;
}

/// A problem's start, with cached parameters: the lookup of one takes longer than computing a cell.
struct Start {
  GridSpec grid;
  std::string word;
  std::array<double, 2> gammas;  ///< by material
  std::array<double, 3> size;    ///< of a cell
  std::size_t axis;
  std::uint64_t seed;
  BlastShares shares;

  explicit Start(const Problem& p)
      : grid(p.grid),
        word(p.parameters.word("initial")),
        gammas{p.parameters.real("gamma"), p.parameters.real("other_gamma")},
        size(cell_size(p)),
        axis(static_cast<std::size_t>(p.parameters.integer("axis"))),
        seed(static_cast<std::uint64_t>(p.parameters.integer("seed"))),
        shares(blast_shares(p)) {}
};

/// Density, velocity and pressure of a gas.
struct Gas {
  double density, velocity, pressure;
};
constexpr Gas sod_left{1, 0, 1}, sod_right{0.125, 0, 0.1};

double along_tube(const Start& p, const Index& cell) {
  return (static_cast<double>(cell[p.axis]) + 0.5) / static_cast<double>(p.grid.cells[p.axis]);
}

double wave_at(const Start& p, const Index& cell) {
  double value = wave_height;
  for (int d = 0; d < 3; ++d)
    value *= std::cos(std::numbers::pi * (static_cast<double>(cell[d]) + 0.5) / static_cast<double>(p.grid.cells[d]));
  return value;
}

/// Returns the energy of a blast in a cell per its volume; 0 beyond the grid.
double part_of_blast(const Start& p, const Index& cell) {
  double part = 1 / (p.size[0] * p.size[1] * p.size[2]);
  for (std::size_t d = 0; d < 3; ++d)
    part *= cell[d] >= 0 && cell[d] < p.grid.cells[d] ? p.shares[d][static_cast<std::size_t>(cell[d])] : 0;
  return part;
}

State state_of(const Start& p, const Index& cell) {
  const double gamma = p.gammas[0];
  if (p.word == "sod") {
    const bool right = along_tube(p, cell) > 0.5;
    const Gas& gas = right ? sod_right : sod_left;
    return {gas.density, gas.pressure / ((gamma - 1) * gas.density), right ? 1.0 : 0.0};
  }
  if (p.word == "sedov") {
    const double part = part_of_blast(p, cell);
    return {1, cold + part * blast_energy / 8, part > 0.5 ? 1.0 : 0.0};
  }
  if (p.word == "wave") {  // of sound speed 1 and pressure 1 / gamma: isentropic
    const double rho = 1 + wave_at(p, cell), pressure = std::pow(rho, gamma) / gamma;
    return {rho, pressure / ((gamma - 1) * rho), 0};
  }
  const double count = static_cast<double>(Box{{0, 0, 0}, p.grid.cells}.volume());
  const auto noise = [&](int q) {
    return p.word == "id" ? id_value(p.grid, cell) / count : random_value(p.seed, q, p.grid, cell);
  };
  return {1 + 0.3 * noise(density), 1 + 0.3 * noise(energy), 0.5 + 0.5 * noise(fraction)};
}

/// Returns noise for a node; nodes of walls are at rest.
double noise_of_node(const Start& p, int quantity, const Index& node) {
  if (p.word != "random" || quantity >= velocity + 3) return 0;
  for (int d = 0; d < 3; ++d)
    if (!p.grid.periodic[d] && (node[d] <= 0 || node[d] >= p.grid.cells[d])) return 0;
  return 0.1 * random_value(p.seed, quantity, p.grid, node);
}

double value_of_cell(const Start& p, int quantity, const Index& cell) {
  const State s = state_of(p, cell);
  const double gamma = p.gammas[s.fraction > 0.5];
  switch (quantity) {
    case density:
      return s.density;
    case energy:
      return s.energy;
    case fraction:
      return s.fraction;
    case volume:
      return p.size[0] * p.size[1] * p.size[2];
    case pressure:
      return (gamma - 1) * s.density * s.energy;
    case sound:
      return std::sqrt(gamma * (gamma - 1) * s.energy);
    case material:
      return s.fraction > 0.5 ? 1 : 0;
    default:
      return 0;
  }
}

// ---- Sod's tube -----------------------------------------------------------------------------------------------------

/// Returns the velocity change by a wave between a gas and a state of pressure p, and its derivative (Toro, 4.2).
std::array<double, 2> velocity_change(const Gas& gas, double p, double gamma) {
  const double c = std::sqrt(gamma * gas.pressure / gas.density);
  if (p <= gas.pressure) {
    const double power = (gamma - 1) / (2 * gamma), ratio = p / gas.pressure;
    return {2 * c / (gamma - 1) * (std::pow(ratio, power) - 1),
            std::pow(ratio, power - 1) * c / (gamma * gas.pressure)};
  }
  const double a = 2 / ((gamma + 1) * gas.density), b = (gamma - 1) / (gamma + 1) * gas.pressure;
  const double root = std::sqrt(a / (p + b));
  return {(p - gas.pressure) * root, root * (1 - (p - gas.pressure) / (2 * (p + b)))};
}

/// The solution of a Riemann problem of gases at rest at x / t.
class Riemann {
 public:
  explicit Riemann(double gamma) : gamma_(gamma), pressure_(0.5 * (sod_left.pressure + sod_right.pressure)) {
    for (int i = 0; i < 100; ++i) {
      const auto left = velocity_change(sod_left, pressure_, gamma_),
                 right = velocity_change(sod_right, pressure_, gamma_);
      pressure_ -= (left[0] + right[0]) / (left[1] + right[1]);
    }
    velocity_ = velocity_change(sod_right, pressure_, gamma_)[0];
  }
  double density(double speed) const {
    return speed < velocity_ ? side(sod_left, -speed, -velocity_) : side(sod_right, speed, velocity_);
  }

 private:
  /// Returns the density of the gas on one side, with speeds that are positive towards it.
  double side(const Gas& gas, double speed, double contact) const {
    const double c = std::sqrt(gamma_ * gas.pressure / gas.density), ratio = pressure_ / gas.pressure;
    const double step = (gamma_ - 1) / (gamma_ + 1);
    if (ratio > 1) {  // a shock
      const double shock = c * std::sqrt((gamma_ + 1) / (2 * gamma_) * ratio + (gamma_ - 1) / (2 * gamma_));
      return speed > shock ? gas.density : gas.density * (ratio + step) / (step * ratio + 1);
    }
    if (speed > c) return gas.density;
    const double behind = std::pow(ratio, 1 / gamma_), slow = c * std::pow(ratio, (gamma_ - 1) / (2 * gamma_));
    if (speed < contact + slow) return gas.density * behind;
    return gas.density * std::pow(2 / (gamma_ + 1) + step * speed / c, 2 / (gamma_ - 1));
  }

  double gamma_, pressure_, velocity_;
};

// ---- Sedov's blast --------------------------------------------------------------------------------------------------

class Blast {
 public:
  explicit Blast(double gamma) : g_(gamma) {
    // The energy behind the shock, by Simpson's rule in the parameter: xi^4 d xi = d(xi^5) / 5.
    double sum = 0;
    for (int i = 0; i <= pieces; ++i) table_.push_back({fifth_power(speed_at(i)), compression(speed_at(i))});
    for (int i = 0; i < pieces; ++i) {
      const double low = speed_at(i), high = speed_at(i + 1), middle = 0.5 * (low + high);
      sum += (fifth_power(high) - fifth_power(low)) / 5 * (work(low) + 4 * work(middle) + work(high)) / 6;
    }
    constant_ = 16 * std::numbers::pi / 25 * sum;
  }
  double radius(double energy, double time) const { return std::pow(energy * time * time / constant_, 0.2); }
  /// Returns the density at r / radius, relative to the density in front. Linear between the points of the table.
  double density(double xi) const {
    if (xi >= 1) return 1;
    const double power = xi * xi * xi * xi * xi;
    const auto above = std::upper_bound(table_.begin() + 1, table_.end() - 1, power,
                                        [](double value, const Point& point) { return value < point.power; });
    const Point &low = above[-1], &high = *above;
    return low.density + (high.density - low.density) * (power - low.power) / (high.power - low.power);
  }

 private:
  static constexpr int pieces = 20000;
  struct Point {
    double power, density;  ///< xi^5, and relative to the density in front
  };

  double speed_at(int piece) const {
    const double part = static_cast<double>(piece) / pieces;
    return 1 / g_ + (2 / (g_ + 1) - 1 / g_) * part * part;
  }
  double first(double v) const { return (g_ + 1) / (7 - g_) * (5 - (3 * g_ - 1) * v); }
  double second(double v) const { return std::max((g_ + 1) / (g_ - 1) * (g_ * v - 1), 1e-300); }
  double power() const { return -(13 * g_ * g_ - 7 * g_ + 12) / ((3 * g_ - 1) * (2 * g_ + 1)); }
  double fifth_power(double v) const {
    return std::pow((g_ + 1) / 2 * v, -2) * std::pow(first(v), power()) *
           std::pow(second(v), 5 * (g_ - 1) / (2 * g_ + 1));
  }
  double compression(double v) const {
    return (g_ + 1) / (g_ - 1) * std::pow(second(v), 3 / (2 * g_ + 1)) * std::pow(first(v), -power() / (2 - g_)) *
           std::pow((g_ + 1) / (g_ - 1) * (1 - v), -2 / (2 - g_));
  }
  /// Returns G (V^2 / 2 + Z / (gamma (gamma - 1))): kinetic and internal energy.
  double work(double v) const {
    const double at = std::max(g_ * v - 1, 1e-12);
    return compression(v) * (v * v / 2 + (1 - v) * v * v / (2 * at));
  }

  double g_, constant_ = 0;
  std::vector<Point> table_;  // from the centre to the shock
};

}  // namespace

const std::vector<std::string>& initial_states() {
  static const std::vector<std::string> words{"sod", "sedov", "wave"};
  return words;
}

std::array<double, 3> cell_size(const Problem& problem) {
  const std::vector<double>& values = problem.parameters.reals("cell_size");
  std::array<double, 3> size{};
  for (std::size_t d = 0; d < 3; ++d)
    size[d] = d < values.size() && values[d] > 0 ? values[d] : 1 / static_cast<double>(problem.grid.cells[0]);
  return size;
}

InitialValue initial_value(const Problem& problem, int quantity) {
  const bool of_node = quantity >= velocity && quantity < other_velocity;
  if (!of_node && quantity > material) return [](const Index&) { return std::optional<double>(0.0); };
  return [=, start = Start(problem)](const Index& point) {
    return std::optional<double>(of_node ? noise_of_node(start, quantity, point)
                                         : value_of_cell(start, quantity, point));
  };
}

std::function<double(const Index&)> exact_density(const Problem& problem, double time) {
  const std::string& word = problem.parameters.word("initial");
  const Start start(problem);
  const double gamma = start.gammas[0];
  const auto size = start.size;
  if (word == "sod" && start.gammas[1] == gamma) {
    const double extent = size[start.axis] * static_cast<double>(problem.grid.cells[start.axis]);
    return [=, tube = Riemann(gamma)](const Index& cell) {
      return tube.density((along_tube(start, cell) - 0.5) * extent / std::max(time, 1e-300));
    };
  }
  if (word == "sedov") {
    return [=, blast = Blast(gamma)](const Index& cell) {
      double squares = 0;
      for (std::size_t d = 0; d < 3; ++d) squares += std::pow((static_cast<double>(cell[d]) + 0.5) * size[d], 2);
      return blast.density(std::sqrt(squares) / blast.radius(blast_energy, time));
    };
  }
  if (word != "wave") return nullptr;
  double squares = 0;
  for (std::size_t d = 0; d < 3; ++d)
    squares += std::pow(std::numbers::pi / (size[d] * static_cast<double>(problem.grid.cells[d])), 2);
  return [=](const Index& cell) { return 1 + wave_at(start, cell) * std::cos(std::sqrt(squares) * time); };
}

}  // namespace haloscope::hydro
