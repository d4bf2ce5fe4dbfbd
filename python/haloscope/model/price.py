"""The cost of each operation of a program on one rank: seconds by term, from a machine profile and the plan's messages.

Bytes, boxes and stretches of memory come from plans and programs; this module counts no cells or bytes itself.
Transports are known only by their cost description: what they add to plain messages, per message, byte, round and
exchange. A negative sum (fields that neighbours read in place need no packing) shortens packing, then travelling, then
unpacking.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from haloscope import core
from haloscope.errors import NotAvailable
from haloscope.model import network, price_device, segments
from haloscope.model.compose import Action, Flight
from haloscope.model.profile import Profile
from haloscope.model.surcharge import CONTIGUOUS_FROM, PLAIN, Surcharge, stride_class, surcharge, transports_of


def kernel_of(choice: core.Choice) -> str:
    """Return the name of a choice's kernels in profiles: APP/FORM/REAL, then ,NAME=VALUE of parameters with other sweeps."""
    name = f"{choice.app}/{choice.form or core.find_app(choice.app).forms[0]}/{choice.real}"
    return name + "".join(f",{parameter}={value}" for parameter, value in core.sweep_parameters(choice))


def sweeps_of(choice: core.Choice, stage: int) -> list[str]:
    """Return the names in profiles of the sweeps of a stage: its kernel's, and :STAGE/SWEEP where a step has several."""
    step = core.step_of(choice)
    if step.single:
        return [kernel_of(choice)]
    one = step.stages[stage]
    return [f"{kernel_of(choice)}:{one.name}/{sweep.name}" for sweep in one.sweeps]


def require_kernels(profile: Profile, choice: core.Choice) -> None:
    """Raise NotAvailable when a profile lacks the cost of a sweep of the choice's app."""
    for stage in range(len(core.step_of(choice).stages)):
        for name in sweeps_of(choice, stage):
            profile.kernel(name)


@dataclass(frozen=True)
class Steps:
    """The cost of carrying out a program beyond its operations' own work; see the profile's section."""

    per_program_s: float = 0.0
    per_operation_s: float = 0.0
    waiting_share: float = 0.0
    far_waiting_share: float = 0.0
    per_piece_s: float = 0.0
    per_piece_cell_s: float = 0.0
    per_piece_row_s: float = 0.0
    per_far_piece_row_s: float = 0.0

    def waiting(self, neighbours: int, far: bool = False) -> float:
        """Return the part of a sweep that a rank waits for the slowest of its neighbours, whose pace varies by chance.

        far: the block is beyond the cache. Grows as the expected largest of independent normal numbers does (Blom 1958).
        """
        share = self.far_waiting_share if far else self.waiting_share
        return share * _expected_largest(neighbours + 1) / _expected_largest(2) if neighbours else 0.0


def _expected_largest(count: int) -> float:
    return statistics.NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


class Range:
    """Amounts beyond the calibrated range of a profile whose costs were needed, by kind of cost."""

    def __init__(self) -> None:
        self.outside: dict[str, tuple[float, float, str]] = {}

    def check(self, what: str, amount: float, low: float, high: float) -> None:
        """Note an amount outside [low, high)."""
        if low <= amount < high:
            return
        least, most, _ = self.outside.get(what, (amount, amount, ""))
        end = "" if math.isinf(high) else f" to {high:g}"
        self.outside[what] = (min(least, amount), max(most, amount), f"{low:g}{end}")

    def texts(self) -> list[str]:
        """Report for every cost the amounts needed and the range that the profile covers."""
        return [
            f"{what} of {least:g}{f' to {most:g}' if most > least else ''}; calibrated: {known}"
            for what, (least, most, known) in self.outside.items()
        ]


class Prices:
    """The prices of one choice on one machine: those that all stages share, and `stages`.

    Raises NotAvailable when the profile lacks a kernel, a transport or, once something is packed, its cost, and for freed
    temporaries and pieces, which no profile has.
    """

    def __init__(self, profile: Profile, choice: core.Choice):
        if choice.temporaries != "kept" or choice.piece:
            raise NotAvailable(
                "profiles have no costs of freed temporaries, nor of pieces that threads take as they come; use temporaries "
                "'kept' and piece 0"
            )
        self.profile, self.threads, self.range = profile, choice.threads, Range()
        self.dims = len(choice.cells)
        self.sweeps = [sweeps_of(choice, stage) for stage in range(len(core.step_of(choice).stages))]
        self.device = (
            price_device.DevicePrices(profile, choice, list(itertools.chain(*self.sweeps)), self.range.check)
            if choice.device
            else None
        )
        # Messages leave from buffers that a device has packed, by plain MPI.
        self.buffered = core.messages_on_device(choice)
        self.steps = Steps(**{k: v for k, v in profile.data.get("steps", {}).items() if k != "interval"})
        self._copying: dict[tuple, float] = {}
        self.reductions = [r for stage in core.step_of(choice).stages for r in stage.reductions]
        self.ranks = choice.ranks
        self.stages = [StagePrices(self, choice, stage) for stage in range(len(core.step_of(choice).stages))]

    @functools.cached_property
    def reductions_s(self) -> list[float]:
        """Seconds of each reduction of the step, from the last rank's numbers to every rank's having them."""
        return [network.reduction_time(self.profile, reduction, self.ranks) for reduction in self.reductions]

    def flight_times(self, near: Sequence[str], flights: Sequence[float]) -> Sequence[float]:
        """Return how long messages travel: as given, or as empty ones do where a device writes to its neighbour and
        messages only notify it. near: locality class of each peer."""
        if not (self.device and self.device.writes_there):
            return flights
        return [network.message_time(self.profile, place, 0) for place in near]

    def copying(self, traffic: core.Traffic, threads: int, block_bytes: int = 0, what: str = "pack") -> float:
        """Return the seconds of gathering, scattering or copying bytes: by the team only where that pays.

        block_bytes: of one slot of the block they lie in. what: "pack", or "copy" between two sides of the block.
        """
        key = (traffic.bytes, traffic.run_bytes, threads, block_bytes, what)
        if key not in self._copying:
            stride = stride_class(traffic.run_bytes)
            table = self.profile.packing(stride, what, block_bytes)
            counts = {1, threads}
            self.range.check("threads packing", threads, min(table), max(table) + 1)
            law = table[min(table, key=lambda count: abs(count - threads))]
            amount = traffic.bytes * (self.profile.row_scale(traffic.run_bytes) if stride == "strided" else 1.0)
            self.range.check(f"bytes to pack ({stride})", amount, law[0].start, law[-1].end)
            self._copying[key] = min(segments.evaluate_at(table, count, amount) for count in counts)
        return self._copying[key]


class StagePrices:
    """The prices of one stage: of its sweeps, of its strategy's messages, of its reductions."""

    def __init__(self, common: Prices, choice: core.Choice, stage: int):
        self.common, self.number = common, stage
        step = core.step_of(choice)
        one, profile = step.stages[stage], common.profile
        near, between = (PLAIN, PLAIN) if common.buffered else transports_of(choice.strategy_of(one.name))
        near_cost = surcharge(profile, near)
        self.surcharges = (near_cost, near_cost if between == near else surcharge(profile, between))
        names = [] if common.buffered else common.sweeps[stage]
        self.kernels = [profile.kernel(name) for name in names]
        self.fused = [profile.fused_kernel(name) for name in names]
        if choice.substeps == "blocked" and choice.depth > 1 and not all(self.fused):
            raise NotAvailable(
                f"profile '{profile.name}' has no cost of sweeps of '{names[0]}' that are fused in the cache; "
                f"calibrate the machine, or choose substeps full or shrink"
            )
        self.first_reduction = sum(len(other.reductions) for other in step.stages[:stage])
        # Ranks of a pipeline are in different steps: their numbers travel with the lines, and no rank waits for all
        # others.
        pipelined = core.find_schedule(choice.schedule).in_place
        self.meets = not pipelined
        self.waits = [r.mode == "blocking" or choice.ranks == 1 for r in one.reductions]
        self._sweeping: dict[tuple, tuple[float, float]] = {}

    def sweep(self, number: int, cells: int, block: int, workers: int, active: float, levels: int = 1) -> float:
        """Return the seconds in which `workers` threads carry out one of the stage's sweeps on `cells` cells, with
        `active` cores of the socket busy.

        block: cells of a whole step. levels: sweeps done at once; without a cost for several they cost the same number
        of single ones; where only other numbers have a cost, the nearest counts. A piece of a block has the block's
        cost per cell, since the previous step has left in the cache its share of the block, not of the piece; only the
        fixed time of a call is the piece's own.
        """
        if cells == 0:
            return 0.0
        key = (number, block, workers, active, levels)
        if key not in self._sweeping:
            share, kernel, fused, note = (
                block / workers,
                self.kernels[number],
                self.fused[number],
                self.common.range.check,
            )
            if levels > 1 and fused:
                note("sweeps done at once", levels, min(fused), max(fused) + 1)
                kernel = fused[min(fused, key=lambda known: abs(math.log(known / levels)))]
            note("active cores per socket", active, min(kernel), max(kernel) + 1)
            law = kernel[min(kernel, key=lambda count: abs(count - active))]
            note("cells per thread", share, law[0].start, law[-1].end)
            whole = max(0.0, segments.evaluate_at(kernel, active, share))
            fixed = min(whole, max(0.0, segments.evaluate_at(kernel, active, 0)))
            self._sweeping[key] = fixed, (whole - fixed) / block
        fixed, per_cell = self._sweeping[key]
        return fixed + per_cell * cells

    def message(
        self, traffic: core.Traffic, flight: float, far: bool, threads: int, block_bytes: int = 0
    ) -> MessagePrice:
        """Return the price of one message. flight: seconds it travels; far: it goes to another node; block_bytes: of one
        slot of the block that it leaves."""
        extra, copying = self.surcharges[far], self.common.copying
        if self.common.buffered:
            traffic = core.Traffic(traffic.bytes, traffic.bytes, True)
        packing = 0.0 if traffic.in_place else copying(traffic, threads, block_bytes)
        added = extra.of_message(traffic)
        copies = 0.0
        if extra.copies:
            whole = core.Traffic(traffic.bytes, CONTIGUOUS_FROM, True)
            copies = extra.copies * copying(whole, threads, block_bytes)
        pack, left = _less(packing, added)
        flight, left = _less(flight, left)
        unpack, _ = _less(packing, left)
        return MessagePrice(pack, max(added, 0.0), copies, flight, unpack)


def _less(seconds: float, change: float) -> tuple[float, float]:
    """Shorten a time by a negative change as far as it goes; return it and what is left of the change."""
    return (max(0.0, seconds + change), min(0.0, seconds + change)) if change < 0 else (seconds, 0.0)


@dataclass(frozen=True)
class MessagePrice:
    """Seconds of one message: packing it, what its transport adds at the sender, travelling, unpacking it."""

    pack: float
    synchronisation: float
    copy: float
    flight: float
    unpack: float


@dataclass(frozen=True)
class Where:
    """Where the rank of a class is: how many ranks share its socket and its device, and per message of its plan whether it is
    `far` (goes to another node), how long it travels (`flights`, seconds), and which part of that its receiver must spend in
    calls (`held`, 0 to 1)."""

    ranks_on_socket: int
    far: Sequence[bool]
    flights: Sequence[float]
    held: Sequence[float]
    ranks_on_device: float = 1.0


def actions(
    program: core.Program,
    plan: core.Plan,
    prices: StagePrices,
    where: Where,
    traffic: Sequence[core.Traffic],
    copies: Sequence,
) -> tuple[Action, ...]:
    """Return the program's operations with their prices, in the program's order.

    traffic: of the plan's messages; copies: traffic of the program's copy sets.
    """
    pricing = _Pricing(program, plan, prices, where, traffic, copies)
    return tuple(map(pricing.action, program.ops))


def flights(
    plan: core.Plan, prices: StagePrices, where: Where, traffic: Sequence, eager: float
) -> Mapping[int, Flight]:
    """Return how long each outgoing message travels; those of `eager` bytes or more advance only inside calls."""
    found = {}
    size = slot_bytes(plan)
    for m, message in enumerate(plan.messages):
        if message.out:
            price = prices.message(traffic[m], where.flights[m], where.far[m], prices.common.threads, size)
            seconds = price.flight
            if tasks := prices.common.device and prices.common.device.tasks:
                seconds = tasks.flight(seconds, message.bytes, traffic[m].run_bytes, where.ranks_on_device)
            found[m] = Flight(seconds, message.bytes < eager, where.held[m] * seconds)
    return found


def slot_bytes(plan: core.Plan) -> int:
    """Return the bytes of one slot of a rank's first field, halos included."""
    return plan.allocated[0].volume * plan.spec.quantities[0].element_bytes


def piece_counts(region: core.Box, plan: core.Plan, dims: int) -> tuple[int, float]:
    """Return the extra cost units of a piece of a block over its share: the cells of its lowest plane (2D: row), and
    the rows that it has in excess of the block's for the same number of cells."""
    x, y, z = region.shape
    return (x * y if dims == 3 else x), max(0.0, y * z - region.volume / plan.owned[0].shape[0])


Parts = Sequence[tuple[str, float]]  # term, seconds


class _Pricing:
    def __init__(
        self,
        program: core.Program,
        plan: core.Plan,
        prices: StagePrices,
        where: Where,
        traffic: Sequence[core.Traffic],
        copies: Sequence[core.Traffic],
    ):
        self.program, self.plan, self.prices, self.where = program, plan, prices, where
        self.common = common = prices.common
        self.copies, self.traffic, self.slot_bytes = copies, traffic, slot_bytes(plan)
        self.packers = 1 if program.comm_thread else common.threads
        self.incoming = sum(not m.out for m in plan.messages)
        cells: Counter = Counter()  # by step and sweep
        for sweep in program.sweeps:
            cells[sweep.step, sweep.number] += sweep.cells
        self.block = max(cells.values(), default=0)
        self.pieces = Counter((sweep.step, sweep.number) for sweep in program.sweeps if sweep.region.volume)
        others = sum(op.kind != "sweep" for op in program.ops)
        cost = common.steps
        self.overhead = (cost.per_program_s + cost.per_operation_s * len(program.ops)) / max(1, others)
        waits = sum(op.kind == "wait" for op in program.ops)
        peers = {m.peer for m in plan.messages if m.out}
        self.far = self.slot_bytes >= common.profile.cache_limit
        self.waiting = 0.0 if program.device else cost.waiting(len(peers), self.far) / max(1, waits)
        self._streams = (
            price_device.StreamActions(
                program, common.device, common.sweeps[prices.number], where.ranks_on_device, traffic, copies
            )
            if common.device
            else None
        )
        self.messages = [
            prices.message(t, f, far, self.packers, self.slot_bytes)
            for t, f, far in zip(traffic, where.flights, where.far, strict=True)
        ]

    @property
    def streams(self) -> price_device.StreamActions:
        """The device's part; only programs of a choice with a device ask for it."""
        assert self._streams is not None
        return self._streams

    def action(self, op: core.Op) -> Action:
        if price_device.on_stream(op):
            return self.streams.action(op)
        has_set = op.kind in ("post", "pack", "send", "wait", "unpack", "complete")
        messages = self.program.sets[op.target] if has_set else ()
        kind = op.kind if op.kind in ("sweep", "send", "wait", "complete", "progress", "barrier") else "work"
        priced = [*getattr(self, op.kind)(op, messages), ("runner", self.overhead)]
        parts = tuple((term, s) for term, s in priced if s > 0)
        if op.kind in ("reduce", "reduced") and self.prices.meets:
            return self.reduction(op, parts)
        seconds = self.sweeping(self.program.sweeps[op.target], op) if op.kind == "sweep" else (0.0, 0.0, 0.0)
        return Action(kind, op.lane == "comm", op.after, parts, messages, seconds)

    def nothing(self, op: core.Op, messages: Sequence[int]) -> Parts:
        return ()

    barrier = complete = sweep = reduce = reduced = nothing

    def reduction(self, op: core.Op, parts: tuple[tuple[str, float], ...]) -> Action:
        """Giving numbers to a reduction, or waiting for them."""
        number = self.prices.first_reduction + op.target
        return Action(op.kind, False, op.after, parts, reduction=number, collective_s=self.common.reductions_s[number],
                      waits=op.kind == "reduce" and self.prices.waits[op.target])  # fmt: skip

    def progress(self, op: core.Op, messages: Sequence[int]) -> Parts:
        return [("synchronisation", self.common.profile.data.get("overlap", {}).get("call_s", 0.0))]

    def post(self, op: core.Op, messages: Sequence[int]) -> Parts:
        share = len(messages) / self.incoming if self.incoming else 1.0
        return [("synchronisation", share * sum(s.per_exchange_s for s in self.used(range(len(self.messages)))))]

    def copy(self, op: core.Op, messages: Sequence[int]) -> Parts:
        return [("copy", self.common.copying(self.copies[op.target], self.packers, self.slot_bytes, "copy"))]

    def ring(self, op: core.Op, messages: Sequence[int]) -> Parts:
        """The host's part in giving cells to a device's block, or in taking them."""
        size, run_bytes = self.streams.ring(op.target)
        traffic = core.Traffic(round(size), max(1, round(run_bytes)), False)
        return [("pack" if op.kind == "gather" else "unpack", self.common.copying(traffic, 1, self.slot_bytes))]

    gather = scatter = ring

    def pack(self, op: core.Op, messages: Sequence[int]) -> Parts:
        return [("pack", sum(self.messages[m].pack for m in messages))]

    def send(self, op: core.Op, messages: Sequence[int]) -> Parts:
        return [
            ("synchronisation", sum(self.messages[m].synchronisation for m in messages)),
            ("copy", sum(self.messages[m].copy for m in messages)),
        ]

    def wait(self, op: core.Op, messages: Sequence[int]) -> Parts:
        waiting = self.waiting * self.uneven_s if self.waiting else 0.0
        return [("synchronisation", sum(s.per_round_s for s in self.used(messages))), ("wait", waiting)]

    def unpack(self, op: core.Op, messages: Sequence[int]) -> Parts:
        # Data that another core wrote into a block beyond the cache has left that core's cache by the time it is read.
        near = () if self.far else messages
        reading = sum(self.prices.surcharges[bool(self.where.far[m])].of_reading(self.traffic[m]) for m in near)
        return [("unpack", sum(self.messages[m].unpack for m in messages)), ("compute", reading)]

    def used(self, messages: Iterable[int]) -> list[Surcharge]:
        """Descriptions of the transports that move some of these messages; without messages, of the one inside nodes."""
        near, between = self.prices.surcharges
        far = {bool(self.where.far[m]) for m in messages}
        return [near] if near is between else [near] * (far != {True}) + [between] * (True in far)

    @functools.cached_property
    def uneven_s(self) -> float:
        """The base of the waiting share: sweeps vary independently, so their variances add, not their times."""
        sweeps = (op for op in self.program.ops if op.kind == "sweep")
        return math.hypot(*(self.sweeping(self.program.sweeps[op.target], op)[2] for op in sweeps))

    def piece(self, sweep: core.Sweep) -> float:
        """Return the seconds by which a part of a block takes longer than its share of a sweep of the whole block."""
        if self.pieces[sweep.step, sweep.number] < 2 or not sweep.region.volume:
            return 0.0
        lowest, rows = piece_counts(sweep.region, self.plan, self.common.dims)
        cost = self.common.steps
        far = cost.per_far_piece_row_s * self.far
        return cost.per_piece_s + cost.per_piece_cell_s * lowest + (cost.per_piece_row_s + far) * rows

    def sweeping(self, sweep: core.Sweep, op: core.Op) -> tuple[float, float, float]:
        threads, ranks, cells = self.common.threads, self.where.ranks_on_socket, sweep.region.volume * sweep.levels

        def by(workers: int, busy: int) -> float:
            cores = min(ranks * busy, self.common.profile.machine["cores_per_socket"])
            alone = self.prices.sweep(sweep.number, cells, self.block, workers, cores, sweep.levels)
            return alone + self.piece(sweep) / workers

        if not self.program.comm_thread:
            alone = sweep.region.volume < core.shared_sweep_cells() and not sweep.in_place
            return 0.0, 0.0, by(1, 1) if alone else by(threads, threads)
        return by(threads - 1, threads), by(threads - 1, threads - 1), by(threads, threads)
