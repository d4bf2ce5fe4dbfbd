// A check that neighbours make the same exchanges in the same order: in a guarded exchange each sends the other a note.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/extend/plan.hpp"

namespace haloscope {

class Sequence {
 public:
  /// Local. @param comm for the notes alone; outlives this. @param plan its messages name the neighbours.
  /// @param name  names of the fields, for errors. @param slots number of slots. The whole exchange is movement 0.
  Sequence(MPI_Comm comm, const Plan& plan, std::string name, int slots);
  /// Does not wait: notes in flight stay in memory.
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Adds the next movement. @param name  verb and fields of the rank that starts it, for errors: "accumulates".
  void add(std::string name) { movements_.push_back(std::move(name)); }
  /// Notes that owned points of a slot have changed.
  void changed(int slot) { changed_[slot] = true; }
  /// Begins a movement: sends a note to each neighbour. Local; cost: one message of 12 bytes each.
  /// @throws UsageError where an earlier one differed, as do the calls below.
  void start(int slot, int movement);
  /// Compares the notes, once all have arrived. @return true if they have. Never waits. @throws UsageError as
  /// check().
  bool progress();
  /// Waits for the notes of the neighbours and compares them.
  /// @throws UsageError where a neighbour exchanges another slot or another part of the fields, or accumulates where
  ///         this rank exchanges, or where only one of the two has changed the slot since its last exchange: one of
  ///         them has made an exchange that the other has not.
  void check();
  /// Returns true if a difference was found. Messages of the exchange may then never be answered.
  bool differs() const { return !difference_.empty(); }
  /// Checks for a difference. @throws UsageError that names it, where one was found.
  void require_same() const;

 private:
  struct Note {
    std::int32_t slot = 0, movement = 0, changed = 0;
  };
  /// Memory that MPI reads and writes.
  struct Notes {
    Note mine;
    std::vector<Note> theirs;  // by peer
    std::vector<MPI_Request> requests;
  };
  class Waiting;
  void compare();
  std::string difference(const Note& theirs, int peer) const;

  MPI_Comm comm_;
  int rank_;
  std::string name_;
  std::vector<std::string> movements_{"exchanges all fields"};
  std::vector<int> peers_;
  std::vector<bool> changed_;  // by slot, since its last exchange
  std::unique_ptr<Notes> notes_;
  std::int64_t number_ = 0;  // of the latest exchange, from 1
  bool under_way_ = false;   // notes have been sent and not yet compared
  std::string difference_;   // the first one; empty: none
};

}  // namespace haloscope
