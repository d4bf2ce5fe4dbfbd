"""Predictions: the time of a step and its breakdown from a choice and a machine profile. Pure: no MPI, no clock.

Ranks are put into classes (`ranks`), one of each class is priced (`price`), and all are carried out together (`compose`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import core
from haloscope.errors import UsageProblem
from haloscope.model import network, placement, price, ranks, sampling, segments, surcharge
from haloscope.model.compose import Action, Flight, Pace, Stuck, Track, compose
from haloscope.model.profile import Profile

SAMPLES = 100  # of the profile's parameters, for the interval
# The phases that `Prediction.exchange_s` predicts, with the statistic over ranks: the prediction is for the rank that
# sets the pace, which waits least for others.
EXCHANGE_PHASES = {"pack": "mean", "send": "mean", "unpack": "mean", "copy": "mean", "wait": "min", "desync": "min"}
Sources = Mapping[int, tuple[tuple[int, int], ...]]  # of incoming messages, as ranks.RankClass has them
SLOWEST = 32  # classes of ranks that are carried out together with their peers; faster ones do not set the pace


@dataclass(frozen=True)
class Prediction:
    """The expected cost of a choice; times in seconds per time step.

    interval: 90 % interval from those of the profile's parameters and its discrepancy, None where it has no intervals.
    terms: parts along the critical path of the slowest class of ranks, which add up to time_s. busy: the same terms,
    hidden or not. worst_rank: the first rank of that class; worst_node: the one that sends most bytes to other nodes.
    messages, bytes, message_bytes: sent by the worst rank in the exchanges of all stages, in all and the least and
    largest. outside: costs needed beyond the calibrated range.
    """

    choice: core.Choice
    profile: str
    time_s: float
    interval: tuple[float, float] | None
    terms: Mapping[str, float]
    busy: Mapping[str, float]
    worst_rank: int
    worst_node: int
    worst_node_bytes: int
    nodes: int
    classes: int
    messages: int
    bytes: int
    message_bytes: tuple[int, int]
    outside: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def exchange_s(self) -> float:
        """The exposed part of the exchange: no computing, no reduction, no overhead of carrying out a program."""
        return self.time_s - sum(self.terms[term] for term in ("compute", "reduction", "runner"))


@dataclass(frozen=True)
class Setting:
    """What a choice leaves open about how it is run.

    placement: a rule of `placement.RULES`; active: most cores in use per socket (None: all); custom: node and socket of each
    rank for rule `custom`; reductions: all-reduces per time step beside those of the app; repeats: how often a loop of
    stages is carried out per time step.
    """

    placement: str = "fill"
    active: int | None = None
    custom: Sequence[tuple[int, int]] = ()
    reductions: int = 0
    repeats: int = 1


PLAINLY = Setting()


def predict(
    choice: core.Choice, profile: Profile, setting: Setting = PLAINLY, samples: int = SAMPLES, singly: bool = False
) -> Prediction:
    """Return the predicted time of a step, in step with all other ranks, long after the start.

    samples: draws of the profile's parameters for the interval, 0 = none. singly: price every rank instead of one per
    class (slow; for checks). Raises UsageProblem when the choice cannot run, NotAvailable when the profile lacks a cost
    that it needs. Cost: milliseconds per class of ranks, a second for 10^5 ranks.
    """
    case = Case(choice, profile, setting)
    prices = price.Prices(profile, choice)
    try:
        found = case.classes(profile, singly)
        classes = len(found)
        if not singly:
            found = case.slowest(found, prices)
        paces = compose([case.track(c, prices) for c in found])
    except Stuck:  # ranks that take turns: one cannot represent the others
        found = case.classes(profile, singly=True)
        classes = len(found)
        paces = compose([case.track(c, prices) for c in found])
    worst = max(range(len(paces)), key=lambda c: (round(paces[c].seconds, 15), paces[c].working))
    spread = sampling.spread(profile, lambda drawn: case.alone(found[worst], price.Prices(drawn, choice)), samples)
    return case.report(found, classes, worst, paces[worst], spread, prices)


class Case:
    """A choice with its plans, programs and places; only `classes` depends on costs."""

    def __init__(self, choice: core.Choice, profile: Profile, setting: Setting):
        self.choice, self.setting, self.profile = choice, setting, profile
        self.place, self.node, self.notes = placed(choice, profile, setting)
        nodes = choice.nodes or self.place.nodes
        if reason := core.illegal(dataclasses.replace(choice, nodes=nodes)):  # now that it is known how many there are
            raise UsageProblem(reason)
        self.layout = core.make_layout(choice, self.node, self.place.socket)
        self.kinds = ranks.kinds_of(choice, self.layout)
        self.programs = [_programs(choice, kind, setting) for kind in self.kinds]
        self.steps = self.programs[0].steps
        overlap = profile.data.get("overlap", {})
        self.eager = overlap.get("rendezvous_from_bytes", math.inf)
        self.efficiency = overlap.get("efficiency", {}).get(choice.schedule, 1.0)
        near = [surcharge.transports_of(choice.strategy_of(stage.name))[0] for stage in core.step_of(choice).stages]
        self.given_held = [overlap.get("held_of", {}).get(t, overlap.get("held", {})) for t in near]  # by stage
        if not (any(self.given_held) or overlap.keys() - {"held_of"}) and choice.schedule != "bulk":
            self.notes.append(
                "overlap not measured: messages between nodes are assumed to travel on their own, those inside nodes "
                "except for their bytes, which the receiver copies"
            )

    def classes(self, profile: Profile, singly: bool = False) -> list[ranks.RankClass]:
        """Return the classes of ranks."""
        at_once = max((p.at_once for p in self.programs), default=1.0)
        return ranks.classes_of(self.kinds, self.place, profile, at_once, self.node, singly)

    @functools.cache  # noqa: B019  (a case lives as long as its prediction)
    def held(self, stage: int, near: str, flight: float) -> float:
        """Return the part of a message's flight (seconds) that its receiver must spend in a call, 0 to 1.

        The profile's, else: between nodes nothing, inside a node all but the latency, since cores copy the bytes.
        """
        if near in self.given_held[stage] or near == "network":
            held: float = self.given_held[stage].get(near, 0.0)
            return held
        return max(0.0, 1 - network.message_time(self.profile, near, 0) / flight) if flight > 0 else 0.0

    def slowest(self, found: list[ranks.RankClass], prices: price.Prices) -> list[ranks.RankClass]:
        """Return the slowest classes and the classes they receive from (all, if there are few).

        The classes left out are early wherever others wait for them. Their messages are assumed to come from ranks like
        the receiver.
        """
        if len(found) <= SLOWEST:
            return found
        busy: dict[tuple, float] = {}

        def alone(c: ranks.RankClass) -> float:
            key = (c.kind, c.ranks_on_socket, c.far)
            if key not in busy:
                busy[key] = _busy(self.track(c, prices))
            longest: dict[int, float] = {}
            for message, flight in zip(self.kinds[c.kind].plan.messages, c.flights, strict=True):
                longest[message.round] = max(longest.get(message.round, 0.0), flight)
            return busy[key] + sum(longest.values())

        order = sorted(range(len(found)), key=lambda i: -alone(found[i]))
        kept = dict.fromkeys(order[:SLOWEST])
        kept |= dict.fromkeys(
            peer for i in order[:SLOWEST] for sources in found[i].sources.values() for peer, _ in sources
        )
        place = {i: number for number, i in enumerate(kept)}
        return [self._among(found[i], place, place[i]) for i in kept]

    def _among(self, c: ranks.RankClass, place: Mapping[int, int], own: int) -> ranks.RankClass:
        """Return a class with only the kept sources, by their new numbers."""
        alike = mirrored(self.kinds[c.kind].plan)
        sources = {
            m: tuple((place[peer], out) for peer, out in given if peer in place) or ((own, alike[m][0][1]),)
            for m, given in c.sources.items()
        }
        return dataclasses.replace(c, sources=sources)

    def track(
        self, c: ranks.RankClass, prices: price.Prices, flights: Sequence[float] = (), sources: Sources | None = None
    ) -> Track:
        """Return a class's priced programs. flights, sources: to use instead of its own."""
        kind, programs = self.kinds[c.kind], self.programs[c.kind]
        flights = prices.flight_times(c.near, flights or c.flights)
        sharing = int(self.ranks_on_device()[c.rank])
        wheres = [self._where(c, stage, flights, sharing) for stage in range(len(kind.plans))]
        body: tuple[Action, ...] = ()
        ends: list[int] = []
        for stage, program, copies in programs.body:
            body += _shifted(self.priced(kind, stage, program, copies, prices, wheres[stage]), len(body))
            ends.append(len(body))
        if self.setting.reductions:
            seconds = self.setting.reductions * self.steps * network.allreduce_time(prices.profile, self.choice.ranks)
            last = tuple(i for i, a in enumerate(body) if not a.comm)[-1:]
            body += (Action("barrier", True, last, (("reduction", seconds),)),)
            ends[-1] += 1
        first = wheres[0]
        opening = self.priced(kind, 0, programs.opening, (), prices, first) if programs.opening else ()
        return Track(
            body=body,
            ends=tuple(ends),
            flights=self.flights(kind, prices, wheres),
            sources=c.sources if sources is None else sources,
            opening=opening,
            comm_thread=programs.body[0][1].comm_thread and self.choice.threads > 1,
            efficiency=self.efficiency,
            notice_s=prices.device.notice_s if prices.device else 0.0,
        )

    def _where(self, c: ranks.RankClass, stage: int, flights: Sequence[float], sharing: int) -> price.Where:
        """Return the place of a rank of a class, restricted to the messages of one stage."""
        of_stage = self.kinds[c.kind].messages_of(stage)
        flights, near = flights[of_stage], c.near[of_stage]
        held = [self.held(stage, place, flight) for place, flight in zip(near, flights, strict=True)]
        return price.Where(c.ranks_on_socket, c.far[of_stage], flights, held, sharing)

    def priced(
        self,
        kind: ranks.Kind,
        stage: int,
        program: core.Program,
        copies: Sequence[core.Traffic],
        prices: price.Prices,
        where: price.Where,
    ) -> tuple[Action, ...]:
        """Return the priced operations of a program of one stage; messages by their numbers among those of all stages."""
        of_stage = kind.messages_of(stage)
        found = price.actions(program, kind.plans[stage], prices.stages[stage], where, kind.traffic[of_stage], copies)
        if not of_stage.start:
            return found
        return tuple(dataclasses.replace(a, messages=tuple(m + of_stage.start for m in a.messages)) for a in found)

    def flights(self, kind: ranks.Kind, prices: price.Prices, wheres: Sequence[price.Where]) -> dict[int, Flight]:
        """Return how long each outgoing message of any stage travels."""
        found: dict[int, Flight] = {}
        for stage, where in enumerate(wheres):
            of_stage, plan = kind.messages_of(stage), kind.plans[stage]
            own = price.flights(plan, prices.stages[stage], where, kind.traffic[of_stage], self.eager)
            found |= {m + of_stage.start: flight for m, flight in own.items()}
        return found

    @functools.cache  # noqa: B019  (a case lives as long as its prediction)
    def ranks_on_device(self) -> np.ndarray:
        """Return for each rank how many ranks share its device; 1 without one."""
        node = self.place.node
        if not self.choice.device:
            return np.ones(len(node), int)
        per_node = self.profile.section("device").get("per_node", 1)
        sharing: np.ndarray = -(-np.bincount(node)[node] // per_node)
        return sharing

    def alone(self, c: ranks.RankClass, prices: price.Prices) -> float:
        """Return the seconds of a round if all ranks were like those of one class: peers then send when it does.

        For ranks that take turns, which cannot all be alike, return the seconds that they are busy: others work
        meanwhile. Flights keep the contention that they have in the profile, whatever other prices are.
        """
        plan = self.kinds[c.kind].plan
        law = {name: prices.profile.network_class(name)["segments"] for name in set(c.near)}
        usual = {name: self.profile.network_class(name)["segments"] for name in set(c.near)}
        flights = [
            flight * segments.evaluate(law[near], m.bytes) / max(segments.evaluate(usual[near], m.bytes), 1e-30)
            for flight, near, m in zip(c.flights, c.near, plan.messages, strict=True)
        ]
        track = self.track(c, prices, flights, mirrored(plan))
        try:
            return compose([track])[0].seconds
        except Stuck:
            return _busy(track)

    def report(
        self,
        found: Sequence[ranks.RankClass],
        classes: int,
        worst: int,
        pace: Pace,
        spread: tuple[float, float] | None,
        prices: price.Prices,
    ) -> Prediction:
        """Return the prediction of the slowest class."""
        sizes = [m.bytes for m in self.kinds[found[worst].kind].plan.sent()]
        node, node_bytes = _worst_node(self.kinds, self.place)
        interval = None
        if spread is not None:
            low, high = self.widened(spread, pace)
            interval = (pace.seconds / self.steps * low, pace.seconds / self.steps * high)
        return Prediction(
            choice=self.choice,
            profile=self.profile.name,
            time_s=pace.seconds / self.steps,
            interval=interval,
            terms={term: seconds / self.steps for term, seconds in pace.terms.items()},
            busy={term: seconds / self.steps for term, seconds in pace.busy.items()},
            worst_rank=found[worst].rank,
            worst_node=node,
            worst_node_bytes=node_bytes,
            nodes=self.place.nodes,
            classes=classes,
            messages=len(sizes),
            bytes=sum(sizes),
            message_bytes=(min(sizes, default=0), max(sizes, default=0)),
            outside=tuple(self.outside(found, prices)),
            notes=tuple(self.notes),
        )

    def widened(self, spread: tuple[float, float], pace: Pace) -> tuple[float, float]:
        """Return relative ends of an interval with the profile's discrepancy added, by the shares of sweeps and exchange."""
        known = self.profile.data.get("discrepancy", {})
        computing = pace.terms["compute"] / pace.seconds if pace.seconds else 0.0
        deviation = math.hypot(known.get("compute", 0.0) * computing, known.get("exchange", 0.0) * (1 - computing))
        away = sampling.TAIL * deviation
        low, high = (1 - end if end < 1 else end - 1 for end in spread)
        return max(0.0, 1 - math.hypot(low, 1 - math.exp(-away))), 1 + math.hypot(high, math.exp(away) - 1)

    def outside(self, found: Sequence[ranks.RankClass], prices: price.Prices) -> list[str]:
        """List the costs needed beyond the calibrated range."""
        for kind, near in sorted({(c.kind, name) for c in found for name in c.near}):
            law = prices.profile.network_class(near)["segments"]
            for message in self.kinds[kind].plan.messages:
                prices.range.check(f"message bytes ({near})", message.bytes, law[0].start, law[-1].end)
        asked = {name for c in found for name in c.near}
        absent = sorted(asked - set(prices.profile.section("network")["classes"])) if asked else []
        return prices.range.texts() + [
            f"messages of class {name}, which the profile lacks; the nearest class counts" for name in absent
        ]


def _busy(track: Track) -> float:
    """Return the seconds of everything in a round but waiting, one after another."""
    return sum(action.sweep[2] + sum(seconds for _, seconds in action.parts) for action in track.body)


# ---- programs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Programs:
    """The programs that a rank repeats, those of one round one after another, and the one it starts with."""

    opening: core.Program | None
    body: tuple[tuple[int, core.Program, tuple[core.Traffic, ...]], ...]  # stage, program, traffic of its copy sets
    steps: int  # time steps of a round
    at_once: float  # largest part of a round's messages that one operation sends


def _programs(choice: core.Choice, kind: ranks.Kind, setting: Setting) -> _Programs:
    step, by_stage, body, opening = core.step_of(choice), [], [], None
    for stage, plan in enumerate(kind.plans):
        options = core.schedule_options(choice, stage)
        series = ("entry", "body") if core.find_schedule(choice.schedule).in_place else ("whole",)
        made = [_program(choice, step, stage, plan, options, part) for part in series]
        if len(made) > 1:
            opening = _program(choice, step, stage, plan, options, "opening")[1]
        by_stage.append(made)
    for group in step.groups:
        times = setting.repeats if step.stages[group[0]].repeats else 1
        body += [program for stage in group for program in by_stage[stage]] * times
    steps = 1 if len(kind.plans) > 1 or step.loops else sum(program.steps for _, program, _ in body)
    at_once = max(_at_once(program, kind.plans[stage]) for stage, program, _ in body)
    return _Programs(opening, tuple(body), steps, at_once)


def _program(
    choice: core.Choice, step: core.Step, stage: int, plan: core.Plan, options: core.ScheduleOptions, series: str
) -> tuple[int, core.Program, tuple[core.Traffic, ...]]:
    program = core.make_program(choice.schedule, step, plan, dataclasses.replace(options, series=series), stage)
    return stage, program, tuple(core.copy_traffic(program, plan, s) for s in range(len(program.copy_sets)))


def _at_once(program: core.Program, plan: core.Plan) -> float:
    parts = [0.0]
    for op in program.ops:
        if op.kind == "send" and program.sets[op.target]:
            sent = program.sets[op.target]
            of_round = [m for m in plan.sent() if m.round == plan.messages[sent[0]].round]
            parts.append(len(sent) / len(of_round))
    return max(parts) or 1.0


def _shifted(actions: Sequence[Action], by: int) -> tuple[Action, ...]:
    return (
        tuple(dataclasses.replace(a, after=tuple(i + by for i in a.after)) for a in actions) if by else tuple(actions)
    )


def mirrored(plan: core.Plan) -> Sources:
    """Return sources as if every peer did what the rank does: each message is answered by one of the same round."""
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    for m, message in enumerate(plan.messages):
        if not message.out:
            same = [o for o, sent in enumerate(plan.messages) if sent.out and sent.round == message.round]
            own = [o for o in same if plan.messages[o].peer == message.peer] or same
            found[m] = ((0, min(own, key=lambda o: (abs(plan.messages[o].bytes - message.bytes), o))),)
    return found


# ---- places ------------------------------------------------------------------------------------------------------------


def placed(
    choice: core.Choice, profile: Profile, setting: Setting
) -> tuple[placement.Placement, np.ndarray, list[str]]:
    """Return where the ranks run, their nodes as transports see them, and notes on that for the reader.

    A choice with more nodes than the profile's machine has is one that splits the ranks of real nodes as if each part were a
    node: transports between nodes are then used inside them. Raises UsageProblem for more cores in use than there are.
    """
    machine, threads, notes = profile.machine, choice.threads, []
    most = machine["cores_per_socket"]
    cores = most if setting.active is None else setting.active
    if not 1 <= cores <= most:
        raise UsageProblem(f"{cores} cores of a socket cannot be in use where it has {most}; choose 1 to {most}")
    per_socket = max(1, cores // threads)
    if threads > most:
        notes.append(f"{threads} threads per rank on sockets of {most} cores")
    asked = core.choice_nodes(choice)
    sockets = machine["sockets_per_node"]
    if 0 < choice.nodes <= machine["nodes"] and setting.placement != "custom":
        local = np.empty(choice.ranks, int)
        for node in range(choice.nodes):
            members = np.flatnonzero(asked == node)
            local[members] = np.arange(len(members))
        socket = np.minimum(local // per_socket, sockets - 1)
        where = placement.Placement(asked.astype(int), asked * sockets + socket)
    else:
        where = placement.place(setting.placement, choice.ranks, sockets, per_socket, per_socket, setting.custom)
    if where.nodes > machine["nodes"]:
        notes.append(f"{where.nodes} nodes are needed, the profile's machine has {machine['nodes']}")
    return where, asked if choice.nodes else where.node, notes


def _worst_node(kinds: Sequence[ranks.Kind], place: placement.Placement) -> tuple[int, int]:
    """Return the node that sends most bytes to others, and how many in one exchange."""
    sent = np.zeros(int(place.node.max()) + 1)
    for kind in kinds:
        for m, message in enumerate(kind.plan.messages):
            if message.out:
                away = place.node[kind.members] != place.node[kind.peers[:, m]]
                sent += np.bincount(place.node[kind.members][away], minlength=len(sent)) * float(message.bytes)
    return int(sent.argmax()), int(sent.max())
