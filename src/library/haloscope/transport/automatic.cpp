#include "haloscope/transport/automatic.hpp"

#include <bit>
#include <optional>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport/cached_choice.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport/link_tags.hpp"

namespace haloscope {

void AutoLink::post(Ids in, int slot) {
  if (choice_.trying() && !in.empty()) choice_.begin(slot);
  choice_.link(slot).post(in, slot);
  if (choice_.trying()) choice_.started(in, slot);
}

/// An exchange that receives nothing begins here.
void AutoLink::pack(Ids out, int slot, Share share) {
  if (choice_.trying() && !out.empty()) choice_.begin(slot);
  choice_.link(slot).pack(out, slot, share);
}

void AutoLink::send(Ids out, int slot) {
  choice_.link(slot).send(out, slot);
  if (choice_.trying()) choice_.started(out, slot);
}

bool AutoLink::test(Ids in, int slot) {
  const bool may = choice_.may_end(slot);
  return choice_.link(slot).test(in, slot) && may;
}

void AutoLink::wait(Ids in, int slot) {
  for (Spin spin(choice_.yield()); choice_.deciding() && !test(in, slot);) spin.again();
  choice_.link(slot).wait(in, slot);
}

/// The first share records the time for all: shares are equal, and run concurrently.
void AutoLink::unpack(Ids in, int slot, Share share) {
  choice_.link(slot).unpack(in, slot, share);
  if (choice_.trying() && share.part == 0 && choice_.unpacked(in, slot)) choice_.end(slot);
}

bool AutoLink::test_complete(Ids out, int slot) {
  const bool may = choice_.may_end(slot);
  return choice_.link(slot).test_complete(out, slot) && may;
}

void AutoLink::complete(Ids out, int slot) {
  for (Spin spin(choice_.yield()); choice_.deciding() && !test_complete(out, slot);) spin.again();
  choice_.link(slot).complete(out, slot);
}

namespace {

constexpr TrialLimits usual{4, 6}, quick{2, 1}, check{4, 2};  // check: of a cached choice

/// Returns the transports that may be possible here, equal on all ranks. Transports whose rounds are collective are
/// not tried: they would delay an exchange of several rounds in another slot.
std::vector<std::string> candidate_names(const LinkContext& context) {
  std::vector<std::string> names{"p2p", "p2p:datatype", "persistent"};
  if (context.mine) return names;  // one part of a composite, which has chosen the transport of the other part
  const Node& node = node_of(context.comm, context.nodes);
  std::array<int, 2> present{};  // neighbours on this node, on others
  for (const Message& m : context.plan->messages) present[node.local(m.peer) < 0] = 1;
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, present.data(), 2, MPI_INT, MPI_LOR, context.comm));
  const auto [near, far] = present;
  for (const char* form : {"shared:packed", "shared"})
    if (near) names.push_back(std::string(form) + (far ? "+p2p" : ""));
  return names;
}

/// Candidates that could be opened, and the others with the reason.
struct Opened {
  std::vector<Trial> candidates;
  std::vector<std::string> left_out;
  std::exception_ptr failure;  // of a candidate that MPI refused, or for which memory was exhausted; null: none
};

/// Returns a reason without its remedy.
std::string without_remedy(const std::string& reason) { return reason.substr(0, reason.find(';')); }

/// Opens candidates. @throws as the first candidate, where none can be opened. Collective.
Opened open_candidates(const LinkContext& context, const std::vector<std::string>& names,
                       bool (*closes_alone)(const std::string&)) {
  Opened opened;
  std::exception_ptr first;
  for (const std::string& name : names) try {
      const Strategy strategy("direct/" + name);
      auto link = collectively(context.comm, "a candidate of auto", [&] { return open_link(strategy, context); });
      opened.candidates.push_back({name, std::move(link), closes_alone(name), signals(strategy)});
    } catch (const Error& error) {  // the same on all ranks
      if (!first) first = std::current_exception();
      if (!is_agreed(error)) opened.failure = std::current_exception();
      opened.left_out.push_back(name + " (" + without_remedy(error.what()) + ")");
    }
  if (opened.candidates.empty()) std::rethrow_exception(first);
  return opened;
}

/// Returns the choice of an earlier program among `names` for this exchange: rank 0's file counts. Collective.
std::optional<CachedChoice> kept_choice(MPI_Comm comm, const ChoiceFile& file, const std::vector<std::string>& names) {
  const CachedChoice mine = (rank_in(comm) == 0 ? file.read() : std::nullopt).value_or(CachedChoice{});
  const CachedChoice kept{text_of_rank(comm, 0, mine.chosen), text_of_rank(comm, 0, mine.second),
                          text_of_rank(comm, 0, mine.since)};
  if (!has(names, kept.chosen) || !has(names, kept.second) || kept.chosen == kept.second) return {};
  return kept;
}

/// Opens the two candidates of a cached choice; empty where one of them cannot be opened any more. Collective.
/// @throws Error where MPI refuses one: opening it again here would match messages in flight.
std::optional<Opened> open_kept(const LinkContext& context, const CachedChoice& kept,
                                bool (*closes_alone)(const std::string&)) {
  try {
    Opened opened = open_candidates(context, {kept.chosen, kept.second}, closes_alone);
    if (opened.failure) std::rethrow_exception(opened.failure);
    if (opened.left_out.empty()) return opened;
  } catch (const Error& error) {
    if (!is_agreed(error)) throw;
  }
  return {};
}

/// Returns the race of the exchanges that have the same candidates and messages of similar size as this one: up to
/// twice the bytes on rank 0, which counts, since the ranks must agree. Collective.
std::shared_ptr<SharedRace> race_of(const LinkContext& context, const std::vector<Trial>& candidates) {
  const Plan& plan = *context.plan;
  TextStream key;
  for (const Trial& candidate : candidates) key << candidate.name << ", ";
  key << plan.messages_out() << " messages of 2^" << std::bit_width(static_cast<std::uint64_t>(plan.bytes_out()))
      << " bytes in " << plan.rounds << " rounds, " << to_word(plan.spec.motion)
      << (context.mine ? ", between nodes" : "") << (context.device != nullptr ? ", of a device" : "")
      << (in_shared_memory(context.views->front().front().origin) ? ", in shared memory" : "") << "; nodes";
  for (const int node : context.nodes) key << ' ' << node;
  return LibraryComm::on(context.comm)->shared<SharedRace>("race of " + text_of_rank(context.comm, 0, key.str()));
}

/// Returns the function for a choice at the end: rank 0 caches a new one, and removes one that was not confirmed.
std::function<void(int, int)> keeper(MPI_Comm comm, const ChoiceFile& file, const std::vector<Trial>& candidates,
                                     bool kept) {
  if (rank_in(comm) != 0) return {};
  if (kept) return [file](int chosen, int) { chosen == 0 ? void() : file.remove(); };
  std::vector<std::string> names;
  for (const Trial& candidate : candidates) names.push_back(candidate.name);
  return [file, names](int chosen, int second) {
    file.write({names[static_cast<std::size_t>(chosen)], names[static_cast<std::size_t>(second)], utc_now()});
  };
}

}  // namespace

TrialSetup open_trials(const LinkContext& context, const std::vector<std::string>& names,
                       std::vector<std::string> left_out, const std::vector<std::string>& words,
                       bool (*closes_alone)(const std::string&)) {
  AutoOptions options{.limits = has(words, "quick") ? quick : usual};
  std::optional<ChoiceFile> file;
  std::optional<Opened> opened;
  if (context.remembers) file.emplace(key_of(context));
  if (file && !has(words, "fresh"))
    if (const auto kept = kept_choice(context.comm, *file, names);
        kept && (opened = open_kept(context, *kept, closes_alone))) {
      options.kept = kept->since;
      if (!has(words, "quick")) options.limits = check;
    }
  if (!opened) opened = open_candidates(context, names, closes_alone);
  left_out.insert(left_out.end(), opened->left_out.begin(), opened->left_out.end());
  options.left_out = join(left_out, ", ");
  if (file) options.keep = keeper(context.comm, *file, opened->candidates, !options.kept.empty());
  options.race = race_of(context, opened->candidates);
  return {std::move(opened->candidates), std::move(options)};
}

/// Losers in shared memory stay open: freeing a window is collective.
std::unique_ptr<Link> open_automatic(const LinkContext& context, const std::vector<std::string>& words) {
  TrialSetup setup = open_trials(context, candidate_names(context), {}, words,
                                 [](const std::string& name) { return name.rfind("shared", 0) != 0; });
  return std::make_unique<AutoLink>(context, std::move(setup.candidates), std::move(setup.options));
}

}  // namespace haloscope
