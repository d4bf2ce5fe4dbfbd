// Transport `auto-device`: a link that chooses among links of devices.
//
// Its programs are made for kernels that signal: a message may be sent as soon as its packing is enqueued. Links that
// require packed messages get them later, when the stream has completed the copy to the host.
#include <dlfcn.h>

#include <string>
#include <utility>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/long_wait.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/transport/automatic.hpp"

namespace haloscope {
namespace {

using device::Event;

/// Begins and ends of exchanges, by events of a device.
class DeviceTimes final : public LateTimes {
 public:
  /// @param sends  true: this rank packs messages.
  DeviceTimes(device::Device& device, bool sends)
      : device_(device),
        sends_(sends),
        stream_(device.stream()),
        origin_(device.event()),
        next_origin_(device.event()) {
    stream_->record(*origin_);
    origin_->wait();
    origin_s_ = now_s();
  }
  void begin(device::Stream& stream, std::int64_t place) { stamp(begins_, stream, place); }
  void end(device::Stream& stream, std::int64_t place) { stamp(ends_, stream, place); }

  /// Begins a round and moves the origin, since a time is a float of milliseconds since the origin.
  void begin_round(std::int64_t trials) override {
    trials_ = trials;
    for (auto* stamps : {&begins_, &ends_}) {
      for (Stamp& one : *stamps) one.set = false;
      while (static_cast<std::int64_t>(stamps->size()) <= trials)
        stamps->push_back({device_.event(), false});  // the first round has the most
    }
    first_ = 0;
    if (std::exchange(moved_, true)) {
      origin_s_ += device_.seconds(*origin_, *next_origin_);
      std::swap(origin_, next_origin_);
    }
    stream_->record(*next_origin_);
  }
  bool learn(double since, double* begins, double* ends) override {
    for (; first_ <= trials_; ++first_)
      for (const auto* stamps : {&begins_, &ends_})
        if (const Stamp& one = (*stamps)[static_cast<std::size_t>(first_)]; one.set && !one.event->reached())
          return false;
    if ((sends_ && !begins_[static_cast<std::size_t>(trials_)].set) || !next_origin_->reached()) return false;
    for (std::int64_t place = 0; place <= trials_; ++place) {
      take(begins_, place, since, begins);
      if (place < trials_) take(ends_, place, since, ends);
    }
    return true;
  }

 private:
  struct Stamp {
    std::unique_ptr<Event> event;
    bool set = false;
  };
  void stamp(std::vector<Stamp>& stamps, device::Stream& stream, std::int64_t place) {
    if (place < 0 || place > trials_) return;
    Stamp& one = stamps[static_cast<std::size_t>(place)];
    if (std::exchange(one.set, true)) return;
    stream.record(*one.event);
  }
  void take(const std::vector<Stamp>& stamps, std::int64_t place, double since, double* into) const {
    const Stamp& one = stamps[static_cast<std::size_t>(place)];
    if (one.set && one.event->reached()) into[place] = origin_s_ + device_.seconds(*origin_, *one.event) - since;
  }

  device::Device& device_;
  bool sends_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<Event> origin_, next_origin_;
  double origin_s_ = 0;
  std::vector<Stamp> begins_, ends_;
  std::int64_t trials_ = 0, first_ = 0;
  bool moved_ = false;
};

class AutoDeviceLink final : public DeviceLink {
 public:
  AutoDeviceLink(const LinkContext& context, TrialSetup setup)
      : comm_(context.comm),
        times_(*context.device, context.plan->messages_out() > 0),
        choice_(context, std::move(setup.candidates), std::move(setup.options), &times_),
        slots_(context.views->front().size()) {
    for (Slot& slot : slots_)
      for (int round = 0; round <= context.plan->rounds; ++round)
        slot.packed.push_back({context.device->event(false), {}});
  }

  void post(Ids in, int slot) override {
    if (choice_.trying() && !in.empty()) choice_.begin(slot);
    choice_.link(slot).post(in, slot);
    if (choice_.trying()) choice_.started(in, slot);
  }
  void send(Ids out, int slot) override {
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    if (choice_.mover(slot).sends_early)
      choice_.link(slot).send(out, slot);
    else
      s.packed[s.requested++].out = out;
    send_packed(slot);
    if (choice_.trying()) choice_.started(out, slot);
  }
  bool test(Ids in, int slot) override {
    send_packed(slot);
    const bool may = choice_.may_end(slot);
    return choice_.link(slot).test(in, slot) && may;
  }
  void wait(Ids in, int slot) override {
    for (LongWait wait(choice_.yield()); !test(in, slot);) wait.again([&] { return describe(in, slot); });
  }
  bool test_complete(Ids out, int slot) override {
    send_packed(slot);
    const bool may = choice_.may_end(slot);
    return all_sent(slot) && choice_.link(slot).test_complete(out, slot) && may;
  }
  void complete(Ids out, int slot) override {
    for (LongWait wait(choice_.yield()); !test_complete(out, slot);) wait.again([&] { return describe(out, slot); });
  }
  int waiting_for(Ids in, int slot) const override { return choice_.link(slot).waiting_for(in, slot); }

  void pack_on(device::Stream& stream, Ids out, int slot) override {
    if (choice_.trying() && !out.empty()) choice_.begin(slot);
    if (choice_.trying()) times_.begin(stream, choice_.place(slot));
    link(slot).pack_on(stream, out, slot);
  }
  void unpack_on(device::Stream& stream, Ids in, int slot) override {
    link(slot).unpack_on(stream, in, slot);
    if (choice_.trying() && choice_.unpacked(in, slot)) times_.end(stream, choice_.place(slot));
  }
  void to_host(device::Stream& stream, Ids out, int slot) override {
    link(slot).to_host(stream, out, slot);
    if (choice_.mover(slot).sends_early) return;
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    if (s.sent == s.recorded) s.recorded = s.requested = s.sent = 0;
    stream.record(*s.packed[s.recorded++].event);
  }
  void to_device(device::Stream& stream, Ids in, int slot) override { link(slot).to_device(stream, in, slot); }
  void abandon() override { choice_.abandon(); }
  bool must_be_awaited() const override { return choice_.must_be_awaited(); }
  std::string report() const override { return choice_.report(); }

 private:
  /// Messages of a round whose packing is enqueued.
  struct Packed {
    std::unique_ptr<Event> event;  ///< reached when they are in the memory that MPI sends from
    Ids out;
  };
  struct Slot {
    std::vector<Packed> packed;  ///< in the order of the exchange
    std::size_t recorded = 0, requested = 0, sent = 0;
  };

  DeviceLink& link(int slot) const { return static_cast<DeviceLink&>(choice_.link(slot)); }
  bool all_sent(int slot) const {
    const Slot& s = slots_[static_cast<std::size_t>(slot)];
    return s.sent == s.requested;
  }
  /// Returns the missing event of a wait for messages.
  std::string describe(Ids ids, int slot) const {
    const int peer = waiting_for(ids, slot);
    return peer >= 0 ? "it exchanges messages with " + name_rank(comm_, peer) : "ranks choose a transport";
  }
  /// Sends packed messages; never waits.
  void send_packed(int slot) {
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    for (; s.sent < s.requested && s.packed[s.sent].event->reached(); ++s.sent)
      choice_.link(slot).send(s.packed[s.sent].out, slot);
  }

  MPI_Comm comm_;
  DeviceTimes times_;
  AutoChoice choice_;
  std::vector<Slot> slots_;
};

/// Returns true if MPI reports support for memory of the devices of a back end.
bool takes_device_memory(const device::Backend& backend) {
  if (backend.on_cpu) return true;
  for (const std::string& of : {backend.name, std::string(backend.name == "hip" ? "rocm" : backend.name)})
    if (const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, ("MPIX_Query_" + of + "_support").c_str())))
      if (query() != 0) return true;
  return false;
}

}  // namespace

std::unique_ptr<Link> open_auto_device(const LinkContext& context, const std::vector<std::string>& words) {
  const device::Backend& backend = *device::place_of(context.views->front().front().origin).backend;
  std::vector<std::string> names{"staged", "ipc"}, left_out;
  if (anywhere(!takes_device_memory(backend), context.comm))
    left_out.emplace_back("aware (this MPI does not report support for device memory)");
  else
    names.emplace_back("aware");
  if (anywhere(!context.device->info().loads_early, context.comm))
    left_out.emplace_back(
        "taskqueue (kernels are loaded when they are first launched, not with CUDA_MODULE_LOADING=EAGER)");
  else
    names.emplace_back("taskqueue");
  // Losers stay open until the end: freeing memory of a device may wait for kernels, which may wait for messages.
  TrialSetup setup = open_trials(context, names, left_out, words, [](const std::string&) { return false; });
  return std::make_unique<AutoDeviceLink>(context, std::move(setup));
}

}  // namespace haloscope
