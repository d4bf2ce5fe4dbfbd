// The values that cross the bridge, with the list of their members that do.
#pragma once

#include "bindings/python/members.hpp"
#include "haloscope/extend/program.hpp"
#include "haloscope/model/costed_candidate.hpp"

namespace haloscope {
HALOSCOPE_WORDS(Lane, "lane", "main", "comm", "sweep_stream", "halo_stream");
}

namespace haloscope::bridge {

HALOSCOPE_MEMBERS(Box, lo, hi);
HALOSCOPE_MEMBERS(GridSpec, dims, cells, periodic);
HALOSCOPE_MEMBERS(Edges, low, high);
template <>
inline constexpr bool crosses_as_list<Edges> = true;
HALOSCOPE_MEMBERS(Quantity, name, element_bytes, type, centring, slots, edges);
HALOSCOPE_MEMBERS(ExchangeSpec::Sides, low, high);
template <>
inline constexpr bool crosses_as_list<ExchangeSpec::Sides> = true;

HALOSCOPE_MEMBERS(ExchangeSpec, quantities, low, high, widths, pattern, corners, merge_peers, merge, order);
HALOSCOPE_MEMBERS(Region, quantity, box);
HALOSCOPE_MEMBERS(Message, out, peer, tag, round, bytes, regions);
HALOSCOPE_MEMBERS(Copy, quantity, round, to, shift, negate);
HALOSCOPE_MEMBERS(model::Traffic, bytes, run_bytes, in_place);
HALOSCOPE_MEMBERS(Plan, rank, dims, rounds, cells, has_neighbour, own_neighbour, messages, copies);
HALOSCOPE_MEMBERS(Op, kind, lane, slot, target, after);
HALOSCOPE_MEMBERS(Sweep, region, valid, into, step, levels, part, twin, faces, number, in_place, whole);
HALOSCOPE_MEMBERS(Ring, to_device, boxes);
HALOSCOPE_MEMBERS(Program, steps, slots, final_slot, comm_thread, sharing, device, wraps, signals, ops, sweeps, sets,
                  copy_sets, block, rings);
HALOSCOPE_MEMBERS(ScheduleOptions, depth, steps, substeps, tiles, sharing, barrier, collective_rounds, series, device,
                  staged, pack_first, walls, last, slots, flips, signals);
HALOSCOPE_MEMBERS(model::Setting, placement, active, custom, reductions, repeats);

}  // namespace haloscope::bridge
