#include "haloscope/rank/measure/temporaries.hpp"

#include <algorithm>
#include <cstring>

#include "haloscope/core/clock.hpp"

namespace haloscope {

FreedTemporaries::FreedTemporaries(const std::vector<std::optional<StageGroup>>& lives, Storage& storage, int threads)
    : storage_(storage), threads_(threads) {
  int stages = 0;
  for (int q = 0; q < static_cast<int>(lives.size()); ++q) {
    const auto& life = lives[q];
    if (!life) continue;
    fields_.push_back({q, *life});
    stages = std::max(stages, life->end);
    storage_.drop_canaries_within(q);
  }
  spent_.resize(static_cast<std::size_t>(stages));
}

void FreedTemporaries::free_all() {
  for (const Field& field : fields_) free_pages(storage_.bytes(field.quantity, 0));
}

/// Writes zeros with the threads that first wrote the pages.
void FreedTemporaries::zero(std::span<std::byte> bytes) const {
  const std::size_t pages = (bytes.size() + small_page - 1) / small_page;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t page = 0; page < pages; ++page) {
    const std::size_t from = page * small_page;
    std::memset(bytes.data() + from, 0, std::min(small_page, bytes.size() - from));
  }
}

void FreedTemporaries::allocate_for(const StageGroup& group) {
  const double begin = now_s();
  int zeroed = 0;
  for (const Field& field : fields_)
    if (field.life.first == group.first) ++zeroed, zero(storage_.bytes(field.quantity, 0));
  if (zeroed == 0) return;
  Spent& spent = spent_[group.first];
  spent.allocating_s += now_s() - begin;
  if (spent.allocated++ == 0)
    most_resident_ = std::max(most_resident_, resident_bytes(storage_.all()));  // equal in every step
}

void FreedTemporaries::free_after(const StageGroup& group) {
  const double begin = now_s();
  int freed = 0;
  for (const Field& field : fields_)
    if (field.life.end == group.end) ++freed, free_pages(storage_.bytes(field.quantity, 0));
  if (freed == 0) return;
  Spent& spent = spent_[group.first];
  spent.freeing_s += now_s() - begin;
  ++spent.freed;
}

void FreedTemporaries::reset_timers() {
  for (Spent& spent : spent_) spent.allocating_s = spent.freeing_s = 0;
}

void FreedTemporaries::reset_counts() {
  for (Spent& spent : spent_) spent.allocated = spent.freed = 0;
  most_resident_ = 0;
}

}  // namespace haloscope
