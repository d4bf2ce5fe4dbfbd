"""Redistributions that cannot be: refused on all ranks, with the reason, wherever the fault is.

Run by ranks: `mpiexec -n N python bad_redistributions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import haloscope

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0
CELLS = (4 * COMM.size, 6)


def refused(part: str, *arguments: Any, **options: Any) -> None:
    refused_call(part, lambda: haloscope.redistribute(*arguments, **options))


def refused_call(part: str, call: Callable[[], object]) -> None:
    with pytest.raises(haloscope.UsageError) as caught:
        call()
    assert part in str(caught.value), str(caught.value)


def check_requests_that_are_wrong_on_one_rank() -> None:
    u, v = rows.zeros(), columns.zeros()
    refused("does not show its memory", rows, columns, u, "v" if FIRST else v)
    refused("target of type", rows, columns, u, v.astype("f4") if FIRST else v)
    refused("has shape", rows, columns, u, columns.zeros(halo=3) if FIRST else v)
    refused("unknown" if FIRST else "rank 0", rows, columns, u, v, strategy="direct/none" if FIRST else "direct/p2p")
    if COMM.size > 1:
        other = columns.zeros(dtype="i8")
        refused(
            "different redistributions", rows, columns, rows.zeros(dtype="i8") if FIRST else u, other if FIRST else v
        )


def check_grids() -> None:
    u = rows.zeros()
    other = haloscope.Grid(COMM, (CELLS[0] + 1, 6))
    refused("of different grids", rows, other, u, other.zeros())
    wraps = haloscope.Grid(COMM, CELLS, periodic=True)
    refused("of different grids", rows, wraps, u, wraps.zeros())
    turned = haloscope.Grid(COMM, CELLS, order="F")
    refused("orders C and F", rows, turned, u, turned.zeros())
    refused("pass two haloscope.Grid objects", rows, COMM if FIRST else columns, u, columns.zeros())
    refused("pass two haloscope.Grid objects", None if FIRST else rows, columns, u, columns.zeros())


def check_fields() -> None:
    u, v = rows.zeros(), columns.zeros()
    refused("1 sources and 2 targets", rows, columns, u, [v, v])
    refused("0 sources", rows, columns, [], [])
    refused("share memory", rows, rows, u, u)
    refused("centring", rows, columns, u, haloscope.Field(columns.zeros(centring="node"), centring="node"))
    refused("has 2 slots", rows, columns, u, haloscope.Field((v, v.copy())))


def check_an_open_one() -> None:
    u, v = rows.zeros(), columns.zeros()
    move = haloscope.Redistribution(rows, columns, u, v, strategy="direct/p2p")
    assert "direct/p2p: rank" in move.report()
    move.start()
    refused_call("still in flight", move.start)
    refused_call("still in flight", lambda: move(3))
    move.finish()
    move.free()
    refused_call("the redistribution was freed", move)


def check_a_dropped_one_is_freed() -> None:
    """Later openings on the communicator free it, exchanges too."""
    u, v = rows.zeros(), columns.zeros()
    move = haloscope.Redistribution(rows, columns, u, v)
    del move
    haloscope.Exchange(rows, np.ones_like(u)).free()
    haloscope.redistribute(rows, columns, u, v)


rows = haloscope.Grid(COMM, CELLS, process_grid=(COMM.size, 1))
columns = haloscope.Grid(COMM, CELLS, process_grid="square")
for check in (
    check_requests_that_are_wrong_on_one_rank,
    check_grids,
    check_fields,
    check_an_open_one,
    check_a_dropped_one_is_freed,
):
    check()
    COMM.barrier()
if FIRST:
    print("right")
