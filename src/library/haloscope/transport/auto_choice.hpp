// Run-time choice among links that move the same messages: they are timed in the first exchanges of a program, then
// the fastest is used.
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
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/trial_rounds.hpp"

namespace haloscope {

/// A transport that may be chosen.
struct Trial {
  std::string name;  ///< name in a strategy: "shared:packed+p2p"
  std::unique_ptr<Link> link;
  bool closes_alone = false;  ///< its destructor makes no collective call, and may run while others move messages
  bool sends_early = false;   ///< messages may be sent while they are packed, see TransportTraits::signals
};

/// The race of the exchanges of one communicator that have the same candidates and messages of similar size. The one
/// that was opened first makes trials, the others follow it. Numbers change on the thread that exchanges.
struct SharedRace {
  int members = 0;                           ///< open exchanges
  std::atomic<int> leader = 0;               ///< of the exchange that makes trials
  std::atomic<int> chosen = -1, second = 0;  ///< its choice, once in use, and the second best; -1: none yet
  std::atomic<std::int64_t> exchanges = 0;   ///< that it has begun
};

/// Options of a choice, besides its candidates.
struct AutoOptions {
  TrialLimits limits{};
  std::string left_out{};  ///< candidates that could not be opened, with reasons, for report()
  std::string kept{};      ///< time at which an earlier program chose the first candidate, for report(); "": none did
  /// Called with the choice when the link or the program ends: gets the positions of the chosen candidate and of the
  /// second best.
  /// Not called where no choice was made, or it was not in use yet.
  std::function<void(int chosen, int second)> keep{};
  std::shared_ptr<SharedRace> race{};  ///< that this choice takes part in; null: none
  double (*clock)() = now_s;           ///< seconds
};

/// Begins and ends of exchanges, where the host gets the times later. Places are counted in a round.
class LateTimes {
 public:
  virtual ~LateTimes() = default;
  /// Begins a round of `trials` trials; discards the times of the previous one.
  virtual void begin_round(std::int64_t trials) = 0;
  /// Overwrites the host's times by the times of the trials, and by the begin of the exchange after them. Never
  /// waits.
  /// @param since  origin of the times, in seconds of this process's clock. @return false: the device has not done
  ///         these exchanges yet.
  virtual bool learn(double since, double* begins, double* ends) = 0;
};

/// A choice between candidates, made during exchanges.
///
/// Trials. Exchanges are numbered in the order of their begins, over all slots; all ranks must begin them in the same
/// order, as is required for messages to match. The number alone determines the candidate that moves an exchange, so
/// ranks need not communicate. Trials are made in rounds of turns, drawn by TrialRounds: consecutive exchanges of a
/// candidate. The first ones of a turn, one per slot, are not timed, so that buffers are in the cache as in later
/// use.
///
/// Times. Each rank records the begin of an exchange (its first post) and its end (its last unpack). A nonblocking
/// reduction after each round finds the last of these over the ranks. An exchange takes from the last begin to the
/// last end, so that early ranks do not make it longer; a step takes from the last begin to the last begin of the
/// next exchange.
/// Clocks of several machines are synchronised when the link is opened; where they differ by more than the time of an
/// exchange, the times are from the machine whose clock is ahead.
///
/// Decision. After a round the leader of the earlier rounds moves all exchanges until the reduction is over. Then
/// every rank judges the same numbers. Only calls that may wait anyway wait for the reduction, and only in one
/// exchange, the deadline. The next round, or the winner, begins with the next exchange in the deadline's slot, when
/// the deadline is over. Slots have the same numbers on all ranks, so all switch together; where that slot is never
/// used again, the leader stays.
///
/// Absence of deadlock. A rank ends an exchange only after its neighbours have begun it (a program that relies on
/// less relies on MPI's buffering). A rank that begins exchange n has at most slots - 1 others in flight, so it has
/// ended one of the `slots` numbers before n. So ranks h hops apart are at most (h + 1) x slots exchanges apart, and
/// the deadline is that far behind the start of the reduction: a rank that waits for the reduction waits for ranks
/// that have all started it, and only for its messages. These move while any rank polls, and all waits poll until the
/// reduction is over. Ranks that no chain of messages connects do not reduce together.
///
/// Followers. Of several exchanges with a SharedRace one makes trials. The others exchange with its leader, and compare
/// by a reduction after every few exchanges whether all ranks know its choice: then they use it too. One that exchanges
/// more than twice as often as the first one makes trials itself, since that race may never end.
///
/// Devices. Where a device does the work, its events have the begins and ends of exchanges. They are read later, so
/// the reduction starts at the first call that finds all of them; any rank that waits at the deadline checks them.
///
/// Ends. A loser is closed once it moves no slot any more, except where closing is a collective call (shared memory):
/// a rank may be needed elsewhere before others reach that point, so such losers are closed when the link itself
/// ends.
class AutoChoice {
 public:
  /// Collective over `context.comm`.
  /// @param candidates  1 or more, the same on all ranks, opened on `context`. None may need a collective call in a
  ///                    round.
  /// @param late        null: the host sees begins and ends of exchanges.
  AutoChoice(const LinkContext& context, std::vector<Trial> candidates, AutoOptions options, LateTimes* late = nullptr);
  /// Completes messages in flight.
  ~AutoChoice();
  AutoChoice(const AutoChoice&) = delete;
  AutoChoice& operator=(const AutoChoice&) = delete;

  /// Returns the candidate that moves the exchange of a slot.
  const Trial& mover(int slot) const { return *slots_[slot].mover.load(std::memory_order_relaxed); }
  Link& link(int slot) const { return *mover(slot).link; }
  std::vector<Trial>& candidates() { return candidates_; }
  /// Abandons the candidates and the race, see Link.
  void abandon();
  /// Returns false if one candidate is left, permanently and for all slots.
  bool trying() const { return trying_; }

  // The life of an exchange, while trying().

  /// Numbers the exchange that begins now in a slot, if one does, and determines the link that moves it.
  void begin(int slot);
  /// Notes that messages of it have been posted or sent.
  void started(Ids ids, int slot);
  /// Notes that messages of it have been unpacked. @return true if these were the last.
  bool unpacked(Ids in, int slot);
  /// Ends the exchange: its halos are filled.
  void end(int slot);
  /// Returns the place in its round of a slot's exchange: a trial, or the one after all trials; -1: another exchange.
  std::int64_t place(int slot) const;
  /// Returns true if an exchange whose messages have arrived and been sent may end; false at the deadline, while the
  /// choice is not known. Progresses the decision; never waits.
  bool may_end(int slot);
  /// Returns true if a call may have to wait for the deadline.
  bool deciding() const { return trying_ && next_ > trials() && !decided_; }

  bool yield() const { return yield_; }
  bool must_be_awaited() const { return must_be_awaited_; }
  bool follows() const { return follows_; }
  /// See Link. With a choice, a reduction may be in flight at the end, and links that have lost are closed then.
  bool closes_alone() const { return closes_alone_; }
  std::string report() const;
  /// Returns the seconds since the clocks of all ranks were synchronised.
  double time() const { return options_.clock() - clock_began_; }

  /// Returns the number of the first exchange after the trials of this round.
  std::int64_t trials() const { return first_ + trials_; }
  /// Returns the deadline of this round: the exchange that does not end before the next round or the winner is known.
  std::int64_t deadline() const { return first_ + trials_ + gap_; }
  /// Returns the position of the chosen candidate; -1 as long as it is not in use.
  int chosen() const { return switched_at_ >= 0 ? leader_ : -1; }
  /// Passes the choice to AutoOptions::keep, if it is in use. Local, no MPI.
  void keep() const noexcept;
  /// Returns the number of candidates still open.
  int open() const;

 private:
  /// The exchange of one slot.
  struct Slot {
    std::atomic<const Trial*> mover = nullptr;  ///< a watchdog on another thread may read it
    std::int64_t number = -1;                   ///< -1: none yet
    std::int64_t to_start = 0;  ///< messages neither posted nor sent yet; 0: the next call begins an exchange
    std::int64_t to_unpack = 0;
  };
  double* begins() { return times_.data(); }
  double* ends() { return times_.data() + trials_ + 1; }
  const Trial* mover_at(std::int64_t place);
  std::string trial_report() const;
  std::string most_exchanges() const;
  void join_race(MPI_Comm comm);
  void leave_race();
  void go_on(std::int64_t number);
  void start_round(std::int64_t number);
  void reduce();
  void judge();
  void compare_races();
  void note_race();
  void progress();
  void retire();

  std::vector<Trial> candidates_;
  TrialRounds rounds_;
  AutoOptions options_;
  LateTimes* late_;
  bool yield_;
  bool follows_ = true;           ///< all candidates can, including ones closed on this rank
  bool must_be_awaited_ = false;  ///< any candidate must
  bool closes_alone_;
  double clock_began_ = 0;
  std::unique_ptr<Slot[]> slots_;
  int slot_count_ = 0;
  std::int64_t messages_ = 0, incoming_ = 0;  // of one exchange

  bool trying_ = false;
  std::int64_t next_ = 0;                        // number of the next exchange
  std::int64_t switched_at_ = -1;                // from this exchange on the winner moves exchanges
  int leader_ = 0;                               // of the earlier rounds; in the end the winner
  std::int64_t first_ = 0;                       // number of the first exchange of this round
  std::int64_t turn_ = 0, trials_ = 0;           // exchanges of a turn, and trials of this round
  std::int64_t gap_ = 0;                         // from the end of the trials to the deadline
  std::int64_t tried_ = 0;                       // trials of all rounds
  bool reducing_ = false, decided_ = false;      // in this round
  bool following_ = false, follows_on_ = false;  // makes no trials in this round; in the next one
  bool joined_ = false, leads_ = false;          // is a member of the SharedRace; makes its trials
  int next_leader_ = 0;                          // of a follower, after this round
  int taken_ = -1;                               // choice of the race, known to all ranks; -1: none
  int deadline_slot_ = -1;
  std::mutex beginning_;  // several threads may call pack(), as the first call of an exchange
  /// Begins of the trials of this round and of the exchange after them, then ends of the trials; of this rank.
  std::vector<double> times_;
  std::optional<Maximum> last_;  // over the ranks that decide together; empty: this one has no choice
};

}  // namespace haloscope
