"""Simulations: programs of up to a million ranks, carried out message by message by the C++ core at a profile's prices.

Operations cost the same as in a prediction (`price`). A simulation adds every single rank and message: queues for
shared resources, delays that travel, noise. Results are simulated, never measured.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import core
from haloscope.core import capi, convert
from haloscope.errors import UsageProblem
from haloscope.model import network, price, ranks
from haloscope.model.predict import PLAINLY, Case, Setting, mirrored
from haloscope.model.profile import Profile
from haloscope.model.tracks import Action

PLACES = ("socket", "node", "network")  # where the two ends of a message are, as hs_network counts them


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


@dataclass(frozen=True)
class Actors:
    """Ranks with equal plans and prices: the number of their plans' kind, their programs with the stage of each, and the
    priced operations of each. Messages are those of the programs' own stages."""

    kind: int
    programs: tuple[core.Program, ...]  # opening, if any, then those of a round
    stages: tuple[int, ...]
    actions: tuple[tuple[Action, ...], ...]
    flight_change: tuple[float, ...]
    hand_s: float  # of the host, to hand an operation to a device


class Cast:
    """A choice ready to be simulated: every rank's class, place and priced programs.

    Raises UsageProblem when the choice cannot run, NotAvailable when the profile lacks a cost. Cost: seconds for 10^6
    ranks.
    """

    def __init__(self, choice: core.Choice, profile: Profile, setting: Setting = PLAINLY):
        self.choice, self.profile, self.setting = choice, profile, setting
        self.case = Case(choice, profile, setting)
        self.prices = price.Prices(profile, choice)
        self.layout = self.case.layout
        self.opening = int(self.case.programs[0].opening is not None)
        self.comm_thread = self.case.programs[0].body[0][1].comm_thread and choice.threads > 1
        self.class_of = np.empty(choice.ranks, np.int32)
        self.actors: list[Actors] = []
        busy, on_device = self.case.place.active(), self.case.ranks_on_device()
        for k, kind in enumerate(self.case.kinds):
            keys = self._keys(kind, (busy + (choice.ranks + 1) * on_device)[kind.members])
            _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
            self.class_of[kind.members] = len(self.actors) + inverse
            self.actors += [self._priced(k, int(i), busy[kind.members[i]], on_device[kind.members[i]]) for i in first]

    def _keys(self, kind: ranks.Kind, load: np.ndarray) -> np.ndarray:
        """Return a number per member that is the same for equal prices: where peers are counts if the transport asks
        it. load: of each member's socket and device, as a number."""
        pairs = [stage.surcharges for stage in self.prices.stages]
        plain = all(near == between and min(dataclasses.astuple(near)) >= 0 for near, between in pairs)
        if plain:
            return load
        rows = [self._near(kind), self._far(kind), load[:, None]]
        return ranks.hashed(np.concatenate(rows, axis=1).astype(np.uint64))

    def _near(self, kind: ranks.Kind) -> np.ndarray:
        return ranks.nearness(kind, self.case.place)

    def _far(self, kind: ranks.Kind) -> np.ndarray:
        return self.case.node[kind.members][:, None] != self.case.node[kind.peers]

    def _priced(self, k: int, member: int, busy: int, on_device: int) -> Actors:
        kind, programs = self.case.kinds[k], self.case.programs[k]
        one = dataclasses.replace(
            kind, members=kind.members[member : member + 1], peers=kind.peers[member : member + 1]
        )
        near = [ranks.CLASSES[c] for c in self._near(one)[0]]
        far = self._far(one)[0].tolist()
        sizes = [m.bytes for m in kind.plan.messages]
        alone = [network.message_time(self.profile, place, size) for place, size in zip(near, sizes, strict=True)]
        travel = self.prices.flight_times(near, alone)
        stages = [kind.messages_of(stage) for stage in range(len(kind.plans))]
        wheres = [price.Where(int(busy), far[m], travel[m], [0.0] * len(sizes[m]), int(on_device)) for m in stages]
        flights = self.case.flights(kind, self.prices, wheres)
        alike = mirrored(kind.plan)  # what comes in is taken to change as what goes out against it
        out = [m if message.out else alike[m][0][1] for m, message in enumerate(kind.plan.messages)]
        changes = tuple(flights[m].seconds - alone[m] for m in out)
        body = [*([(0, programs.opening, ())] if programs.opening else []), *programs.body]
        made = []
        for stage, program, copies in body:
            given = (kind.plans[stage], self.prices.stages[stage], wheres[stage], kind.traffic[stages[stage]], copies)
            made.append((program, price.actions(program, *given)))
        if self.setting.reductions:
            made[-1] = self._reduced(*made[-1])
        hand_s = next((action.hand_s for _, actions in made for action in actions if action.stream), 0.0)
        of_stages = tuple(stage for stage, _, _ in body)
        return Actors(k, tuple(p for p, _ in made), of_stages, tuple(a for _, a in made), changes, hand_s)

    def _reduced(self, program: core.Program, actions: tuple[Action, ...]):
        """Return a program that ends with the setting's all-reduces, as one meeting of all ranks."""
        seconds = network.allreduce_time(self.profile, self.choice.ranks) * self.setting.reductions * self.case.steps
        last = tuple(i for i, op in enumerate(program.ops) if op.lane != "comm")[-1:]
        op = core.Op("barrier", "comm", 0, -1, last)
        priced = Action("barrier", True, last, (("reduction", seconds),))
        return dataclasses.replace(program, ops=(*program.ops, op)), (*actions, priced)

    def outside(self) -> list[str]:
        """List the costs needed beyond the calibrated range."""
        for place in PLACES:
            law = self.profile.network_class(place)["segments"]
            code = ranks.CLASSES.index(place)
            sizes = {
                m.bytes
                for kind in self.case.kinds
                for m, here in zip(kind.plan.messages, (self._near(kind) == code).any(axis=0), strict=True)
                if here
            }
            for size in sorted(sizes):
                self.prices.range.check(f"message bytes ({place})", size, law[0].start, law[-1].end)
        return self.prices.range.texts()


def simulate(choice: core.Choice, profile: Profile, setting: Setting = PLAINLY, how: How = CALMLY) -> Simulation:
    """Simulate some time steps of a choice on a machine, message by message.

    Raises UsageProblem for a choice that cannot run and for numbers out of range, NotAvailable when the profile lacks a
    cost. Cost: about a second per million events; a rank has two events per round of messages (`Simulation.events`).
    Source: LogGOPS: Hoefler, Schneider, Lumsdaine 2010; max-rate: Gropp, Olson, Samfass 2016.
    """
    began = time.perf_counter()
    if how.steps < 1:
        raise UsageProblem(f"{how.steps} steps cannot be simulated; use 1 or more")
    cast = Cast(choice, profile, setting)
    rounds = max(2, math.ceil(how.steps / cast.case.steps))
    ends, result = run(cast, how, rounds)
    first = rounds // 2
    starts = ends[first - 1]
    counted = (rounds - first) * cast.case.steps
    lengths = np.diff(np.vstack([starts, ends[first:]]), axis=0) / cast.case.steps
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
        steps=rounds * cast.case.steps,
        classes=len(cast.actors),
        messages=result.messages,
        bytes=result.bytes,
        operations=result.operations,
        events=result.events,
        wall_s=time.perf_counter() - began,
        outside=tuple(cast.outside()),
        notes=tuple(cast.case.notes),
    )


# ---- to the core -----------------------------------------------------------------------------------------------------


def run(cast: Cast, how: How, rounds: int):
    """Carry out the rounds; return when each rank ended each round (rounds x ranks, seconds) and the core's counts."""
    ffi, lib = capi.load()
    simulation, _alive = _create(cast, how)
    options = ffi.new("hs_simulation_options*")
    lib.hs_simulation_options_init(options)
    options.rounds, options.counted_from = rounds, rounds // 2
    options.noise_s, options.noise_share, options.seed = how.noise_s, how.noise_share, how.seed
    options.efficiency, options.by_itself = cast.case.efficiency, how.by_itself
    ends = np.empty((rounds, cast.choice.ranks))
    result = ffi.new("hs_simulation_result*")
    capi.call("hs_simulation_run", simulation, options, ffi.from_buffer("double[]", ends), result)
    return ends, result


def _create(cast: Cast, how: How):
    """Return a handle, and what must live until it has been made."""
    ffi, lib = capi.load()
    c, alive = ffi.new("hs_network*"), []
    lib.hs_network_init(c)
    for place, name in enumerate(PLACES):
        segments = ffi.new("hs_segment[]", _segments(cast, how, name))
        alive.append(segments)
        c.segments[place], c.segment_count[place] = segments, len(segments)
        c.shared[place], c.duplex[place] = network.contention(cast.profile, name)
    c.injection_bytes_per_s = cast.profile.section("network").get("injection_bytes_per_s") or 0.0
    classes = ffi.new("hs_rank_class[]", len(cast.actors))
    for given, actors in zip(classes, cast.actors, strict=True):
        alive.append(_fill(given, cast, actors))
    numbers = [np.ascontiguousarray(a, np.int32) for a in (cast.case.place.node, cast.case.place.socket, cast.class_of)]
    node, socket, class_of = (ffi.from_buffer("int32_t[]", a) for a in numbers)
    arguments = (cast.layout._handle, c, node, socket, len(classes), classes, class_of)
    return capi.handle("hs_simulation_create", "hs_simulation", *arguments), alive


def _fill(given, cast: Cast, actors: Actors) -> list:
    """Fill an hs_rank_class; return what it points into."""
    ffi, _ = capi.load()
    handles = [convert.program_to_c(program) for program in actors.programs]
    rows = [x for a in itertools.chain(*actors.actions) for x in _seconds(a)]
    seconds, changes = ffi.new("double[]", rows), ffi.new("double[]", list(actors.flight_change))
    own, reductions = cast.case.kinds[actors.kind].plans, _reductions(cast)
    plans = ffi.new("hs_plan*[]", [plan._handle for plan in own])
    meetings = ffi.new("hs_rank_reduction[]", reductions)
    firsts = [stage.first_reduction for stage in cast.prices.stages]
    programs = ffi.new("hs_rank_program[]", [(h, s, firsts[s]) for h, s in zip(handles, actors.stages, strict=True)])
    given.plans, given.plan_count, given.programs = ffi.cast("hs_plan**", plans), len(own), programs
    given.reductions, given.reduction_count = meetings, len(reductions)
    given.opening, given.body = cast.opening, len(handles) - cast.opening
    given.comm_thread = cast.comm_thread
    given.hand_s, given.notice_s = actors.hand_s, cast.prices.device.notice_s if cast.prices.device else 0.0
    given.op_count, given.seconds, given.flight_change = len(rows) // 3, seconds, changes
    return [handles, seconds, changes, programs, plans, meetings]


def _reductions(cast: Cast) -> list[tuple[float, bool, int]]:
    """Return the seconds of every reduction of the step, and whether ranks wait where they give their numbers."""
    needed = {op.kind == "reduce" for actors in cast.actors for program in actors.programs for op in program.ops}
    found = []
    for stage in cast.prices.stages:
        meets = stage.meets and True in needed  # ranks of a pipeline never do
        for number, waits in enumerate(stage.waits, stage.first_reduction):
            found.append((cast.prices.reductions_s[number] if meets else 0.0, meets and waits, 0))
    return found


def _seconds(action: Action) -> tuple[float, float, float]:
    """Return an operation's seconds while a communication thread, or another stream, is busy, while it waits, and otherwise."""
    if action.sweep != (0.0, 0.0, 0.0):
        return action.sweep
    return (sum(seconds for _, seconds in action.parts),) * 3


def _segments(cast: Cast, how: How, place: str) -> list[dict]:
    """Return the segments of a locality class as hs_segment: cut where messages need a rendezvous, overheads taken
    out."""
    law = cast.profile.network_class(place)["segments"]
    cuts = sorted({s.start for s in law} | ({cast.case.eager} if math.isfinite(cast.case.eager) else set()))
    inside = place != "network"  # then what goes beyond the latency of no bytes is held, as `Case.held` has it
    given = cast.case.given_held[0].get(place)  # of the first stage: the network is one for all

    def held_latency(fixed: float) -> float:
        if given is not None:
            return given
        return max(0.0, 1 - law[0].fixed / fixed) if inside and fixed else 0.0

    made = []
    for start in cuts:
        s = next((s for s in reversed(law) if s.start <= start), law[0])
        if 2 * how.overhead_s > s.fixed:
            raise UsageProblem(
                f"an overhead of {how.overhead_s:g} s at both ends is more than the latency of {s.fixed:g} s between "
                f"ranks of class {place}, which it is a part of; use at most {s.fixed / 2:g}"
            )
        made.append(
            {
                "from_bytes": start,
                "latency_s": s.fixed - 2 * how.overhead_s,
                "per_byte_s": s.slope,
                "overhead_send_s": how.overhead_s,
                "overhead_receive_s": how.overhead_s,
                "gap_s": how.gap_s,
                "held_latency": held_latency(s.fixed),
                "held_per_byte": float(inside) if given is None else given,
                "rendezvous": start >= cast.case.eager,
            }
        )
    return made


def scaled(cells_per_rank: Sequence[int], rule: str, count: int) -> tuple[tuple[int, ...], str]:
    """Return the grid and the explicit process grid of a weak scaling: the rule's split of `count` ranks, with blocks
    of `cells_per_rank` cells. The rule sees a grid as wide in each dimension as any split needs, in the block's
    proportions.

    Raises UsageProblem for an unknown rule and numbers below 1.
    """
    if count < 1 or min(cells_per_rank) < 1:
        raise UsageProblem("a weak scaling needs at least one rank, and one cell per rank in each dimension")
    grid = core.process_grid(rule, count, tuple(n * count for n in cells_per_rank))
    return tuple(n * r for n, r in zip(cells_per_rank, grid, strict=True)), "x".join(map(str, grid))
