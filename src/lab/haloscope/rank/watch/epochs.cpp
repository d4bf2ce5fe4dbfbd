#include "haloscope/rank/watch/epochs.hpp"

#include <algorithm>

namespace haloscope {

namespace {

int target_of(const EpochCall& call, EpochKind kind) { return kind == EpochKind::lock ? call.target : -1; }

}  // namespace

const char* to_string(EpochKind kind) {
  static const char* const names[] = {"fence", "access", "exposure", "lock", "lock-all"};
  return names[static_cast<int>(kind)];
}

void EpochLog::start(double now_s) {
  open_.clear();
  started_s_ = now_s;
}

void EpochLog::stop(double now_s, std::int64_t step) {
  for (const auto& [key, epoch] : open_)
    if (std::get<EpochKind>(key) == EpochKind::lock_all) close(EpochKind::lock_all, epoch, now_s, step);
  open_.clear();
}

void EpochLog::note(const EpochCall& call, const CallTime& time) {
  if (!call.closes && !call.opens) {
    if (Open* const epoch = find(call)) add(*epoch, time);
    return;
  }
  const Key key{call.window, call.kind, target_of(call, call.kind)};
  if (const auto found = open_.find(key); call.closes && found != open_.end()) {
    add(found->second, time);
    close(call.kind, found->second, time.end_s, time.step);
    open_.erase(found);
  } else if (call.opens) {
    add(open_[key] = {.begin_s = time.begin_s}, time);
    return;
  }
  if (call.opens) open_[key] = {.begin_s = time.end_s};  // a fence between two epochs waits for the end of the first
}

/// Returns the epoch that a call is made within; null for an exposure that start() did not see.
EpochLog::Open* EpochLog::find(const EpochCall& call) {
  for (EpochKind kind : {call.kind, EpochKind::lock, EpochKind::access, EpochKind::fence})
    if (const auto found = open_.find({call.window, kind, target_of(call, kind)}); found != open_.end())
      return &found->second;
  if (call.kind != EpochKind::lock_all) return nullptr;
  return &(open_[{call.window, call.kind, -1}] = {.begin_s = started_s_});
}

void EpochLog::add(Open& epoch, const CallTime& time) {
  if (time.waits) epoch.blocked_s += time.end_s - time.begin_s;
  if (!time.polls) return;
  const CallTime& last = epoch.polled;
  const bool goes_on = last.polls && last.during == time.during && last.step == time.step;
  epoch.blocked_s += time.end_s - (goes_on ? last.end_s : time.begin_s);
  epoch.polled = time;
}

void EpochLog::close(EpochKind kind, const Open& epoch, double end_s, std::int64_t step) {
  EpochSum& sum = sums_[kind];
  sum.kind = kind;
  ++sum.epochs;
  sum.open_s += end_s - epoch.begin_s;
  sum.longest_s = std::max(sum.longest_s, end_s - epoch.begin_s);
  sum.blocked_s += epoch.blocked_s;
  if (spans_.size() < spans_.capacity()) spans_.push_back({kind, step, epoch.begin_s, end_s, epoch.blocked_s});
}

std::vector<EpochSum> EpochLog::sums() const {
  std::vector<EpochSum> found;
  for (const auto& [kind, sum] : sums_) found.push_back(sum);
  return found;
}

}  // namespace haloscope
