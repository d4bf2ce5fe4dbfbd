#include "haloscope/transport/automatic.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport/kept_choice.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope {
namespace {

constexpr RaceLimits usual{4, 6}, quick{2, 1}, check{4, 2};  // check: of a kept choice

/// Whether an exchange moves anything along dimension d, between ranks.
bool connected(const Plan& plan, int d) { return d < plan.dims && plan.spec.low[d] + plan.spec.high[d] > 0; }

/// The same number for ranks that a chain of messages may join.
int component(const LinkContext& context) {
  const auto coords = context.layout->coords(context.plan->rank);
  int number = 0;
  for (int d = 0; d < 3; ++d)
    if (!connected(*context.plan, d)) number = number * context.layout->ranks()[d] + coords[d];
  return number;
}

/// Hops between the ranks of a component at most.
int diameter(const LinkContext& context) {
  if (context.layout->has_holes()) return context.layout->size() - 1;  // around them
  int hops = 0;
  for (int d = 0; d < 3; ++d)
    if (connected(*context.plan, d)) hops += context.layout->ranks()[d] - 1;
  return hops;
}

/// "2.0 and 14.1 us"
std::string microseconds(double exchange, double step) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f and %.1f us", exchange * 1e6, step * 1e6);
  return text;
}

/// Links with a choice to keep. Many programs never end theirs: their choices are kept when the program exits.
class Keepers {
 public:
  static Keepers& all() {
    static Keepers keepers;
    return keepers;
  }
  ~Keepers() {
    for (const AutoLink* link : links_) link->keep();
  }
  void add(const AutoLink* link) {
    const std::lock_guard lock(mutex_);
    links_.insert(link);
  }
  void remove(const AutoLink* link) {
    const std::lock_guard lock(mutex_);
    links_.erase(link);
  }

 private:
  std::mutex mutex_;
  std::set<const AutoLink*> links_;
};

/// The reading of this rank's clock at about the same moment on all machines; the same number on ranks of one machine,
/// whose clocks agree. Collective.
double common_moment(MPI_Comm comm, double (*clock)()) {
  const Node machine(comm);
  MPI_Barrier(comm);
  double now = clock();
  MPI_Bcast(&now, 1, MPI_DOUBLE, 0, machine.comm());
  return now;
}

/// A number that is the same on all ranks, and another one in each call. Collective.
unsigned draw_seed(MPI_Comm comm) {
  static unsigned calls = 0;
  unsigned seed = ++calls;
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, comm);
  return seed;
}

}  // namespace

AutoLink::AutoLink(const LinkContext& context, std::vector<Trial> candidates, AutoOptions options)
    : candidates_(std::move(candidates)),
      race_(static_cast<int>(candidates_.size()), options.limits, draw_seed(context.comm)),
      options_(std::move(options)),
      yield_(context.yield),
      clock_began_(common_moment(context.comm, options_.clock)) {
  const auto& messages = context.plan->messages;
  for (std::size_t id = 0; id < messages.size(); ++id) {
    if (!context.moves(static_cast<int>(id))) continue;
    ++messages_;
    incoming_ += !messages[id].out;
  }
  slot_count_ = static_cast<int>(context.views->front().size());
  slots_ = std::make_unique<Slot[]>(slot_count_);
  for (const Trial& candidate : candidates_) follows_ = follows_ && candidate.link->follows();
  for (int s = 0; s < slot_count_; ++s) slots_[s].link = candidates_.front().link.get();

  turn_ = slot_count_ + timed_exchanges;
  gap_ = static_cast<std::int64_t>(slot_count_) * (diameter(context) + 1);
  times_.resize(2 * turn_ * race_.order().size() + 1);  // of the first heat, the longest
  last_.resize(times_.size());
  start_heat(0);
  trying_ = candidates_.size() > 1 && messages_ > 0;
  MPI_Comm_split(context.comm, trying_ ? component(context) : MPI_UNDEFINED, 0, &comm_);
  if (options_.keep) Keepers::all().add(this);
}

AutoLink::~AutoLink() {
  if (options_.keep) Keepers::all().remove(this);
  keep();
  for (Trial& c : candidates_) c.link.reset();  // completes what is in flight on it
  if (reduction_ != MPI_REQUEST_NULL) MPI_Wait(&reduction_, MPI_STATUS_IGNORE);
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void AutoLink::keep() const {
  if (options_.keep && switched_at_ >= 0) options_.keep(leader_, race_.second());
}

/// Numbers the exchange that begins now in a slot, if one does, and decides which link moves it.
void AutoLink::begin(int slot) {
  const std::lock_guard lock(beginning_);
  Slot& s = slots_[slot];
  if (s.to_start > 0) return;
  s.to_start = messages_;
  s.to_unpack = incoming_;
  s.number = next_++;
  if (s.number == deadline()) deadline_slot_ = slot;
  if (s.number > deadline() && slot == deadline_slot_ && switched_at_ < 0) go_on(s.number);
  const std::int64_t place = s.number - heat_;
  s.link.store(mover(place), std::memory_order_relaxed);
  if (place <= trials_) begins()[place] = time();
}

/// After a heat, from this exchange on: the winner, or the next heat.
void AutoLink::go_on(std::int64_t number) {
  leader_ = race_.leader();
  if (race_.over())
    switched_at_ = number;
  else
    start_heat(number);
}

void AutoLink::start_heat(std::int64_t number) {
  heat_ = number;
  trials_ = turn_ * static_cast<std::int64_t>(race_.order().size());
  tried_ += trials_;
  deadline_slot_ = -1;
  reducing_ = decided_ = false;
  std::fill_n(ends(), trials_,
              incoming_ > 0 ? never : 0);  // the last rank counts, and one that gets nothing is never it
}

/// The link that moves an exchange of this heat.
Link* AutoLink::mover(std::int64_t place) {
  const int candidate = place < trials_ ? race_.order()[static_cast<std::size_t>(place / turn_)] : leader_;
  return candidates_[static_cast<std::size_t>(candidate)].link.get();
}

void AutoLink::started(Ids ids, int slot) {
  slots_[slot].to_start -= static_cast<std::int64_t>(ids.size());
  tend();
}

/// The exchange of a slot has filled its halos.
void AutoLink::end(const Slot& s) {
  const std::int64_t place = s.number - heat_;
  if (place >= 0 && place < trials_ && !reducing_) ends()[place] = time();
}

void AutoLink::post(Ids in, int slot) {
  if (trying_ && !in.empty()) begin(slot);
  link(slot).post(in, slot);
  if (trying_) started(in, slot);
}

/// Where nothing is received an exchange begins here.
void AutoLink::pack(Ids out, int slot, Share share) {
  if (trying_ && !out.empty()) begin(slot);
  link(slot).pack(out, slot, share);
}

void AutoLink::send(Ids out, int slot) {
  link(slot).send(out, slot);
  if (trying_) started(out, slot);
}

bool AutoLink::test(Ids in, int slot) {
  const bool may = may_end(slot);
  return link(slot).test(in, slot) && may;
}

void AutoLink::wait(Ids in, int slot) {
  for (Spin spin(yield_); deciding() && !test(in, slot);) spin.again();
  link(slot).wait(in, slot);
}

/// The first share stamps the time for all: they are equal, and run together.
void AutoLink::unpack(Ids in, int slot, Share share) {
  link(slot).unpack(in, slot, share);
  if (!trying_ || share.part != 0) return;
  Slot& s = slots_[slot];
  s.to_unpack -= static_cast<std::int64_t>(in.size());
  if (s.to_unpack == 0) end(s);
}

bool AutoLink::test_complete(Ids out, int slot) {
  const bool may = may_end(slot);
  return link(slot).test_complete(out, slot) && may;
}

void AutoLink::complete(Ids out, int slot) {
  for (Spin spin(yield_); deciding() && !test_complete(out, slot);) spin.again();
  link(slot).complete(out, slot);
}

/// What has arrived and been sent may count as over, unless it is the deadline's.
bool AutoLink::may_end(int slot) {
  if (!trying_) return true;
  tend();
  return decided_ || slots_[slot].number != deadline();
}

/// Moves the decision on; never waits. On the thread that may call MPI.
void AutoLink::tend() {
  if (next_ <= trials()) return;
  if (!reducing_) {
    const auto count = static_cast<int>(2 * trials_ + 1);
    MPI_Iallreduce(times_.data(), last_.data(), count, MPI_DOUBLE, MPI_MAX, comm_, &reduction_);
    reducing_ = true;
  }
  if (int done = 0; !decided_) {
    MPI_Test(&reduction_, &done, MPI_STATUS_IGNORE);
    if (!done) return;
    judge();
    decided_ = true;
  }
  const auto settled = [this](const Slot& s) { return s.number < 0 || s.number >= switched_at_; };
  if (switched_at_ >= 0 && std::all_of(slots_.get(), slots_.get() + slot_count_, settled)) retire();
}

/// Hands the times of this heat to the race.
void AutoLink::judge() {
  const double *const begins = last_.data(), *const ends = begins + trials_ + 1;
  for (std::int64_t turn = 0; turn * turn_ < trials_; ++turn)
    for (std::int64_t place = turn * turn_ + slot_count_; place < (turn + 1) * turn_; ++place)
      race_.add(race_.order()[static_cast<std::size_t>(turn)], ends[place] - begins[place],
                begins[place + 1] - begins[place]);
  race_.judge();
}

void AutoLink::retire() {
  trying_ = false;
  Trial& winner = candidates_[static_cast<std::size_t>(leader_)];
  for (int s = 0; s < slot_count_; ++s) slots_[s].link.store(winner.link.get(), std::memory_order_relaxed);
  for (Trial& c : candidates_)
    if (&c != &winner && c.closes_alone) c.link.reset();
}

int AutoLink::open() const {
  return static_cast<int>(std::count_if(candidates_.begin(), candidates_.end(), [](auto& c) { return !!c.link; }));
}

std::string AutoLink::report() const {
  const std::string out = options_.left_out.empty() ? "" : "; without " + options_.left_out;
  const std::string leader = candidates_[static_cast<std::size_t>(leader_)].name;
  if (messages_ == 0) return "auto: nothing to choose, this rank has no message";
  if (candidates_.size() == 1) return "auto: nothing to choose but " + leader + out;
  const bool over = switched_at_ >= 0;
  std::vector<std::string> tried;
  for (int c = 0; c < static_cast<int>(candidates_.size()); ++c) {
    tried.push_back(candidates_[static_cast<std::size_t>(c)].name);
    if (over && race_.exchange(c) < never)
      tried.back().append(" ").append(microseconds(race_.exchange(c), race_.step(c)));
  }
  std::string text = "auto: ";
  text += over ? "chose " + leader : leader + " until it has decided";
  if (!options_.kept.empty()) text += " (" + candidates_.front().name + " was chosen on " + options_.kept + ")";
  text += ", " + std::to_string(tried_) + " trials of " + (over ? "(exchange and step) " : "");
  return text + join(tried, ", ") + out;
}

namespace {

/// What may be possible here, the same list on all ranks. Transports whose rounds are collective are not tried: they
/// would hold up an exchange of several rounds in another slot.
std::vector<std::string> candidate_names(const LinkContext& context) {
  std::vector<std::string> names{"p2p", "p2p:datatype", "persistent"};
  if (context.mine) return names;  // one part of a composite, which has chosen how the other part goes
  const Node node(context.comm, context.nodes);
  std::array<int, 2> present{};  // neighbours on this node, on others
  for (const Message& m : context.plan->messages) present[node.local(m.peer) < 0] = 1;
  MPI_Allreduce(MPI_IN_PLACE, present.data(), 2, MPI_INT, MPI_LOR, context.comm);
  const auto [near, far] = present;
  for (const char* form : {"shared:packed", "shared"})
    if (near) names.push_back(std::string(form) + (far ? "+p2p" : ""));
  return names;
}

/// Candidates that could be opened, and the others with the reason.
struct Opened {
  std::vector<Trial> candidates;
  std::vector<std::string> left_out;
};

/// @throws what the first candidate throws, where none can be opened. Collective.
Opened open_candidates(const LinkContext& context, const std::vector<std::string>& names) {
  Opened opened;
  std::exception_ptr first;
  for (const std::string& name : names) try {
      opened.candidates.push_back({name, open_link(Strategy("direct/" + name), context), name.rfind("shared", 0) != 0});
    } catch (const Error& error) {  // on all ranks alike
      if (!first) first = std::current_exception();
      opened.left_out.push_back(name + " (" + split(error.what(), ';').front() + ")");  // without what to do about it
    }
  if (opened.candidates.empty()) std::rethrow_exception(first);
  return opened;
}

/// What an earlier program chose among `names` for this exchange: rank 0's file counts. Collective.
std::optional<KeptChoice> kept_choice(MPI_Comm comm, const ChoiceFile& file, const std::vector<std::string>& names) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const KeptChoice mine = (rank == 0 ? file.read() : std::nullopt).value_or(KeptChoice{});
  const KeptChoice kept{text_of_rank(comm, 0, mine.chosen), text_of_rank(comm, 0, mine.second),
                        text_of_rank(comm, 0, mine.since)};
  if (!has(names, kept.chosen) || !has(names, kept.second) || kept.chosen == kept.second) return {};
  return kept;
}

/// The two candidates of a kept choice; none where one of them cannot be opened any more. Collective.
std::optional<Opened> open_kept(const LinkContext& context, const KeptChoice& kept) {
  try {
    Opened opened = open_candidates(context, {kept.chosen, kept.second});
    if (opened.left_out.empty()) return opened;
  } catch (const Error&) {  // on all ranks alike
  }
  return {};
}

/// What to do at the end with a choice among `names`: rank 0 keeps a new one, and forgets one that was not confirmed.
std::function<void(int, int)> keeper(MPI_Comm comm, const ChoiceFile& file, const std::vector<Trial>& candidates,
                                     bool kept) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0) return {};
  if (kept) return [file](int chosen, int) { chosen == 0 ? void() : file.remove(); };
  std::vector<std::string> names;
  for (const Trial& candidate : candidates) names.push_back(candidate.name);
  return [file, names](int chosen, int second) {
    file.write({names[static_cast<std::size_t>(chosen)], names[static_cast<std::size_t>(second)], utc_now()});
  };
}

}  // namespace

std::unique_ptr<Link> open_automatic(const LinkContext& context, const std::vector<std::string>& words) {
  const std::vector<std::string> names = candidate_names(context);
  AutoOptions options{.limits = has(words, "quick") ? quick : usual};
  std::optional<ChoiceFile> file;
  std::optional<Opened> opened;
  if (context.remembers) file.emplace(key_of(context));
  if (file && !has(words, "fresh"))
    if (const auto kept = kept_choice(context.comm, *file, names); kept && (opened = open_kept(context, *kept))) {
      options.kept = kept->since;
      if (!has(words, "quick")) options.limits = check;
    }
  if (!opened) opened = open_candidates(context, names);
  options.left_out = join(opened->left_out, ", ");
  if (file) options.keep = keeper(context.comm, *file, opened->candidates, !options.kept.empty());
  return std::make_unique<AutoLink>(context, std::move(opened->candidates), std::move(options));
}

}  // namespace haloscope
