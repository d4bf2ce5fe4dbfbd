// The movements of an exchange: of all of it, of parts, accumulations, shares, each opened by its first call.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/prepared_exchange.hpp"

namespace haloscope {

/// A plan of the exchange, or of a part of it, opened on its fields.
struct Movement {
  PartRequest request;
  std::unique_ptr<PreparedExchange> exchange;
  int number = 0;  // in the order of opening, equal on all ranks
};

/// Returns the object that ranks open for calls of a kind, for reports of long waits.
const char* made_by(Motion motion);
/// Returns the activity of a rank that moves points, for texts about ranks that differ.
std::string verb_of(Motion motion);

class Movements {
 public:
  /// Properties of the exchange, which outlive its movements.
  struct Of {
    const Layout* layout;
    const ExchangeSpec* spec;  ///< as requested, without additions of the strategy
    const Strategy* strategy;
    const std::vector<int>* nodes;
    device::Device* device;
    bool guarded;
  };
  Movements(const Of& of, std::unique_ptr<PreparedExchange> whole);
  /// The last one opened ends first.
  ~Movements();
  Movements(const Movements&) = delete;
  Movements& operator=(const Movements&) = delete;

  Movement& first() { return movements_.front(); }
  PreparedExchange& whole() const { return *movements_.front().exchange; }
  auto begin() const { return movements_.begin(); }
  auto end() const { return movements_.end(); }
  auto begin() { return movements_.begin(); }
  auto end() { return movements_.end(); }
  /// Returns the movement that serves a request; null where none does yet. Allocates nothing.
  Movement* find(const ExchangePart& part, Motion motion) const {
    for (const Served& one : served_)
      if (one.motion == motion && one.part == part) return one.by;
    return nullptr;
  }
  /// Finds the movement that serves a request, or opens it. Collective the first time.
  /// @param check   throws if the call must not be made.
  /// @param opened  called with a movement that was opened.
  template <class Check, class Opened>
  Movement& serve(const ExchangePart& part, Motion motion, const Check& check, const Opened& opened) {
    Movement* const known = find(part, motion);
    if (known == nullptr) return serve_first(part, motion, std::cref(check), std::cref(opened));  // allocates nothing
    check();
    return *known;
  }
  /// Returns the fields and layers of a part of the exchange, of a share the fields; "" for the whole one.
  /// @param ahead  a word before them.
  std::string part_of(const Movement& movement, const std::string& ahead) const;

 private:
  /// A request of a caller, and the movement that serves it: several requests may be served by one.
  struct Served {
    ExchangePart part;
    Motion motion = Motion::fill;
    Movement* by = nullptr;
  };
  Movement& serve_first(const ExchangePart& part, Motion motion, const std::function<void()>& check,
                        const std::function<void(const Movement&)>& opened);
  Movement* find_same(const ExchangePart& part, Motion motion);
  Movement& open(const ExchangePart& part, Motion motion, const std::function<void()>& check,
                 const std::function<void(const Movement&)>& opened);

  Of of_;
  std::deque<Movement> movements_;  // the first one is the whole exchange
  std::vector<Served> served_;      // parts, accumulations and shares that were requested
};

}  // namespace haloscope
