// Fields that live within a step, with memory only while they are used.
#pragma once

#include <span>
#include <vector>

#include "haloscope/field/field.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

class FreedTemporaries {
 public:
  /// @param lives  result of lifetimes_of(). @param storage private memory; must outlive this. @param threads number
  /// of threads that zero fields, as in the first write.
  FreedTemporaries(const std::vector<std::optional<StageGroup>>& lives, Storage& storage, int threads);

  /// Frees all of them, as before a step.
  void free_all();
  /// Zeroes the fields that the stages of a group are the first to use.
  void allocate_for(const StageGroup& group);
  /// Frees the fields that no stage after a group uses.
  void free_after(const StageGroup& group);

  /// The cost of temporaries, by the stage that opens a group.
  struct Spent {
    double allocating_s = 0, freeing_s = 0;  ///< since reset_timers()
    std::int64_t allocated = 0, freed = 0;   ///< counts since reset_counts()
  };
  const std::vector<Spent>& spent() const { return spent_; }
  void reset_timers();
  void reset_counts();
  /// Returns the maximum of resident bytes of the storage since reset_counts().
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
