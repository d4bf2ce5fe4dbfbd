#include "haloscope/model/device_unit_costs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/transport_traits.hpp"

namespace haloscope::model {

namespace {

constexpr double part_line = 128;       // bytes: parts of a message are multiples of it
constexpr double most_conflict = 0.98;  // a sweep that stands still while the other stream works would never end

[[noreturn]] void lacks(const Profile& profile, const DeviceCost& cost, const char* part, const std::string& kernel) {
  throw UnavailableError("profile '" + profile.name + "' has no cost of " + part + "kernel '" + kernel + "' on " +
                         cost.name + "; calibrate with --device " + cost.backend);
}

double start_of(const Table& table, double sharing) { return nearest(table, sharing).front().fixed; }

}  // namespace

double touched_bytes(double bytes, double run_bytes) {
  return bytes > 0 ? bytes / run_bytes * sector_bytes * std::ceil(run_bytes / sector_bytes) : 0.0;
}

double Moved::bytes() const { return std::accumulate(sizes.begin(), sizes.end(), 0.0); }

DeviceUnitCosts::DeviceUnitCosts(const Profile& profile, const Candidate& candidate,
                                 const std::vector<std::string>& kernels, Range& range)
    : profile_(&profile), cost_(&profile.device_cost()), range_(&range) {
  const Choice& choice = candidate.choice;
  const Strategy& strategy = choice.strategy;
  if (cost_->backend != choice.device)
    throw UnavailableError("profile '" + profile.name + "' is of a device of back end '" + cost_->backend + "' (" +
                           cost_->name + "), not '" + choice.device + "'; calibrate with --device " + choice.device);
  if (strategy.transport == "aware")
    throw UnavailableError("profile '" + profile.name +
                           "' has no cost of messages that MPI takes from device memory; use staged or ipc");
  element_bytes = choice.real == Real::f64 ? 8 : 4;
  writes_there = strategy.transport == "ipc";
  for (const std::string& kernel : kernels) known_kernel(kernel);
  if (choice.substeps == Substeps::blocked && choice.depth > 1) {
    const auto found = cost_->fused.find(kernels.front());
    if (found == cost_->fused.end()) lacks(profile, *cost_, "several fused steps of ", kernels.front());
    fused_ = &found->second;
  }
  pageable_ = has(strategy.transport_options, "pageable");
  conflict = std::min(cost_->conflict.value, most_conflict);
  hand_s = cost_->operation_s;
  notice_s = cost_->notice_s;
  capture = choice.capture;
  in_parts = strategy.transport == "taskqueue";
  by_words = has(strategy.transport_options, "stream");
  if (!in_parts && !by_words) return;
  if (!cost_->signal_s)
    throw UnavailableError("profile '" + profile.name +
                           "' has no cost of signals between a device and the host; calibrate it again, or use staged");
  signal_s_ = notice_s = *cost_->signal_s;  // the host reads words of the device, not events
  copied_ = has(strategy.transport_options, "device");
  most_parts_ = number_of(strategy.transport_options, "chunks", 1);
}

const Table& DeviceUnitCosts::known_kernel(const std::string& kernel) const {
  const auto found = cost_->kernels.find(kernel);
  if (found == cost_->kernels.end()) lacks(*profile_, *cost_, "", kernel);
  return found->second;
}

double DeviceUnitCosts::at(const Table& table, double sharing, double amount, const char* label) const {
  range_->check("ranks of a device", sharing, table.begin()->first, table.rbegin()->first + 1);
  const Segments& law = nearest(table, sharing);
  range_->check(label, amount, law.front().start, law.back().end);
  return std::max(0.0, evaluate_at(table, sharing, amount));
}

double DeviceUnitCosts::sweep(const std::string& kernel, const Box& region, int levels, double sharing) const {
  if (region.empty()) return 0;
  const Table* table = &known_kernel(kernel);
  if (levels > 1 && fused_) {
    range_->check("fused sweeps on a device", levels, fused_->begin()->first, fused_->rbegin()->first + 1);
    table =
        &nearest_by(*fused_, [&](int known) { return std::abs(std::log(static_cast<double>(known) / levels)); }).second;
  }
  const double row = static_cast<double>(region.extent(0)) * element_bytes;
  const double cells = touched_bytes(static_cast<double>(region.volume()) * element_bytes, row) / element_bytes;
  return levels * at(*table, sharing, cells, "cells of a device's sweep");
}

double DeviceUnitCosts::faces(const std::string& kernel, double cells, double moved, double sharing) const {
  const double swept = at(known_kernel(kernel), sharing, cells, "cells of a device's sweep");
  const double packed = at(cost_->pack, sharing, moved, "bytes to pack on a device");
  return swept + std::max(0.0, packed - start_of(cost_->pack, sharing));
}

double DeviceUnitCosts::pack(double bytes, double run_bytes, double sharing) const {
  if (bytes == 0) return 0;
  return at(cost_->pack, sharing, bytes + touched_bytes(bytes, run_bytes), "bytes to pack on a device");
}

double DeviceUnitCosts::copy(bool to_device, double bytes, double sharing) const {
  const char* label = to_device ? "bytes to copy (h2d)" : "bytes to copy (d2h)";
  if (bytes <= 0) return 0;
  const double copied = at(cost_->copies[to_device][pageable_], sharing, bytes, label);
  return by_words && to_device ? std::max(0.0, signal_s_ + copied - hand_s) : copied;
}

// ---- in parts ----

int DeviceUnitCosts::parts(double bytes) const {
  return static_cast<int>(std::min<double>(most_parts_, std::max(1.0, std::ceil(bytes / part_line))));
}

double DeviceUnitCosts::pack_parts(const Moved& moved, double sharing) const {
  const double bytes = moved.bytes();
  const auto [launch, packed] = packing(bytes, moved.run_bytes, sharing);
  if (!copied_) return launch + std::max(packed, travel(false, bytes, sharing));
  double copies = 0;
  int count = 0;
  for (const double size : moved.sizes) {
    copies += parts(size) * copy(false, size / parts(size), sharing);
    count += parts(size);
  }
  return launch + (packed + copies + (count - 1) * std::max(packed, copies)) / std::max(1, count);
}

double DeviceUnitCosts::unpack_parts(const Moved& moved, double sharing) const {
  if (moved.sizes.empty()) return 0;
  int count = 0;
  for (const double size : moved.sizes) count = std::max(count, parts(size));
  const double bytes = moved.bytes();
  const double packed = packing(bytes, moved.run_bytes, sharing).second;
  const double last = std::max(packed, travel(true, bytes, sharing)) / count;
  return std::max(0.0, signal_s_ + last - hand_s);
}

double DeviceUnitCosts::flight_of_parts(double seconds, double bytes, double run_bytes, double sharing) const {
  const double packed = std::max(packing(bytes, run_bytes, sharing).second, travel(false, bytes, sharing));
  return seconds - std::min(seconds, packed) * (1 - 1.0 / parts(bytes));
}

/// Seconds of packing: of the launch, and of the bytes.
std::pair<double, double> DeviceUnitCosts::packing(double bytes, double run_bytes, double sharing) const {
  const double whole = pack(bytes, run_bytes, sharing);
  const double launch = std::min(whole, std::max(0.0, start_of(cost_->pack, sharing)));
  return {launch, whole - launch};
}

/// Seconds of bytes on the way between device and host, without the start of a copy.
double DeviceUnitCosts::travel(bool to_device, double bytes, double sharing) const {
  const double start = std::max(0.0, start_of(cost_->copies[to_device][pageable_], sharing));
  return std::max(0.0, copy(to_device, bytes, sharing) - start);
}

}  // namespace haloscope::model
