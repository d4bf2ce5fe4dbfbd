"""Layouts, plans and programs, computed by the C++ core through its C interface. No MPI.

Functions carry the names of their C++ counterparts and return the values of `haloscope.core.values`.
They raise `haloscope.errors.UsageProblem` and `NotAvailable`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from haloscope.core import capi, convert
from haloscope.core.apps import Step, own_refusal
from haloscope.core.choice import Choice, handle_of
from haloscope.core.convert import padded
from haloscope.core.values import (
    Box,
    ExchangeSpec,
    Plan,
    Program,
    ScheduleOptions,
    Totals,
    Traffic,
)
from haloscope.errors import UsageProblem

if TYPE_CHECKING:  # importing NumPy takes long
    import numpy as np

PLAIN = ScheduleOptions()


class Layout:
    """A grid split over a process grid: `cells` and `periodic` per dimension, `ranks` per dimension, `size` in all.

    Layouts that say the same of every rank are equal.

    Raises UsageProblem for cells or ranks < 1, more ranks than cells in a dimension, not 1 to 3 dimensions.
    """

    def __init__(self, cells: Sequence[int], ranks: Sequence[int], periodic: Sequence[bool] = ()):
        """Split `cells` over `ranks` per dimension; periodic: one flag per dimension, () = all."""
        arguments = (len(cells), padded(cells), padded(periodic or [True] * len(cells), 0), padded(ranks))
        self._take(capi.handle("hs_layout_create", "hs_layout", *arguments))

    def _take(self, handle: capi.CData) -> Layout:
        data = capi.filled("hs_layout_get", "hs_layout_data", handle)
        self._handle, self.dims, self.size = handle, data.dims, data.size
        self.cells = tuple(data.cells)[: data.dims]
        self.ranks = tuple(data.ranks)[: data.dims]
        self.periodic = tuple(map(bool, data.periodic))[: data.dims]
        self._order = b""  # of ranks that are not numbered x fastest
        return self

    def _says(self) -> tuple:
        return self.cells, self.ranks, self.periodic, self._order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._says() == other._says()

    def __hash__(self) -> int:
        return hash(self._says())

    def places(self) -> np.ndarray:
        """Return the place of each rank in the process grid as a NumPy array; places are numbered x fastest."""
        places, pointer = _int32(self.size)
        capi.call("hs_layout_places", self._handle, pointer)
        return places

    def coords(self, rank: int) -> tuple[int, int, int]:
        """Return the rank's place in the process grid."""
        coords = capi.load()[0].new("int32_t[3]")
        capi.call("hs_layout_coords", self._handle, rank, coords)
        return tuple(coords)

    def owned(self, rank: int) -> Box:
        """Return the cells that a rank owns, in global coordinates."""
        return convert.box(capi.filled("hs_layout_owned", "hs_box", self._handle, rank))

    def neighbour(self, rank: int, offset: Sequence[int]) -> int:
        """Return the rank at `offset` (-1, 0, 1 per dimension); -1 beyond an edge; may be `rank` itself."""
        return int(capi.filled("hs_layout_neighbour", "int32_t", self._handle, rank, padded(offset, 0))[0])

    def owner(self, cell: Sequence[int]) -> int:
        """Return the rank that owns a global cell."""
        return int(capi.filled("hs_layout_owner", "int32_t", self._handle, padded(cell, 0))[0])


# ---- functions -------------------------------------------------------------------------------------------------------


def illegal(choice: Choice) -> str:
    """Return why a choice cannot run and what to do about it; "" when it can. Local and cheap."""
    return illegal_in_library(choice) or own_refusal(choice)


def illegal_in_library(choice: Choice) -> str:
    """Return the same but for the reasons of an app of another program, which that program must be asked for."""
    try:
        return capi.result_text("hs_illegal", handle_of(choice))
    except UsageProblem as problem:  # a name or value that no choice can have
        return str(problem)


def process_grid(rule: str, ranks: int, cells: Sequence[int]) -> tuple[int, ...]:
    """Return ranks per dimension by a rule (cubic, square, prime-factors, slabs) or explicit ("2x3x1")."""
    grid = capi.load()[0].new("int32_t[3]")
    capi.call("hs_process_grid", rule.encode(), ranks, len(cells), padded(cells), grid)
    return tuple(grid)[: len(cells)]


def make_layout(choice: Choice, nodes: np.ndarray | None = None, sockets: np.ndarray | None = None) -> Layout:
    """Return the layout of a choice.

    nodes, sockets: of each rank, by which a choice with `reorder` puts its ranks; None: its emulated nodes, if it has
    any.
    """
    if choice.reorder == "none":
        return Layout.__new__(Layout)._take(capi.handle("hs_layout_create_of", "hs_layout", handle_of(choice)))
    splits = Choice(**{name: getattr(choice, name) for name in SPLIT_BY})
    sites = () if nodes is None or sockets is None else (nodes.astype("i4").tobytes(), sockets.astype("i4").tobytes())
    return _reordered(splits, *sites)


SPLIT_BY = (
    "app",
    "cells",
    "ranks",
    "process_grid",
    "periodic",
    "nodes",
    "placement",
    "reorder",
)  # what a layout depends on


@functools.lru_cache(maxsize=4)
def _reordered(choice: Choice, *sites: bytes) -> Layout:
    """Return the layout of a choice that reorders its ranks; choices that differ in other ways share it."""
    ffi, _ = capi.load()
    given = [ffi.from_buffer("int32_t[]", numbers) for numbers in sites]
    function = "hs_layout_create_on" if given else "hs_layout_create_of"
    layout = Layout.__new__(Layout)._take(capi.handle(function, "hs_layout", handle_of(choice), *given))
    places = layout.places()
    if (places[1:] < places[:-1]).any():
        layout._order = places.tobytes()
    return layout


def exchange_spec(choice: Choice, stage: int = 0) -> ExchangeSpec:
    """Return the exchange of a choice in a stage of its step, as wide as the steps between exchanges need.

    Raises UsageProblem if the choice is not legal.
    """
    return convert.spec(capi.filled("hs_spec_of", "hs_spec", handle_of(choice), stage))


def make_plan(layout: Layout, rank: int, spec: ExchangeSpec) -> Plan:
    """Return the plan of one rank. Raises UsageProblem when a halo is wider than the smallest block it is filled from.

    Local; cost O(messages), independent of cells and ranks.
    """
    return convert.plan(capi.handle("hs_plan_create", "hs_plan", layout._handle, rank, convert.spec_to_c(spec)), spec)


def plan_classes(layout: Layout) -> np.ndarray:
    """Return the class of each rank: ranks of one have the same plans but for rank numbers.

    Classes count from 0 in the order of their first ranks. Cost O(ranks).
    """
    classes, pointer = _int32(layout.size)
    capi.filled("hs_layout_classes", "int32_t", layout._handle, pointer)
    return classes


def peers(layout: Layout, plan: Plan, ranks: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the peers of ranks of the plan's class, as an array: ranks x messages of the plan, in its order."""
    given, pointer = _int32(len(ranks))
    given[:] = ranks
    found, out = _int32(len(ranks) * len(plan.messages))
    capi.call("hs_plan_peers", layout._handle, plan._handle, len(ranks), pointer, out)
    return found.reshape(len(ranks), len(plan.messages))


def bytes_between(layout: Layout, spec: ExchangeSpec, groups: np.ndarray) -> int:
    """Return the bytes that one exchange of all ranks sends from group to group, as from node to node.

    groups: the group of each rank. Cost O(ranks x messages).
    """
    given, pointer = _int32(layout.size)
    given[:] = groups
    arguments = (layout._handle, convert.spec_to_c(spec), pointer)
    return int(capi.filled("hs_plan_between", "int64_t", *arguments)[0])


def choice_nodes(choice: Choice) -> np.ndarray:
    """Return, as a NumPy array, the node of each rank for a choice with `nodes`; all 0 without it."""
    nodes, pointer = _int32(choice.ranks)
    capi.call("hs_choice_nodes", handle_of(choice), pointer)
    return nodes


def _int32(count: int) -> tuple[np.ndarray, capi.CData]:
    """Return a NumPy array of `count` 0s, and a C pointer to it."""
    import numpy as np

    array = np.zeros(count, np.int32)
    return array, capi.load()[0].from_buffer("int32_t[]", array)


def message_traffic(plan: Plan, message: int) -> Traffic:
    """Return how the bytes of one of a plan's messages lie in memory."""
    return convert.traffic(capi.filled("hs_plan_traffic", "hs_traffic", plan._handle, message))


def copy_traffic(program: Program, plan: Plan, copy_set: int) -> Traffic:
    """Return how the bytes of one of a program's copy sets lie in memory; plan: the one it was made from."""
    return convert.traffic(capi.filled("hs_program_traffic", "hs_traffic", program._handle, plan._handle, copy_set))


def plan_totals(layout: Layout, spec: ExchangeSpec) -> Totals:
    """Return the sums over the plans of all ranks. Cost O(ranks x messages): 2048 ranks take milliseconds."""
    return convert.totals(capi.filled("hs_plan_totals", "hs_totals", layout._handle, convert.spec_to_c(spec)))


def schedule_options(choice: Choice, stage: int = 0) -> ScheduleOptions:
    """Return the schedule options of a choice for a stage of its step; steps = depth."""
    return convert.options(capi.filled("hs_schedule_options_of", "hs_schedule_options", handle_of(choice), stage))


def make_program(schedule: str, step: Step, plan: Plan, options: ScheduleOptions = PLAIN, stage: int = 0) -> Program:
    """Return the program that a schedule makes for one plan of a stage. Raises UsageProblem for an unknown schedule."""
    arguments = (schedule.encode(), step._handle, stage, plan._handle, convert.options_to_c(options))
    return convert.program(capi.handle("hs_program_create", "hs_program", *arguments))


def exchange_program(plan: Plan, barrier: bool = False) -> Program:
    """Return the program of the exchange alone, without sweeps."""
    return convert.program(capi.handle("hs_program_create_exchange", "hs_program", plan._handle, barrier))


def check_programs(layout: Layout, step: Step, plans: Sequence, programs: Sequence) -> str:
    """Prove that the programs of all ranks never read what is not yet there; return "" or what is wrong.

    plans, programs: in rank order; of a step of several stages, such a list for each. Small grids only: cost
    O(ranks x (operations^2 + points x steps)).
    """
    ffi, _ = capi.load()
    if len(step.stages) > 1:
        plans, programs = list(itertools.chain(*plans)), list(itertools.chain(*programs))
    wanted = layout.size * len(step.stages)
    if len(plans) != wanted or len(programs) != wanted:
        raise UsageProblem(
            f"{len(programs)} programs and {len(plans)} plans for {layout.size} ranks; give one per rank"
        )
    handles = [convert.program_to_c(program) for program in programs]
    arguments = (ffi.new("hs_plan*[]", [p._handle for p in plans]), ffi.new("hs_program*[]", handles))
    return capi.result_text("hs_check", layout._handle, step._handle, len(step.stages), *arguments)
