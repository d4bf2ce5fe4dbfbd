#include "haloscope/transport/device/task_link.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <string>

#include "haloscope/comm/device_load.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/long_wait.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/transport/device/task_rounds.hpp"

namespace haloscope {
namespace {

/// Divisor of the blocks that a device can run concurrently: a kernel that waits gets this part, sweeps have the
/// rest.
constexpr int share_of_blocks = 8;

// Sequentially consistent: a kernel that leaves writes a word and reads another, and this side does the reverse.
std::uint64_t read(const std::uint64_t* word) { return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(); }
void write(const std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*const_cast<std::uint64_t*>(word)).store(value);
}

/// Parts in flight in one direction of a round.
struct Traffic {
  TaskSide* side = nullptr;
  std::vector<MPI_Request> requests;  // by part
  std::uint32_t exchange = 0;         // its number, from 1
  int left = 0;                       // parts not yet sent, or not yet arrived
};

/// One round in one slot: its kernel, and the progress of its messages.
struct Round {
  device::ExchangeLaunch launch;  // of its last kernel
  device::CopyLaunch unpack;      // the last part of that kernel
  Traffic out, in;
  int ready = 0;                                          // parts of `out` that the kernel has packed
  std::vector<char> known;                                // by part: it is one of them
  std::vector<int> copies;                                // the order in which they are copied to the host
  int copied = 0;                                         // number of copies that have ended
  std::vector<std::unique_ptr<device::Event>> copy_ends;  // by part
};

class TaskLink final : public DeviceLink {
 public:
  TaskLink(const LinkContext& context, const TaskOptions& options, int blocks)
      : device_(*context.device),
        comm_(context.comm),
        messages_(context.plan->messages),
        yield_(context.yield),
        queue_(options.queue),
        blocks_(blocks),
        rounds_of_slot_(context.plan->rounds),
        memory_(context, options, blocks),
        left_(memory_.all().size() / static_cast<std::size_t>(rounds_of_slot_) * messages_.size(), 0),
        ended_(device_.event(false)) {
    if (options.copied) copies_ = device_.stream(true);
    for (TaskRound& round : memory_.all()) prepare(round, options);
    for (int slot = 0; slot < context.slots(); ++slot) taken_.push_back(device_.event(false));
  }
  /// Completes messages in flight, unless there was a failure.
  ~TaskLink() override {
    device::call_even_if_lost([this] {
      while (std::uncaught_exceptions() == 0 && in_flight()) progress();
    });
    memory_.stop();
    device::call_even_if_lost([this] { ended_->wait(); });
    for (auto& taken : taken_) device::call_even_if_lost([&] { taken->wait(); });
    if (copies_) device::call_even_if_lost([this] { copies_->finish(); });
    for (Round& round : rounds_) {
      for (MPI_Request& request : round.in.requests)
        if (request != MPI_REQUEST_NULL)
          REQUIRE_MPI(MPI_Cancel(&request)), REQUIRE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      for (MPI_Request& request : round.out.requests)
        if (request != MPI_REQUEST_NULL) REQUIRE_MPI(MPI_Request_free(&request));
    }
  }
  bool closes_alone() const override { return true; }
  void abandon() override {
    abandoned_ = true;
    memory_.stop();
  }

  /// Posts receives, once the slot's last kernels have ended, which read and wrote the same memory.
  void post(Ids in, int slot) override {
    check_works();
    taken_[static_cast<std::size_t>(slot)]->wait();
    each_round(in, slot, &TaskRound::in, [&](Round& round) {
      ++round.in.exchange;
      round.in.left = static_cast<int>(round.in.requests.size());
      for (std::size_t i = 0; i < round.in.requests.size(); ++i) {
        TaskPart& part = round.in.side->parts[i];
        REQUIRE_MPI(MPI_Irecv(part.host, part.type.count(), part.type.type(), part.peer, part.tag, comm_,
                              &round.in.requests[i]));
      }
      count(round.in, slot);
    });
  }
  void send(Ids out, int slot) override {
    each_round(out, slot, &TaskRound::out, [&](Round& round) {
      ++round.out.exchange;
      round.out.left = static_cast<int>(round.out.requests.size());
      round.ready = round.copied = 0;
      std::fill(round.known.begin(), round.known.end(), 0);
      count(round.out, slot);
    });
    progress();
  }
  bool test(Ids in, int slot) override {
    progress();
    return waiting_for(in, slot) < 0;
  }
  void wait(Ids in, int slot) override {
    for (LongWait wait(yield_); !test(in, slot);) wait.again([&] { return describe(); });
  }
  bool test_complete(Ids out, int slot) override { return test(out, slot); }
  void complete(Ids out, int slot) override { wait(out, slot); }
  int waiting_for(Ids ids, int slot) const override {
    for (int id : ids)
      if (left_[place(id, slot)] > 0) return messages_[static_cast<std::size_t>(id)].peer;
    return -1;
  }

  void pack_on(device::Stream& stream, Ids out, int slot) override {
    each_round(out, slot, &TaskRound::out, [&](Round& round) { launch(stream, round); });
  }
  void unpack_on(device::Stream& stream, Ids in, int slot) override {
    each_round(in, slot, &TaskRound::in, [&](Round& round) {
      if (round.out.side->ids.empty()) launch(stream, round);
      if (has_left(round)) device_.kernels().copy(stream, round.unpack);
    });
    stream.record(*taken_[static_cast<std::size_t>(slot)]);
  }
  void to_host(device::Stream&, Ids, int) override {}
  void to_device(device::Stream&, Ids, int) override {}
  std::string report() const override { return "kernels of up to " + std::to_string(blocks_) + " blocks"; }

 private:
  std::size_t place(int id, int slot) const {
    return static_cast<std::size_t>(slot) * messages_.size() + static_cast<std::size_t>(id);
  }

  void prepare(TaskRound& from, const TaskOptions& options) {
    Round& round = rounds_.emplace_back();
    round.launch = from.launch;
    round.unpack = from.unpack;
    round.out.side = &from.out;
    round.in.side = &from.in;
    round.out.requests.assign(from.out.parts.size(), MPI_REQUEST_NULL);
    round.in.requests.assign(from.in.parts.size(), MPI_REQUEST_NULL);
    round.known.assign(from.out.parts.size(), 0);
    if (!options.copied) return;
    round.copies.resize(from.out.parts.size());
    for (std::size_t i = 0; i < from.out.parts.size(); ++i) round.copy_ends.push_back(device_.event(false));
  }

  /// Calls f(round) for each round that the messages form.
  template <class F>
  void each_round(Ids ids, int slot, TaskSide TaskRound::*way, F f) {
    for (std::size_t i = 0; i < ids.size();) {
      const int number = messages_[static_cast<std::size_t>(ids[i])].round;
      const std::vector<int>& whole = (memory_.of(number, slot).*way).ids;
      if (ids.size() - i < whole.size() || !std::equal(whole.begin(), whole.end(), ids.begin() + i))
        throw Error(Exit::failed, "a kernel moves all messages of a round, and a program requests only some of them");
      f(rounds_[static_cast<std::size_t>(slot * rounds_of_slot_ + number)]);
      i += whole.size();
    }
  }

  void launch(device::Stream& stream, Round& round) {
    check_works();
    ++round.launch.exchange;
    if (round.launch.sent + round.launch.received == 0) return;
    device_.kernels().exchange.run(stream, round.launch);
    stream.record(*ended_);
  }

  /// Counts all parts of a direction, which are in flight from now on.
  void count(const Traffic& traffic, int slot) {
    for (const TaskPart& part : traffic.side->parts) ++left_[place(part.id, slot)];
    checked_s_ = now_s();
  }

  bool in_flight() const {
    return std::any_of(left_.begin(), left_.end(), [](int parts) { return parts > 0; });
  }

  // ---- the event loop: tasks of the kernel first, then messages -----------------------------------------------------

  /// Progresses all work that is ready; never waits.
  void progress() {
    check_works();
    bool moved = false;
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      Round& round = rounds_[i];
      const int slot = static_cast<int>(i) / rounds_of_slot_;
      if (round.out.left > 0) {
        moved = take_tasks(round) || moved;
        if (copies_) moved = send_copied(round) || moved;
        moved = settle(round.out, slot, [](int) {}) || moved;
      }
      if (round.in.left > 0)
        moved =
            settle(round.in, slot,
                   [&](int part) {
                     const int turn = static_cast<int>(round.in.requests.size()) - round.in.left;
                     write(round.launch.arrived + turn * device::signal_words, device::signal(round.in.exchange, part));
                   }) ||
            moved;
    }
    watch(moved);
  }

  /// Takes parts that the kernel has packed, in its order or in the order of parts.
  bool take_tasks(Round& round) {
    const int before = round.ready, parts = static_cast<int>(round.known.size());
    if (before == parts) return false;
    for (int at = queue_ ? round.ready : 0; at < parts; ++at) {
      const std::uint64_t word = read(round.launch.packed + at * device::signal_words);
      const bool there = device::exchange_of(word) == round.out.exchange;
      if (queue_ && !there) break;
      if (there && !round.known[static_cast<std::size_t>(device::of_signal(word))])
        begin_part(round, device::of_signal(word));
    }
    return round.ready > before;
  }

  void begin_part(Round& round, int number) {
    const TaskPart& part = round.out.side->parts[static_cast<std::size_t>(number)];
    round.known[static_cast<std::size_t>(number)] = 1;
    const auto turn = static_cast<std::size_t>(round.ready++);
    if (!copies_) return send_part(round, number);
    copies_->copy(part.host, part.packed, static_cast<std::size_t>(part.bytes));
    copies_->record(*round.copy_ends[static_cast<std::size_t>(number)]);
    round.copies[turn] = number;
  }

  /// Sends parts whose copies have ended; copies end in the order in which they began.
  bool send_copied(Round& round) {
    const int before = round.copied;
    while (round.copied < round.ready) {
      const int number = round.copies[static_cast<std::size_t>(round.copied)];
      if (!round.copy_ends[static_cast<std::size_t>(number)]->reached()) break;
      send_part(round, number);
      ++round.copied;
    }
    return round.copied > before;
  }

  void send_part(Round& round, int number) {
    TaskPart& part = round.out.side->parts[static_cast<std::size_t>(number)];
    REQUIRE_MPI(MPI_Isend(part.host, part.type.count(), part.type.type(), part.peer, part.tag, comm_,
                          &round.out.requests[static_cast<std::size_t>(number)]));
  }

  /// Calls f(part) for each part whose request has ended.
  template <class F>
  bool settle(Traffic& traffic, int slot, F f) {
    for (bool moved = false;; moved = true) {
      int part = MPI_UNDEFINED, done = 0;
      if (traffic.left > 0)
        REQUIRE_MPI(MPI_Testany(static_cast<int>(traffic.requests.size()), traffic.requests.data(), &part, &done,
                                MPI_STATUS_IGNORE));
      if (!done || part == MPI_UNDEFINED) return moved;
      f(part);
      --traffic.left;
      --left_[place(traffic.side->parts[static_cast<std::size_t>(part)].id, slot)];
    }
  }

  // ---- failures -----------------------------------------------------------------------------------------------------

  /// Checks the device, after a while without progress: a device that has failed packs no more, and the check costs a
  /// call of the driver.
  void watch(bool moved) {
    constexpr double while_s = 1e-3;
    const double now = now_s();
    if (!moved && now - checked_s_ < while_s) return;
    checked_s_ = now;
    if (!moved && in_flight() && kernels_ended() && lacks_tasks()) fail("its kernel has ended before it packed all");
  }

  /// Returns true if the kernels have ended. @throws Error where the device has failed.
  bool kernels_ended() {
    try {
      return ended_->reached();
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  bool lacks_tasks() {
    return std::any_of(rounds_.begin(), rounds_.end(), [this](Round& round) {
      if (round.out.left == 0) return false;
      take_tasks(round);
      return round.ready < static_cast<int>(round.known.size());
    });
  }

  /// Returns true if the kernel left, or is about to, before it found all messages that have arrived by now: see
  /// ExchangeBlocks::leave().
  static bool has_left(const Round& round) {
    return read(round.launch.progress) ==
           device::signal(round.launch.exchange, static_cast<int>(device::Progress::left));
  }

  [[noreturn]] void fail(const std::string& reason) {
    failure_ = reason + "; " + describe();
    memory_.stop();
    throw_failure();
  }
  [[noreturn]] void throw_failure() const {
    throw Error(Exit::failed,
                "transport 'taskqueue' has failed: " + (failure_.empty() ? "it was abandoned" : failure_));
  }
  /// Checks for earlier failures. @throws Error after any failure: messages in flight then stay as they are.
  void check_works() const {
    if (abandoned_ || !failure_.empty()) throw_failure();
  }

  /// Returns every message that is not complete, and every block of the rounds that have one.
  std::string describe() const {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      const Round& round = rounds_[i];
      if (round.out.left + round.in.left == 0) continue;
      const int slot = static_cast<int>(i) / rounds_of_slot_;
      for (const Traffic* traffic : {&round.out, &round.in})
        for (int id : traffic->side->ids)
          if (left_[place(id, slot)] > 0) found.push_back(describe_message(round, *traffic, id, slot));
      found.push_back(describe_blocks(round));
    }
    return join(found, "; ");
  }

  std::string describe_message(const Round& round, const Traffic& traffic, int id, int slot) const {
    const bool out = &traffic == &round.out;
    int parts = 0, packed = 0;
    for (std::size_t i = 0; i < traffic.side->parts.size(); ++i) {
      if (traffic.side->parts[i].id != id) continue;
      ++parts;
      packed += out && round.known[i];
    }
    const auto of_parts = [&](int n) { return std::to_string(n) + " of " + std::to_string(parts) + " parts"; };
    return "message " + std::to_string(id) + (out ? " to" : " from") + " rank " +
           std::to_string(messages_[static_cast<std::size_t>(id)].peer) + ": " +
           (out ? of_parts(packed) + " packed, " : "") + of_parts(parts - left_[place(id, slot)]) +
           (out ? " sent" : " here");
  }

  static std::string describe_blocks(const Round& round) {
    constexpr const char* words[] = {"packing", "waiting", "ended", "left"};
    std::map<std::string, std::string> blocks;
    for (int block = 0; block < round.launch.blocks; ++block) {
      const std::uint64_t word = read(round.launch.progress + block * device::signal_words);
      const bool begun = device::exchange_of(word) == round.launch.exchange && round.launch.exchange > 0;
      std::string& numbers = blocks[begun ? words[device::of_signal(word)] : "not begun"];
      numbers += ' ';
      numbers += std::to_string(block);
    }
    std::string text = "exchange " + std::to_string(round.launch.exchange);
    for (const auto& [state, numbers] : blocks) text += ", " + state + ": blocks" + numbers;
    return text;
  }

  device::Device& device_;
  MPI_Comm comm_;
  const std::vector<Message> messages_;
  bool yield_, queue_;
  int blocks_, rounds_of_slot_;
  TaskRounds memory_;
  std::vector<Round> rounds_;                          // by slot and number
  std::vector<int> left_;                              // parts in flight, by slot and id
  std::unique_ptr<device::Event> ended_;               // the last kernel
  std::vector<std::unique_ptr<device::Event>> taken_;  // by slot: the last exchange's kernels
  std::unique_ptr<device::Stream> copies_;             // null: parts are packed in host memory
  std::string failure_;                                // empty: no failure
  bool abandoned_ = false;
  double checked_s_ = 0;  // time of the last check of the device
};

/// Returns the blocks that a kernel may have where ranks share devices. Collective; all ranks throw the same.
int blocks_for(const LinkContext& context) {
  const int sharing = load_of(node_of(context.comm), context.device->info().id).ranks;
  context.device->use();
  const int possible = context.device->kernels().exchange.resident();
  agree(context.comm, [&] {
    if (possible < sharing)
      throw UnavailableError("transport 'taskqueue' needs a block for each rank of a device, all concurrently: here " +
                             std::to_string(sharing) + ", and " + std::to_string(possible) +
                             " are possible; use fewer ranks per device, or staged");
  });
  return std::max(1, possible / sharing / share_of_blocks);
}

}  // namespace

std::unique_ptr<Link> open_task_link(const LinkContext& context, const TaskOptions& options) {
  return std::make_unique<TaskLink>(context, options, blocks_for(context));
}

}  // namespace haloscope
