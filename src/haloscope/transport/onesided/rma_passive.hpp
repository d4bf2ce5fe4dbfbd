// What the passive-target transports share. Only the origin of a transfer synchronises, so the two ends exchange
// signals: the target signals that its segment may be accessed, the origin that it has been. Each message has one
// signal per direction and exchange, in turn:
//   put: receiver "my segment is free"  -> sender puts   -> "the bytes are there"
//   get: sender "the bytes are packed"  -> receiver gets -> "they have been read"
// No call but wait() and complete() waits for another rank, and each of them moves all messages that are in flight, so
// messages are independent of each other.
#pragma once

#include <memory>
#include <vector>

#include "haloscope/transport/onesided/window.hpp"

namespace haloscope {

/// One signal per message, slot and end, sent and awaited in turn. Ranks that exchange different slots by mistake thus
/// wait for each other. Signals are numbered: those of a message's slots come one after the other.
class Signals {
 public:
  virtual ~Signals() = default;
  virtual void expect(int number) = 0;  ///< prepare for the next signal of the other end
  virtual bool seen(int number) = 0;    ///< true, once, when it is there; lets MPI progress
  virtual void raise(int number) = 0;   ///< the next signal to the other end
};

class PassiveLink : public WindowLink {
 public:
  void post(Ids in, int slot) override { begin(in, slot); }
  void send(Ids out, int slot) override;
  bool test(Ids in, int) override { return settled(in); }
  void wait(Ids in, int) override { settle(in); }
  bool test_complete(Ids out, int) override { return settled(out); }
  void complete(Ids out, int) override { settle(out); }

 protected:
  PassiveLink(const LinkContext& context, const RmaOptions& options);
  /// Make windows and signals. Derived classes call it in their constructors, and close() first thing in their
  /// destructors: it ends what is in flight and the signals.
  void open(const Layout& layout);
  void close();

  virtual void enlist(const Window& window) = 0;  ///< a new window, about to be used
  virtual void retire(const Window& window) = 0;  ///< no more accesses
  /// Around accesses to the part of a window of rank `target`; after leave() they are complete there.
  virtual void enter(const Window& window, int target) = 0;
  virtual void leave(const Window& window, int target) = 0;
  /// Own stores before it are visible to others after it, and others' completed updates to own loads.
  virtual void synchronise(const Window& window) = 0;
  /// Start a transfer, and see whether it is complete at both ends.
  virtual void issue(int id) = 0;
  virtual bool completed(int id) = 0;

 private:
  friend class FlagSignals;
  friend class MessageSignals;
  enum class Stage : std::uint8_t { idle, awaiting, issued };

  void begin(Ids ids, int slot);
  void advance();
  void settled_one(int id);
  bool settled(Ids ids);
  void settle(Ids ids);
  const Window& window_of(int id) const { return windows()[static_cast<std::size_t>(port(id).window)]; }
  /// The signals of a message in the slot that is being exchanged.
  int signal(int id) const { return id * slots() + port(id).slot; }

  std::unique_ptr<Signals> signals_;
  std::vector<Stage> stages_;  // by message
  std::vector<int> active_;    // messages that are not idle
};

}  // namespace haloscope
