"""The values of the core: plans and programs, as frozen dataclasses with the names of the C++ structs.

Rank-local boxes count from the rank's first owned cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from haloscope.bridge.box import Box, Triple
from haloscope.bridge.layout import Layout

EMPTY = Box((0, 0, 0), (0, 0, 0))


@dataclass(frozen=True)
class Quantity:
    """One field. type: real, integer. centring: cell, node, face_x, face_y, face_z. slots: 2: double-buffered.

    edges: per dimension, the values beyond its low and its high edge: fixed, inner ones mirrored (even) or also negated
    (odd), or the nearest inner one.
    """

    name: str = "u"
    element_bytes: int = 8
    type: str = "real"
    centring: str = "cell"
    slots: int = 1
    edges: tuple[tuple[str, str], ...] = (("fixed", "fixed"),) * 3


@dataclass(frozen=True)
class ExchangeSpec:
    """The definition of one exchange's data; low and high are ghost layers per dimension.

    widths: by quantity (low, high) where they differ, () = low and high for all. pattern: ordered, direct. merge: the
    quantities that share a message: all, type, none. order: dimensions in the order of an ordered plan's rounds.
    """

    quantities: tuple[Quantity, ...] = (Quantity(),)
    low: Triple = (1, 1, 1)
    high: Triple = (1, 1, 1)
    pattern: str = "ordered"
    corners: bool = True
    merge_peers: bool = False
    merge: str = "all"
    order: Triple = (0, 1, 2)
    widths: tuple[tuple[Triple, Triple], ...] = ()


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
    """A halo box `to` filled from the same rank's points at `to` + `shift`, negated or not."""

    quantity: int
    round: int
    to: Box
    shift: Triple
    negate: bool = False


@dataclass(frozen=True)
class Traffic:
    """The memory layout of a message, or of copies, in a field: the mean bytes of a contiguous run (run_bytes), and
    whether all bytes are one run, which needs no packing (in_place, messages only)."""

    bytes: int
    run_bytes: int
    in_place: bool


@dataclass(frozen=True)
class Plan:
    """The messages and copies of one rank in one exchange. Made by `make_plan`. traffic: of each message."""

    layout: Layout
    rank: int
    dims: int
    rounds: int
    cells: Triple
    has_neighbour: tuple[tuple[bool, bool], ...]
    own_neighbour: tuple[bool, bool, bool]
    spec: ExchangeSpec
    messages: tuple[Message, ...]
    traffic: tuple[Traffic, ...]
    copies: tuple[Copy, ...]
    owned: tuple[Box, ...]  # per quantity: points of this rank, shared planes included
    allocated: tuple[Box, ...]  # per quantity: with every ghost layer, also beyond physical edges

    def sent(self) -> list[Message]:
        """Return the messages that this rank sends."""
        return [m for m in self.messages if m.out]


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
    """The input of a schedule.

    depth: steps per exchange; steps: of this program, 1 to depth. substeps: full, shrink, blocked. tiles: of `split`.
    sharing: guided, dynamic. barrier: before exchanges. collective_rounds: operations for ranks without messages too.
    series: which program of a `pipeline`: whole, opening, entry, body, closing. device: fields are on one; staged: its
    messages go through host memory; pack_first: interior sweeps of `streams` start after the first round is packed;
    walls: layers of the host around a device's block. last: with the reductions of a run's last step. slots: of the
    step; flips: the stage writes double-buffered quantities. signals: one kernel a round moves all its messages.
    """

    depth: int = 1
    steps: int = 1
    substeps: str = "full"
    tiles: int = 8
    sharing: str = "guided"
    barrier: bool = False
    collective_rounds: bool = False
    series: str = "whole"
    device: bool = False
    staged: bool = False
    pack_first: bool = True
    walls: int = 1
    last: bool = False
    slots: int = 2
    flips: bool = True
    signals: bool = False


@dataclass(frozen=True)
class Op:
    """One operation; `after`: operations that must have finished; `target`: a set, sweep, ring or reduction, by kind.

    lane: main (all threads), comm (one thread), sweep_stream, halo_stream (of a device); all but main in program order.
    """

    kind: str
    lane: str
    slot: int
    target: int
    after: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """One of a stage's sweeps (its `number`) on `region`, of which `valid` holds correct values afterwards.

    twin: more cells that the same launch of a device writes, the opposite face. faces: halos are read from received
    messages, and messages of the next exchange are written too.
    """

    region: Box
    valid: Box
    into: int
    step: int
    levels: int
    part: str
    twin: Box
    faces: bool
    number: int = 0
    in_place: bool = False
    whole: Box = EMPTY

    @property
    def cells(self) -> int:
        """The number of written cells."""
        return self.region.volume + self.twin.volume


@dataclass(frozen=True)
class Ring:
    """Cells that the host has and a device's block needs, or the other way round; boxes are disjoint."""

    to_device: bool
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Program:
    """The operations of the steps between two exchanges. Sets hold message numbers of the plan.

    device: some operations run on a device. wraps: sweeps reach own-neighbour cells by wrapping around, without halos.
    signals: one kernel packs a round's messages, waits for its peers' and unpacks them. block: cells of a device
    where the host has the rest, empty = all on one side; rings: the cells that the two exchange.
    """

    steps: int
    slots: int
    final_slot: int
    comm_thread: bool
    sharing: str
    device: bool
    wraps: bool
    signals: bool
    ops: tuple[Op, ...]
    sweeps: tuple[Sweep, ...]
    sets: tuple[tuple[int, ...], ...]
    copy_sets: tuple[tuple[Copy, ...], ...]
    block: Box
    rings: tuple[Ring, ...]
