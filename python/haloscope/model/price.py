"""What each operation of a program costs on one rank: seconds by term, from a machine profile and the plan's own messages.

Bytes, boxes and stretches of memory come from plans and programs; nothing here counts a cell or a byte of its own. Transports
are known by their cost description only: what they add to plain messages, per message, byte, round and exchange. A negative
sum (fields that neighbours read in place need no packing) shortens packing, then travelling, then unpacking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from haloscope import core
from haloscope.errors import NotAvailable
from haloscope.model import segments
from haloscope.model.compose import Action, Flight
from haloscope.model.profile import Profile

PLAIN = "p2p"  # the transport that network costs are measured with; descriptions of others are relative to it
CONTIGUOUS_FROM, LINES_FROM = 4096, 64  # bytes without a gap: a page streams, a cache line is used whole
SHARED_FROM = 4096  # cells: smaller sweeps are not shared by a team (Runner::sweep_alone)


def stride_class(run_bytes: float) -> str:
    """Return the class of the profile's `pack` section for stretches of so many bytes without a gap."""
    return "contiguous" if run_bytes >= CONTIGUOUS_FROM else "lines" if run_bytes >= LINES_FROM else "strided"


@dataclass(frozen=True)
class Surcharge:
    """What a transport costs beside plain messages, in seconds; copies: how often each byte is copied beside packing."""

    per_message_s: float = 0.0
    per_round_s: float = 0.0
    per_exchange_s: float = 0.0
    per_byte_s: float = 0.0
    per_gapped_byte_s: float = 0.0  # of messages that are several stretches of memory
    per_row_s: float = 0.0  # per stretch that is shorter than a cache line
    copies: float = 0.0

    def of_message(self, traffic: core.Traffic) -> float:
        """Return the seconds that one message costs beside a plain one; may be negative."""
        gapped = 0 if traffic.in_place else traffic.bytes
        rows = gapped / traffic.run_bytes if gapped and traffic.run_bytes < LINES_FROM else 0.0
        return (
            self.per_message_s
            + self.per_byte_s * traffic.bytes
            + self.per_gapped_byte_s * gapped
            + self.per_row_s * rows
        )


def surcharge(profile: Profile, transport: str) -> Surcharge:
    """Return the description of a transport as strategies write it, `NAME[:options]`.

    Raises NotAvailable when the profile has none for just these options.
    """
    known = {PLAIN: {}} | profile.data.get("transports", {})
    if transport not in known:
        raise NotAvailable(
            f"profile '{profile.name}' has no cost of transport '{transport}' (it has {', '.join(sorted(known))}); "
            f"calibrate with it, or choose another strategy"
        )
    return Surcharge(**{key: value for key, value in known[transport].items() if key in Surcharge.__dataclass_fields__})


def transports_of(strategy: str) -> tuple[str, str]:
    """Return the transports inside and between nodes of a strategy such as `ordered/shared+p2p`; often the same."""
    parts = strategy.partition("/")[2].split("+") if "/" in strategy else [strategy]
    return parts[0], parts[-1]


def kernel_of(choice: core.Choice) -> str:
    """Return the name of a choice's kernel in profiles, APP/FORM/REAL."""
    return f"{choice.app}/{choice.form or core.forms(choice.app)[0]}/{choice.real}"


class Range:
    """The amounts that costs were asked for beyond what a profile was calibrated for, by what was asked."""

    def __init__(self):
        self.outside: dict[str, tuple[float, float, str]] = {}

    def check(self, what: str, amount: float, low: float, high: float) -> None:
        """Note an amount outside [low, high)."""
        if low <= amount < high:
            return
        least, most, _ = self.outside.get(what, (amount, amount, ""))
        end = "" if math.isinf(high) else f" to {high:g}"
        self.outside[what] = (min(least, amount), max(most, amount), f"{low:g}{end}")

    def texts(self) -> list[str]:
        """Say for every cost what was asked and what the profile covers."""
        return [
            f"{what} of {least:g}{f' to {most:g}' if most > least else ''}; calibrated: {known}"
            for what, (least, most, known) in self.outside.items()
        ]


class Prices:
    """The prices of one choice on one machine.

    Raises NotAvailable when the profile lacks the kernel, the transport or, once something is packed, its cost.
    """

    def __init__(self, profile: Profile, choice: core.Choice):
        self.profile, self.threads, self.range = profile, choice.threads, Range()
        near, between = transports_of(choice.strategy)
        near_cost = surcharge(profile, near)
        self.surcharges = (near_cost, near_cost if between == near else surcharge(profile, between))
        self.kernel_name = kernel_of(choice)
        self.kernel = profile.kernel(self.kernel_name)
        self._copying: dict = {}
        self._sweeping: dict = {}

    def copying(self, traffic: core.Traffic, threads: int, block_bytes: int = 0, what: str = "pack") -> float:
        """Return the seconds of gathering, scattering or copying so many bytes: by the team only where that pays.

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

    def sweep(self, cells: int, block: int, workers: int, active: float) -> float:
        """Return the seconds in which `workers` threads sweep so many cells, with `active` cores of the socket busy.

        block: cells of a whole step. A piece of a block costs per cell what the block does, since the step before has left in
        the cache what it has of the block, not of the piece; only the fixed time of a call is the piece's own.
        """
        if cells == 0:
            return 0.0
        key = (block, workers, active)
        if key not in self._sweeping:
            share = block / workers
            self.range.check("active cores per socket", active, min(self.kernel), max(self.kernel) + 1)
            law = self.kernel[min(self.kernel, key=lambda count: abs(count - active))]
            self.range.check("cells per thread", share, law[0].start, law[-1].end)
            whole = max(0.0, segments.evaluate_at(self.kernel, active, share))
            fixed = min(whole, max(0.0, segments.evaluate_at(self.kernel, active, 0)))
            self._sweeping[key] = fixed, (whole - fixed) / block
        fixed, per_cell = self._sweeping[key]
        return fixed + per_cell * cells

    def message(
        self, traffic: core.Traffic, flight: float, far: bool, threads: int, block_bytes: int = 0
    ) -> MessagePrice:
        """Return the price of one message. flight: seconds it travels; far: it goes to another node; block_bytes: of one
        slot of the block that it leaves."""
        extra = self.surcharges[far]
        packing = 0.0 if traffic.in_place else self.copying(traffic, threads, block_bytes)
        added = extra.of_message(traffic)
        copies = 0.0
        if extra.copies:
            whole = core.Traffic(traffic.bytes, CONTIGUOUS_FROM, True)
            copies = extra.copies * self.copying(whole, threads, block_bytes)
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
    """Where the rank of a class is: how many ranks share its socket, and per message of its plan whether it is `far` (goes
    to another node), how long it travels (`flights`, seconds), and which part of that its receiver must spend in calls
    (`held`, 0 to 1)."""

    ranks_on_socket: int
    far: Sequence[bool]
    flights: Sequence[float]
    held: Sequence[float]


def actions(
    program: core.Program,
    plan: core.Plan,
    prices: Prices,
    where: Where,
    traffic: Sequence[core.Traffic],
    copies: Sequence,
) -> tuple[Action, ...]:
    """Return the program's operations with their prices, in the program's order.

    traffic: of the plan's messages; copies: traffic of the program's copy sets.
    """
    return tuple(_Pricing(program, plan, prices, where, traffic, copies).action(op) for op in program.ops)


def flights(plan: core.Plan, prices: Prices, where: Where, traffic: Sequence, eager: float) -> Mapping[int, Flight]:
    """Return how long each outgoing message travels; those of `eager` bytes or more advance only inside calls."""
    found = {}
    for m, message in enumerate(plan.messages):
        if message.out:
            price = prices.message(traffic[m], where.flights[m], where.far[m], prices.threads, slot_bytes(plan))
            found[m] = Flight(price.flight, message.bytes < eager, where.held[m] * price.flight)
    return found


def slot_bytes(plan: core.Plan) -> int:
    """Return the bytes of one slot of a rank's first field, halos included."""
    return plan.allocated[0].volume * plan.spec.quantities[0].element_bytes


class _Pricing:
    def __init__(self, program, plan, prices, where, traffic, copies):
        self.program, self.plan, self.prices, self.where = program, plan, prices, where
        self.copies = copies
        self.packers = 1 if program.comm_thread else prices.threads
        self.incoming = sum(not m.out for m in plan.messages)
        steps: dict[int, int] = {}
        for sweep in program.sweeps:
            steps[sweep.step] = steps.get(sweep.step, 0) + sweep.region.volume
        self.block = max(steps.values(), default=0)
        self.messages = [
            prices.message(t, f, far, self.packers, slot_bytes(plan))
            for t, f, far in zip(traffic, where.flights, where.far, strict=True)
        ]

    def action(self, op: core.Op) -> Action:
        has_set = op.kind in ("post", "pack", "send", "wait", "unpack", "complete")
        messages = self.program.sets[op.target] if has_set else ()
        kind = op.kind if op.kind in ("sweep", "send", "wait", "complete", "progress", "barrier") else "work"
        parts = tuple((term, s) for term, s in getattr(self, op.kind)(op, messages) if s > 0)
        seconds = self.sweeping(self.program.sweeps[op.target], op) if op.kind == "sweep" else (0.0, 0.0, 0.0)
        return Action(kind, op.lane == "comm", op.after, parts, messages, seconds)

    def nothing(self, op, messages):
        return ()

    barrier = complete = sweep = nothing

    def progress(self, op, messages):
        return [("synchronisation", self.prices.profile.data.get("overlap", {}).get("call_s", 0.0))]

    def post(self, op, messages):
        share = len(messages) / self.incoming if self.incoming else 1.0
        return [("synchronisation", share * sum(s.per_exchange_s for s in self.used(range(len(self.messages)))))]

    def copy(self, op, messages):
        return [("copy", self.prices.copying(self.copies[op.target], self.packers, slot_bytes(self.plan), "copy"))]

    def pack(self, op, messages):
        return [("pack", sum(self.messages[m].pack for m in messages))]

    def send(self, op, messages):
        return [
            ("synchronisation", sum(self.messages[m].synchronisation for m in messages)),
            ("copy", sum(self.messages[m].copy for m in messages)),
        ]

    def wait(self, op, messages):
        return [("synchronisation", sum(s.per_round_s for s in self.used(messages)))]

    def unpack(self, op, messages):
        return [("unpack", sum(self.messages[m].unpack for m in messages))]

    def used(self, messages) -> list[Surcharge]:
        """Descriptions of the transports that move some of these messages; without messages, of the one inside nodes."""
        near, between = self.prices.surcharges
        far = {bool(self.where.far[m]) for m in messages}
        return [near] if near is between else [near] * (far != {True}) + [between] * (True in far)

    def sweeping(self, sweep: core.Sweep, op: core.Op) -> tuple[float, float, float]:
        threads, ranks, cells = self.prices.threads, self.where.ranks_on_socket, sweep.region.volume * sweep.levels

        def by(workers: int, busy: int) -> float:
            cores = min(ranks * busy, self.prices.profile.machine["cores_per_socket"])
            return self.prices.sweep(cells, self.block, workers, cores)

        if not self.program.comm_thread:
            alone = sweep.region.volume < SHARED_FROM and sweep.into != op.slot
            return 0.0, 0.0, by(1, 1) if alone else by(threads, threads)
        return by(threads - 1, threads), by(threads - 1, threads - 1), by(threads, threads)
