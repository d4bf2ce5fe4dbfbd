// Fields that live within a step, with memory only while they are used.
#pragma once

#include <span>
#include <vector>

#include "haloscope/field/field.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

class FreedTemporaries {
 public:
  /// @param lives  as lifetimes_of() says. @param storage  private memory; it must
  /// outlive this. @param threads  that zero fields, as they first touched them.
  FreedTemporaries(const std::vector<std::optional<StageGroup>>& lives, Storage& storage, int threads);

  /// Give all of them back, as before a step.
  void free_all();
  /// Zero what the stages of a group use first.
  void allocate_for(const StageGroup& group);
  /// Give back what no stage after a group uses.
  void free_after(const StageGroup& group);

  /// What it has cost, by the stage that opens a group.
  struct Spent {
    double allocating_s = 0, freeing_s = 0;  ///< since reset_timers()
    std::int64_t allocated = 0, freed = 0;   ///< times since reset_counts()
  };
  const std::vector<Spent>& spent() const { return spent_; }
  void reset_timers();
  void reset_counts();
  /// The most bytes of the storage that were in memory since reset_counts().
  std::int64_t most_resident() const { return most_resident_; }

 private:
  struct Field {
    int quantity;
    StageGroup life;
  };
  void zero(std::span<std::byte> bytes) const;

  Storage& storage_;
  int threads_;
  std::vector<Field> fields_;
  std::vector<Spent> spent_;
  std::int64_t most_resident_ = 0;
};

}  // namespace haloscope
