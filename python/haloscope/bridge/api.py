"""Layouts, plans and programs, computed by the C++ core. No MPI.

Functions carry the names of their C++ counterparts and return the values of `haloscope.bridge.values`.
They raise `haloscope.errors.UsageError` and `UnavailableError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from haloscope.bridge import capi
from haloscope.bridge.apps import Step, own_refusal
from haloscope.bridge.choice import Choice, point_of, text_of
from haloscope.bridge.json_values import decoded, encoded
from haloscope.bridge.layout import Layout, padded
from haloscope.bridge.values import ExchangeSpec, Plan, Program, ScheduleOptions, Totals

if TYPE_CHECKING:  # importing NumPy takes long
    import numpy as np

PLAIN = ScheduleOptions()


def illegal(choice: Choice) -> str:
    """Return the reason why a choice cannot run, and the remedy; "" when it can. Local and cheap."""
    reason: str = point_of(choice)["reason"]
    return reason or own_refusal(choice)


def process_grid(rule: str, ranks: int, cells: Sequence[int]) -> tuple[int, ...]:
    """Return ranks per dimension by a rule (cubic, square, prime-factors, slabs) or explicit ("2x3x1")."""
    grid = capi.load()[0].new("int32_t[3]")
    capi.call("hs_process_grid", rule.encode(), ranks, len(cells), padded(cells), grid)
    return tuple(grid)[: len(cells)]


def exchange_spec(choice: Choice, stage: int = 0) -> ExchangeSpec:
    """Return the exchange of a choice in a stage of its step, as wide as the steps between exchanges need.

    Raises UsageError if the choice is not legal.
    """
    return decoded(ExchangeSpec, capi.answer("hs_examine", text_of(choice), b"spec", stage))


def schedule_options(choice: Choice, stage: int = 0) -> ScheduleOptions:
    """Return the schedule options of a choice for a stage of its step; steps = depth."""
    return decoded(ScheduleOptions, capi.answer("hs_examine", text_of(choice), b"options", stage))


def make_plan(layout: Layout, rank: int, spec: ExchangeSpec) -> Plan:
    """Return the plan of one rank. Raises UsageError when a halo is wider than the smallest block it is filled from.

    Local; cost O(messages), independent of cells and ranks.
    """
    found = capi.answer("hs_plan", layout.request(rank=rank, spec=spec))
    return decoded(Plan, found["plan"] | {"layout": layout, "spec": spec})


def make_program(schedule: str, step: Step, plan: Plan, options: ScheduleOptions = PLAIN, stage: int = 0) -> Program:
    """Return the program that a schedule makes for one plan of a stage. Raises UsageError for an unknown schedule."""
    request = plan.layout.request(
        rank=plan.rank, spec=plan.spec, schedule=schedule, step=step, stage=stage, options=options
    )
    return decoded(Program, capi.answer("hs_plan", request)["program"])


def check(choice: Choice, **options: object) -> str:
    """Prove that the programs of all ranks never read data before it is available; return "" or the fault.

    options: options of the choice's schedule to replace. Small grids only: cost O(ranks x (operations^2 +
    points x steps)).
    """
    return capi.result_text("hs_check", encoded({"choice": choice.to_json(), "options": options}))


def peers(layout: Layout, plan: Plan, ranks: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the peers of ranks of the plan's class, as an array: ranks x messages of the plan, in its order."""
    numbers, pointer = capi.numbers(len(ranks))
    numbers[:] = ranks
    found, out = capi.numbers(len(ranks) * len(plan.messages))
    capi.call("hs_find_peers", layout.request(rank=plan.rank, spec=plan.spec), len(ranks), pointer, out)
    return found.reshape(len(ranks), len(plan.messages))


def plan_totals(layout: Layout, spec: ExchangeSpec) -> Totals:
    """Return the sums over the plans of all ranks. Cost O(ranks x messages): 2048 ranks take milliseconds."""
    return decoded(Totals, capi.answer("hs_add_up", layout.request(spec=spec), capi.load()[0].NULL))


def bytes_between(layout: Layout, spec: ExchangeSpec, groups: np.ndarray) -> int:
    """Return the bytes that one exchange of all ranks sends from group to group, as from node to node.

    groups: the group of each rank. Cost O(ranks x messages).
    """
    numbers, pointer = capi.numbers(layout.size)
    numbers[:] = groups
    between: int = capi.answer("hs_add_up", layout.request(spec=spec), pointer)["between"]
    return between


def choice_nodes(choice: Choice) -> np.ndarray:
    """Return, as a NumPy array, the node of each rank for a choice with `nodes`; all 0 without it."""
    (nodes, pointer), (_, sockets) = capi.numbers(choice.ranks), capi.numbers(choice.ranks)
    capi.call("hs_map_ranks", encoded({"choice": choice.to_json()}), capi.load()[0].NULL, pointer, sockets)
    return nodes
