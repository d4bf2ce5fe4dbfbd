#include "haloscope/transport/auto_choice.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <utility>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/text.hpp"

namespace haloscope {
namespace {

/// Returns true if an exchange moves data along dimension d, between ranks: halos, or planes that several ranks hold.
bool connected(const Plan& plan, int d) {
  const ExchangeSpec& spec = plan.spec;
  if (d >= plan.dims) return false;
  const bool planes =
      spec.motion != Motion::fill && std::any_of(spec.quantities.begin(), spec.quantities.end(),
                                                 [&](const Quantity& q) { return staggered(q.centring, d) != 0; });
  return planes || spec.low[d] + spec.high[d] > 0;
}

/// Returns the ranks that choose and that a chain of messages may connect to this one. Collective.
/// @param chooses  true: this rank has a choice.
std::vector<int> component(const LinkContext& context, bool chooses) {
  const int mine = chooses;
  std::vector<int> all(static_cast<std::size_t>(context.layout->size()));
  CHECK_MPI(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, context.comm));
  const auto is_apart = [&](int rank) {
    if (context.between_any_ranks()) return false;
    const auto own = context.layout->coords(context.plan->rank), other = context.layout->coords(rank);
    for (int d = 0; d < 3; ++d)
      if (!connected(*context.plan, d) && other[d] != own[d]) return true;
    return false;
  };
  std::vector<int> ranks;
  for (int rank = 0; rank < context.layout->size(); ++rank)
    if (all[static_cast<std::size_t>(rank)] != 0 && !is_apart(rank)) ranks.push_back(rank);
  return ranks;
}

/// Returns the maximum number of hops between the ranks of a component.
int diameter(const LinkContext& context) {
  if (context.layout->has_holes() || context.between_any_ranks()) return context.layout->size() - 1;  // around holes
  int hops = 0;
  for (int d = 0; d < 3; ++d)
    if (connected(*context.plan, d)) hops += context.layout->ranks()[d] - 1;
  return hops;
}

/// Returns times as "2.0 and 14.1 us".
std::string microseconds(double exchange, double step) {
  return with_digits(exchange * 1e6, 1) + " and " + with_digits(step * 1e6, 1) + " us";
}

/// Exchanges of a follower between two comparisons.
constexpr std::int64_t exchanges_that_follow = 16;

/// Links with a choice to cache. Many programs never end their links: the choices are cached when the program exits.
class Keepers {
 public:
  static Keepers& all() {
    static Keepers keepers;
    return keepers;
  }
  ~Keepers() {
    for (const AutoChoice* link : links_) link->keep();
  }
  void add(const AutoChoice* link) {
    const std::lock_guard lock(mutex_);
    links_.insert(link);
  }
  void remove(const AutoChoice* link) {
    const std::lock_guard lock(mutex_);
    links_.erase(link);
  }

 private:
  std::mutex mutex_;
  std::set<const AutoChoice*> links_;
};

/// Returns the reading of this rank's clock at about the same moment on all machines; equal on ranks of one machine,
/// whose clocks agree. Collective.
double common_moment(MPI_Comm comm, double (*clock)()) {
  const Node& machine = node_of(comm);
  CHECK_MPI(MPI_Barrier(comm));
  double now = clock();
  CHECK_MPI(MPI_Bcast(&now, 1, MPI_DOUBLE, 0, machine.comm()));
  return now;
}

/// Returns a number of rank 0 on all ranks. Collective.
unsigned of_rank_0(MPI_Comm comm, unsigned mine) {
  CHECK_MPI(MPI_Bcast(&mine, 1, MPI_UNSIGNED, 0, comm));
  return mine;
}

/// Returns a number that is equal on all ranks, and different in each call. Collective.
unsigned draw_seed(MPI_Comm comm) {
  static std::atomic<unsigned> calls = 0;
  return of_rank_0(comm, ++calls);
}

}  // namespace

AutoChoice::AutoChoice(const LinkContext& context, std::vector<Trial> candidates, AutoOptions options, LateTimes* late)
    : candidates_(std::move(candidates)),
      rounds_(static_cast<int>(candidates_.size()), options.limits, draw_seed(context.comm)),
      options_(std::move(options)),
      late_(late),
      yield_(context.yield),
      closes_alone_(candidates_.size() == 1 && candidates_.front().link->closes_alone()),
      clock_began_(common_moment(context.comm, options_.clock)) {
  for (int id = 0; id < context.messages(); ++id) {
    if (!context.moves(id)) continue;
    ++messages_;
    incoming_ += !context.plan->messages[static_cast<std::size_t>(id)].out;
  }
  slot_count_ = context.slots();
  slots_ = std::make_unique<Slot[]>(slot_count_);
  for (const Trial& candidate : candidates_) {
    follows_ = follows_ && candidate.link->follows();
    must_be_awaited_ = must_be_awaited_ || candidate.link->must_be_awaited();
  }
  for (int s = 0; s < slot_count_; ++s) slots_[s].mover = &candidates_.front();

  turn_ = slot_count_ + timed_exchanges;
  gap_ = static_cast<std::int64_t>(slot_count_) * (diameter(context) + 1);
  times_.resize(2 * turn_ * rounds_.order().size() + 1);  // for the first round, which is the longest
  trying_ = candidates_.size() > 1 && messages_ > 0;
  if (options_.race) join_race(context.comm);
  start_round(0);
  std::vector<int> ranks = component(context, trying_);
  if (trying_) last_.emplace(context.comm, std::move(ranks), context.tags.reduction(), times_.size());
  if (options_.keep) Keepers::all().add(this);
}

AutoChoice::~AutoChoice() {
  if (options_.keep) Keepers::all().remove(this);
  keep();
  leave_race();
  for (Trial& c : candidates_) c.link.reset();              // completes its messages in flight
  if (trying_ && next_ > trials() && !reducing_) reduce();  // others may have
}

/// Joins the race. Rank 0 decides whether this exchange makes the trials: after failures, ranks may count different
/// members. Collective.
void AutoChoice::join_race(MPI_Comm comm) {
  SharedRace& race = *options_.race;
  leads_ = of_rank_0(comm, race.members == 0) != 0;
  following_ = follows_on_ = !leads_;
  if (leads_) {
    race.chosen = -1;
    race.exchanges = 0;
  }
  ++race.members;
  joined_ = true;
}

void AutoChoice::leave_race() {
  if (!std::exchange(joined_, false)) return;
  --options_.race->members;
  if (std::exchange(leads_, false)) options_.race->exchanges = 0;  // its followers make trials soon
}

void AutoChoice::abandon() {
  for (Trial& candidate : candidates_)
    if (candidate.link) candidate.link->abandon();
  leave_race();
}

void AutoChoice::keep() const noexcept try {
  if (options_.keep && switched_at_ >= 0)
    options_.keep(leader_, taken_ >= 0 ? options_.race->second.load() : rounds_.second());
} catch (const std::exception&) {  // memory is exhausted: the choice is not cached
}

void AutoChoice::begin(int slot) {
  const std::lock_guard lock(beginning_);
  Slot& s = slots_[slot];
  if (s.to_start > 0) return;
  s.to_start = messages_;
  s.to_unpack = incoming_;
  s.number = next_++;
  if (s.number == deadline()) deadline_slot_ = slot;
  if (s.number > deadline() && slot == deadline_slot_ && switched_at_ < 0) go_on(s.number);
  if (leads_) options_.race->exchanges.store(next_, std::memory_order_relaxed);
  const std::int64_t place = s.number - first_;
  s.mover.store(mover_at(place), std::memory_order_relaxed);
  if (place <= trials_ && !following_) begins()[place] = time();
}

/// Begins, after a round, the use of the winner or the next round with this exchange.
void AutoChoice::go_on(std::int64_t number) {
  leader_ = following_ ? next_leader_ : rounds_.leader();
  following_ = follows_on_;
  if (taken_ >= 0 || (!following_ && rounds_.over()))
    switched_at_ = number;
  else
    start_round(number);
  if (leads_) note_race();
}

/// Passes the state of this race on to the exchanges that follow it.
void AutoChoice::note_race() {
  SharedRace& race = *options_.race;
  race.leader = leader_;
  if (switched_at_ < 0) return;
  race.second = rounds_.second();
  race.chosen = leader_;
}

void AutoChoice::start_round(std::int64_t number) {
  first_ = number;
  deadline_slot_ = -1;
  if (following_) {
    trials_ = exchanges_that_follow;
    reducing_ = decided_ = false;
    return;
  }
  trials_ = turn_ * static_cast<std::int64_t>(rounds_.order().size());
  tried_ += trials_;
  reducing_ = decided_ = false;
  std::fill_n(ends(), trials_,
              incoming_ > 0 ? never : 0);  // the last rank counts, which is never one that receives nothing
  if (late_ && trying_) late_->begin_round(trials_);
}

/// Returns the candidate that moves an exchange of this round.
const Trial* AutoChoice::mover_at(std::int64_t place) {
  const bool tries = place < trials_ && !following_;
  const int candidate = tries ? rounds_.order()[static_cast<std::size_t>(place / turn_)] : leader_;
  return &candidates_[static_cast<std::size_t>(candidate)];
}

void AutoChoice::started(Ids ids, int slot) {
  slots_[slot].to_start -= static_cast<std::int64_t>(ids.size());
  progress();
}

bool AutoChoice::unpacked(Ids in, int slot) {
  slots_[slot].to_unpack -= static_cast<std::int64_t>(in.size());
  return slots_[slot].to_unpack == 0;
}

void AutoChoice::end(int slot) {
  const std::int64_t at = place(slot);
  if (at >= 0 && at < trials_ && !reducing_) ends()[at] = time();
}

std::int64_t AutoChoice::place(int slot) const {
  const std::int64_t at = slots_[slot].number - first_;
  return at <= trials_ && !following_ ? at : -1;
}

bool AutoChoice::may_end(int slot) {
  if (!trying_) return true;
  progress();
  return decided_ || slots_[slot].number != deadline();
}

/// Progresses the decision; never waits. Called on the thread that may call MPI.
void AutoChoice::progress() {
  if (next_ <= trials()) return;
  if (!reducing_) {
    if (late_ && !following_ && !late_->learn(clock_began_, begins(), ends())) return;
    reduce();
  }
  if (!decided_) {
    if (!last_->test()) return;
    following_ ? compare_races() : judge();
    decided_ = true;
  }
  const auto settled = [this](const Slot& s) { return s.number < 0 || s.number >= switched_at_; };
  if (switched_at_ >= 0 && std::all_of(slots_.get(), slots_.get() + slot_count_, settled)) retire();
}

void AutoChoice::reduce() {
  reducing_ = true;
  if (!following_) {
    last_->start({times_.data(), static_cast<std::size_t>(2 * trials_ + 1)});
    return;
  }
  const SharedRace& race = *options_.race;
  const double chosen = race.chosen, leader = race.leader;
  const std::array<double, 5> mine{chosen, -chosen, leader, -leader, -static_cast<double>(race.exchanges)};
  last_->start(mine);
}

/// Takes over the choice, or the leader, of the race where all ranks know the same one; makes trials where the race is
/// slow.
void AutoChoice::compare_races() {
  const std::span<const double> all = last_->result();
  const auto common = [&](std::size_t at) { return all[at] == -all[at + 1] ? static_cast<int>(all[at]) : -1; };
  taken_ = common(0);
  next_leader_ = taken_ >= 0 ? taken_ : std::max(common(2), 0);
  follows_on_ = static_cast<double>(deadline()) <= exchanges_that_follow - 2 * all[4];
}

/// Passes the times of this round to the trials.
void AutoChoice::judge() {
  const double *const begins = last_->result().data(), *const ends = begins + trials_ + 1;
  for (std::int64_t turn = 0; turn * turn_ < trials_; ++turn)
    for (std::int64_t place = turn * turn_ + slot_count_; place < (turn + 1) * turn_; ++place)
      rounds_.add(rounds_.order()[static_cast<std::size_t>(turn)], ends[place] - begins[place],
                  begins[place + 1] - begins[place]);
  rounds_.judge();
}

void AutoChoice::retire() {
  trying_ = false;
  Trial& winner = candidates_[static_cast<std::size_t>(leader_)];
  for (int s = 0; s < slot_count_; ++s) slots_[s].mover.store(&winner, std::memory_order_relaxed);
  for (Trial& c : candidates_)
    if (&c != &winner && c.closes_alone) c.link.reset();
}

int AutoChoice::open() const {
  return static_cast<int>(std::count_if(candidates_.begin(), candidates_.end(), [](auto& c) { return !!c.link; }));
}

std::string AutoChoice::report() const {
  const std::string out = options_.left_out.empty() ? "" : "; without " + options_.left_out;
  const std::string leader = candidates_[static_cast<std::size_t>(leader_)].name;
  if (messages_ == 0) return "auto: nothing to choose, this rank has no message";
  if (candidates_.size() == 1) return "auto: nothing to choose but " + leader + out;
  const bool over = switched_at_ >= 0;
  std::string text = "auto: ";
  text += over ? "chose " + leader : leader + " until it has decided";
  if (!options_.kept.empty()) text += " (" + candidates_.front().name + " was chosen on " + options_.kept + ")";
  text += ", " + trial_report() + out;
  if (over) return text + "; in use since exchange " + std::to_string(switched_at_ + 1);
  return text + "; " + std::to_string(next_) + " exchanges" + (following_ ? " so far" : " of " + most_exchanges());
}

/// Returns the candidates, with their times where this exchange has chosen by its own trials.
std::string AutoChoice::trial_report() const {
  const bool over = switched_at_ >= 0, own = over ? taken_ < 0 : !following_;
  std::vector<std::string> tried;
  for (int c = 0; c < static_cast<int>(candidates_.size()); ++c) {
    tried.push_back(candidates_[static_cast<std::size_t>(c)].name);
    if (over && own && rounds_.exchange(c) < never)
      tried.back().append(" ").append(microseconds(rounds_.exchange(c), rounds_.step(c)));
  }
  const std::string trials = own ? std::to_string(tried_) + " trials" : "by trials of an exchange of similar size,";
  return trials + " of " + (over && own ? "(exchange and step) " : "") + join(tried, ", ");
}

/// Returns the number of exchanges after which it has chosen at the latest, unless the slots are used unevenly.
std::string AutoChoice::most_exchanges() const {
  const auto candidates = static_cast<std::int64_t>(candidates_.size());
  return "at most " + std::to_string(options_.limits.rounds * (turn_ * options_.limits.turns * candidates + gap_ + 1));
}

}  // namespace haloscope
