// An exchange of one slot without the surroundings of a library call or a run, to be timed.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/layout.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport/link_tags.hpp"

namespace haloscope {

/// Its fields, in memory that the strategy needs, and the link and operations that fill their halos.
struct BareExchange {
  /// Collective over `comm`, within collectively().
  /// @param yield  true if waits yield the core to others.
  /// @param nodes  of the ranks, emulated; empty: as MPI reports.
  BareExchange(MPI_Comm comm, const Strategy& strategy, const Layout& blocks, const ExchangeSpec& spec, bool yield,
               const std::vector<int>& nodes = {})
      : node(comm, nodes),
        layout(blocks),
        plan(make_plan(layout, rank_in(comm), spec)),
        storage(plan, 1, {}, needs_shared_fields(strategy) ? shared_by(node) : Allocator{}),
        own(LibraryComm::on(comm)),
        tags(*own, plan, 1),
        program(exchange_program(plan, false, collective_rounds(strategy))),
        link(open_link(strategy, {.comm = own->comm(),
                                  .layout = &layout,
                                  .plan = &plan,
                                  .views = &storage.views(),
                                  .yield = yield,
                                  .nodes = nodes,
                                  .tags = tags.tags()})),
        ops(program, storage.views(), *link, comm, yield) {}
  BareExchange(const BareExchange&) = delete;
  BareExchange& operator=(const BareExchange&) = delete;

  void run() {
    for (const Op& op : program.ops) ops.run(op, 0);
  }

  Node node;
  Layout layout;
  Plan plan;
  Storage storage;
  std::shared_ptr<LibraryComm> own;
  LinkTags tags;
  Program program;
  std::unique_ptr<Link> link;
  CommOps ops;
};

}  // namespace haloscope
