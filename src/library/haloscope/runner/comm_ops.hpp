// The communication operations of one program, bound to a link and to memory: everything prepared per slot.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/pack/block_copy.hpp"
#include "haloscope/program.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

class CommOps {
 public:
  /// Local; compiles the program's copies for every slot. `program` and `link` must outlive this object.
  /// `comm` is used by barrier operations, and in reports; MPI_COMM_NULL for programs of one rank.
  /// @param name  names of the fields, for reports of long waits.
  CommOps(const Program& program, const Views& views, Link& link, MPI_Comm comm, bool yield = false,
          std::string name = "");

  /// Runs one operation of the comm lane, and waits until it is done.
  /// @param threads  the team that may share copying, packing and unpacking, 1 or more; small operations stay with the
  ///                 caller (White & Dongarra 2011, IV-B: all threads fill and empty the buffers).
  void run(const Op& op, int slot, int threads = 1);
  /// Runs it only if it need not wait; false: try again later. Lets the transport progress.
  bool try_run(const Op& op, int slot, int threads = 1);
  /// Follows the fields of a slot to other addresses, see Link::follow().
  void follow(int slot, SlotOffsets moved);
  /// Sets the number of the exchange that begins now, for reports of long waits.
  void begin(std::int64_t number) { number_ = number; }
  /// Returns a rank whose message the operation waits for, or -1.
  int awaited(const Op& op, int slot) const;
  MPI_Comm comm() const { return comm_; }

 private:
  class Waiting;
  Ids ids(const Op& op) const { return program_.sets[op.target]; }
  void copy(const CopyList& list, int threads) const;
  template <class Move>
  void move(const Op& op, int slot, int threads, Move part) const;
  /// Returns true if the operation may wait inside a call of MPI.
  bool blocks(const Op& op) const {
    return blocks_ == Blocks::always || op.kind == OpKind::barrier ||
           (blocks_ == Blocks::send && op.kind == OpKind::send);
  }
  template <class Wait>
  void watch(const Op& op, int slot, Wait wait) const;

  const Program& program_;
  Link& link_;
  MPI_Comm comm_;
  Blocks blocks_;
  bool yield_;
  std::string name_;
  std::int64_t number_ = 0;                    // of the latest exchange, from 1; 0: exchanges are not numbered
  std::vector<std::vector<CopyList>> copies_;  // [copy set][slot]
};

}  // namespace haloscope
