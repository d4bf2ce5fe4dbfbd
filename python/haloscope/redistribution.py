"""Redistributions: arrays move between two splits of one grid, as to other ranks or to pencils along another axis.

>>> from mpi4py import MPI
>>> import haloscope
>>> rows = haloscope.Grid(MPI.COMM_WORLD, (8, 8), process_grid="slabs")
>>> whole = haloscope.Grid(MPI.COMM_WORLD, (8, 8), active_ranks=1)
>>> u, all_of_u = rows.zeros(), whole.zeros(halo=0)
>>> u[rows.inner()] = 1.0
>>> haloscope.redistribute(rows, whole, u, haloscope.Field(all_of_u, halo=0))
>>> float(all_of_u.sum()) if all_of_u.size else 64.0
64.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloscope import memory
from haloscope.arguments import shown, text, whole
from haloscope.errors import UsageError
from haloscope.fields import Array, Described, Field, fields_of, name_of, refuse_other_types, slots_of, structs_of
from haloscope.grid import Block, Grid, Halo
from haloscope.lifetimes import Dropped, Opened
from haloscope.ranks import agree, call, gather, library, mark, member, refuse_unlike_types

Fields = Array | Field | Sequence[Array | Field]


class Redistribution(Opened):
    """A redistribution of arrays, opened once and run any number of times: call it, or use start() and finish().

    The points that ranks own in one split of a grid move to the ranks that hold them in the other one. Nodes and faces
    that several ranks hold get their owner's value, see Exchange.start_share(), on all holders. Ghost layers neither
    move nor change.
    """

    _kind = "redistribution"

    def __init__(
        self,
        first: Grid,
        second: Grid,
        sources: Fields,
        targets: Fields,
        halo: Halo = 1,
        *,
        strategy: str | None = None,
    ):
        """Open a redistribution. Collective. The arrays must stay in place.

        first, second: grids of the same cells and periodic axes on one communicator, of the same order of axes.
        sources: arrays in the first split, with their ghost layers, as for Exchange. targets: the same in the second
            one, in separate memory. A Field has its own `halo`. Where ranks have several blocks: the arrays of the
            first block, then of the next.
        halo: ghost layers that the arrays of both have, on every side, or per axis a number or (low, high).
        strategy: as for Exchange, without regard to HALOSCOPE_STRATEGY. None: "direct/p2p", on devices
            "direct:merged/auto-device". Buffers are as large as the arrays; "auto" holds buffers of several transports.

        Raises UsageError on all ranks for grids that differ, arrays that do not fit their grid or each other, and where
        ranks request different redistributions. Cost: some small collective calls and the opening of the transport.
        """
        known = next((grid for grid in (first, second) if isinstance(grid, Grid)), None)
        if known is None:
            raise UsageError(f"a redistribution of {shown(first)} and {shown(second)}; pass two haloscope.Grid objects")
        comm = known.comm
        member(comm)
        described, options, structs, dropped = agree(
            comm,
            "a redistribution",
            lambda: self._prepare((first, second), (sources, targets), halo, strategy),
            lambda: known.order,
        )
        waiting = dropped.waiting()
        count = len(described[0]) // len(first.blocks)
        types = [f"{one.name}: {one.type}" for one in described[0][:count]]
        found = gather(comm, "a redistribution", [len(waiting), mark(types)])
        refuse_unlike_types(comm, types, found[:, 1], "redistributions")
        handle = library()[0].new("hs_redistribution**")
        dropped.free(comm, waiting, found[:, 0])
        call("hs_redistribution_create", first._handle, second._handle, *structs, count, options, handle)
        self._grids = first, second  # in use as long as this
        self._begin(handle[0], dropped, first._size, described)

    def _prepare(self, grids: tuple[Grid, Grid], arrays: tuple[Any, Any], halo: Halo, strategy: Any) -> tuple:
        """Return the fields of both grids, the options, the fields as structs of C, and dropped exchanges."""
        ffi, lib = library()
        for grid in grids:
            if not isinstance(grid, Grid):
                raise UsageError(
                    f"a redistribution got {shown(grid)} in place of a grid; pass two haloscope.Grid objects"
                )
        if grids[0].order != grids[1].order:
            raise UsageError(
                f"the grids have orders {grids[0].order} and {grids[1].order}; make both with the same order"
            )
        described, slots = _described([fields_of(some) for some in arrays], [grid.blocks for grid in grids], halo)
        structs = [structs_of(grid, some) for grid, some in zip(grids, described, strict=True)]
        options = ffi.new("hs_exchange_options*")
        lib.hs_exchange_init_sized(options, ffi.sizeof("hs_exchange_options"))
        options.slots = slots
        if strategy is not None:
            self._strategy = ffi.new("char[]", text("strategy", strategy))
            options.strategy = self._strategy
        return described, options, structs, Dropped.on(grids[0].comm)

    def start(self, slot: int = 0, stream: Any = None) -> None:
        """Send all messages. Owned points of the sources must not change, nor targets be read, before finish().

        stream: for arrays on a device, as in Exchange.start(). Raises UsageError while a redistribution is in flight,
        and for a slot that does not exist.
        """
        if stream is None:
            call("hs_redistribution_start", self._open(), whole("slot", slot))
        else:
            on = library()[0].cast("void*", memory.stream_address(stream))
            call("hs_redistribution_start_on", self._open(), whole("slot", slot), on)

    def progress(self) -> bool:
        """Advance messages; return whether everything has arrived. Waits only as Exchange.progress() does."""
        done = library()[0].new("int32_t*")
        call("hs_redistribution_progress", self._open(), done)
        return bool(done[0])

    def finish(self) -> None:
        """Wait until all points have arrived, and sent ones may change."""
        call("hs_redistribution_finish", self._open())

    def __call__(self, slot: int = 0) -> None:
        """Move a slot: start() and finish()."""
        call("hs_redistribution_run", self._open(), whole("slot", slot))


def _described(
    fields: list[list[Field]], blocks: list[tuple[Block, ...]], halo: Halo
) -> tuple[list[list[Described]], int]:
    """Return the fields of both splits, described, and the number of their slots.

    Raises UsageError unless each block has the same fields, of the same types.
    """
    each = len(fields[0]) // len(blocks[0])
    if not each or [len(some) for some in fields] != [each * len(own) for own in blocks]:
        raise UsageError(
            f"a redistribution got {len(fields[0])} sources and {len(fields[1])} targets for {len(blocks[0])} and "
            f"{len(blocks[1])} blocks of this rank; pass the same arrays for each block of both splits, and at least "
            "one"
        )
    slots = len(slots_of(fields[0][0], name_of(fields[0][0], 0)))
    described = [
        [Described(own[number // each], field, number, (halo, None), slots) for number, field in enumerate(some)]
        for own, some in zip(blocks, fields, strict=True)
    ]
    for some in described:
        refuse_other_types(some, each)
    for source, target in zip(*(some[:each] for some in described), strict=True):
        if source.type != target.type:
            raise UsageError(
                f"{source.name} has elements of type {source.type} and its target of type {target.type}; pass arrays "
                "of the same types"
            )
    return described, slots


def redistribute(
    first: Grid,
    second: Grid,
    sources: Fields,
    targets: Fields,
    halo: Halo = 1,
    *,
    strategy: str | None = None,
) -> None:
    """Move arrays once from one split of a grid to another: opens a Redistribution, runs it, frees it. Collective."""
    with Redistribution(first, second, sources, targets, halo, strategy=strategy) as move:
        move()
