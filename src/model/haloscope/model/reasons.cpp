// Sentences on the cost that bounds a prediction.
#include <algorithm>

#include "haloscope/core/text.hpp"
#include "haloscope/model/advise.hpp"
#include "haloscope/model/network.hpp"

namespace haloscope::model {

namespace {

std::string percent(double part, int digits) { return with_digits(part * 100, digits) + "%"; }

std::string messages_of(const Prediction& p) {
  const auto [least, most] = p.message_bytes;
  const std::string sizes =
      least == most ? std::to_string(least) + " B" : std::to_string(least) + " to " + std::to_string(most) + " B";
  return std::to_string(p.messages) + " messages of " + sizes;
}

Term largest_of_exchange(const Prediction& p) {
  Term largest = Term::pack;
  for (int number = 0; number < term_count; ++number) {
    const Term term = static_cast<Term>(number);
    if (term != Term::compute && term != Term::reduction && p.term(term) > p.term(largest)) largest = term;
  }
  return largest;
}

std::string bound_by(Term term, const std::string& messages, const Prediction& p) {
  switch (term) {
    case Term::message:
      return p.bound + ": " + messages;
    case Term::wait:
      return "imbalance: peers are late";
    case Term::synchronisation:
      return "synchronisation-bound: " + messages;
    case Term::copy:
      return "bound by copies to itself";
    case Term::refetch:
      return "memory-bound: data that the exchange accesses outgrows the cache, " + messages;
    case Term::d2h:
      return "bound by copies from the device: " + messages;
    case Term::h2d:
      return "bound by copies to the device: " + messages;
    case Term::launch:
      return "bound by enqueueing work on the device: " + messages;
    default:
      return "packing-bound: " + messages;
  }
}

}  // namespace

std::string regime_of(const Prediction& p, bool exchange) {
  const auto counts = [&](Term term) {
    return !exchange || (term != Term::compute && term != Term::reduction && term != Term::runner);
  };
  Term largest = exchange ? Term::pack : Term::compute;
  for (int number = 0; number < term_count; ++number)
    if (const Term term = static_cast<Term>(number); counts(term) && p.term(term) > p.term(largest)) largest = term;
  switch (largest) {
    case Term::wait:
      return "imbalance";
    case Term::synchronisation:
      return "synchronisation-bound";
    case Term::copy:
    case Term::pack:
    case Term::unpack:
      return "packing-bound";
    case Term::refetch:
      return "memory-bound";
    case Term::compute:
      return "compute-bound";
    case Term::reduction:
      return "reduction-bound";
    default:
      return p.bound;
  }
}

std::string bound_of(const Prediction& p, const Profile& profile) {
  if (p.messages == 0) return "";
  const Locality near = p.nodes > 1 ? Locality::network : Locality::socket;
  const double size = static_cast<double>(p.bytes) / p.messages;
  return 2 * message_time(profile, near, 0) > message_time(profile, near, size) ? "latency-bound" : "bandwidth-bound";
}

std::string reason_of(const Prediction& p) {
  if (p.messages == 0) return "no messages: the rank has all it needs";
  const double share = p.exchange_s() / p.time_s;
  const std::string messages = messages_of(p);
  const double flying = p.busy[static_cast<std::size_t>(Term::message)], hidden = flying - p.term(Term::message);
  if (share < 0.02)
    return std::string("compute-bound: ") + (hidden > 0.5 * flying && flying > 0 ? "messages hidden, " : "") +
           messages + " cost " + percent(share, 1) + " of a step";
  return bound_by(largest_of_exchange(p), messages, p) + "; exchange " + percent(share, 0) + " of a step";
}

std::string name_of(const Choice& c) {
  return to_string(c.strategy) + ", " + c.schedule->name + ", depth " + std::to_string(c.depth) +
         (c.depth > 1 ? " " + to_word(c.substeps) : "") +
         (c.reorder != Reorder::none ? ", reorder " + to_word(c.reorder) : "");
}

}  // namespace haloscope::model
