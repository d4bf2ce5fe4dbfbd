#include "haloscope/device/callers_streams.hpp"

#include <algorithm>
#include <map>

namespace haloscope::device::host {
namespace {

/// Returns a stream of a device that does not fail: faults are injected only into devices that the library has opened.
std::unique_ptr<HostStream> new_stream(unsigned number) {
  return std::make_unique<HostStream>(imitation(), std::make_shared<Health>(nullptr), number);
}

constexpr unsigned first_number = 1000;  // streams of the library are numbered from 1

}  // namespace

CallersStreams& CallersStreams::of(int device) {
  static std::mutex mutex;
  static std::map<int, CallersStreams> all;
  const std::lock_guard lock(mutex);
  return all[device];
}

DeviceStream CallersStreams::make() {
  const std::lock_guard lock(mutex_);
  made_.push_back(new_stream(first_number + static_cast<unsigned>(made_.size())));
  return made_.back()->native();
}

bool CallersStreams::free(DeviceStream stream) {
  std::unique_ptr<HostStream> last;  // ends, which waits for its work, without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(made_.begin(), made_.end(), [&](const auto& one) { return one.get() == stream.native; });
  if (at == made_.end()) return false;
  last = std::move(*at);
  made_.erase(at);
  return true;
}

HostStream& CallersStreams::at(DeviceStream stream) {
  if (stream.native != nullptr) return *static_cast<HostStream*>(stream.native);
  if (!default_) default_ = new_stream(first_number - 1);
  return *default_;
}

/// Orders the default stream's later work after the work that all others already have.
void CallersStreams::gather() {
  for (const auto& one : made_) {
    HostEvent event(std::make_shared<Health>(nullptr));
    one->record(event);
    at({}).wait(event);
  }
}

/// Orders later work of all others after the work that the default stream already has.
void CallersStreams::scatter() {
  HostEvent event(std::make_shared<Health>(nullptr));
  at({}).record(event);
  for (const auto& one : made_) one->wait(event);
}

void CallersStreams::record(DeviceStream stream, HostEvent& event) {
  const std::lock_guard lock(mutex_);
  if (stream.native == nullptr) gather();
  at(stream).record(event);
}

void CallersStreams::wait(DeviceStream stream, HostEvent& event) {
  const std::lock_guard lock(mutex_);
  at(stream).wait(event);
  if (stream.native == nullptr) scatter();
}

void CallersStreams::enqueue(DeviceStream stream, HostStream::Work work) {
  const std::lock_guard lock(mutex_);
  if (stream.native == nullptr) gather();
  at(stream).enqueue(std::move(work));
  if (stream.native == nullptr) scatter();
}

void CallersStreams::finish(DeviceStream stream) {
  HostEvent event(std::make_shared<Health>(nullptr));
  record(stream, event);
  event.wait();
}

}  // namespace haloscope::device::host
