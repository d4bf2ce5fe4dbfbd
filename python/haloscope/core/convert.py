"""Between the values of `haloscope.core.values` and the structs of `haloscope.h`."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence

from haloscope.core import capi
from haloscope.core.values import (
    Box,
    Copy,
    ExchangeSpec,
    Message,
    Op,
    Plan,
    Program,
    Quantity,
    Region,
    Ring,
    ScheduleOptions,
    Sweep,
    Totals,
    Traffic,
)
from haloscope.errors import UsageProblem

# Members of hs_schedule_options, and the prefix of those that are of an enumeration.
_OPTIONS = {f.name: "" for f in dataclasses.fields(ScheduleOptions)}
_OPTIONS |= {"substeps": "HS_SUBSTEPS_", "sharing": "HS_SHARING_", "series": "HS_SERIES_"}
_FLAGS = {f.name for f in dataclasses.fields(ScheduleOptions) if f.type == "bool"}
# C struct -> what its pointers point into
_owners: weakref.WeakKeyDictionary[capi.CData, tuple] = weakref.WeakKeyDictionary()


def padded(values: Sequence[int], fill: int = 1) -> list[int]:
    """Return three numbers: those given, then `fill` for the dimensions that the grid lacks."""
    if len(values) > 3:
        raise UsageProblem(f"a grid has 1 to 3 dimensions, not {len(values)}; write up to three numbers")
    return [int(v) for v in values] + [fill] * (3 - len(values))


# ---- to C ------------------------------------------------------------------------------------------------------------


def spec_to_c(spec: ExchangeSpec) -> capi.CData:
    """Return an hs_spec; its quantities live as long as the result."""
    ffi, lib = capi.load()
    c = ffi.new("hs_spec*")
    lib.hs_spec_init(c)
    names = [ffi.new("char[]", q.name.encode()) for q in spec.quantities]
    quantities = ffi.new(
        "hs_quantity[]",
        [
            (
                name,
                q.element_bytes,
                capi.value("HS_TYPE_", q.type),
                capi.value("HS_CENTRING_", q.centring),
                [capi.value("HS_EDGE_", edge) for edge in q.edges],
            )
            for name, q in zip(names, spec.quantities, strict=True)
        ],
    )
    c.quantities, c.quantity_count = quantities, len(spec.quantities)
    c.low, c.high, c.order = padded(spec.low, 0), padded(spec.high, 0), spec.order
    c.pattern, c.merge = capi.value("HS_PATTERN_", spec.pattern), capi.value("HS_MERGE_", spec.merge)
    c.corners, c.merge_peers = spec.corners, spec.merge_peers
    widths = ffi.new("hs_sides[]", list(spec.widths)) if spec.widths else ffi.NULL
    c.widths = widths
    _owners[c] = (names, quantities, widths)
    return c


def options_to_c(options: ScheduleOptions) -> capi.CData:
    """Return an hs_schedule_options."""
    ffi, lib = capi.load()
    c = ffi.new("hs_schedule_options*")
    lib.hs_schedule_options_init(c)
    for name, prefix in _OPTIONS.items():
        value = getattr(options, name)
        setattr(c, name, capi.value(prefix, value) if prefix else int(value))
    return c


def _starts(lists: Sequence[Sequence]) -> list[int]:
    starts = [0]
    for part in lists:
        starts.append(starts[-1] + len(part))
    return starts


def _box_to_c(box: Box) -> tuple:
    return (box.lo, box.hi)


def _copy_to_c(copy: Copy) -> tuple:
    return (_box_to_c(copy.to), copy.shift, copy.quantity, copy.round, copy.negate)


def program_to_c(program: Program) -> capi.CData:
    """Return a handle to a copy of the program in C."""
    ffi, _ = capi.load()
    afters = _starts([op.after for op in program.ops])
    arrays = {
        "ops": ffi.new(
            "hs_op[]",
            [
                (
                    capi.value("HS_OP_", op.kind),
                    capi.value("HS_LANE_", op.lane),
                    op.slot,
                    op.target,
                    first,
                    len(op.after),
                )
                for op, first in zip(program.ops, afters, strict=False)
            ],
        ),
        "after": ffi.new("int32_t[]", [a for op in program.ops for a in op.after]),
        "sweeps": ffi.new(
            "hs_sweep[]",
            [
                (
                    _box_to_c(s.region),
                    _box_to_c(s.valid),
                    s.into,
                    s.step,
                    s.levels,
                    capi.value("HS_PART_", s.part),
                    _box_to_c(s.twin),
                    _box_to_c(s.whole),
                    s.faces,
                    s.number,
                    s.in_place,
                    0,
                )
                for s in program.sweeps
            ],
        ),
        "set_starts": ffi.new("int32_t[]", _starts(program.sets)),
        "set_messages": ffi.new("int32_t[]", [m for s in program.sets for m in s]),
        "copy_set_starts": ffi.new("int32_t[]", _starts(program.copy_sets)),
        "set_copies": ffi.new("hs_copy[]", [_copy_to_c(c) for s in program.copy_sets for c in s]),
        "ring_to_device": ffi.new("int32_t[]", [ring.to_device for ring in program.rings]),
        "ring_starts": ffi.new("int32_t[]", _starts([ring.boxes for ring in program.rings])),
        "ring_boxes": ffi.new("hs_box[]", [_box_to_c(b) for ring in program.rings for b in ring.boxes]),
    }
    data = ffi.new("hs_program_data*", arrays)
    data.steps, data.slots, data.final_slot = program.steps, program.slots, program.final_slot
    data.device, data.wraps, data.signals = program.device, program.wraps, program.signals
    data.block = _box_to_c(program.block)
    data.comm_thread, data.sharing = program.comm_thread, capi.value("HS_SHARING_", program.sharing)
    data.op_count, data.after_count, data.sweep_count = len(program.ops), afters[-1], len(program.sweeps)
    data.set_count, data.copy_set_count, data.ring_count = map(len, (program.sets, program.copy_sets, program.rings))
    return capi.handle("hs_program_create_from", "hs_program", data)


# ---- from C ----------------------------------------------------------------------------------------------------------


def box(c: capi.CData) -> Box:
    """Return an hs_box as a Box."""
    return Box(tuple(c.lo), tuple(c.hi))


def copy(c: capi.CData) -> Copy:
    """Return an hs_copy as a Copy."""
    return Copy(c.quantity, c.round, box(c.to), tuple(c.shift), bool(c.negate))


def spec(c: capi.CData) -> ExchangeSpec:
    """Return an hs_spec as an ExchangeSpec."""
    types, centrings, edges = (capi.enumeration(f"HS_{kind}_") for kind in ("TYPE", "CENTRING", "EDGE"))
    quantities = tuple(
        Quantity(
            capi.text(q.name),
            q.element_bytes,
            types[q.type],
            centrings[q.centring],
            edges=tuple(edges[e] for e in q.edges),
        )
        for q in (c.quantities[i] for i in range(c.quantity_count))
    )
    pattern, merge = capi.enumeration("HS_PATTERN_")[c.pattern], capi.enumeration("HS_MERGE_")[c.merge]
    sides = (c.widths[i] for i in range(c.quantity_count if c.widths else 0))
    widths = tuple((tuple(side.low), tuple(side.high)) for side in sides)
    low, high, order = tuple(c.low), tuple(c.high), tuple(c.order)
    return ExchangeSpec(quantities, low, high, pattern, bool(c.corners), bool(c.merge_peers), merge, order, widths)


def plan(handle: capi.CData, exchange: ExchangeSpec) -> Plan:
    """Return the plan behind a handle, which the result keeps."""
    ffi, _ = capi.load()
    c = capi.filled("hs_plan_get", "hs_plan_data", handle)
    regions = [Region(r.quantity, box(r.box)) for r in (c.regions[i] for i in range(c.region_count))]
    owned, allocated = [], []
    for q in range(len(exchange.quantities)):
        boxes = ffi.new("hs_box[2]")
        capi.call("hs_plan_boxes", handle, q, boxes, boxes + 1)
        owned.append(box(boxes[0]))
        allocated.append(box(boxes[1]))
    result = Plan(
        rank=c.rank,
        dims=c.dims,
        rounds=c.rounds,
        cells=tuple(c.cells),
        has_neighbour=tuple((bool(low), bool(high)) for low, high in c.has_neighbour),
        own_neighbour=(bool(c.own_neighbour[0]), bool(c.own_neighbour[1]), bool(c.own_neighbour[2])),
        spec=exchange,
        messages=tuple(
            Message(
                bool(m.out),
                m.peer,
                m.tag,
                m.round,
                m.bytes,
                tuple(regions[m.first_region : m.first_region + m.region_count]),
            )
            for m in (c.messages[i] for i in range(c.message_count))
        ),
        copies=tuple(copy(c.copies[i]) for i in range(c.copy_count)),
        owned=tuple(owned),
        allocated=tuple(allocated),
    )
    object.__setattr__(result, "_handle", handle)  # no field: equal plans stay equal
    return result


def totals(c: capi.CData) -> Totals:
    """Return an hs_totals as Totals."""
    return Totals(**{name: getattr(c, name) for name in Totals.__dataclass_fields__})


def options(c: capi.CData) -> ScheduleOptions:
    """Return an hs_schedule_options as ScheduleOptions."""
    given = {
        name: capi.enumeration(prefix)[getattr(c, name)] if prefix else getattr(c, name)
        for name, prefix in _OPTIONS.items()
    }
    return ScheduleOptions(**given | {name: bool(given[name]) for name in _FLAGS})


def traffic(c: capi.CData) -> Traffic:
    """Return an hs_traffic as Traffic."""
    return Traffic(c.bytes, c.run_bytes, bool(c.in_place))


def program(handle: capi.CData) -> Program:
    """Return the program behind a handle."""
    c = capi.filled("hs_program_get", "hs_program_data", handle)
    kinds, lanes, parts = (capi.enumeration(prefix) for prefix in ("HS_OP_", "HS_LANE_", "HS_PART_"))
    ops = (c.ops[i] for i in range(c.op_count))
    sweeps = (c.sweeps[i] for i in range(c.sweep_count))
    result = Program(
        steps=c.steps,
        slots=c.slots,
        final_slot=c.final_slot,
        comm_thread=bool(c.comm_thread),
        sharing=capi.enumeration("HS_SHARING_")[c.sharing],
        device=bool(c.device),
        wraps=bool(c.wraps),
        signals=bool(c.signals),
        ops=tuple(
            Op(
                kinds[o.kind],
                lanes[o.lane],
                o.slot,
                o.target,
                tuple(c.after[k] for k in range(o.first_after, o.first_after + o.after_count)),
            )
            for o in ops
        ),
        sweeps=tuple(
            Sweep(
                box(s.region),
                box(s.valid),
                s.into,
                s.step,
                s.levels,
                parts[s.part],
                box(s.twin),
                bool(s.faces),
                s.number,
                bool(s.in_place),
                box(s.whole),
            )
            for s in sweeps
        ),
        sets=tuple(
            tuple(c.set_messages[k] for k in range(c.set_starts[i], c.set_starts[i + 1])) for i in range(c.set_count)
        ),
        copy_sets=tuple(
            tuple(copy(c.set_copies[k]) for k in range(c.copy_set_starts[i], c.copy_set_starts[i + 1]))
            for i in range(c.copy_set_count)
        ),
        block=box(c.block),
        rings=tuple(
            Ring(bool(c.ring_to_device[i]), tuple(box(c.ring_boxes[k]) for k in range(*c.ring_starts[i : i + 2])))
            for i in range(c.ring_count)
        ),
    )
    object.__setattr__(result, "_handle", handle)  # no field: equal programs stay equal
    return result
