#include "vanecek2020/app/log.hpp"

#include <algorithm>

namespace haloscope {

void BlocksLog::begin_iteration(bool counts) {
  if (!on()) return;
  events_.clear();
  counts_ = counts;
  if (counts) ++iterations_;
}

void BlocksLog::segment(const std::string& name) {
  if (!on()) return;
  const double now = now_s();
  if (!segment_.empty()) {
    if (counts_) segments_[segment_] += now - since_;
    event(segment_, -1, 0, since_, now);
  }
  segment_ = name;
  since_ = now;
}

void BlocksLog::event(const std::string& kind, int block, int chunk, double begin_s, double end_s) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  events_.push_back({kind, block, chunk, begin_s, end_s});
  if (counts_ && kind == "send" && block >= 0) sums_[static_cast<std::size_t>(block)].sending_s += end_s - begin_s;
}

void BlocksLog::device_times(int block, double packing_s, double posting_s, double unpacking_s) {
  if (!counts_) return;
  BlockMeans& sum = sums_[static_cast<std::size_t>(block)];
  sum.packing_s += packing_s, sum.posting_s += posting_s, sum.unpacking_s += unpacking_s;
}

std::vector<BlockMeans> BlocksLog::means() const {
  std::vector<BlockMeans> means = sums_;
  const auto n = static_cast<double>(std::max<std::int64_t>(iterations_, 1));
  for (BlockMeans& m : means) m.packing_s /= n, m.posting_s /= n, m.sending_s /= n, m.unpacking_s /= n;
  return means;
}

std::map<std::string, double> BlocksLog::segments_s() const {
  std::map<std::string, double> means = segments_;
  for (auto& [name, seconds] : means) seconds /= static_cast<double>(std::max<std::int64_t>(iterations_, 1));
  return means;
}

void HitProfile::add(const HitProfile& other) {
  hits_ += other.hits_;
  after_a_hit_ += other.after_a_hit_;
  longest_ = std::max(longest_, other.longest_);
}

}  // namespace haloscope
