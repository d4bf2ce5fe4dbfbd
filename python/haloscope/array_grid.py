"""The grid whose blocks the ranks of a Cartesian communicator hold in their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from haloscope import memory
from haloscope.arguments import flag
from haloscope.errors import UsageError
from haloscope.fields import fields_of, layers_of, name_of, slots_of
from haloscope.grid import Grid, Halo, cartesian_split, points_between, split_axes, without_ends
from haloscope.ranks import agree, gather, member


@dataclass(frozen=True)
class _Block:
    """Cells per axis and order of axes of a rank's first array; split of its communicator, by dimension."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    axes: list[int | None]  # axes of arrays that the communicator splits
    split: Sequence[int]  # ranks
    periods: Sequence[bool]

    def numbers(self) -> list[int]:
        """Return the numbers that other ranks need; their count is the same on each rank."""
        cells = [*self.shape, 1, 1][:3]
        return [int(self.order == "F"), *cells, *(-1 if axis is None else axis for axis in self.axes)]


def grid_of_arrays(comm: Any, arrays: Any, layers: tuple[Halo, Halo | None], axes: Any) -> Grid:
    """Return the grid whose blocks the ranks of a Cartesian communicator hold in their arrays. Collective."""
    rank, size = member(comm)
    block: _Block = agree(comm, "a grid", lambda: _own_block(comm, arrays, layers, axes))
    found = gather(comm, "a grid", block.numbers())
    orders, blocks, split_axes = found[:, 0], found[:, 1:4], found[:, 4:]
    if (split_axes != split_axes[0]).any():
        raise UsageError(
            "the ranks name different axes that the communicator splits; pass the same axes on all of them"
        )
    places = np.stack(np.unravel_index(np.arange(size), block.split), axis=1)  # MPI numbers the last dimension first

    def line(along: int, of: int) -> np.ndarray:
        """Return a mask of the ranks in line with rank `of` along dimension `along` of the communicator."""
        others = np.delete(places, along, axis=1)
        same: np.ndarray = (others == others[of]).all(axis=1)
        return same

    owned, cells, wraps = [], [], []
    for axis, extent in enumerate(block.shape):
        start, all_cells, periodic = 0, extent, False
        if axis in block.axes:
            along = block.axes.index(axis)
            before = places[:, along] < places[rank, along]
            start = int(blocks[line(along, rank) & before, axis].sum())
            all_cells, periodic = int(blocks[line(along, 0), axis].sum()), bool(block.periods[along])
        owned.append(slice(start, start + extent))
        cells.append(all_cells)
        wraps.append(periodic)
    return Grid(comm, cells, periodic=wraps, owned=owned, order="F" if orders[0] else "C")


def _own_block(comm: Any, arrays: Any, layers: tuple[Halo, Halo | None], axes: Any) -> _Block:
    cartesian, fields = cartesian_split(comm), fields_of(arrays)
    if cartesian is None:
        raise UsageError(
            "the communicator has no Cartesian topology, which would define neighbours; make it with "
            "comm.Create_cart(), or pass a haloscope.Grid"
        )
    if not fields:
        raise UsageError("an exchange of no arrays; pass at least one")
    split = split_axes(axes, cartesian[0])
    dims = 1 + max((axis for axis in split if axis is not None), default=0)
    field = fields[0]
    name = name_of(field, 0)
    array = memory.described(slots_of(field, name)[0], name)
    _, room = layers_of(field, *layers, dims)
    if not flag("outer", field.outer):
        room = without_ends(_ends(split, dims, *cartesian), room)
    between = points_between(field.centring or "cell", dims)
    shape = tuple(n - sum(side) - more for n, side, more in zip(array.shape, room, between, strict=False))
    if len(shape) != dims or min(shape) < 1:
        raise UsageError(
            f"the array has shape {array.shape}, the communicator splits axes {tuple(split)} and the halo is {room}; "
            f"pass an array of {dims} axes or more, larger than its halo"
        )
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return _Block(shape, order, split, *cartesian[:2])


def _ends(
    axes: list[int | None], dims: int, split: Sequence[int], periods: Sequence[bool], place: Sequence[int]
) -> list[tuple[bool, bool]]:
    """Return for each axis of arrays whether the grid ends at the low and at the high side of this rank.

    axes: the axes that the dimensions of a communicator split. Other axes are whole and do not wrap around.
    """
    ends = [(True, True)] * dims
    for axis, ranks, wraps, coord in zip(axes, split, periods, place, strict=True):
        if axis is not None:
            ends[axis] = (not wraps and coord == 0, not wraps and coord == ranks - 1)
    return ends
