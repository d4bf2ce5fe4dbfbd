"""What only one rank does wrong fails on all of them, whatever is raised by it: none waits, and all go on.

Run by ranks: `mpiexec -n N python wrong_on_one_rank.py`. The last rank makes the mistakes.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError, UsageError

COMM = MPI.COMM_WORLD
LAST = COMM.size - 1
WRONG = COMM.rank == LAST


class Unpicklable(RuntimeError):
    """An error of another library's that cannot be sent, nor even be shown."""

    def __init__(self) -> None:
        self.held = lambda: None

    def __str__(self) -> str:
        raise self

    def __reduce__(self) -> tuple:
        raise self


def raiser(error: BaseException) -> Callable:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


def object_with(**members: object) -> object:
    """Return an object whose methods raise or answer as given."""
    return type("Strange", (), members)()


def fails(call: Callable[[], object], part: str = "", kind: type = HaloscopeError) -> None:
    """All ranks get an error: the rank at fault one that contains `part`, the others the same with its number."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert part in message, message
    assert WRONG or message.startswith(f"rank {LAST}: "), message
    texts = COMM.allgather(message.removeprefix(f"rank {LAST}: "))
    assert len(set(texts)) == 1, texts


def unlisted(first: object, second: object) -> list[object]:
    """Return what holds two values, but not as a list of one for each axis."""
    return [
        {1: first, 0: second},
        {0: first, 1: second}.values(),
        {8, 9},
        frozenset((1, 2)),
        {0: 0, 1: 0}.keys(),
        bytes((8, 8)),
        bytearray((8, 8)),
        memoryview(bytearray((1, 1))),
        (value for value in (first, second)),
        np.ones((2, 2), int),
        object_with(
            keys=lambda _: (1, 0), __iter__=lambda _: iter((8, 8)), __len__=lambda _: 2, __getitem__=lambda _, n: 8
        ),
    ]


def mistakes_of_lists(**values: tuple[object, object]) -> list[tuple[str, object]]:
    return [(name, wrong) for name, two in values.items() for wrong in unlisted(*two)]


GRID_MISTAKES: list[tuple[str, object]] = [
    ("cells", None),
    ("cells", "88"),
    ("cells", (8, "8")),
    ("cells", (8.5, 8)),
    ("cells", (2**70, 8)),
    ("cells", (8, -8)),
    ("cells", object_with(__iter__=raiser(RuntimeError("no cells")))),
    ("cells", (8, None)),
    ("cells", (True and 8,) * 4),
    ("cells", np.ma.masked_array([8, 8], [True, False])),
    ("periodic", "yes"),
    ("periodic", (True, "no")),
    ("periodic", object_with(__eq__=raiser(Unpicklable()))),
    ("periodic", 3),
    ("periodic", (True,)),
    ("process_grid", 2**70),
    ("process_grid", ("1", 2)),
    ("process_grid", "\udc80"),
    ("process_grid", "1x\0"),
    ("process_grid", (2**40, 1)),
    ("process_grid", object()),
    ("process_grid", f"1x{COMM.size}"),
    ("owned", 3),
    ("owned", (1, 2)),
    ("owned", (slice("a", "b"), slice(0, 8))),
    ("owned", [[slice(0, 1)], [slice(0, 1)]]),
    ("owned", (slice(-200, 8), slice(0, 8))),
    ("owned", (slice(0, 8), slice(0, -1))),
    ("owned", (slice(0, 2.5), slice(0, 8))),
    ("owned", (slice(0, 2**70), slice(0, 8))),
    ("owned", (slice(0, 8, 0), slice(0, 8))),
    ("owned", (slice(0, 8), slice(8, 0, -1))),
    ("order", 7),
    ("order", None),
    ("holes", "x"),
    ("holes", 2**40),
    ("reorder", object()),
    ("nodes", ("a",) * COMM.size),
    ("nodes", (2**40,) * COMM.size),
    ("nodes", 5),
    ("axes", (0, 1)),
    ("axes", "x"),
    ("axes", object_with(__iter__=raiser(KeyError("axis")))),
    *mistakes_of_lists(
        cells=(8, 8),
        periodic=(True, False),
        process_grid=(1, COMM.size),
        owned=(slice(0, 8), slice(0, 8)),
        nodes=(0, 1),
    ),
]


def check_grids() -> None:
    right = {"cells": (8, 8 * COMM.size)}
    for name, value in GRID_MISTAKES:
        options = {**right, name: value} if WRONG else dict(right)
        cells = options.pop("cells")
        fails(
            lambda cells=cells, options=options: haloscope.Grid(COMM, cells, **options), name if name != "nodes" else ""
        )
    cart = COMM.Create_cart((COMM.size, 1))
    for axes in ((0, 0), (0,), (0, 7), (-1, 0), (2**80, 1), "01", 5, *unlisted(1, 0)):
        options = {"axes": axes} if WRONG else {}
        fails(lambda options=options: haloscope.Grid(cart, (8 * COMM.size, 8), **options), "axes")
    cart.Free()


def arrays_that_fail(u: np.ndarray) -> list[object]:
    locked = u.copy()
    locked.flags.writeable = False
    return [
        None,
        3,
        "u",
        1 + 2j,
        [[1.0]],
        object(),
        locked,
        bytes(u),
        u.astype(object),
        u[1:],
        np.ma.masked_array(u),
        {},
        object_with(__dlpack__=raiser(RuntimeError("on another stream"))),
        object_with(__dlpack__=raiser(Unpicklable())),
        object_with(__dlpack__=lambda *_, **__: 5),
        object_with(__dlpack__=raiser(BufferError("of a kind")), __dlpack_device__=lambda _: (8, 0)),
        object_with(__dlpack_device__=raiser(MemoryError()), __dlpack__=raiser(MemoryError())),
        object_with(__array_interface__=property(raiser(OSError("gone")))),
        object_with(__array_interface__={"shape": "x"}),
        object_with(__cuda_array_interface__={"shape": (2,)}),
        object_with(__repr__=raiser(Unpicklable())),
        haloscope.Field(u, halo="wide"),
        haloscope.Field(u, halo=2**40),
        haloscope.Field(u, halo=1.5),
        haloscope.Field(u, halo=((1, 2, 3), 1)),
        haloscope.Field(u, centring=3),
        haloscope.Field(u, centring="face-\udc80"),
        haloscope.Field(u, outer="no"),
        haloscope.Field(u, name="\udcff"),
        haloscope.Field(u, name=7),
        haloscope.Field(u, name="u\0v"),
        haloscope.Field(()),
    ]


EXCHANGE_MISTAKES: list[tuple[str, object]] = [
    ("halo", "1"),
    ("halo", 2**70),
    ("halo", 1.0),
    ("halo", None),
    ("halo", (1, object())),
    ("strategy", 5),
    ("strategy", "ordered/\udc80"),
    ("strategy", "auto\0"),
    ("strategy", object_with(__str__=raiser(Unpicklable()))),
    ("corners", "no"),
    ("corners", 2**40),
    ("corners", np.array([True, False])),
    ("guard", object()),
    ("guard", None),
    ("axes", (0, 1)),
    *mistakes_of_lists(halo=(1, 1)),
    *(("halo", (side, 1)) for side in unlisted(1, 1)),
]


def check_exchanges(grid: haloscope.Grid) -> None:
    u = grid.zeros()
    for bad in arrays_that_fail(u):
        fails(lambda bad=bad: haloscope.Exchange(grid, [bad if WRONG else u]))
    for bad in (None, 5, [], {}, object_with(__len__=raiser(Unpicklable()), __array_interface__=5)):
        fails(lambda bad=bad: haloscope.Exchange(grid, bad if WRONG else [u]))
    for name, value in EXCHANGE_MISTAKES:
        options = {name: value} if WRONG else {}
        fails(lambda options=options: haloscope.Exchange(grid, [u], **options), name)
    fails(lambda: haloscope.Exchange(grid, [u, u if WRONG else u.copy()]), "'array 0' (number 1) and 'array 1'")
    with pytest.raises(KeyboardInterrupt if WRONG else HaloscopeError):
        haloscope.Exchange(grid, [object_with(__dlpack__=raiser(KeyboardInterrupt())) if WRONG else u])
    cart = COMM.Create_cart((1, COMM.size), periods=(True, True))
    for bad in (None, u[:1], "u", haloscope.Field(u, halo=99), np.ma.masked_array(u)):
        fails(lambda bad=bad: haloscope.Exchange(cart, bad if WRONG else u))
    for axes in ((1,), (0, 0), "x", (2**70, 1), *unlisted(0, 1)):
        fails(lambda axes=axes: haloscope.Exchange(cart, u, axes=axes if WRONG else (0, 1)), "axes")
    if COMM.size > 1:
        with pytest.raises(UsageError, match="different axes"):
            haloscope.Exchange(cart, np.zeros((4, 4)), axes=(1, 0) if WRONG else (0, 1))
    cart.Free()


SLOTS = ("0", None, 0.0, 2**40, 2**70, -1, 1, object_with(__index__=raiser(Unpicklable())))


def check_open_exchange(grid: haloscope.Grid, strategy: str) -> None:
    u = grid.zeros()
    with haloscope.Exchange(grid, [u], strategy=strategy, guard=True) as halo:
        for bad in SLOTS:
            fails(lambda bad=bad: halo.accumulate(bad if WRONG else 0), "slot")
            fails(lambda bad=bad: halo.start_accumulate(bad if WRONG else 0), "slot")
            fails(lambda bad=bad: halo.check_clean(bad if WRONG else 0), "slot")
            fails(lambda bad=bad: halo.share(bad if WRONG else 0), "slot")
        for bad in ([3], [], "u", [u[1:]], object_with(__iter__=raiser(Unpicklable()))):
            for call in (halo.share, halo.start_share, halo.accumulate, halo.start_accumulate):
                fails(lambda call=call, bad=bad: call(only=bad if WRONG else None))
        for bad in ("1", 2**70, 9, object_with(__eq__=raiser(Unpicklable()))):
            for call in (halo.accumulate, halo.start_accumulate):
                fails(lambda call=call, bad=bad: call(depth=bad if WRONG else None), "")
                fails(lambda call=call, bad=bad: call(ghost_rows=bad if WRONG else False), "")
        for bad in ("fast", 2**70, -1, object_with(ptr=property(raiser(OSError())))):
            fails(lambda bad=bad: halo.accumulate(stream=bad) if WRONG else halo.accumulate())
            fails(lambda bad=bad: halo.check_clean(stream=bad) if WRONG else halo.check_clean())
        if strategy != "ordered/p2p":  # whose neighbours know where arrays are
            for bad in (
                None,
                [],
                [u, u],
                {0: u},
                [None],
                [u[1:]],
                [np.ma.masked_array(u)],
                [object_with(__dlpack__=len)],
            ):
                fails(lambda bad=bad: halo.rebind(bad if WRONG else [u]))
            for bad in ([u, u], [u[1:]], [u.astype("f4")]):
                fails(lambda bad=bad: halo(*(bad if WRONG else [u])))
            fails(lambda: halo(u, only=0) if WRONG else halo(u), "no part")
            for bad in SLOTS:
                fails(lambda bad=bad: halo.rebind([u], bad if WRONG else 0), "slot")
        v = grid.zeros()
        halo.rebind([v])
        v[grid.inner()] = 1.0
        halo()
        assert (v == 1.0).all()
        halo.accumulate()


def check_local_calls(grid: haloscope.Grid) -> None:
    def refused(call: Callable[[], object], part: str) -> None:
        with pytest.raises(UsageError) as caught:
            call()
        assert part in str(caught.value)

    halo = haloscope.Exchange(grid, [grid.zeros()], guard=True)
    for bad in SLOTS:
        for call in (halo, halo.start, halo.changed):
            refused(lambda call=call, bad=bad: call(bad), "slot")
        refused(lambda bad=bad: halo.require_fresh(1, bad), "slot")
    for bad in ("0", None, 0.5, 2**40):
        refused(lambda bad=bad: halo.require_fresh(bad), "depth")
        refused(lambda bad=bad: halo.changed(0, bad), "fresh")
    for bad in ("fast", 2**70, -5, object_with(ptr="x"), object_with(__cuda_stream__=raiser(Unpicklable()))):
        for stream_call in (halo.start, halo.finish, halo, halo.changed):
            refused(lambda call=stream_call, bad=bad: call(stream=bad), "stream")
    for bad in ((0,), (0, 0, 0), None, ("a", 0), (0, 2**40), *unlisted(0, 1)):
        refused(lambda bad=bad: grid.neighbour(bad), "offset")
    for bad in unlisted(1, 1):
        for halo_call in (grid.zeros, grid.inner):
            refused(lambda call=halo_call, bad=bad: call(halo=bad), "in a list or a tuple")
            refused(lambda call=halo_call, bad=bad: call(halo=(1, bad)), "in a list or a tuple")
    refused(lambda: grid.zeros(dtype="no type"), "dtype")
    refused(lambda: grid.zeros(halo="x"), "halo")
    refused(lambda: grid.points(None), "centring")
    for thing in (grid, halo):
        for copying in (copy.copy, copy.deepcopy, pickle.dumps):
            refused(lambda copying=copying, thing=thing: copying(thing), "neither copied nor pickled")
    halo()
    halo.free()


def main() -> None:
    check_grids()
    grid = haloscope.Grid(COMM, (12, 6 * COMM.size), periodic=True)
    check_exchanges(grid)
    for strategy in ("direct/neighbor", "ordered/p2p"):
        check_open_exchange(grid, strategy)
    check_local_calls(grid)
    COMM.barrier()
    if COMM.rank == 0:
        print("refused")


if __name__ == "__main__":
    sys.exit(main())
