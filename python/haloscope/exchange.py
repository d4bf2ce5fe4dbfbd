"""Halo exchange of your own arrays: NumPy's, CuPy's, or anything that shows its memory in the same way.

>>> from mpi4py import MPI
>>> import haloscope
>>> grid = haloscope.Grid(MPI.COMM_WORLD, (512, 512), periodic=True)
>>> u = grid.zeros(halo=1)
>>> halo = haloscope.Exchange(grid, [u], strategy="ordered/p2p")
>>> u[grid.inner()] = 1.0
>>> halo()
>>> float(u.min())
1.0
>>> halo.free()

Axes of grids are those of the arrays. All calls but properties of a grid are made by all ranks in the same order.
Errors are `haloscope.errors.UsageError` and `UnavailableError`, raised on all ranks alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from haloscope import lifetimes, memory
from haloscope.arguments import as_problem, count, each, flag, for_axes, is_one, named, shown, text, whole
from haloscope.bridge import capi
from haloscope.errors import HaloscopeError, UsageError
from haloscope.ranks import agree, call, checked, gather, handle_of, library, mark, member, refuse_unlike_types

if TYPE_CHECKING:
    from mpi4py import MPI

# NumPy's, or with its memory shown by __dlpack__, __array_interface__, __cuda_array_interface__ or the buffer protocol.
Array = Any
Stream = Any  # CuPy's, PyTorch's, or the address of one
Halo = int | Sequence[int | tuple[int, int]]
Centring = str  # "cell", "node", "face-0", "face-1", "face-2"


def _cartesian(comm: Any) -> tuple[Sequence[int], Sequence[bool], Sequence[int]] | None:
    """Return ranks, periods and this rank's place by dimension of a communicator by its topology, whatever its class.

    None where it has no Cartesian one. Local.
    """
    from mpi4py import MPI

    if checked(comm.Get_topology) != MPI.CART:
        return None
    split, periods, place = checked(checked(MPI.Cartcomm, comm).Get_topo)
    return split, periods, place


def _split_axes(axes: Any, split: Sequence[int]) -> list[int | None]:
    """Return for each dimension of a communicator of `split` processes the axis of arrays that it splits.

    axes: None stands for the first ones.
    """
    if axes is None:
        return list(range(len(split)))
    with named("axes", axes):
        given = each("axes", axes, "for each dimension of the communicator the axis that it splits")
        found = [None if axis is None else whole("axes", axis) for axis in given]
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


class _Unique:
    """What belongs to its process and its communicator: other copies of it than references would share what it
    holds.
    """

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse: copy.copy(), copy.deepcopy() and pickle come here."""
        what = type(self).__name__
        raise UsageError(
            f"{what} can be neither copied nor pickled, since it belongs to the ranks of a communicator; pass it on "
            "as it is, or make another one on all ranks"
        )


class Grid(_Unique):
    """A grid of cells, split over the ranks of a communicator.

    Attributes: `comm`; `cells`, `periodic`, `ranks` (the process grid) and `shape` (this rank's cells) per axis;
    `owned`, this rank's cells as global slices; `order`.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        cells: Sequence[int],
        *,
        periodic: bool | Sequence[bool] = False,
        process_grid: str | Sequence[int] | None = None,
        owned: Sequence[slice] | None = None,
        holes: bool = False,
        order: Literal["C", "F"] = "C",
        reorder: bool = False,
        nodes: Sequence[int] | None = None,
        axes: Sequence[int | None] | None = None,
    ):
        """Split `cells` (global, per axis, 1 to 3 axes) over `comm`. Collective.

        What has a value for each axis or rank is a list, a tuple or an array of one axis, here and in all calls.

        A communicator with a Cartesian topology of as many dimensions as there are axes says itself how it is split,
        and what is periodic: its dimensions are the axes. Where it has fewer, `axes` names those that it splits. Others
        are split into blocks as even as can be, rank numbers run along the last axis first (with order "F": the first).

        periodic: per axis or for all; not looked at where the communicator says it.
        process_grid: ranks per axis, as (2, 1), or a rule: "cubic", "square", "prime-factors", "slabs". Default: as
            near to cubes or squares as can be. Numbers in a text, as in "2x1", are refused: C and C++ count from x.
        owned: this rank's own cells, a slice of global indices per axis, from 0 and never from the end: blocks may be
            uneven but must line up. Topologies are not looked at.
        holes: with `owned`, whether cells may belong to no rank.
        order: how arrays lie in memory, the last axis ("C") or the first one ("F") contiguous, on all ranks alike.
            Other arrays work too, only slower.
        reorder: ranks may take other places of the process grid, so that neighbours share nodes and sockets: `owned`
            then says where this one is. `comm` stays as it is. Not with a Cartesian topology, and not with `owned`.
        nodes: the node of each rank, on all ranks alike, to emulate nodes on one machine. Default: machines are nodes.
        axes: of a communicator with a Cartesian topology, the axis that each of its dimensions splits: (1, 2) for
            arrays [z, y, x] in columns. The other axes are not split, and periodic where `periodic` says so. None: a
            dimension of 1 rank that splits none.

        Raises UsageError on all ranks for what does not fit: ranks and cells, boxes that overlap or leave a gap
        (naming the cell), a topology with other places or periods, a graph, another order on another rank; on the ranks
        that pass it, for what is no communicator of one group of ranks. Cost: five reductions; with `owned`, 48 bytes
        from each rank to all, with `reorder` 8.
        """
        self.comm = comm
        self._rank, self._size = member(comm)
        options = agree(
            comm,
            "a grid",
            lambda: self._options(cells, periodic, process_grid, owned, holes, order, reorder, nodes, axes),
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
    ) -> Any:
        ffi, lib = library()
        counts = [count("cells", c) for c in each("cells", cells, "a number for each axis, as (512, 512)")]
        if not 1 <= len(counts) <= 3:
            raise UsageError(f"cells are {shown(cells)}, which are {len(counts)} axes; 1 to 3 can be split")
        if not isinstance(order, str) or order not in ("C", "F"):
            raise UsageError(f"order is {shown(order)}; it is 'C' (the last axis contiguous) or 'F' (the first)")
        self.order: Literal["C", "F"] = "F" if order == "F" else "C"
        self._dims = len(counts)
        options = ffi.new("hs_grid_options*")
        lib.hs_grid_init(options)
        options.dims, options.holes, options.reorder = len(counts), flag("holes", holes), flag("reorder", reorder)
        if nodes is not None:
            numbers = each("nodes", nodes, "the number of a node for each rank")
            self._nodes = ffi.new("int32_t[]", [whole("nodes", node) for node in numbers])
            if len(self._nodes) != self._size:
                raise UsageError(f"nodes has {len(self._nodes)} numbers for {self._size} ranks; pass one for each")
            options.nodes = self._nodes
        for axis, (cells_of_axis, wraps) in enumerate(zip(counts, self._flags(periodic), strict=True)):
            options.cells[self._dimension(axis)] = cells_of_axis
            options.periodic[self._dimension(axis)] = wraps
            options.axes[self._dimension(axis)] = axis  # in what order a topology of other dimensions is compared
        self._choose_split(options, counts, process_grid, owned, axes)
        return options

    def _flags(self, periodic: Any) -> list[bool]:
        """Return one flag for each axis."""
        flags = for_axes("periodic", periodic, self._dims, flag, "True or False for each axis")
        if len(flags) != self._dims:
            raise UsageError(
                f"periodic has {len(flags)} flags for {self._dims} axes; pass one for each, or one for all"
            )
        return flags

    def _choose_split(self, options: Any, cells: list[int], process_grid: Any, owned: Any, axes: Any) -> None:
        ffi, lib = library()
        cartesian = _cartesian(self.comm)
        if axes is not None and (owned is not None or cartesian is None):
            raise UsageError(
                "axes says which axes a communicator with a Cartesian topology splits; leave it out where owned says "
                "what each rank has, and where the communicator has no such topology"
            )
        if process_grid is not None and (owned is not None or axes is not None):
            raise UsageError("owned and axes say where each rank is; leave process_grid out")
        if owned is not None:
            options.split = lib.HS_SPLIT_BOXES
            self._set_owned(options, owned, cells)
        elif cartesian is not None and (axes is not None or len(cartesian[0]) == self._dims):
            self._set_axes(options, cartesian[0], process_grid, axes)
        elif process_grid is not None:
            self._rule = ffi.new("char[]", self._rule_of(process_grid))
            options.process_grid = self._rule
        if options.reorder and options.split != lib.HS_SPLIT_EVEN:
            raise UsageError(
                "owned and the Cartesian topology of a communicator say which rank has which cells; leave reorder out"
            )

    def _set_axes(self, options: Any, split: Sequence[int], process_grid: Any, axes: Any) -> None:
        """Split the grid as a communicator is, which has `split` processes by dimension."""
        _, lib = library()
        if process_grid is not None:
            raise UsageError(
                f"the communicator has a Cartesian topology of {list(split)} ranks; leave process_grid out, or pass a "
                "communicator without topology (comm.Split())"
            )
        options.split = lib.HS_SPLIT_CARTESIAN
        for axis in range(self._dims):
            options.axes[self._dimension(axis)] = lib.HS_NOT_SPLIT
        for dimension, found in enumerate(_split_axes(axes, split)):
            if found is not None:
                if found >= self._dims:
                    raise UsageError(f"axes is {shown(axes)}; the grid has axes 0 to {self._dims - 1}")
                options.axes[self._dimension(found)] = dimension

    def _set_owned(self, options: Any, owned: Sequence[slice], cells: list[int]) -> None:
        with named("owned", owned):
            wanted = "a slice for each axis, as (slice(0, 4), slice(0, 8))"
            parts = each("owned", owned, wanted)
            if not all(isinstance(part, slice) for part in parts):
                raise UsageError(f"owned is {shown(owned)}; pass {wanted}")
            if len(parts) != len(cells):
                raise UsageError(f"owned has {len(parts)} slices for {len(cells)} axes; pass one for each")
            for axis, (part, cells_of_axis) in enumerate(zip(parts, cells, strict=True)):
                d = self._dimension(axis)
                options.owned.lo[d], options.owned.hi[d] = _bounds(part, axis, cells_of_axis)

    def _rule_of(self, process_grid: Any) -> bytes:
        if isinstance(process_grid, str):
            if any(letter.isdigit() for letter in process_grid):
                raise UsageError(
                    f"process_grid is {shown(process_grid)}, a text that does not say for which axis a number is; pass "
                    "a number for each axis, as (2, 1), or a rule, as 'cubic'"
                )
            return text("process_grid", process_grid)
        numbers = each("process_grid", process_grid, "a number of ranks for each axis, as (2, 1)")
        ranks = [whole("process_grid", n) for n in numbers]
        if len(ranks) != self._dims:
            raise UsageError(f"process_grid is {tuple(ranks)} for {self._dims} axes; pass a number for each")
        return "x".join(str(n) for n in self._by_axis(ranks)).encode()

    def _dimension(self, axis: int) -> int:
        """Return the library's dimension of an axis: x is the one that is contiguous in memory."""
        return axis if self.order == "F" else self._dims - 1 - axis

    def _by_axis(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Turn numbers by dimension into numbers by axis, or back."""
        return tuple(int(numbers[self._dimension(axis)]) for axis in range(self._dims))

    def _read(self) -> None:
        ffi, _ = library()
        data, box = ffi.new("hs_grid_data*"), ffi.new("hs_box*")
        call("hs_grid_get", self._handle, data)
        call("hs_grid_owned", self._handle, box)
        self.cells, self.ranks = self._by_axis(data.cells), self._by_axis(data.ranks)
        self.periodic = tuple(map(bool, self._by_axis(data.periodic)))
        self.owned = tuple(map(slice, self._by_axis(box.lo), self._by_axis(box.hi)))
        self.shape = tuple(part.stop - part.start for part in self.owned)

    def neighbour(self, offset: Sequence[int]) -> int:
        """Return the rank at `offset` (-1, 0 or 1 per axis); -1 beyond an edge and in a hole; may be the own one.
        Local.
        """
        ffi, _ = library()
        found, by_dimension = ffi.new("int32_t*"), [0, 0, 0]
        steps = [whole("offset", step) for step in each("offset", offset, "-1, 0 or 1 for each axis, as (0, 1)")]
        if len(steps) != self._dims:
            raise UsageError(f"offset is {tuple(steps)} for {self._dims} axes; pass -1, 0 or 1 for each")
        for axis, step in enumerate(steps):
            by_dimension[self._dimension(axis)] = step
        call("hs_grid_neighbour", self._handle, self._rank, by_dimension, found)
        return int(found[0])

    def _inner_sides(self, sides: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the widths with 0 where the own cells end at an edge of the grid."""
        ends = [
            (not wraps and part.start <= 0, not wraps and part.stop >= cells)
            for part, cells, wraps in zip(self.owned, self.cells, self.periodic, strict=True)
        ]
        return _without(ends, sides)

    def zeros(self, halo: Halo = 1, dtype: Any = float, centring: Centring = "cell") -> np.ndarray:
        """Return an array of zeros for this rank's points and their halo. Local."""
        sides = _sides(halo, self._dims)
        wanted = [n + low + high for n, (low, high) in zip(self.points(centring), sides, strict=True)]
        with named("dtype", dtype):
            element = np.dtype(dtype)
        return np.zeros(wanted, element, order=self.order)

    def inner(self, halo: Halo = 1) -> tuple[slice, ...]:
        """Return the slices of an array with this halo that hold the rank's own points, as in u[grid.inner()].
        Local.
        """
        return tuple(slice(low, -high or None) for low, high in _sides(halo, self._dims))

    def points(self, centring: Centring = "cell") -> tuple[int, ...]:
        """Return this rank's points per axis: its cells, one more in each axis where points lie between them."""
        between = _between(centring, self._dims)
        return tuple(n + more for n, more in zip(self.shape, between, strict=True))

    def _centring(self, centring: Centring) -> int:
        _, lib = library()
        between = _between(centring, self._dims)
        if centring in ("cell", "node"):
            return int(lib.HS_CENTRING_CELL if centring == "cell" else lib.HS_CENTRING_NODE)
        return int(lib.HS_CENTRING_FACE_X) + self._dimension(between.index(1))


def _bounds(part: slice, axis: int, cells: int) -> tuple[int, int]:
    """Return the first cell of a slice and the one after its last. The library refuses those beyond the grid."""
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


def _between(centring: Centring, dims: int) -> list[int]:
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


def _sides(halo: Halo, dims: int) -> list[tuple[int, int]]:
    """Return (low, high) per axis."""

    def pair(side: Any) -> tuple[int, int]:
        low, high = (side, side) if is_one(side) else each("halo", side, "(low, high) for an axis")
        return whole("halo", low), whole("halo", high)

    with named("halo", halo):
        wanted = "a number, or a number or (low, high) for each axis"
        sides = [pair(halo)] * dims if is_one(halo) else [pair(side) for side in each("halo", halo, wanted)]
    if len(sides) != dims:
        raise UsageError(f"halo is {shown(halo)} for {dims} axes; pass {wanted}")
    if any(width < 0 for side in sides for width in side):
        raise UsageError(f"halo is {shown(halo)}; widths are 0 or more")
    return sides


@dataclass(frozen=True)
class Field:
    """One field of an exchange.

    arrays: an array, or one for each slot, buffers that take turns; axes beyond the grid's are components of a point
        and must be contiguous in memory.
    halo: ghost layers on every side, or per axis a number or (low, high); None: those of the exchange.
    centring: "cell", "node", or "face-0", "face-1", "face-2" for faces that are normal to this axis.
    outer: whether arrays have room for ghost layers beyond the edges of a grid that does not wrap around, where nothing
        is exchanged.
    name: for messages.
    """

    arrays: Array | tuple[Array, ...]
    halo: Halo | None = None
    centring: Centring = "cell"
    outer: bool = True
    name: str = ""


def _name(field: Field, number: int) -> str:
    """Return what messages call a field."""
    return field.name or f"array {number}"


def _without(ends: Sequence[tuple[bool, bool]], sides: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the widths with 0 on the sides where the grid ends."""
    return [(0 if first else low, 0 if last else high) for (first, last), (low, high) in zip(ends, sides, strict=True)]


def _slots(field: Field, name: str) -> tuple[Array, ...]:
    """Return the arrays of a field, one for each slot."""
    arrays = field.arrays if isinstance(field.arrays, tuple) else (field.arrays,)
    if not arrays:
        raise UsageError(f"{name} has no arrays; pass one, or one for each slot")
    return arrays


def _number_bytes(dtype: np.dtype) -> int:
    """Return the bytes of each number of an element; -1 where it is not made of numbers as this machine has them."""
    if dtype.kind not in "iufc" or not dtype.isnative:
        return -1
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _type_of(array: np.ndarray, dims: int) -> str:
    """Return of what each point of an array is made: type, order of bytes, members of a struct, axes beyond the
    grid's.
    """
    dtype = array.dtype if array.dtype.names is None else np.dtype((np.void, array.dtype))  # records are structs
    components = f" with components {array.shape[dims:]}" if array.ndim > dims else ""
    return f"{dtype}{components}"


def _can_be_added(dtype: np.dtype) -> bool:
    """Return whether C adds such elements: integers, and reals and complex numbers of single or double precision."""
    return _number_bytes(dtype) in ((1, 2, 4, 8) if dtype.kind in "iu" else (4, 8))


class _Described:
    """The C form of one field, with what it points to."""

    def __init__(self, grid: Grid, field: Field, number: int, halo: Halo, slots: int):
        self.name = _name(field, number)
        self.encoded = library()[0].new("char[]", text("name", self.name))
        given = _slots(field, self.name)
        if len(given) != slots:
            raise UsageError(f"{self.name} has {len(given)} slots and array 0 has {slots}; give all fields as many")
        self.arrays = [memory.described(array, self.name) for array in given]
        self.sides = _sides(halo if field.halo is None else field.halo, grid._dims)
        self.room = self.sides if flag("outer", field.outer) else grid._inner_sides(self.sides)
        for array in self.arrays:
            self._check(grid, field, array)
        self.type = _type_of(self.arrays[0], grid._dims)
        ffi, _ = library()
        self.first = ffi.new("void*[]", [ffi.cast("void*", self._first(array)) for array in self.arrays])

    def _check(self, grid: Grid, field: Field, array: np.ndarray) -> None:
        dims, one = grid._dims, self.arrays[0]
        wanted = tuple(n + low + high for n, (low, high) in zip(grid.points(field.centring), self.room, strict=True))
        if array.shape[:dims] != wanted:
            raise UsageError(
                f"{self.name} has shape {array.shape[:dims]}; {wanted} are this rank's {grid.points(field.centring)} "
                f"points and a halo of {self.room}. Make it with grid.zeros(), or give its halo"
            )
        if (array.strides, array.dtype, array.shape) != (one.strides, one.dtype, one.shape):
            raise UsageError(f"{self.name} has slots of different types, shapes or strides; make them alike")
        if array.dtype.hasobject:
            raise UsageError(
                f"{self.name} holds Python objects; halos are moved as bytes: pass numbers or structs of them"
            )
        step = array.itemsize
        for extent, stride in reversed(list(zip(array.shape[dims:], array.strides[dims:], strict=True))):
            if extent > 1 and stride != step:
                raise UsageError(
                    f"{self.name} has axes beyond the grid's {dims} that are not contiguous; pass each component as an "
                    "array of its own"
                )
            step *= extent
        self.element_bytes = step

    def replacement(self, slot: int, array: Array) -> np.ndarray:
        """Return the memory of another array for a slot. Raises UsageError where it is not like the one there."""
        if not 0 <= slot < len(self.arrays):
            raise UsageError(f"slot {slot} does not exist; {self.name} has {len(self.arrays)}")
        found, one = memory.described(array, self.name), self.arrays[slot]
        if (found.strides, found.dtype, found.shape) != (one.strides, one.dtype, one.shape):
            raise UsageError(
                f"{self.name} had shape {one.shape}, strides {one.strides} and type {one.dtype}, the new array has "
                f"{found.shape}, {found.strides} and {found.dtype}; open another exchange for it"
            )
        return found

    def replace(self, slot: int, found: np.ndarray) -> None:
        """Have other memory in a slot."""
        self.arrays[slot] = found
        self.first[slot] = library()[0].cast("void*", self._first(found))

    def _first(self, array: np.ndarray) -> int:
        """Return the address of the first owned point."""
        start: int = array.__array_interface__["data"][0]
        return start + sum(low * stride for (low, _), stride in zip(self.room, array.strides, strict=False))

    def fill(self, grid: Grid, field: Field, into: Any) -> None:
        _, lib = library()
        into.first, into.name, into.element_bytes = self.first, self.encoded, self.element_bytes
        into.centring = grid._centring(field.centring)
        dtype = self.arrays[0].dtype
        into.type = lib.HS_TYPE_INTEGER if dtype.kind in "iub" else lib.HS_TYPE_REAL
        into.number_bytes = _number_bytes(dtype)
        for axis, (low, high) in enumerate(self.sides):
            d = grid._dimension(axis)
            into.low[d], into.high[d], into.stride[d] = low, high, self.arrays[0].strides[axis]


class Exchange(_Unique):
    """An exchange of some arrays, prepared once, then carried out as often as needed: call it, or start() and
    finish().
    """

    def __init__(
        self,
        grid: Grid | MPI.Comm,
        arrays: Array | Field | Sequence[Array | Field],
        halo: Halo = 1,
        *,
        strategy: str | None = None,
        corners: bool = True,
        guard: bool = False,
        axes: Sequence[int | None] | None = None,
    ):
        """Open an exchange of `arrays`, of any mixture of types. Collective; they must stay where they are.

        grid: or a communicator with a Cartesian topology, where the arrays say how many cells each rank owns.
        arrays: with their halos, in a list or a tuple; anything else is one array. A Field says more about one of them.
            They may be in the memory of a device, all of them then (CuPy, PyTorch; where the library was built for it):
            `auto` is "direct:merged/auto-device" there.
        halo: ghost layers on every side, or per axis a number or (low, high).
        strategy: as "ordered/p2p"; `haloscope advise` names good ones. None: "auto", which tries them while it runs.
            HALOSCOPE_STRATEGY in the environment of rank 0 overrides it.
        corners: also fill edges and corners; a star does not read them.
        guard: track how many layers of each halo are fresh and poison the others, see changed(). HALOSCOPE_GUARD=1 or 0
            in the environment of rank 0 overrides it.
        axes: of a communicator with a Cartesian topology, the axis of arrays that each of its dimensions splits: (1, 2)
            for arrays [z, y, x] in columns, whose axis 0 has a halo too where `halo` says so, and does not wrap around
            (a Grid can). Axes after the last one named are components of a point. Default: the first axes.

        Raises UsageError on all ranks for arrays that do not fit the grid, cannot be written to, share memory with
        each other, are more than memory (masks, units), or are of other types on other ranks; UnavailableError for a
        strategy that this MPI cannot serve. Cost: some small collective calls and what the transport opens.
        """
        if isinstance(grid, Grid):
            self.grid = grid
        else:
            self.grid = _grid_of_arrays(grid, arrays, halo, axes)
            axes = None
        comm = self.grid.comm
        member(comm)
        described, options, structs, types, dropped = agree(
            comm,
            "an exchange",
            lambda: self._prepare(arrays, halo, strategy, corners, guard, axes),
            lambda: self.grid.order,
        )
        waiting = dropped.waiting()
        found = gather(comm, "an exchange", [len(waiting), types])
        refuse_unlike_types(comm, [f"{one.name}: {one.type}" for one in described], found[:, 1])
        ffi, _ = library()
        handle = ffi.new("hs_exchange**")
        dropped.free(comm, waiting, found[:, 0], lambda other: call("hs_exchange_free", other))
        call("hs_exchange_create", self.grid._handle, structs, len(described), options, handle)
        self._handle, self._described = handle[0], described
        self._forget = dropped.watch(self, self._handle, described)
        lifetimes.end_job_where_a_rank_fails(self)
        self._start, self._finish, self._run, self._progress, self._start_accumulate, self._accumulate = (
            getattr(library()[1], f"hs_exchange_{name}")
            for name in ("start", "finish", "run", "progress", "start_accumulate", "accumulate")
        )
        self._start_on, self._finish_on, self._start_accumulate_on = (
            getattr(library()[1], f"hs_exchange_{name}_on") for name in ("start", "finish", "start_accumulate")
        )
        self._done = ffi.new("int32_t*")
        self._not_added = next((one for one in described if not _can_be_added(one.arrays[0].dtype)), None)

    def _prepare(self, arrays: Any, halo: Halo, strategy: Any, corners: Any, guard: Any, axes: Any) -> tuple:
        """Return the fields, the options, the fields as structs of C, a mark of their types, and dropped exchanges."""
        ffi, lib = library()
        fields = _fields(arrays)
        if not fields:
            raise UsageError("an exchange of no arrays; pass at least one")
        if axes is not None:
            raise UsageError("axes splits arrays over a communicator; a Grid has a split: leave axes out")
        slots = len(_slots(fields[0], _name(fields[0], 0)))
        described = [_Described(self.grid, field, number, halo, slots) for number, field in enumerate(fields)]
        structs = ffi.new("hs_field[]", len(described))
        for field, one, struct in zip(fields, described, structs, strict=True):
            one.fill(self.grid, field, struct)
        options = ffi.new("hs_exchange_options*")
        lib.hs_exchange_init(options)
        options.corners, options.slots, options.guard = flag("corners", corners), slots, flag("guard", guard)
        if strategy is not None:
            self._strategy = ffi.new("char[]", text("strategy", strategy))
            options.strategy = self._strategy
        types = mark([one.type for one in described])
        return described, options, structs, types, lifetimes.Dropped.on(self.grid.comm)

    def start(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Send what can be sent. The outermost owned points must not change before finish().

        stream: arrays on a device: packing comes after what this stream has been given (CuPy's or PyTorch's, or its
            address).
            None: after what the default stream has been given.
        Raises UsageError while another slot is in flight, for a slot that there is not, and a stream for arrays of
        the host.
        """
        if type(slot) is not int or slot >> 31:  # in place, since it is called in each step
            slot = whole("slot", slot)
        if stream is None:
            status = self._start(self._open(), slot)
        else:
            status = self._start_on(self._open(), slot, self._stream(stream))
        if status:
            capi.check(library(), status)

    def progress(self) -> bool:
        """Let messages move on; return whether everything has arrived.

        Does not wait; but with reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence, which complete
        only in a call of MPI that waits, the 1000th call of an exchange makes that call, so that a loop ends.
        """
        capi.check(library(), self._progress(self._open(), self._done))
        return bool(self._done[0])

    def finish(self, stream: Stream | None = None) -> None:
        """Wait until all halos of the started slot are filled.

        stream: arrays on a device: the host does not wait for the device; what this stream is given later finds the
        halos filled.
        """
        if stream is None:
            capi.check(library(), self._finish(self._open()))
        else:
            capi.check(library(), self._finish_on(self._open(), self._stream(stream)))

    def __call__(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Fill the halos of a slot: start() and finish()."""
        if stream is not None:
            self.start(slot, stream)
            return self.finish(stream)
        if type(slot) is not int or slot >> 31:
            slot = whole("slot", slot)
        status = self._run(self._open(), slot)
        if status:
            capi.check(library(), status)
        return None

    @staticmethod
    def _stream(stream: Stream) -> Any:
        return library()[0].cast("void*", memory.stream_address(stream))

    def start_accumulate(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Begin to add what lies in the halos to the points that own it: the transpose of an exchange.

        finish() ends it, and has cleared the halos then. The outermost owned points and the halos must not be touched
        before. Results have the same bits by every strategy. Points of nodes and faces that several ranks
        hold get the sum of all of them, in halos of no layers too, as the assembly of finite elements needs it.

        stream: arrays on a device: see start().
        Raises UsageError as start() does, and for arrays of other types than integers, f4, f8, c8 and c16. Cost: the
        messages of an exchange, and one pass over what arrives. The first call is collective and opens another link.
        """
        self._require_addends()
        slot, on = self._agreed("ACCUMULATE", slot, stream)
        if on is None:
            status = self._start_accumulate(self._open(), slot)
        else:
            status = self._start_accumulate_on(self._open(), slot, on)
        if status:
            capi.check(library(), status)

    def accumulate(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Add the halos of a slot to the points that own them and clear them: start_accumulate() and finish()."""
        if stream is not None:
            self.start_accumulate(slot, stream)
            return self.finish(stream)
        self._require_addends()
        slot, _ = self._agreed("ACCUMULATE", slot)
        status = self._accumulate(self._open(), slot)
        if status:
            capi.check(library(), status)
        return None

    def _require_addends(self) -> None:
        if one := self._not_added:
            problem = UsageError(
                f"{one.name} has elements of type {one.arrays[0].dtype}, which cannot be added: pass integers, or "
                "real or complex numbers of single or double precision, in this machine's order of bytes, and the "
                "others to another exchange"
            )
            self._refuse("ACCUMULATE", problem)

    def changed(self, slot: int = 0, fresh: int = 0, stream: Stream | None = None) -> None:
        """Say that own points of a slot have changed: in a guarded exchange its halos are poisoned. Local.

        fresh: layers that stay fresh, since the sweep has computed them too. Reals of 4 and 8
            bytes become NaNs that carry their side on, anything else bytes DB. Without guard nothing happens; with it
            one store for each number in the halos.
        stream: arrays on a device: after what it has been given, and the poison before what it is given next. None:
            after what the default stream has been given, and the host waits.
        Raises UsageError for a slot that there is not, a negative number, and while an exchange is in flight.
        """
        slot, fresh = whole("slot", slot), whole("fresh", fresh)
        self._call("changed", slot, fresh, on=None if stream is None else self._stream(stream))

    def require_fresh(self, depth: int, slot: int = 0) -> None:
        """Raise UsageError, on all ranks, where fewer than `depth` layers of a guarded halo are fresh. Local.

        The text names the field, the side, the layers and the number of the last exchange. Sides that the exchange does
        not fill are not looked at.
        """
        call("hs_exchange_require_fresh", self._open(), whole("depth", depth), whole("slot", slot))

    def check_clean(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Raise UsageError, on all ranks, where an own point was computed from a guarded halo that was stale.
        Collective.

        The text names the first such point of a rank and the side. Finds reals of 4 and 8 bytes, complex numbers of two
        of them, and copies of integers of 4 or 8 bytes; no half, no long double, and no number in another byte
        order. Cost: a reduction and one load for each number.

        stream: arrays on a device: after what it has been given. None: after what the default stream has been given.
        """
        slot, on = self._agreed("CHECK_CLEAN", slot, stream)
        self._call("check_clean", slot, on=on)

    def _call(self, function: str, *arguments: int, on: Any) -> None:
        """Call a function of the library, or its version for the stream `on`."""
        if on is None:
            call(f"hs_exchange_{function}", self._open(), *arguments)
        else:
            call(f"hs_exchange_{function}_on", self._open(), *arguments, on)

    def _agreed(self, call: str, slot: Any, stream: Stream | None = None) -> tuple[int, Any]:
        """Return a slot and a stream as C takes them. What is wrong with them is raised as by _refuse()."""
        try:
            return whole("slot", slot), None if stream is None else self._stream(stream)
        except HaloscopeError as problem:
            self._refuse(call, problem)

    def rebind(self, arrays: Array | Sequence[Array], slot: int = 0) -> None:
        """Use other arrays of the same types, shapes and strides from now on: for codes that make new ones in each
        step.

        arrays: one for each field, in their order, in a list or a tuple; anything else is one array. Raises
        UsageError for arrays that are not alike, and while an exchange is in flight; the next start() for arrays that
        share memory. Local and cheap, but for strategies whose neighbours know the arrays' addresses, which are opened
        again.
        """
        try:
            slot, found = whole("slot", slot), self._replacements(slot, arrays)
        except Exception as error:
            self._refuse("REBIND", as_problem(error, "arrays"))
        ffi, _ = library()
        addresses = [ffi.cast("void*", one._first(array)) for one, array in zip(self._described, found, strict=True)]
        call("hs_exchange_rebind", self._open(), slot, ffi.new("void*[]", addresses))
        for one, array in zip(self._described, found, strict=True):
            one.replace(slot, array)

    def _replacements(self, slot: int, arrays: Sequence[Array]) -> list[np.ndarray]:
        given = _several(arrays)
        if len(given) != len(self._described):
            raise UsageError(f"rebind() got {len(given)} arrays for {len(self._described)} fields; pass one for each")
        return [one.replacement(slot, array) for one, array in zip(self._described, given, strict=True)]

    def _refuse(self, call: str, problem: HaloscopeError) -> NoReturn:
        """Raise what is wrong on this rank, and where the others' call is collective, on them too."""
        ffi, lib = library()
        told = ffi.new("char[]", str(problem).encode("utf-8", "backslashreplace"))
        lib.hs_exchange_refuse(self._open(), getattr(lib, f"HS_CALL_{call}"), problem.exit_code, told)
        raise problem

    def report(self) -> str:
        """Return in one line which strategy moves the halos, what this rank sends, and what `auto` has chosen."""
        ffi, _ = library()
        result = ffi.new("const char**")
        call("hs_exchange_report", self._open(), result)
        return str(ffi.string(result[0]).decode())

    def free(self) -> None:
        """Give back what the exchange holds. Collective: ranks may wait for each other, and free in the same order.

        An exchange that is only dropped is freed by the next one on its communicator. Where the call is refused, as on
        a thread that may not call MPI, it stays open and can be freed later.
        """
        if self._handle is not None:
            call("hs_exchange_free", self._handle)
            self._handle = None
            self._forget()
            lifetimes.is_closed(self)

    def __enter__(self) -> Exchange:
        """Return itself; it is freed at the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Free it; where an exception leaves the block, other ranks may not come, so it stays as a dropped one does."""
        if kind is None:
            self.free()

    def _open(self) -> Any:
        if self._handle is None:
            raise UsageError("the exchange was freed; open another one")
        return self._handle


def _fields(arrays: Any) -> list[Field]:
    """Return the arrays as fields; one array alone is a list of one."""
    return [one if isinstance(one, Field) else Field(one) for one in _several(arrays)]


def _several(arrays: Any) -> list[Any]:
    """Return the arrays in a list or a tuple. Anything else is one array: arrays of many kinds are sequences too."""
    return list(arrays) if isinstance(arrays, list | tuple) else [arrays]


@dataclass(frozen=True)
class _Block:
    """What a rank's first array says: its cells per axis and the order of arrays; and the communicator, by its
    dimensions.
    """

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    axes: list[int | None]  # of arrays, which the communicator splits
    split: Sequence[int]  # ranks
    periods: Sequence[bool]

    def numbers(self) -> list[int]:
        """Return what other ranks have to learn of it, as many numbers on each."""
        cells = [*self.shape, 1, 1][:3]
        return [int(self.order == "F"), *cells, *(-1 if axis is None else axis for axis in self.axes)]


def _own_block(comm: Any, arrays: Any, halo: Halo, axes: Any) -> _Block:
    cartesian, fields = _cartesian(comm), _fields(arrays)
    if cartesian is None:
        raise UsageError(
            "the communicator has no Cartesian topology, so nothing says how its ranks are neighbours; make it with "
            "comm.Create_cart(), or pass a haloscope.Grid"
        )
    if not fields:
        raise UsageError("an exchange of no arrays; pass at least one")
    split = _split_axes(axes, cartesian[0])
    dims = 1 + max((axis for axis in split if axis is not None), default=0)
    field = fields[0]
    name = _name(field, 0)
    array = memory.described(_slots(field, name)[0], name)
    sides = _sides(halo if field.halo is None else field.halo, dims)
    room = sides if flag("outer", field.outer) else _without(_ends(split, dims, *cartesian), sides)
    between = _between(field.centring, dims)
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

    axes: which the dimensions of a communicator split. Others are whole and do not wrap around.
    """
    ends = [(True, True)] * dims
    for axis, ranks, wraps, coord in zip(axes, split, periods, place, strict=True):
        if axis is not None:
            ends[axis] = (not wraps and coord == 0, not wraps and coord == ranks - 1)
    return ends


def _grid_of_arrays(comm: Any, arrays: Any, halo: Halo, axes: Any) -> Grid:
    """Return the grid whose blocks the ranks of a Cartesian communicator hold in their arrays. Collective."""
    rank, size = member(comm)
    block: _Block = agree(comm, "a grid", lambda: _own_block(comm, arrays, halo, axes))
    found = gather(comm, "a grid", block.numbers())
    orders, blocks, split_axes = found[:, 0], found[:, 1:4], found[:, 4:]
    if (split_axes != split_axes[0]).any():
        raise UsageError(
            "the ranks name different axes that the communicator splits; pass the same axes on all of them"
        )
    places = np.stack(np.unravel_index(np.arange(size), block.split), axis=1)  # MPI numbers the last dimension first

    def line(along: int, of: int) -> np.ndarray:
        """Return which ranks are in a line with one, along a dimension of the communicator."""
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
