// Common parts of the passive-target transports. Only the origin of a transfer synchronises, so the two ends exchange
// signals: the target signals that its segment may be accessed, the origin that it has been. Each message has one
// signal per direction and exchange, in turn:
//   put: receiver "my segment is free"  -> sender puts   -> "the bytes are there"
//   get: sender "the bytes are packed"  -> receiver gets -> "they have been read"
// Only wait() and complete() wait for another rank, and each of them moves all messages in flight, so messages are
// independent of each other.
//
// With option `barrier` all ranks meet instead, once they have packed and again once they have read: the passive form
// of Jacobi in Schroeter 2021, 5.2. Rounds are then collective.
#pragma once

#include <memory>
#include <vector>

#include "haloscope/transport/onesided/window.hpp"

namespace haloscope {

/// One signal per message, slot and end, sent and received in turn. Ranks that exchange different slots by mistake
/// thus wait for each other. Signals are numbered: the signals of a message's slots are consecutive.
class Signals {
 public:
  virtual ~Signals() = default;
  virtual void expect(int number) = 0;  ///< prepares for the next signal of the other end
  virtual bool seen(int number) = 0;    ///< true, once, when it has arrived; lets MPI progress
  virtual void raise(int number) = 0;   ///< sends the next signal to the other end
};

class PassiveLink : public WindowLink {
 public:
  void post(Ids in, int slot) override;
  void send(Ids out, int slot) override;
  bool test(Ids in, int) override { return options().barrier ? !open_ : settled(in); }
  void wait(Ids in, int) override { options().barrier ? fetch(in) : settle(in); }
  bool test_complete(Ids out, int) override { return options().barrier ? !open_ : settled(out); }
  void complete(Ids out, int) override;
  Blocks blocks() const override { return options().barrier ? Blocks::always : WindowLink::blocks(); }
  bool arrives_in_wait() const override { return options().barrier; }

 protected:
  PassiveLink(const LinkContext& context, const RmaOptions& options);
  /// Makes windows and signals. Derived classes call it in their constructors, and close() first in their
  /// destructors: it ends messages in flight and the signals.
  void open();
  void close();

  virtual void enlist(const Window& window) = 0;  ///< a new window, before its first use
  virtual void retire(const Window& window) = 0;  ///< no more accesses
  /// Called around accesses to the part of a window of rank `target`; after leave() they are complete there.
  virtual void enter(const Window& window, int target) = 0;
  virtual void leave(const Window& window, int target) = 0;
  /// Makes own earlier stores visible to others, and others' completed updates visible to own later loads.
  virtual void synchronise(const Window& window) = 0;
  /// issue() starts a transfer; completed() returns true if it is complete at both ends.
  virtual void issue(int id) = 0;
  virtual bool completed(int id) = 0;

 private:
  friend class FlagSignals;
  friend class MessageSignals;
  enum class Stage : std::uint8_t { idle, awaiting, issued };

  void begin(Ids ids, int slot);
  /// Gets all messages of a round between two barriers. Collective.
  void fetch(Ids in);
  void advance();
  void settled_one(int id);
  bool settled(Ids ids);
  void settle(Ids ids);
  const Window& window_of(int id) const { return windows()[static_cast<std::size_t>(port(id).window)]; }
  /// Returns the number of a message's signals in the slot that is being exchanged.
  int signal(int id) const { return id * slots() + port(id).slot; }

  std::unique_ptr<Signals> signals_;  // none with barriers
  std::vector<Stage> stages_;         // by message
  std::vector<int> active_;           // messages that are not idle
  bool open_ = false;                 // barrier: between send() and wait() of a round
};

}  // namespace haloscope
