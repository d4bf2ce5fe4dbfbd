#include "haloscope/runner/device_lane.hpp"

#include <algorithm>

namespace haloscope {

DeviceLane::DeviceLane(device::Device& device, const Program& program, const Plan& plan, const Views& views)
    : program_(program), plan_(plan), views_(views), streams_(device), enqueued_(device.event(false)) {}

void DeviceLane::bind(DeviceLink& link) {
  ops_ = std::make_unique<DeviceOps>(program_, plan_, views_, views_, &link, streams_, DeviceSweeps(), false);
}

void DeviceLane::begin(DeviceStream after) {
  streams_.device.record(after, *enqueued_);
  streams_.streams[stream_of(Lane::halo_stream)]->wait(*enqueued_);
  ops_->begin(++exchanges_, 0);
  last_ = -1;
}

void DeviceLane::enqueue(int op, int slot) {
  ops_->enqueue(op, slot, slot);
  last_ = op;
}

template <class F>
void DeviceLane::each_needed(const Op& op, F f) const {
  for (const std::int32_t before : op.after) {
    const Op& earlier = program_.ops[before];
    if (on_device(earlier.lane) && !program_.starts_within(op, earlier)) f(before);
  }
}

bool DeviceLane::ready(const Op& op) {
  bool all = true;
  each_needed(op, [&](int before) { all = all && ops_->reached(before); });
  return all;
}

void DeviceLane::await(const Op& op) {
  each_needed(op, [&](int before) { ops_->await(before); });
}

bool DeviceLane::may_enqueue(const Op& op, std::size_t next) const {
  return std::all_of(op.after.begin(), op.after.end(), [&](std::int32_t before) {
    const Op& earlier = program_.ops[before];
    return on_device(earlier.lane) || static_cast<std::size_t>(before) < next || ops_->stream_awaits(op, earlier);
  });
}

void DeviceLane::finish() { end().wait(); }

void DeviceLane::finish(DeviceStream before) { streams_.device.wait(before, end()); }

}  // namespace haloscope
