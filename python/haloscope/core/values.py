"""The values of the core: boxes, choices, plans and programs, as frozen dataclasses that mirror the C++ structs.

Dimension 0 is x; boxes are half-open, in cells; rank-local boxes count from the rank's first owned cell.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Box:
    """Half-open box [lo, hi) of cells."""

    lo: Triple
    hi: Triple

    @functools.cached_property
    def shape(self) -> Triple:
        """Cells per dimension, 0 where it is empty."""
        return tuple(max(0, h - l) for l, h in zip(self.lo, self.hi, strict=True))

    @functools.cached_property
    def volume(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def cells(self) -> Iterator[Triple]:
        """Yield every cell, x fastest. Cost O(volume)."""
        ranges = [range(l, h) for l, h in zip(self.lo, self.hi, strict=True)]
        return ((x, y, z) for z, y, x in itertools.product(*reversed(ranges)))

    def shifted(self, by: Sequence[int]) -> Box:
        """Return the box moved by `by` cells."""
        return Box(*(tuple(a + b for a, b in zip(side, by, strict=True)) for side in (self.lo, self.hi)))

    def __str__(self) -> str:
        """`[0,4)x[0,4)x[2,3)`; dimensions that a grid lacks are [0,1)."""
        return "x".join(f"[{l},{h})" for l, h in zip(self.lo, self.hi, strict=True))


@dataclass(frozen=True)
class App:
    """What plans and legality need to know of an app; `flops_per_point` is per time step."""

    name: str
    dims: int
    radius: int
    box_stencil: bool
    flops_per_point: float
    default_rule: str


@dataclass(frozen=True)
class Choice:
    """Everything a user picks for one run; defaults are those of C++ except that all dimensions wrap.

    cells: global cells per dimension, x first. periodic: one flag per dimension, () = all. form, process_grid: "" = the
    app's default. nodes: how many the ranks are split into, 0 = the real ones; placement of ranks on those: block,
    round-robin. device: back end whose devices hold the fields (cuda, hip, host), "" = none, the CPU. box: layers
    of the host around a device's block, of schedules box and box-overlap. graph: a device launches each program as one
    captured piece of work.
    """

    app: str = "advection3d"
    form: str = ""
    real: str = "f64"
    cells: tuple[int, ...] = (1, 1, 1)
    periodic: tuple[bool, ...] = ()
    ranks: int = 1
    process_grid: str = ""
    threads: int = 1
    strategy: str = "ordered/p2p"
    schedule: str = "bulk"
    depth: int = 1
    region: str = "full"
    sharing: str = "guided"
    nodes: int = 0
    placement: str = "block"
    device: str = ""
    box: int = 1
    graph: bool = False


@dataclass(frozen=True)
class Quantity:
    """One field that takes part in an exchange. type: real, integer. centring: cell, node, face_x, face_y, face_z."""

    name: str = "u"
    element_bytes: int = 8
    type: str = "real"
    centring: str = "cell"


@dataclass(frozen=True)
class ExchangeSpec:
    """Everything that decides what one exchange moves; low and high are ghost layers per dimension.

    pattern: ordered, direct. merge: which quantities share a message: all, type, none. order: dimensions in the order
    of an ordered plan's rounds.
    """

    quantities: tuple[Quantity, ...] = (Quantity(),)
    low: Triple = (1, 1, 1)
    high: Triple = (1, 1, 1)
    pattern: str = "ordered"
    corners: bool = True
    merge_peers: bool = False
    merge: str = "all"
    order: Triple = (0, 1, 2)


@dataclass(frozen=True)
class Region:
    """A box of one quantity, rank-local."""

    quantity: int
    box: Box


@dataclass(frozen=True)
class Message:
    """A one-way message of one rank; both ends list its regions in the same order."""

    out: bool
    peer: int
    tag: int
    round: int
    bytes: int
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Copy:
    """A halo box `to` filled from the same rank's cells at `to` + `shift`."""

    quantity: int
    round: int
    to: Box
    shift: Triple


@dataclass(frozen=True)
class Plan:
    """What one rank sends, receives and copies in one exchange. Made by `make_plan`."""

    rank: int
    dims: int
    rounds: int
    cells: Triple
    has_neighbour: tuple[tuple[bool, bool], ...]
    own_neighbour: tuple[bool, bool, bool]
    spec: ExchangeSpec
    messages: tuple[Message, ...]
    copies: tuple[Copy, ...]
    owned: tuple[Box, ...]  # per quantity: points of this rank, shared planes included
    allocated: tuple[Box, ...]  # per quantity: with every ghost layer, also beyond physical edges

    def sent(self) -> list[Message]:
        """Return the messages that this rank sends."""
        return [m for m in self.messages if m.out]


@dataclass(frozen=True)
class Traffic:
    """How the bytes of a message, or of copies, lie in a field: the mean length of a stretch without gaps (run_bytes), and
    whether they are one stretch, which nobody needs to pack (in_place, messages only)."""

    bytes: int
    run_bytes: int
    in_place: bool


@dataclass(frozen=True)
class Totals:
    """One exchange of all ranks; messages and bytes are counted where they are sent."""

    ranks: int
    messages: int
    bytes: int
    copies: int
    copy_bytes: int
    largest_message_bytes: int
    rank_messages_min: int
    rank_messages_max: int
    rank_bytes_min: int
    rank_bytes_max: int
    rank_cells_min: int
    rank_cells_max: int
    rank_peers_min: int
    rank_peers_max: int
    worst_rank: int


@dataclass(frozen=True)
class ScheduleOptions:
    """What a schedule may know: the stencil, steps per exchange (depth), steps of this program (1..depth), region
    (full, shrink, blocked), interior tiles of `split`, sharing (fixed, guided, dynamic), a barrier before exchanges,
    operations for ranks without messages too (collective_rounds), which program of a `pipeline` (series: whole, opening,
    entry, body, closing), fields on a device (device) whose messages go through host memory (staged), interior sweeps of
    `streams` after the first round is packed (pack_first), layers of the host around a device's block (box)."""

    radius: int = 1
    box_stencil: bool = False
    depth: int = 1
    steps: int = 1
    region: str = "full"
    tiles: int = 8
    sharing: str = "guided"
    barrier: bool = False
    collective_rounds: bool = False
    series: str = "whole"
    device: bool = False
    staged: bool = False
    pack_first: bool = True
    box: int = 1


@dataclass(frozen=True)
class Op:
    """One operation; `after` names the operations that must have finished, `target` a set, sweep or ring by kind.

    lane: main (all threads), comm (one at a time), sweep_stream, halo_stream (of a device); all but main in program order.
    """

    kind: str
    lane: str
    slot: int
    target: int
    after: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """One stencil application on `region`, of which `valid` holds right values afterwards.

    twin: more cells that the same launch of a device writes, the opposite face. faces: halos are read where messages have
    arrived, and what the next exchange sends is written there too.
    """

    region: Box
    valid: Box
    into: int
    step: int
    levels: int
    part: str
    twin: Box
    faces: bool

    @property
    def cells(self) -> int:
        """How many cells are written."""
        return self.region.volume + self.twin.volume


@dataclass(frozen=True)
class Ring:
    """Cells that the host has and a device's block needs, or the other way round; boxes are disjoint."""

    to_device: bool
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Program:
    """When things happen in the steps between two exchanges. Sets hold message numbers of the plan.

    device: some operations run on a device. wraps: sweeps reach own-neighbour cells by wrapping around, not through halos.
    block: cells that are a device's where the rest is the host's, empty = all on one side; rings: what the two exchange.
    """

    steps: int
    slots: int
    final_slot: int
    comm_thread: bool
    sharing: str
    device: bool
    wraps: bool
    ops: tuple[Op, ...]
    sweeps: tuple[Sweep, ...]
    sets: tuple[tuple[int, ...], ...]
    copy_sets: tuple[tuple[Copy, ...], ...]
    block: Box
    rings: tuple[Ring, ...]

    @property
    def packs_in_sweeps(self) -> bool:
        """Whether its sweeps also pack: what the execution before has swept needs no packing."""
        return any(sweep.faces for sweep in self.sweeps)
