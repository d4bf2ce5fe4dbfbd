#include "haloscope/runner/movements.hpp"

#include <algorithm>
#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

/// Returns true if the strategy `reference` serves a request: it fills halos from owned points alone.
bool is_gathered(const PartRequest& request) {
  return request.motion == Motion::fill &&
         std::all_of(request.widths.begin(), request.widths.end(), [](const ExchangeSpec::Sides& sides) {
           return sides.rows_low == Widths{} && sides.rows_high == Widths{};
         });
}

}  // namespace

const char* made_by(Motion motion) {
  return motion == Motion::fill         ? "a part of an exchange"
         : motion == Motion::accumulate ? "an accumulation"
                                        : "a share of common points";
}

std::string verb_of(Motion motion) {
  return motion == Motion::fill ? "exchanges" : motion == Motion::share ? "shares" : "accumulates";
}

Movements::Movements(const Of& of, std::unique_ptr<PreparedExchange> whole) : of_(of) {
  movements_.push_back({request_of({}, Motion::fill, *of.spec, of.layout->dims()), std::move(whole)});
  served_.push_back({{}, Motion::fill, &movements_.front()});
}

Movements::~Movements() {
  while (!movements_.empty()) movements_.pop_back();
}

std::string Movements::part_of(const Movement& movement, const std::string& ahead) const {
  const PartRequest &part = movement.request, &whole = movements_.front().request;
  const bool share = part.motion == Motion::share;
  if (part.fields == whole.fields && (share || part.widths == whole.widths)) return "";
  if (share) return ahead + movement.exchange->name();
  std::vector<std::string> layers;
  for (const ExchangeSpec::Sides& sides : part.widths) layers.push_back(name_of(sides));
  return ahead + movement.exchange->name() + " (layers " + join(layers, ", ") + ")";
}

/// Returns the movement of a part that is named in another way than in earlier calls; null where there is none, also
/// for a part that the exchange lacks. Local.
Movement* Movements::find_same(const ExchangePart& part, Motion motion) {
  Movement* found = nullptr;
  try {
    const PartRequest request = request_of(part, motion, *of_.spec, of_.layout->dims());
    for (Movement& one : movements_)
      if (one.request == request) found = &one;
    if (found != nullptr) served_.push_back({part, motion, found});
  } catch (const UsageError&) {  // all ranks refuse it together
  }
  return found;
}

/// Serves a request that is named so for the first time. A rank that fails alone, such as where its memory is
/// exhausted, ends the job: others may wait for it.
Movement& Movements::serve_first(const ExchangePart& part, Motion motion, const std::function<void()>& check,
                                 const std::function<void(const Movement&)>& opened) {
  Movement* const known = collectively(whole().comm(), made_by(motion), [&] { return find_same(part, motion); });
  if (known == nullptr) return open(part, motion, check, opened);
  check();
  return *known;
}

/// Opens a movement. Requests that the reference does not serve use messages.
Movement& Movements::open(const ExchangePart& part, Motion motion, const std::function<void()>& check,
                          const std::function<void(const Movement&)>& opened) {
  const MPI_Comm comm = whole().comm();
  return *collectively(comm, made_by(motion), [&] {
    PartRequest request;
    Strategy how;
    Plan plan;
    agree(comm, [&] {
      check();
      request = request_of(part, motion, *of_.spec, of_.layout->dims());
      how = of_.strategy->is_reference() && !is_gathered(request) ? Strategy("direct/p2p") : *of_.strategy;
      plan = plan_of_part(comm, *of_.layout, *of_.spec, request, how);
      served_.reserve(served_.size() + 1);
    });
    require_same(comm, plan, *of_.layout, how, whole().views().front().size(), *of_.nodes, of_.guarded,
                 {{"exchange", "of " + whole().name() + ", message tags from " + std::to_string(whole().first_tag())},
                  {"numbers of the fields", join_numbers(request.fields, ", ")}});
    const Views fields = chosen(whole().views(), whole().in_blocks(request.fields));
    auto exchange = std::make_unique<PreparedExchange>(comm, *of_.layout, plan, fields, how, *of_.nodes, of_.device);
    movements_.push_back({std::move(request), std::move(exchange), static_cast<int>(movements_.size())});
    opened(movements_.back());
    served_.push_back({part, motion, &movements_.back()});
    return &movements_.back();
  });
}

}  // namespace haloscope
