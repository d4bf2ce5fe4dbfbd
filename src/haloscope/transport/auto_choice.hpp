// Run-time choice among links that move the same messages: they race in the first exchanges of a program, then the
// fastest is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/comm/maximum.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/transport.hpp"
#include "haloscope/transport/trial_rounds.hpp"

namespace haloscope {

/// A transport that may be chosen.
struct Trial {
  std::string name;  ///< as a strategy names it: "shared:packed+p2p"
  std::unique_ptr<Link> link;
  bool closes_alone = false;  ///< its destructor calls nothing collective, and may run while others move messages
  bool sends_early = false;   ///< messages may be sent while they are packed, see TransportTraits::signals
};

/// How a link chooses, beside its candidates.
struct AutoOptions {
  TrialLimits limits{};
  std::string left_out{};  ///< candidates that could not be opened and why, for report()
  std::string kept{};      ///< when an earlier program chose the first candidate, for report(); "": none did
  /// What to do with the choice when the link ends, or the program does: gets the positions of the chosen candidate and
  /// of the second best.
  /// Not called where there was no choice, or it was not in use yet.
  std::function<void(int chosen, int second)> keep{};
  double (*clock)() = now_s;  ///< seconds
};

/// When exchanges began and ended, where the host learns it later. Places are those of a round.
class LateTimes {
 public:
  virtual ~LateTimes() = default;
  /// A round begins, of so many trials; what is known of the one before is not wanted any more.
  virtual void begin_heat(std::int64_t trials) = 0;
  /// Puts the times of the trials, and when the exchange after them began, over those of the host. Never waits.
  /// @param since  what times count from, seconds of this process' clock. @return false: the device has not come so
  ///         far.
  virtual bool learn(double since, double* begins, double* ends) = 0;
};

/// How the choice is made.
///
/// Trials. Exchanges are numbered as they begin, over all slots; all ranks must begin them in the same order, as they
/// must for messages to match. The number alone decides which candidate moves an exchange, so no rank has to ask.
/// Trials are made in rounds of turns, which TrialRounds draws: consecutive exchanges of a candidate. The first ones of
/// a turn, one per slot, are not timed, so that buffers are in the cache as they will be later.
///
/// Times. Each rank notes when an exchange began (its first post) and ended (its last unpack). A nonblocking reduction
/// after each round finds the last of these over the ranks. An exchange takes from the last begin to the last end, so
/// that ranks which come early do not make it longer; a step takes from the last begin to the last begin of the next
/// exchange.
/// Clocks of several machines are set together when the link is opened; where they are apart by more than an exchange
/// takes, the times are those of the machine whose clock is ahead.
///
/// Decision. After a round the leader of the rounds before moves all exchanges until the reduction is over. Then every
/// rank judges the same numbers. Only calls that may wait anyway wait for the reduction, and only in one exchange, the
/// deadline. The next round, or the winner, begins with the next exchange in the deadline's slot, when the deadline is
/// over. Slots are numbered alike on all ranks, so all switch together; where that slot is never used again, the leader
/// stays.
///
/// Why it cannot deadlock. A rank ends an exchange only after its neighbours have begun it (a program that counts on
/// less counts on MPI's buffering). A rank that begins exchange n has at most slots - 1 others in flight, so it has
/// ended one of the `slots` numbers before n. So ranks h hops apart are at most (h + 1) x slots exchanges apart, and
/// the deadline is that far behind the start of the reduction: a rank that waits for the reduction waits for ranks
/// that have all started it, and only for its messages. These move while any rank polls, and all waits poll until the
/// reduction is over. Ranks that no chain of messages joins do not reduce together.
///
/// Devices. Where a device does the work, its events say when exchanges began and ended. They are read later, so the
/// reduction starts at the first call that finds them known; whoever waits at the deadline looks for them.
///
/// Ends. A loser is closed once it moves no slot any more, except where closing is a collective call (shared memory): a
/// rank may be needed elsewhere before others come that far, so such losers are closed when the link itself ends.
class AutoChoice {
 public:
  /// Collective over `context.comm`.
  /// @param candidates  1 or more, the same on all ranks, opened on `context`. None may need a collective call in a
  ///                    round.
  /// @param late        null: the host sees when exchanges begin and end.
  AutoChoice(const LinkContext& context, std::vector<Trial> candidates, AutoOptions options, LateTimes* late = nullptr);
  /// Completes what is in flight.
  ~AutoChoice();
  AutoChoice(const AutoChoice&) = delete;
  AutoChoice& operator=(const AutoChoice&) = delete;

  /// What moves the exchange of a slot.
  const Trial& mover(int slot) const { return *slots_[slot].mover.load(std::memory_order_relaxed); }
  Link& link(int slot) const { return *mover(slot).link; }
  std::vector<Trial>& candidates() { return candidates_; }
  /// false: one candidate is left, for all slots and for good.
  bool trying() const { return trying_; }

  // The life of an exchange, while trying().

  /// Numbers the exchange that begins now in a slot, if one does, and decides which link moves it.
  void begin(int slot);
  /// Messages of it have been posted or sent.
  void started(Ids ids, int slot);
  /// Messages of it have been unpacked. @return whether these were the last.
  bool unpacked(Ids in, int slot);
  /// Now its halos are filled.
  void end(int slot);
  /// The place in its round of the exchange of a slot: of a trial, or the one after them; -1: of another.
  std::int64_t place(int slot) const;
  /// Whether what has arrived and been sent may count as over; else it is the deadline's, and the choice is not known.
  /// Moves the decision on; never waits.
  bool may_end(int slot);
  /// A deadline may have to be waited for.
  bool deciding() const { return trying_ && next_ > trials() && !decided_; }

  bool yield() const { return yield_; }
  bool must_be_awaited() const { return must_be_awaited_; }
  bool follows() const { return follows_; }
  /// As of a link. Where there is a choice, a reduction may be under way at the end, and links that have lost are
  /// closed then.
  bool closes_alone() const { return closes_alone_; }
  std::string report() const;
  /// Seconds since the clocks of all ranks were set together.
  double time() const { return options_.clock() - clock_began_; }

  /// Number of the first exchange after the trials of this round.
  std::int64_t trials() const { return round_ + trials_; }
  /// The deadline of this round: the exchange that does not end before what follows is known.
  std::int64_t deadline() const { return round_ + trials_ + gap_; }
  /// Position of the candidate that is kept; -1 as long as it is not in use.
  int chosen() const { return switched_at_ >= 0 ? leader_ : -1; }
  /// Hands the choice to AutoOptions::keep, if there is one in use. Local, no MPI.
  void keep() const noexcept;
  /// Trials still open.
  int open() const;

 private:
  /// The exchange of one slot.
  struct Slot {
    std::atomic<const Trial*> mover = nullptr;  ///< a watchdog on another thread may look
    std::int64_t number = -1;                   ///< -1: none yet
    std::int64_t to_start = 0;  ///< messages neither posted nor sent yet; 0: the next call begins an exchange
    std::int64_t to_unpack = 0;
  };
  double* begins() { return times_.data(); }
  double* ends() { return times_.data() + trials_ + 1; }
  const Trial* mover_at(std::int64_t place);
  void go_on(std::int64_t number);
  void start_heat(std::int64_t number);
  void reduce();
  void judge();
  void tend();
  void retire();

  std::vector<Trial> candidates_;
  TrialRounds race_;
  AutoOptions options_;
  LateTimes* late_;
  bool yield_;
  bool follows_ = true;           ///< all candidates can, whichever are still open on this rank
  bool must_be_awaited_ = false;  ///< any candidate must
  bool closes_alone_;
  double clock_began_ = 0;
  std::unique_ptr<Slot[]> slots_;
  int slot_count_ = 0;
  std::int64_t messages_ = 0, incoming_ = 0;  // of one exchange

  bool trying_ = false;
  std::int64_t next_ = 0;                    // number of the next exchange
  std::int64_t switched_at_ = -1;            // from here on the winner moves exchanges
  int leader_ = 0;                           // of the rounds before this one; in the end the winner
  std::int64_t round_ = 0;                   // number of the first exchange of this round
  std::int64_t turn_ = 0, trials_ = 0;       // exchanges of a turn, and trials of this round
  std::int64_t gap_ = 0;                     // from the end of the trials to the deadline
  std::int64_t tried_ = 0;                   // trials of all rounds
  bool reducing_ = false, decided_ = false;  // in this round
  int deadline_slot_ = -1;
  std::mutex beginning_;  // shares of pack() may come on several threads, and first of all
  /// When the trials of this round and the exchange after them began, then when the trials ended; of this rank.
  std::vector<double> times_;
  std::optional<Maximum> last_;  // over the ranks that decide together; none: this one has nothing to choose
};

}  // namespace haloscope
