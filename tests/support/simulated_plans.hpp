// The plans of all ranks, run in one process: the result that an exchange on ranks must have.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "each_point.hpp"
#include "haloscope/core/panels.hpp"
#include "haloscope/extend/plan.hpp"
#include "random_split.hpp"

namespace haloscope::test {

/// A request for three fields of random centrings, widths and edges.
inline ExchangeSpec three_fields(std::mt19937& random, const GridSpec& grid) {
  ExchangeSpec spec;
  spec.quantities = {{"u", 8}, {"v", 8}, {"w", 8}};
  for (Quantity& q : spec.quantities) {
    q.centring = static_cast<Centring>(pick(random, 0, 1 + grid.dims));
    ExchangeSpec::Sides& sides = spec.widths.emplace_back();
    for (int d = 0; d < grid.dims; ++d) {
      sides.low[d] = pick(random, 0, 1);
      sides.high[d] = pick(random, 0, 1);
      if (pick(random, 0, 3) == 0)
        q.edges[d] = {static_cast<Edge>(pick(random, 0, 3)), static_cast<Edge>(pick(random, 0, 3))};
    }
  }
  return spec;
}

/// The fields of all ranks, made of doubles, and the movement of one plan for each.
class SimulatedPlans {
 public:
  SimulatedPlans(const Layout& layout, const ExchangeSpec& spec) {
    for (int rank = 0; rank < layout.size(); ++rank) plans_.push_back(make_plan(layout, rank, spec));
  }
  const Plan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  double& at(int rank, int q, const Index& p) { return values_[{rank, q, p}]; }

  void run() {
    make_copies(-1);
    for (int round = 0; round < plans_.front().rounds; ++round) {
      std::map<std::tuple<int, int, int>, std::vector<double>> sent;  // by sender, receiver, tag
      for (const bool out : {true, false})
        for (const Plan& plan : plans_)
          for (const Message& message : plan.messages)
            if (message.round == round && message.out == out)
              out ? pack(plan, message, sent[{plan.rank, message.peer, message.tag}])
                  : unpack(plan, message, sent[{message.peer, plan.rank, message.tag}]);
      make_copies(round);
    }
    make_copies(plans_.front().rounds);
  }

 private:
  /// Returns a point of any quantity of a plan.
  double& at(const Plan& plan, int q, const Index& p) {
    const Quantity& quantity = plan.spec.quantities[static_cast<std::size_t>(q)];
    return quantity.turns < 0 ? at(plan.rank, q, p) : at(plan.rank, quantity.turns, turned(p, inverse(quantity.turn)));
  }
  void pack(const Plan& plan, const Message& message, std::vector<double>& values) {
    ASSERT_TRUE(values.empty()) << "two messages with one tag";
    for (const Region& region : message.regions)
      each_point(region.box, [&](const Index& p) { values.push_back(at(plan, region.quantity, p)); });
  }
  void unpack(const Plan& plan, const Message& message, const std::vector<double>& values) {
    ASSERT_EQ(static_cast<std::int64_t>(values.size() * sizeof(double)), message.bytes);
    auto next = values.begin();
    for (const Region& region : message.regions)
      each_point(region.box, [&](const Index& p) { at(plan, region.quantity, p) = *next++; });
  }
  void make_copies(int round) {
    for (const Plan& plan : plans_)
      for (const Copy& copy : plan.copies)
        if (copy.round == round) each_point(copy.to, [&](const Index& p) { make_copy(plan, copy, p); });
  }
  void make_copy(const Plan& plan, const Copy& copy, const Index& p) {
    const Index from{p[0] + copy.shift[0], p[1] + copy.shift[1], p[2] + copy.shift[2]};
    const double value = at(plan, copy.source >= 0 ? copy.source : copy.quantity, from);
    double& to = at(plan, copy.quantity, p);
    if (copy.store == Store::replace) to = copy.negate ? -value : value;
    if (copy.store == Store::add) to += copy.negate ? -value : value;
    if (copy.store == Store::clear) to = 0;
  }

  std::vector<Plan> plans_;
  std::map<std::tuple<int, int, Index>, double> values_;  // by rank, quantity, point
};

}  // namespace haloscope::test
