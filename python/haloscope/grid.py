"""Grids of cells, split over the ranks of a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from haloscope.arguments import count, each, flag, flags, is_one, named, order_of, shown, text, whole
from haloscope.errors import UsageError
from haloscope.lifetimes import Unique
from haloscope.panels import Panels, structs_of
from haloscope.ranks import agree, call, checked, handle_of, library, member

if TYPE_CHECKING:
    from mpi4py import MPI

Halo = int | Sequence[int | tuple[int, int]]
_SLICES = "a slice for each axis, as (slice(0, 4), slice(0, 8)), or for several blocks a list of such tuples"
FOLDS = ("none", "node", "cell")  # HS_FOLD_
Centring = str  # "cell", "node", "face-0", "face-1", "face-2"


def cartesian_split(comm: Any) -> tuple[Sequence[int], Sequence[bool], Sequence[int]] | None:
    """Return ranks, periods and this rank's position by dimension of a communicator, by its topology, not class.

    None without a Cartesian topology. Local.
    """
    from mpi4py import MPI

    if checked(comm.Get_topology) != MPI.CART:
        return None
    split, periods, place = checked(checked(MPI.Cartcomm, comm).Get_topo)
    return split, periods, place


def split_axes(axes: Any, split: Sequence[int]) -> list[int | None]:
    """Return the axis of arrays that each dimension of a communicator of `split` processes splits.

    axes: the argument of Grid or Exchange; None: the first axes.
    """
    if axes is None:
        return list(range(len(split)))
    with named("axes", axes):
        entries = each("axes", axes, "for each dimension of the communicator the axis that it splits")
        found = [None if axis is None else whole("axes", axis) for axis in entries]
        split_ones = [axis for axis in found if axis is not None]
        if (
            len(found) != len(split)
            or len(set(split_ones)) != len(split_ones)
            or not all(0 <= a < 3 for a in split_ones)
        ):
            raise UsageError(
                f"axes is {shown(axes)}; the communicator has a Cartesian topology of {tuple(split)} ranks: pass for "
                "each of its dimensions the axis of arrays that it splits, from 0, each once, as axes=(1, 2)"
            )
    return found


class Block:
    """The cells of one block of a rank.

    Attributes: `owned`, its cells as global slices, and `shape`, its cells, per axis; `cells`, `periodic` and `fold` of
    the grid; `order`.
    """

    cells: tuple[int, ...]
    periodic: tuple[bool, ...]
    fold: str
    owned: tuple[slice, ...]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    _ends: list[tuple[bool, bool]]  # by axis: at an edge of the grid
    _dims: int

    def _dimension(self, axis: int) -> int:
        """Return the library's dimension of an axis: x is the axis that is contiguous in memory."""
        return axis if self.order == "F" else self._dims - 1 - axis

    def _by_axis(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Turn numbers by dimension into numbers by axis, or back."""
        return tuple(int(numbers[self._dimension(axis)]) for axis in range(self._dims))

    def _inner_sides(self, sides: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the widths, with 0 where this rank's cells end at an edge of the grid."""
        return without_ends(self._ends, sides)

    def zeros(self, halo: Halo = 1, dtype: Any = float, centring: Centring = "cell") -> np.ndarray:
        """Return an array of zeros for this rank's points and their halo. Local."""
        sides = sides_of(halo, self._dims)
        wanted = [n + low + high for n, (low, high) in zip(self.points(centring), sides, strict=True)]
        with named("dtype", dtype):
            element = np.dtype(dtype)
        return np.zeros(wanted, element, order=self.order)

    def inner(self, halo: Halo = 1) -> tuple[slice, ...]:
        """Return the slices of an array with this halo that hold this rank's points, as in u[grid.inner()]. Local."""
        return tuple(slice(low, -high or None) for low, high in sides_of(halo, self._dims))

    def points(self, centring: Centring = "cell") -> tuple[int, ...]:
        """Return this rank's points per axis: its cells, plus 1 in each axis where points lie between cells."""
        between = points_between(centring, self._dims)
        return tuple(n + more for n, more in zip(self.shape, between, strict=True))

    def _centring(self, centring: Centring) -> int:
        _, lib = library()
        between = points_between(centring, self._dims)
        if centring in ("cell", "node"):
            return int(lib.HS_CENTRING_CELL if centring == "cell" else lib.HS_CENTRING_NODE)
        return int(lib.HS_CENTRING_FACE_X) + self._dimension(between.index(1))


class _OneOfSeveral(Block):
    """A block of a rank on a grid where ranks have several."""

    def __init__(self, grid: Grid, owned: tuple[slice, ...], ends: list[tuple[bool, bool]]):
        self.cells, self.periodic, self.order, self._dims = grid.cells, grid.periodic, grid.order, grid._dims
        self.fold, self._ends = grid.fold, ends
        self.owned, self.shape = owned, _extents(owned)


class _NoneOfItsOwnError(UsageError, AttributeError):
    """An attribute that blocks have, and the grid lacks."""


class Grid(Block, Unique):
    """A grid of cells, split over the ranks of a communicator.

    Attributes: `comm`; `cells`, `periodic`, `ranks` (the process grid, or the grid of blocks) and `shape` (this rank's
    cells) per axis; `owned`, this rank's cells as global slices; `order`; `blocks`, this rank's blocks, of which each
    has `owned`, `shape`, zeros(), inner() and points(). Where ranks have several blocks, these alone have them.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        cells: Sequence[int],
        *,
        periodic: bool | Sequence[bool] = False,
        process_grid: str | Sequence[int] | None = None,
        owned: Sequence[slice] | Sequence[Sequence[slice]] | None = None,
        holes: bool = False,
        order: Literal["C", "F"] = "C",
        reorder: bool = False,
        nodes: Sequence[int] | None = None,
        axes: Sequence[int | None] | None = None,
        active_ranks: int | None = None,
        fold: Literal["none", "node", "cell"] = "none",
        panels: Panels | None = None,
    ):
        """Split `cells` (global, per axis, 1 to 3 axes) over `comm`. Collective.

        Arguments with a value for each axis or rank are lists, tuples or arrays of one axis, here and in all calls.

        A communicator with a Cartesian topology defines the split and the periodic axes. Its dimensions are the axes;
        if it has fewer, `axes` names the axes that it splits. Over other communicators, cells are split into blocks of
        nearly equal size, and rank numbers run along the last axis first (with order "F": the first).

        periodic: whether the grid wraps around, per axis or for all; ignored where the communicator defines it.
        process_grid: ranks per axis, such as (2, 1), or a rule: "cubic", "square", "prime-factors", "slabs". Default:
            blocks as close to cubes or squares as possible. Numbers in a text, as in "2x1", are refused, because C and
            C++ count from x.
        owned: this rank's cells, a slice of global indices per axis, counted from 0, not from the end. Blocks may be
            uneven but must line up; an empty slice: no cells. Topologies are ignored. For several blocks a rank (tiles,
            blocks that a balancer has dealt out) a list of such blocks, also on ranks with one or none. An exchange
            then takes the arrays of a rank's first block, then the same ones of the next. Arrays of devices need one
            block a rank.
        holes: whether cells may belong to no rank; with `owned`.
        order: the contiguous axis of arrays in memory, the last ("C") or the first ("F"), equal on all ranks. Arrays in
            another order work too, but slower.
        reorder: whether ranks may take other positions in the process grid, so that neighbours share nodes and sockets.
            The attribute `owned` then has this rank's cells; `comm` stays unchanged. Not allowed with a Cartesian
            topology, nor with the argument `owned`.
        nodes: the node of each rank, equal on all ranks, to emulate nodes on one machine. Default: machines are nodes.
        axes: for a communicator with a Cartesian topology, the axis that each of its dimensions splits, such as (1, 2)
            for arrays [z, y, x] in columns. The other axes are not split, and periodic by `periodic`. None in the
            list is a dimension of 1 rank that splits no axis.
        active_ranks: ranks that own cells, the first ones, for coarse grids and gathered fields. The others have arrays
            without cells and take part in collective calls. Not allowed with a Cartesian topology, nor with `owned`.
            Default: all; where no process grid of all ranks fits the cells, the largest number that fits.
        fold: the grid meets itself at the end of y, the last axis but one (with order "F": axis 1), as at the north of
            tripolar ocean grids: about nodes of cells ("node") or about centres of the last row ("cell"). Exchanges
            then fill the rows beyond it from inner rows in reverse, and make points on the fold equal; fields whose
            edge there is "odd" change their sign. x is periodic and y is not. Accumulations, shares and arrays of
            devices need a grid without a fold.
        panels: the cells are in panels, which meet at seams, turned against each other or not, as the faces of
            haloscope.cubed_sphere(): exchanges fill the points beyond an edge from the panel that it meets, and points
            beyond a corner where the ways around both of its edges lead to one place. Each block lies in one panel. The
            grid is not periodic in x and y. Accumulations, shares and arrays of devices need a grid without seams.

        Raises UsageError on all ranks for ranks and cells that do not fit each other, boxes that overlap or leave a gap
        (naming the cell), a topology with other positions or periods, a graph, and an order that differs between ranks;
        on the ranks that pass it, for anything but a communicator of one group of ranks. Cost: five reductions; with
        `owned`, 8 bytes from each rank to all and 48 a block, with `reorder` 8.
        """
        self.comm = comm
        self._rank, self._size = member(comm)
        options = agree(
            comm,
            "a grid",
            lambda: self._options(
                cells, periodic, process_grid, owned, holes, order, reorder, nodes, axes, active_ranks, fold, panels
            ),
            lambda: self.order,
        )
        ffi, lib = library()
        handle = ffi.new("hs_grid**")
        call("hs_grid_create_f", handle_of(comm), options, handle)
        self._handle = ffi.gc(handle[0], lib.hs_grid_free)
        self._read()

    def _options(
        self,
        cells: Sequence[int],
        periodic: Any,
        process_grid: Any,
        owned: Any,
        holes: bool,
        order: str,
        reorder: bool,
        nodes: Sequence[int] | None,
        axes: Any,
        active_ranks: int | None,
        fold: str,
        panels: Panels | None,
    ) -> Any:
        ffi, lib = library()
        counts = [count("cells", c) for c in each("cells", cells, "a number for each axis, as (512, 512)")]
        if not 1 <= len(counts) <= 3:
            raise UsageError(f"cells are {shown(cells)}, which are {len(counts)} axes; 1 to 3 can be split")
        self.order = order_of(order)
        self._dims = len(counts)
        options = ffi.new("hs_grid_options*")
        lib.hs_grid_init_sized(options, ffi.sizeof("hs_grid_options"))
        options.dims, options.holes, options.reorder = len(counts), flag("holes", holes), flag("reorder", reorder)
        if active_ranks is not None:
            options.active_ranks = whole("active_ranks", active_ranks)
        if not isinstance(fold, str) or fold not in FOLDS:
            raise UsageError(f"fold is {shown(fold)}; it is one of {', '.join(FOLDS)}")
        options.fold = FOLDS.index(fold)
        if nodes is not None:
            numbers = each("nodes", nodes, "the number of a node for each rank")
            self._nodes = ffi.new("int32_t[]", [whole("nodes", node) for node in numbers])
            if len(self._nodes) != self._size:
                raise UsageError(f"nodes has {len(self._nodes)} numbers for {self._size} ranks; pass one for each")
            options.nodes = self._nodes
        for axis, (cells_of_axis, wraps) in enumerate(
            zip(counts, flags("periodic", periodic, self._dims), strict=True)
        ):
            options.cells[self._dimension(axis)] = cells_of_axis
            options.periodic[self._dimension(axis)] = wraps
            options.axes[self._dimension(axis)] = axis  # the order in which a topology of other dimensions is compared
        if panels is not None:
            self._panels = structs_of(panels, [self._dimension(axis) for axis in range(self._dims)])
            options.panels, options.seams = self._panels
            options.panel_count, options.seam_count = map(len, self._panels)
        self._choose_split(options, counts, process_grid, owned, axes)
        return options

    def _choose_split(self, options: Any, cells: list[int], process_grid: Any, owned: Any, axes: Any) -> None:
        ffi, lib = library()
        cartesian = cartesian_split(self.comm)
        if axes is not None and (owned is not None or cartesian is None):
            raise UsageError(
                "axes names the axes that a communicator with a Cartesian topology splits; leave it out where owned "
                "lists the cells of each rank, and where the communicator has no such topology"
            )
        if process_grid is not None and (owned is not None or axes is not None):
            raise UsageError("owned and axes specify the position of each rank; leave process_grid out")
        if owned is not None:
            options.split = lib.HS_SPLIT_BOXES
            self._set_owned(options, owned, cells)
        elif cartesian is not None and (axes is not None or len(cartesian[0]) == self._dims):
            self._set_axes(options, cartesian[0], process_grid, axes)
        elif process_grid is not None:
            self._rule = ffi.new("char[]", self._rule_of(process_grid))
            options.process_grid = self._rule
        for name in ("reorder", "active_ranks"):
            if getattr(options, name) and options.split != lib.HS_SPLIT_EVEN:
                raise UsageError(
                    f"owned and the Cartesian topology of a communicator define the cells of each rank; leave {name} "
                    "out"
                )

    def _set_axes(self, options: Any, split: Sequence[int], process_grid: Any, axes: Any) -> None:
        """Split the grid like a communicator, which has `split` processes by dimension."""
        _, lib = library()
        if process_grid is not None:
            raise UsageError(
                f"the communicator has a Cartesian topology of {list(split)} ranks; leave process_grid out, or pass a "
                "communicator without topology (comm.Split())"
            )
        options.split = lib.HS_SPLIT_CARTESIAN
        for axis in range(self._dims):
            options.axes[self._dimension(axis)] = lib.HS_NOT_SPLIT
        for dimension, found in enumerate(split_axes(axes, split)):
            if found is not None:
                if found >= self._dims:
                    raise UsageError(f"axes is {shown(axes)}; the grid has axes 0 to {self._dims - 1}")
                options.axes[self._dimension(found)] = dimension

    def _set_owned(self, options: Any, owned: Any, cells: list[int]) -> None:
        with named("owned", owned):
            blocks = each("owned", owned, _SLICES)
            if any(isinstance(part, slice) for part in blocks):
                return self._set_box(options.owned, owned, cells)
            self._blocks = library()[0].new("hs_box[]", len(blocks))
            options.blocks, options.block_count = self._blocks, len(blocks)
            for box, block in zip(self._blocks, blocks, strict=True):
                self._set_box(box, block, cells)
        return None

    def _set_box(self, box: Any, owned: Any, cells: list[int]) -> None:
        parts = each("owned", owned, _SLICES)
        if not all(isinstance(part, slice) for part in parts):
            raise UsageError(f"owned is {shown(owned)}; pass {_SLICES}")
        if len(parts) != len(cells):
            raise UsageError(f"owned has {len(parts)} slices for {len(cells)} axes; pass one for each")
        for axis, (part, cells_of_axis) in enumerate(zip(parts, cells, strict=True)):
            d = self._dimension(axis)
            box.lo[d], box.hi[d] = _bounds(part, axis, cells_of_axis)

    def _rule_of(self, process_grid: Any) -> bytes:
        if isinstance(process_grid, str):
            if any(letter.isdigit() for letter in process_grid):
                raise UsageError(
                    f"process_grid is {shown(process_grid)}, a text that does not specify the axis of each number; "
                    "pass a number for each axis, as (2, 1), or a rule, as 'cubic'"
                )
            return text("process_grid", process_grid)
        numbers = each("process_grid", process_grid, "a number of ranks for each axis, as (2, 1)")
        ranks = [whole("process_grid", n) for n in numbers]
        if len(ranks) != self._dims:
            raise UsageError(f"process_grid is {tuple(ranks)} for {self._dims} axes; pass a number for each")
        return "x".join(str(n) for n in self._by_axis(ranks)).encode()

    def _read(self) -> None:
        ffi, lib = library()
        data, box = ffi.new("hs_grid_data*"), ffi.new("hs_box*")
        lib.hs_grid_data_init_sized(data, ffi.sizeof("hs_grid_data"))
        call("hs_grid_get", self._handle, data)
        self.cells, self.ranks = self._by_axis(data.cells), self._by_axis(data.ranks)
        self.periodic = tuple(map(bool, self._by_axis(data.periodic)))
        self.fold = FOLDS[data.fold]
        blocks, ends, at_edge = [], [], ffi.new("int32_t[3][2]")
        for block in range(max(1, data.blocks)):
            call("hs_grid_block", self._handle, block, box)
            call("hs_grid_edges", self._handle, block, at_edge)
            blocks.append(tuple(map(slice, self._by_axis(box.lo), self._by_axis(box.hi))))
            sides = [at_edge[self._dimension(axis)] for axis in range(self._dims)]
            ends.append([(bool(low), bool(high)) for low, high in sides])
        self._several = bool(data.several)
        if self._several:
            self.blocks: tuple[Block, ...] = tuple(map(_OneOfSeveral, [self] * len(blocks), blocks, ends))
        else:
            self.owned, self.shape, self.blocks = blocks[0], _extents(blocks[0]), (self,)
            self._ends = ends[0]

    def __getattr__(self, name: str) -> Any:
        if name in ("owned", "shape"):
            raise _NoneOfItsOwnError(f"a grid of several blocks a rank has no {name}; use {name} of each of its blocks")
        raise AttributeError(f"a Grid has no attribute {name!r}")

    def neighbour(self, offset: Sequence[int]) -> int:
        """Return the rank at `offset` (-1, 0 or 1 per axis), maybe this one; -1 beyond an edge and in a hole. Local."""
        ffi, _ = library()
        found, by_dimension = ffi.new("int32_t*"), [0, 0, 0]
        steps = [whole("offset", step) for step in each("offset", offset, "-1, 0 or 1 for each axis, as (0, 1)")]
        if len(steps) != self._dims:
            raise UsageError(f"offset is {tuple(steps)} for {self._dims} axes; pass -1, 0 or 1 for each")
        for axis, step in enumerate(steps):
            by_dimension[self._dimension(axis)] = step
        call("hs_grid_neighbour", self._handle, self._rank, by_dimension, found)
        return int(found[0])


def require_grid(grid: Any, purpose: str) -> None:
    """Raise UsageError for anything but a grid, such as one of its blocks. purpose: such as "a sum"."""
    if not isinstance(grid, Grid):
        raise UsageError(f"{purpose} got {shown(grid)} in place of a grid; pass a haloscope.Grid")


def _extents(owned: tuple[slice, ...]) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in owned)


def _bounds(part: slice, axis: int, cells: int) -> tuple[int, int]:
    """Return the first cell of a slice and the cell after its last. The library refuses cells beyond the grid."""
    if part.step is not None and whole("owned", part.step) != 1:
        raise UsageError(f"owned has a step of {part.step} in axis {axis}; a rank owns every cell of its box")
    first = 0 if part.start is None else count("owned", part.start)
    end = cells if part.stop is None else count("owned", part.stop)
    if first < 0 or end < 0:
        raise UsageError(
            f"owned has {shown(part)} in axis {axis}, and cells are counted from 0, not from the end; give global "
            "cells, without halos"
        )
    return first, end


def points_between(centring: Centring, dims: int) -> list[int]:
    """Return 1 for each axis in which points of this centring lie between cells."""
    if isinstance(centring, str):
        if centring in ("cell", "node"):
            return [int(centring == "node")] * dims
        if centring in (faces := [f"face-{axis}" for axis in range(dims)]):
            return [int(centring == face) for face in faces]
    names = ", ".join(f"face-{axis}" for axis in range(dims))
    raise UsageError(
        f"centring is {shown(centring)}; it is cell, node, or by the axis that faces are normal to: {names}"
    )


def sides_of(halo: Halo, dims: int, name: str = "halo") -> list[tuple[int, int]]:
    """Return the widths of a halo, (low, high) per axis. name: of the argument, for errors."""

    def pair(side: Any) -> tuple[int, int]:
        low, high = (side, side) if is_one(side) else each(name, side, "(low, high) for an axis")
        return whole(name, low), whole(name, high)

    with named(name, halo):
        wanted = "a number, or a number or (low, high) for each axis"
        sides = [pair(halo)] * dims if is_one(halo) else [pair(side) for side in each(name, halo, wanted)]
    if len(sides) != dims:
        raise UsageError(f"{name} is {shown(halo)} for {dims} axes; pass {wanted}")
    if any(width < 0 for side in sides for width in side):
        raise UsageError(f"{name} is {shown(halo)}; widths are 0 or more")
    return sides


def without_ends(ends: Sequence[tuple[bool, bool]], sides: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the widths with 0 on the sides where the grid ends."""
    return [(0 if first else low, 0 if last else high) for (first, last), (low, high) in zip(ends, sides, strict=True)]
