"""Impossible exchanges are refused on all ranks, with a text that names the remedy; the ranks go on.

Run by ranks: `mpiexec -n N python bad_exchanges.py`.
"""

from __future__ import annotations

import collections
import ctypes
import itertools
from array import array as typed

import numpy as np
import pytest
from mpi4py import MPI

import haloscope
from haloscope import memory
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0


def refused(part: str, call, *arguments, **options) -> None:
    """All ranks get an error that contains `part`."""
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert part in str(caught.value), str(caught.value)


class Quantity(np.ndarray):
    """An array with a unit, as those of astropy and unyt are."""

    def __array_finalize__(self, other: object) -> None:
        self.unit = getattr(other, "unit", "m")


class Labelled(np.ndarray):
    """A subclass that adds nothing, until one of its arrays is given a name."""


class Wrapped:
    """An array in an object with units, as those of pint are, or without, as those of xarray."""

    def __init__(self, array: np.ndarray, units: str | None):
        self.magnitude = array
        if units:
            self.units = units
            self.__array_interface__ = array.__array_interface__


class Tensor:
    """Memory that is shown by DLPack alone, of a version and with flags."""

    def __init__(self, array: np.ndarray, flags: int | None, major: int = 1, device: int = 1):
        self.array, self.device = array, device
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(step // array.itemsize for step in array.strides))
        address = array.__array_interface__["data"][0]
        tensor = memory._Tensor(address, device, 0, array.ndim, 2, 8 * array.itemsize, 1, self.shape, self.strides, 0)
        self.held = tensor if flags is None else memory._Versioned(major, 0, None, None, flags, tensor)
        self.name = b"dltensor" if flags is None else b"dltensor_versioned"

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **options: object) -> object:
        if self.name == b"dltensor" and options:
            raise TypeError(f"unexpected {options}")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.held), self.name, None)


class LooksLikeOne:
    """What only looks like a communicator."""

    dims, size, rank = (1, 1), 1, 0

    def py2f(self) -> int:
        return int(COMM.py2f())


def check_memory(grid: haloscope.Grid) -> None:
    """What is more than memory is refused, everything else filled, whatever shows it."""
    u, exchange = grid.zeros(), haloscope.Exchange
    named = u.view(Labelled)
    named.name = "u"
    refused("its .data and its .mask", exchange, grid, [np.ma.masked_array(u, u > 0)])
    refused(".view(numpy.ndarray)", exchange, grid, [u.view(Quantity)])
    refused(".view(numpy.ndarray)", exchange, grid, [named])
    refused("pass its .magnitude", exchange, grid, [Wrapped(u, "m")])
    refused("pass its .magnitude", exchange, grid, [Wrapped(u, None)])
    refused("cannot be written to", exchange, grid, [Tensor(u, 1)])
    refused("a copy of its memory", exchange, grid, [Tensor(u, 2)])
    refused("uses DLPack 2.0", exchange, grid, [Tensor(u, 0, major=2)])
    refused("DLPack's kind 7", exchange, grid, [Tensor(u, 0, device=7)])
    rows = np.recarray(u.shape, dtype=[("a", "f8"), ("b", "i2")])
    fields = [
        u.view(Labelled),
        Tensor(u.copy(), None),
        Tensor(u.copy(), 0),
        Tensor(u.copy("F"), None),
        np.asmatrix(u.copy()),
        rows,
        memoryview(u.copy()),
    ]
    seen = [np.asarray(getattr(field, "array", field)) for field in fields]
    for array in seen:
        array[...] = np.zeros((), array.dtype)
        array[grid.inner()] = np.ones((), array.dtype)
    with exchange(grid, fields) as halo:
        halo()
        for array in seen:
            assert (array == np.ones((), array.dtype)).all()
        halo.rebind([u.copy(), *fields[1:]])


def check_one_array() -> None:
    """One array alone is what it is in a list, whatever shows its memory; only lists and tuples hold several."""
    line = COMM.Create_cart((COMM.size,), periods=(True,))
    grids = haloscope.Grid(COMM, (6 * COMM.size,), periodic=True), line
    kinds = (
        lambda: np.zeros(8),
        lambda: memoryview(np.zeros(8)),
        lambda: typed("d", [0.0] * 8),
        lambda: bytearray(8),
        lambda: memoryview(bytearray(8)),
        ctypes.c_double * 8,
        lambda: Tensor(np.zeros(8), 0),
    )
    holders = (lambda one: one, lambda one: [one], lambda one: (one,), lambda one: [haloscope.Field(one)])
    for grid, make, held in itertools.product(grids, kinds, holders):
        arrays = make(), make()
        seen = [np.asarray(getattr(one, "array", one)) for one in arrays]
        for points in seen:
            points[1:-1] = 1 + COMM.rank
        with haloscope.Exchange(grid, held(arrays[0])) as halo:
            halo()
            halo.rebind([arrays[1]] if held is holders[-1] else held(arrays[1]))
            halo()
        for points in seen:
            assert (points[0], points[-1]) == (1 + (COMM.rank - 1) % COMM.size, 1 + (COMM.rank + 1) % COMM.size)
    u = np.zeros(8)
    for several in ({0: u}, {0: u}.values(), {1, 2}, "u", (one for one in (u,)), collections.deque([u])):
        for grid in grids:
            refused("does not show its memory", haloscope.Exchange, grid, several)
            refused("several arrays in a list or a tuple", haloscope.Exchange, grid, several)
    refused("cannot be written to", haloscope.Exchange, grids[0], bytes(8))
    line.Free()


def check_fields_of_no_arrays(grid: haloscope.Grid) -> None:
    """A field of no arrays is refused by its name, wherever it stands."""
    u, empty, cart = grid.zeros(), haloscope.Field((), name="t"), COMM.Create_cart((1, COMM.size))
    for where in (grid, cart):
        refused("array 0 has no arrays; pass one", haloscope.Exchange, where, [()])
        refused("t has no arrays; pass one", haloscope.Exchange, where, empty)
        refused("array 0 has no arrays; pass one", haloscope.Exchange, where, [haloscope.Field(()), u])
        refused("t has no arrays; pass one", haloscope.Exchange, where, [u, empty])
    if COMM.size > 1:
        refused("t has no arrays; pass one", haloscope.Exchange, grid, [empty if FIRST else u])
    cart.Free()


def check_types(grid: haloscope.Grid) -> None:
    """Types and components are the same on all ranks: as many bytes would be moved as something else. Or as an exchange
    had.
    """
    shape, exchange = grid.zeros().shape, haloscope.Exchange
    unlike = [
        (("f4", ()), ("f8", ()), "float32", "float64"),
        (("M8[s]", ()), ("M8[ns]", ()), "datetime64[s]", "datetime64[ns]"),
        (("i8", ()), ("u8", ()), "int64", "uint64"),
        (("<i8", ()), (">i8", ()), "int64", ">i8"),
        (("c16", ()), ("f8", (2,)), "complex128", "float64 with components (2,)"),
        (("f8", (3, 2)), ("f8", (2, 3)), "float64 with components (3, 2)", "float64 with components (2, 3)"),
        (
            ([("a", "f8"), ("b", "i8")], ()),
            ([("b", "i8"), ("a", "f8")], ()),
            "[('a', '<f8'), ('b', '<i8')]",
            "[('b', '<i8'), ('a', '<f8')]",
        ),
    ]
    for one, other, text, other_text in unlike:
        first, second = (np.zeros(shape + components, dtype) for dtype, components in (one, other))
        if COMM.size > 1:
            fields = [grid.zeros(), haloscope.Field(first if FIRST else second, name="t" if FIRST else "s")]
            refused(
                f"different exchanges: types of the fields: array 0: float64, t: {text} on rank 0, array 0: float64, "
                f"s: {other_text} on rank 1; give all of them",
                exchange,
                grid,
                fields,
            )
        with exchange(grid, first) as halo:
            refused("open another exchange", halo.rebind, second)
    if COMM.size > 1:
        two = "array 0: float64, array 1: float64 on rank 0, array 0: float64 on rank 1"
        refused(two, exchange, grid, [grid.zeros() for _ in range(1 + FIRST)])
        long = [
            haloscope.Field(grid.zeros(), name="\u00e4" * (1500 if FIRST else 3)),
            np.zeros(shape, "f4" if FIRST else "i4"),
        ]
        refused("different exchanges: types of the fields: \u00e4", exchange, grid, long)
    members = np.zeros(shape, [("a", "f8"), ("b", "i2")])
    exchange(grid, members.view(np.recarray) if FIRST else members).free()
    exchange(grid, np.zeros(shape, "q" if FIRST else "l")).free()


def check_shared_memory(grid: haloscope.Grid) -> None:
    """The same points in two fields are refused, disjoint ones of one block are not."""
    u, exchange, field = grid.zeros(), haloscope.Exchange, haloscope.Field
    pairs = np.zeros((*u.shape, 2))
    wide = np.zeros((u.shape[0], 2 * u.shape[1]))
    refused("'array 0' (number 1) and 'array 1' (number 2) share memory", exchange, grid, [u, u])
    refused(
        "'t' (number 1) and 'u' (number 2) share memory",
        exchange,
        grid,
        [field(pairs, name="t"), field(pairs[..., 1], name="u")],
    )
    refused(
        "in slot 0 (number 1) and 'array 0' in slot 1",
        exchange,
        grid,
        [(wide[:, :-1][:, : u.shape[1]], wide[:, 1:][:, : u.shape[1]])],
    )
    for fine in (
        [pairs[..., 0], pairs[..., 1]],
        [wide[:, ::2], wide[:, 1::2]],
        [wide[:, : u.shape[1]], wide[:, u.shape[1] :]],
    ):
        exchange(grid, fine).free()
    v = u.copy()
    with exchange(grid, [u, v]) as halo:
        halo.rebind([v, v])
        refused("share memory", halo)
        halo.rebind([v, u])
        halo()
        kept = u.copy()
        refused("share memory", halo, kept, kept)
        del kept  # the exchange holds it
        refused("share memory", halo)
        halo(u, v)


def check_parts(grid: haloscope.Grid) -> None:
    """A part is named by numbers or arrays; what looks like a number and is none is refused."""
    slots, other = (grid.zeros(), grid.zeros()), (grid.zeros(), grid.zeros())
    with haloscope.Exchange(grid, [haloscope.Field(slots), haloscope.Field(other)], guard=True) as halo:
        number = np.array(0)
        halo(only=number, depth=1)
        number[...] = 1
        for array in (*slots, *other):
            array[grid.inner()] = 1
        halo(only=number)  # not the part of the number that it was
        assert (other[0] == 1).all() and not (slots[0] == 1).all()
        halo(1, only=slots[1])
        assert (slots[1] == 1).all()
        refused("of slot 1 of array 0, and the call is for slot 0", halo, only=slots[1])
        for wrong in (True, [True, False], np.True_, "array 0"):
            refused("their numbers from 0", halo, only=wrong)
        refused("numbers from 0 in a list", halo, only=np.array([0, 1]))


def check_communicators() -> None:
    """What no grid can be split over is refused by name on the ranks that pass it."""
    make, u = haloscope.Grid, np.zeros((6, 6))
    for odd in (LooksLikeOne(), None, "world", MPI, MPI.COMM_WORLD.py2f()):
        refused("not a communicator", make, odd, (8, 8))
        refused("not a communicator", haloscope.Exchange, odd, [u])
    some = COMM.Split(MPI.UNDEFINED if FIRST else 0)
    if FIRST:
        refused("COMM_NULL", make, some, (8, 8))
        refused("COMM_NULL", haloscope.Exchange, some, [u])
    else:
        make(some, (8, 8 * some.size))
        some.Free()
    freed = COMM.Dup()
    on_freed = make(freed, (8, 8 * COMM.size))
    freed.Free()
    refused("COMM_NULL", make, freed, (8, 8 * COMM.size))
    refused("was freed", haloscope.Exchange, on_freed, [on_freed.zeros()])
    around = [(COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size]
    graphs = [
        COMM.Create_graph(list(range(1, COMM.size + 1)), [(rank + 1) % COMM.size for rank in range(COMM.size)]),
        COMM.Create_dist_graph_adjacent(around, around),
    ]
    for graph in graphs:
        refused("topology of a graph", make, graph, (8, 8 * COMM.size))
        refused("no Cartesian topology", haloscope.Exchange, graph, [u])
        make(graph, (8, 8 * COMM.size), owned=(slice(0, 8), slice(8 * COMM.rank, 8 * COMM.rank + 8)))
        graph.Free()
    if COMM.size == 1:
        return
    half = COMM.Split(COMM.rank % 2)
    inter = half.Create_intercomm(0, COMM, 1 - COMM.rank % 2)
    refused("inter-communicator", make, inter, (8, 8))
    refused("inter-communicator", haloscope.Exchange, inter, [u])
    inter.Free()
    half.Free()


def check_axes() -> None:
    """Columns on a communicator of two dimensions: any axis may be whole; what does not fit is refused."""
    split = MPI.Compute_dims(COMM.size, 2)
    cart = COMM.Create_cart(split, periods=(True, False))
    sizes = (12 * split[0], 12 * split[1])
    for axes, order in (((0, 1), "C"), ((1, 2), "C"), ((2, 0), "C"), ((0, 2), "F"), ((2, 1), "F")):
        cells = [5, 5, 5]
        cells[axes[0]], cells[axes[1]] = sizes
        for view in (cart, MPI.Intracomm(cart)):  # by its topology, not its class
            grid = haloscope.Grid(view, cells, axes=axes, periodic=(True, True, True), order=order)
            whole = next(axis for axis in range(3) if axis not in axes)
            assert grid.ranks[whole] == 1
            assert [grid.ranks[axis] for axis in axes] == split
            assert [grid.periodic[axis] for axis in (*axes, whole)] == [True, False, True]
            assert [grid.owned[axis].start // 12 for axis in axes] == cart.coords
    u = np.zeros((7, 14, 14))  # axis 0 is whole and does not wrap around
    u[1:-1, 1:-1, 1:-1] = 1 + COMM.rank
    with haloscope.Exchange(cart, u, axes=(1, 2)) as halo:
        halo()
        assert halo.grid.cells == (5, *sizes)
        assert halo.grid.periodic == (False, True, False)
    below = cart.Shift(0, 1)[0]
    assert (u[1:-1, 0, 1:-1] == 1 + below).all()
    assert (u[0] == 0).all()
    refused("axes=", haloscope.Grid, cart, (5, *sizes))
    if COMM.size > 1:
        refused("axes=", haloscope.Grid, cart, (5, *sizes), process_grid=(1, *split), periodic=(True, False, True))
    haloscope.Grid(cart, (5, *sizes), process_grid=(1, *split), periodic=(False, True, False))
    refused("pass for each of its dimensions", haloscope.Grid, cart, (5, *sizes), axes=(1,))
    refused("axes 0 to 1", haloscope.Grid, cart, sizes, axes=(1, 2))
    refused("leave it out", haloscope.Grid, COMM, (8, 8 * COMM.size), axes=(0, 1))
    refused("leave axes out", haloscope.Exchange, haloscope.Grid(cart, sizes), [np.zeros((14, 14))], axes=(0, 1))
    line = COMM.Create_cart((1, COMM.size, 1))
    assert haloscope.Grid(line, (8, 8 * COMM.size), axes=(0, 1, None)).ranks == (1, COMM.size)
    cart.Free()
    line.Free()


def check_no_room_beyond_edges() -> None:
    """Arrays of a Cartesian communicator that end at the edges of the grid are what those with room there are
    inside.
    """
    split = MPI.Compute_dims(COMM.size, 2)
    cart = COMM.Create_cart(split, periods=(True, False))
    first, last = cart.coords[1] == 0, cart.coords[1] == split[1] - 1
    for axes, centring in itertools.product(((0, 1), (1, 0), (1, 2), (2, 0)), ("cell", "node", "face-1")):
        own = (4, 5, 6)[: 1 + max(axes)]
        wide = np.zeros([n + 3 + (centring in ("node", f"face-{axis}")) for axis, n in enumerate(own)])
        inside = []
        for axis in range(len(own)):
            begins = axis not in axes or (axis == axes[1] and first)
            ends = axis not in axes or (axis == axes[1] and last)
            inside.append(slice(1 if begins else 0, -2 if ends else None))
        points = (slice(1, -2),) * len(own)
        wide[points] = np.arange(wide[points].size).reshape(wide[points].shape) + 1000 * (1 + COMM.rank)
        narrow = wide[tuple(inside)].copy()
        for array, outer in ((wide, True), (narrow, False)):
            field = haloscope.Field(array, halo=[(1, 2)] * len(own), centring=centring, outer=outer)
            with haloscope.Exchange(cart, field, axes=axes) as halo:
                assert halo.grid.shape == own
                halo()
        assert narrow.all()
        assert (narrow == wide[tuple(inside)]).all()
    cart.Free()


def check_orders() -> None:
    """The order of axes is one for all ranks: each would name the library's dimensions after other axes."""
    if COMM.size == 1:
        return
    last = COMM.size - 1
    order, cells = "F" if last == COMM.rank else "C", (12 * COMM.size, 12 * COMM.size)
    part = slice(12 * COMM.rank, 12 * COMM.rank + 12)
    cart = COMM.Create_cart((1, COMM.size))
    unlike = f"order: C on rank 0, F on rank {last}; pass the same order on all of them"
    for comm, options in (
        (COMM, {}),
        (cart, {}),
        (cart, {"axes": (0, 1)}),
        (COMM, {"owned": (part, part), "holes": True}),
    ):
        refused(f"different grids: {unlike}", haloscope.Grid, comm, cells, order=order, **options)
    refused(f"different grids: {unlike}", haloscope.Grid, COMM, cells[:1], order=order)
    grids = {one: haloscope.Grid(COMM, cells, order=one) for one in "CF"}
    grid = grids[order]  # fine by itself, but not beside the other one
    refused(f"different exchanges: {unlike}", haloscope.Exchange, grid, [grid.zeros()])
    arrays = np.zeros((14, 14), order=order)  # which are as the first rank's, and may lie otherwise in memory
    arrays[1:-1, 1:-1] = 1 + COMM.rank
    with haloscope.Exchange(cart, arrays) as halo:
        halo()
    assert (arrays[1:-1, 0] == COMM.rank).all()
    cart.Free()


def check_owned() -> None:
    """Cells that the grid does not have are refused, with holes and without: none is clipped, none counted from the
    end.
    """
    cells, part = (8, 8 * COMM.size), slice(8 * COMM.rank, 8 * COMM.rank + 8)
    for holes in (False, True):
        for beyond in (slice(0, 100), slice(8, 9), slice(0, 2**40), slice(100, 200)):
            refused("outside the grid of", haloscope.Grid, COMM, cells, owned=(beyond, part), holes=holes)
            refused(
                "outside the grid of", haloscope.Grid, COMM, cells[::-1], owned=(part, beyond), holes=holes, order="F"
            )
        refused(
            "outside the grid of",
            haloscope.Grid,
            COMM,
            cells,
            owned=(slice(0, 8), slice(part.start, part.stop + 1)),
            holes=holes,
        )
        for negative in (
            slice(-200, 8),
            slice(-8, None),
            slice(0, -1),
            slice(-1, 9),
            slice(None, -(2**40)),
            slice(-3, -1),
        ):
            refused("not from the end", haloscope.Grid, COMM, cells, owned=(negative, part), holes=holes)
        refused(
            "not from the end" if FIRST else "rank 0: owned has slice(-200, 8, None) in axis 1",
            haloscope.Grid,
            COMM,
            (8, 8),
            owned=(slice(0, 100), slice(-200, 8) if FIRST else part),
            holes=holes,
        )
        for empty in (slice(8, 0), slice(8, None), slice(100, None)):
            refused("no rank owns cells", haloscope.Grid, COMM, cells, owned=(empty, part), holes=holes)
    for whole in (slice(None), slice(None, 8), slice(0, None, 1), slice(np.int64(0), np.uint8(8))):
        assert haloscope.Grid(COMM, cells, owned=(whole, part)).owned == (slice(0, 8), part)


def check_ways_to_split() -> None:
    """All ranks split a grid in the same way."""
    if COMM.size == 1:
        return
    cells, part = (8, 8 * COMM.size), slice(8 * COMM.rank, 8 * COMM.rank + 8)
    for on_one in ({"owned": (slice(0, 8), part)}, {"reorder": True}):
        options = on_one if FIRST else {}
        refused("in different ways: by the cells that each owns", haloscope.Grid, COMM, cells, **options)


def check_process_grids() -> None:
    """Numbers of ranks are those of axes in either order; texts of numbers, which C counts from x, are refused."""
    cells = (8 * COMM.size, 9 * COMM.size)
    for order in "CF":
        for ranks in ((1, COMM.size), (COMM.size, 1)):
            grid = haloscope.Grid(COMM, cells, process_grid=ranks, order=order)
            assert grid.ranks == ranks
            assert grid.shape == tuple(n // r for n, r in zip(cells, ranks, strict=True))
            text = "x".join(map(str, ranks))
            refused(
                "pass a number for each axis, as (2, 1), or a rule, as 'cubic'",
                haloscope.Grid,
                COMM,
                cells,
                order=order,
                process_grid=text,
            )
        assert (
            haloscope.Grid(COMM, cells, process_grid="slabs", order=order).ranks[0 if order == "C" else 1] == COMM.size
        )
        refused("'slab'", haloscope.Grid, COMM, cells, process_grid="slab", order=order)
    for text in (str(COMM.size), f"{COMM.size},1", f"{COMM.size} x 1", f"1*{COMM.size}"):
        refused(f"process_grid is '{text}'", haloscope.Grid, COMM, cells, process_grid=text)


def check_lists() -> None:
    """Values for each axis come in anything that is in the order of axes; one value for all may be an array of no
    axes.
    """
    cells = (8, 9 * COMM.size)
    for listed in (list, tuple, np.array, lambda values: typed("i", values), collections.deque):
        grid = haloscope.Grid(
            COMM,
            listed(cells),
            periodic=listed((False, True)),
            process_grid=listed((1, COMM.size)),
            nodes=listed((0,) * COMM.size),
        )
        assert (grid.cells, grid.periodic, grid.ranks) == (cells, (False, True), (1, COMM.size))
        assert grid.neighbour(listed((1, 0))) == -1
        assert grid.zeros(listed((0, 1))).shape == (8, 11)
        assert grid.zeros([listed((0, 2)), 1]).shape == (10, 11)
    assert haloscope.Grid(COMM, range(8, 10), process_grid=(1, COMM.size)).cells == (8, 9)
    grid = haloscope.Grid(COMM, cells, periodic=np.array(True))
    assert grid.periodic == (True, True)
    assert grid.zeros(np.array(2)).shape == (12, 13)


def check_ranks_that_differ() -> None:
    """Blocks of another split on one rank; a grid on one rank and an exchange on the others."""
    cells = 24
    even = haloscope.Grid(COMM, (cells,), periodic=True)
    end = cells if COMM.rank + 1 == COMM.size else 3 * (COMM.rank + 1) - 1
    uneven = haloscope.Grid(COMM, (cells,), periodic=True, owned=(slice(max(3 * COMM.rank - 1, 0), end),))
    mine = even if FIRST else uneven
    refused("different exchanges: blocks begin at: 0,", haloscope.Exchange, mine, [mine.zeros()])
    u = even.zeros()

    def make_one():
        return haloscope.Grid(COMM, (8,)) if FIRST else haloscope.Exchange(even, [u])

    refused("do not make the same thing: this one makes", make_one)
    haloscope.Exchange(even, [u]).free()


def main() -> None:
    grid = haloscope.Grid(COMM, (12, 6 * COMM.size), periodic=True)
    u = grid.zeros()
    exchange, make = haloscope.Exchange, haloscope.Grid
    frozen = u.copy()
    frozen.flags.writeable = False

    refused("not a communicator", make, 3, (4, 4))
    refused("4 axes", make, COMM, (4, 4, 4, 4))
    refused("a number for each axis", make, COMM, 512)
    refused("order is 'x'", make, COMM, (4, 4), order="x")
    refused("3 flags for 2 axes", make, COMM, (8, 8 * COMM.size), periodic=(True, False, True))
    refused("pass a number for each", make, COMM, (8, 8 * COMM.size), process_grid=(1, 1, COMM.size))
    refused("step of 2", make, COMM, (8, 8), owned=(slice(0, 8, 2), slice(0, 8)))
    refused("1 slices for 2 axes", make, COMM, (8, 8), owned=(slice(0, 8),))
    refused("no Cartesian topology", exchange, COMM, [u])
    refused("at least one", exchange, grid, [])
    refused("does not show its memory", exchange, grid, [[[1.0, 2.0], [3.0, 4.0]]])
    refused("cannot be written to", exchange, grid, [frozen])
    refused("Python objects", exchange, grid, [u.astype(object)])
    refused("has shape", exchange, grid, [u], 2)
    refused("for 2 axes", exchange, grid, [u], (1, 1, 1))
    refused("0 or more", exchange, grid, [u], -1)
    refused("1 slots and array 0 has 2", exchange, grid, [(u, u.copy()), u])
    refused("different types, shapes or strides", exchange, grid, [(u, u.astype("f4"))])
    refused("face-0, face-1", exchange, grid, [haloscope.Field(u, centring="face-2")])
    refused("not contiguous", exchange, grid, [np.zeros((*u.shape, 6))[..., ::2]])
    refused("share memory", exchange, grid, [np.lib.stride_tricks.as_strided(u, u.shape, (0, 8), writeable=True)])
    refused("did you mean ordered/p2p", exchange, grid, [u], strategy="orderd/p2p")
    if COMM.size > 1:
        refused("" if FIRST else "rank 0: array 0 has shape", exchange, grid, [u[1:] if FIRST else u])
        refused(
            "different exchanges: strategy: ordered/p2p on rank 0, direct/p2p on rank 1; give all",
            exchange,
            grid,
            [u],
            strategy="ordered/p2p" if FIRST else "direct/p2p",
        )
        refused("both own cell (0, 0)", make, COMM, (8, 8), owned=(slice(0, 8), slice(0, 8)))

        check_ranks_that_differ()
        refused("slots: 2 on rank 0, 1 on rank 1", exchange, grid, [(u, u.copy()) if FIRST else u])

    check_memory(grid)
    check_one_array()
    check_fields_of_no_arrays(grid)
    check_types(grid)
    check_shared_memory(grid)
    check_parts(grid)
    check_communicators()
    check_axes()
    check_no_room_beyond_edges()
    check_orders()
    check_owned()
    check_ways_to_split()
    check_process_grids()
    check_lists()
    halo = exchange(grid, [u], strategy="ordered/p2p")
    refused("slot 1", halo, 1)
    refused("slot -1", halo.start, -1)
    u[grid.inner()] = 1.0
    halo()
    assert (u == 1.0).all()
    refused("for 1 fields", halo.rebind, [u, u])
    refused("slot 1", halo.rebind, [u], 1)
    refused("open another exchange", halo.rebind, [u.astype("f4")])
    halo.free()
    halo.free()
    refused("was freed", halo)
    exchange(grid, [u])  # not freed: MPI_Finalize comes first
    COMM.barrier()
    if FIRST:
        print("refused")


if __name__ == "__main__":
    main()
