"""Simulations: programs of up to a million ranks, run message by message by the C++ core with the costs of a profile.

Operations cost the same as in a prediction. A simulation adds every single rank and message: queues for
shared resources, delays that propagate, noise. Results are simulated, never measured.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloscope import bridge
from haloscope.bridge import capi
from haloscope.bridge.json_values import decoded
from haloscope.errors import UsageError
from haloscope.measure import lists
from haloscope.model.predict import DEFAULTS, RunSettings
from haloscope.model.profile import Profile


@dataclass(frozen=True)
class SimulationOptions:
    """Options of a simulation that predictions do not have.

    steps: time steps >= 1, but at least two exchanges; the second half counts. noise_s, noise_share: mean of the delay
    of each operation, exponentially distributed, in seconds and as a part of the operation's time. seed: of the delays.
    overhead_s: seconds for which sender and receiver each are busy with a message, deducted from its latency. gap_s:
    least time between two sends of a rank. by_itself: posted rendezvous messages progress without further calls.
    """

    steps: int = 10
    noise_s: float = 0.0
    noise_share: float = 0.0
    seed: int = 0
    overhead_s: float = 0.0
    gap_s: float = 0.0
    by_itself: bool = False


NO_NOISE = SimulationOptions()
PERCENTILES = (5, 50, 95, 100)


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation; times in seconds per time step, over the steps that count.

    time_s: of all ranks together, between the ends of the last rank. mean_s, percentiles: over ranks and rounds, from
    one end of a round to the next. by_operation: mean over ranks, waiting included. worst_rank: the last to end.
    messages, bytes, operations, events: in all steps. wall_s: run time of the simulator.
    """

    choice: bridge.Choice
    profile: str
    options: SimulationOptions
    time_s: float
    mean_s: float
    percentiles: Mapping[int, float]
    by_operation: Mapping[str, float]
    worst_rank: int
    rounds: int
    steps: int
    classes: int
    messages: int
    bytes: int
    operations: int
    events: int
    wall_s: float
    outside: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RankClass:
    """Ranks with equal plans and costs: one of them, and their programs, each with its stage and the seconds of its
    operations. The first `opening` programs are run once, the others in every round."""

    rank: int
    opening: int
    stages: tuple[int, ...]
    programs: tuple[bridge.Program, ...]
    seconds: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Programs:
    """The programs and costs of all ranks of a choice. steps: time steps of a round. class_of: each rank's index in
    `classes`."""

    choice: bridge.Choice
    class_of: np.ndarray
    steps: int
    comm_thread: bool
    classes: tuple[RankClass, ...]


def programs_of(choice: bridge.Choice, profile: Profile, setting: RunSettings = DEFAULTS) -> Programs:
    """Return the programs of all ranks with the costs of a profile.

    Raises UsageError when the choice cannot run, UnavailableError when the profile lacks a cost. Cost: seconds for 10^6
    ranks.
    """
    class_of, pointer = capi.numbers(choice.ranks)
    found = capi.answer("hs_programs", _request(choice, setting), profile.handle, pointer)
    return decoded(Programs, found | {"choice": choice, "class_of": class_of})


def _request(choice: bridge.Choice, setting: RunSettings) -> dict[str, Any]:
    if reason := bridge.own_refusal(choice):
        raise UsageError(reason)
    return {"choice": choice.to_json(), "setting": setting.to_json()}


def simulate(
    choice: bridge.Choice, profile: Profile, setting: RunSettings = DEFAULTS, options: SimulationOptions = NO_NOISE
) -> Simulation:
    """Simulate some time steps of a choice on a machine, message by message.

    Raises UsageError for a choice that cannot run and for numbers out of range, UnavailableError when the profile lacks
    a cost. Cost: about a second per million events; a rank has two events per round of messages (`Simulation.events`).
    Source: LogGOPS: Hoefler, Schneider, Lumsdaine 2010; max-rate: Gropp, Olson, Samfass 2016.
    """
    began = time.perf_counter()
    found = capi.answer("hs_simulate", _request(choice, setting) | dataclasses.asdict(options), profile.handle)
    found["percentiles"] = {p: found["percentiles"][str(p)] for p in PERCENTILES}
    found["by_operation"] = {kind: found["by_operation"][kind] for kind in capi.names("operations")}
    known = {"choice": choice, "profile": profile.name, "options": options, "wall_s": time.perf_counter() - began}
    return decoded(Simulation, found | known)


def simulate_all(
    requests: Iterable[Any], profile: Profile, setting: RunSettings, options: SimulationOptions
) -> list[tuple[Any, Simulation]]:
    """Return requests, each with the simulation of its choice. Raises as `simulate` does."""
    return [(request, simulate(request.choice, profile, setting, options)) for request in requests]


def noise_of(text: str) -> tuple[float, float]:
    """Return the mean delay of each operation, in seconds (`2e-6`) and as a part of the operation's time (`1%`).

    Raises UsageError for other texts.
    """
    try:
        mean = float(text.removesuffix("%"))
    except ValueError:
        mean = -1.0
    if not 0 <= mean < float("inf"):
        raise UsageError(f"--noise '{text}' is not a delay; write seconds (2e-6) or a part of each operation (1%)")
    share = text.endswith("%")
    return 0.0 if share else mean, mean / 100 if share else 0.0


def weak_scalings(app: bridge.App, cells: str | None, ranks: str, process_grid: str | None) -> Iterator[dict[str, str]]:
    """Yield the cells, ranks and process grid of each weak scaling, as texts of options.

    cells: of one rank, a list; ranks: a list; process_grid: rules, None for the app's rule or else the default.
    Raises UsageError without cells, and as `scaled` does.
    """
    if not cells:
        raise UsageError("a weak scaling needs the cells of one rank; for example --cells 64")
    rules = (process_grid or app.process_grid or ("square" if app.dims == 2 else "cubic")).split(",")
    for block in lists.shapes(cells, app.dims):
        for count in lists.numbers(ranks, "--ranks"):
            for rule in rules:
                whole, grid = scaled(block, rule, count)
                yield {"cells": "x".join(map(str, whole)), "ranks": str(count), "process_grid": grid}


def scaled(cells_per_rank: Sequence[int], rule: str, count: int) -> tuple[tuple[int, ...], str]:
    """Return the grid and the explicit process grid of a weak scaling: the rule's split of `count` ranks, with blocks
    of `cells_per_rank` cells. The rule is applied to a grid with the block's proportions, wide enough in each dimension
    for any split.

    Raises UsageError for an unknown rule and numbers below 1.
    """
    if count < 1 or min(cells_per_rank) < 1:
        raise UsageError("a weak scaling needs at least one rank, and one cell per rank in each dimension")
    block = [n // math.gcd(*cells_per_rank) for n in cells_per_rank]
    grid = bridge.process_grid(rule, count, tuple(n * count for n in block))
    return tuple(n * r for n, r in zip(cells_per_rank, grid, strict=True)), "x".join(map(str, grid))
