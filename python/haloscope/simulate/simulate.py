"""Simulations: programs of up to a million ranks, carried out message by message by the C++ core at a profile's prices.

Operations cost the same as in a prediction. A simulation adds every single rank and message: queues for
shared resources, delays that travel, noise. Results are simulated, never measured.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import core
from haloscope.core import capi, convert
from haloscope.core.choice import handle_of
from haloscope.errors import UsageProblem
from haloscope.measure import lists
from haloscope.model.predict import PLAINLY, Setting
from haloscope.model.profile import Profile


@dataclass(frozen=True)
class How:
    """What a simulation adds to a prediction.

    steps: time steps >= 1, but at least two exchanges; the second half counts. noise_s, noise_share: mean of the delay
    of each operation, exponentially distributed, in seconds and as a part of the operation's own. seed: of the delays.
    overhead_s: seconds that sender and receiver each are busy with a message, taken out of its latency. gap_s: least
    time between two sends of a rank. by_itself: rendezvous messages need to be posted but no call.
    """

    steps: int = 10
    noise_s: float = 0.0
    noise_share: float = 0.0
    seed: int = 0
    overhead_s: float = 0.0
    gap_s: float = 0.0
    by_itself: bool = False


CALMLY = How()


@dataclass(frozen=True)
class Simulation:
    """What was simulated; times in seconds per time step, over the steps that count.

    time_s: of all ranks together, between the ends of the last rank. mean_s, percentiles: over ranks and rounds, from
    one end of a round to the next. by_operation: mean over ranks, waiting included. worst_rank: the last to end.
    messages, bytes, operations, events: in all steps. wall_s: the simulator's own time.
    """

    choice: core.Choice
    profile: str
    how: How
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


class Cast:
    """A choice ready to be simulated by the core: every rank's class, place and priced programs.

    steps: time steps of a round. classes: of ranks with equal plans and prices. Raises UsageProblem when the choice
    cannot run, and for overheads beyond a message's latency, NotAvailable when the profile lacks a cost. Cost: seconds
    for 10^6 ranks.
    """

    def __init__(
        self,
        choice: core.Choice,
        profile: Profile,
        setting: Setting = PLAINLY,
        overhead_s: float = 0.0,
        gap_s: float = 0.0,
    ):
        if reason := core.own_refusal(choice):
            raise UsageProblem(reason)
        self.choice = choice
        arguments = (handle_of(choice), profile.handle, setting.to_c(), overhead_s, gap_s)
        self.handle = capi.handle("hs_simulation_create", "hs_simulation", *arguments)
        found = json.loads(capi.result_text("hs_simulation_json", self.handle))
        self.steps, self.efficiency, self.classes = found["steps"], found["efficiency"], found["classes"]
        self.comm_thread, self.outside, self.notes = found["comm_thread"], found["outside"], found["notes"]

    def class_of(self) -> np.ndarray:
        """Return the class of each rank."""
        classes = np.empty(self.choice.ranks, np.int32)
        capi.call("hs_simulation_classes", self.handle, capi.load()[0].from_buffer("int32_t[]", classes))
        return classes

    def actors(self, number: int) -> Actors:
        """Return the programs of a class of ranks."""
        found = json.loads(capi.result_text("hs_simulation_class", self.handle, number))
        programs, seconds = [], found["seconds"]
        for place in range(len(found["stages"])):
            handle = capi.handle("hs_simulation_program", "hs_program", self.handle, number, place)
            programs.append(convert.program(handle))
        firsts = itertools.accumulate((len(p.ops) for p in programs), initial=0)
        parts = tuple(tuple(seconds[f : f + len(p.ops)]) for f, p in zip(firsts, programs, strict=False))
        return Actors(found["rank"], found["opening"], tuple(found["stages"]), tuple(programs), parts)


@dataclass(frozen=True)
class Actors:
    """Ranks with equal plans and prices: one of them, and their programs with the stage and the operations' seconds of
    each; the first `opening` of them are run once, the others in every round."""

    rank: int
    opening: int
    stages: tuple[int, ...]
    programs: tuple[core.Program, ...]
    seconds: tuple[tuple[float, ...], ...]


def simulate(choice: core.Choice, profile: Profile, setting: Setting = PLAINLY, how: How = CALMLY) -> Simulation:
    """Simulate some time steps of a choice on a machine, message by message.

    Raises UsageProblem for a choice that cannot run and for numbers out of range, NotAvailable when the profile lacks a
    cost. Cost: about a second per million events; a rank has two events per round of messages (`Simulation.events`).
    Source: LogGOPS: Hoefler, Schneider, Lumsdaine 2010; max-rate: Gropp, Olson, Samfass 2016.
    """
    began = time.perf_counter()
    if how.steps < 1:
        raise UsageProblem(f"{how.steps} steps cannot be simulated; use 1 or more")
    cast = Cast(choice, profile, setting, how.overhead_s, how.gap_s)
    rounds = max(2, math.ceil(how.steps / cast.steps))
    ends, result = run(cast, how, rounds)
    first = rounds // 2
    starts = ends[first - 1]
    counted = (rounds - first) * cast.steps
    lengths = np.diff(np.vstack([starts, ends[first:]]), axis=0) / cast.steps
    kinds = capi.enumeration("HS_OP_")
    return Simulation(
        choice=choice,
        profile=profile.name,
        how=how,
        time_s=float(ends[-1].max() - starts.max()) / counted,
        mean_s=float(lengths.mean()),
        percentiles={p: float(np.percentile(lengths, p)) for p in (5, 50, 95, 100)},
        by_operation={kind: result.seconds[i] / choice.ranks / counted for i, kind in enumerate(kinds)},
        worst_rank=int(ends[-1].argmax()),
        rounds=rounds,
        steps=rounds * cast.steps,
        classes=cast.classes,
        messages=result.messages,
        bytes=result.bytes,
        operations=result.operations,
        events=result.events,
        wall_s=time.perf_counter() - began,
        outside=tuple(cast.outside),
        notes=tuple(cast.notes),
    )


def run(cast: Cast, how: How, rounds: int):
    """Carry out the rounds; return when each rank ended each round (rounds x ranks, seconds) and the core's counts.

    Raises UsageProblem where the times, and a copy of them, do not fit into free memory.
    """
    from haloscope.measure import memory

    needed, free = 2 * rounds * cast.choice.ranks * np.dtype(float).itemsize, memory.free_bytes()
    if needed > free:
        raise UsageProblem(
            f"{rounds} rounds of {cast.choice.ranks} ranks take {needed / 2**30:.3g} GiB of memory, and "
            f"{free / 2**30:.3g} GiB are free; simulate fewer steps or ranks"
        )
    ffi, lib = capi.load()
    options = ffi.new("hs_simulation_options*")
    lib.hs_simulation_options_init(options)
    options.rounds, options.counted_from = rounds, rounds // 2
    options.noise_s, options.noise_share, options.seed = how.noise_s, how.noise_share, how.seed
    options.efficiency, options.by_itself = cast.efficiency, how.by_itself
    ends = np.empty((rounds, cast.choice.ranks))
    result = ffi.new("hs_simulation_result*")
    capi.call("hs_simulation_run", cast.handle, options, ffi.from_buffer("double[]", ends), result)
    return ends, result


def noise_of(text: str) -> tuple[float, float]:
    """Return the mean of a delay of each operation, in seconds (`2e-6`) and as a part of the operation's own (`1%`).

    Raises UsageProblem for what is neither.
    """
    try:
        mean = float(text.removesuffix("%"))
    except ValueError:
        mean = -1.0
    if not 0 <= mean < float("inf"):
        raise UsageProblem(f"--noise '{text}' is no delay; write seconds (2e-6) or a part of each operation (1%)")
    share = text.endswith("%")
    return 0.0 if share else mean, mean / 100 if share else 0.0


def weak_scalings(app: core.App, cells: str | None, ranks: str, process_grid: str | None) -> Iterator[dict[str, str]]:
    """Yield the cells, ranks and process grid of each weak scaling, as texts of options.

    cells: those of one rank, a list; ranks: a list; process_grid: rules, None for the app's own or the usual one.
    Raises UsageProblem without cells, and as `scaled` does.
    """
    if not cells:
        raise UsageProblem("a weak scaling needs the cells of one rank; for example --cells 64")
    rules = (process_grid or app.process_grid or ("square" if app.dims == 2 else "cubic")).split(",")
    for block in lists.shapes(cells, app.dims):
        for count in lists.numbers(ranks, "--ranks"):
            for rule in rules:
                whole, grid = scaled(block, rule, count)
                yield {"cells": "x".join(map(str, whole)), "ranks": str(count), "process_grid": grid}


def scaled(cells_per_rank: Sequence[int], rule: str, count: int) -> tuple[tuple[int, ...], str]:
    """Return the grid and the explicit process grid of a weak scaling: the rule's split of `count` ranks, with blocks
    of `cells_per_rank` cells. The rule sees a grid as wide in each dimension as any split needs, in the block's
    proportions.

    Raises UsageProblem for an unknown rule and numbers below 1.
    """
    if count < 1 or min(cells_per_rank) < 1:
        raise UsageProblem("a weak scaling needs at least one rank, and one cell per rank in each dimension")
    block = [n // math.gcd(*cells_per_rank) for n in cells_per_rank]
    grid = core.process_grid(rule, count, tuple(n * count for n in block))
    return tuple(n * r for n, r in zip(cells_per_rank, grid, strict=True)), "x".join(map(str, grid))
