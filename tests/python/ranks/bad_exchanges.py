"""What cannot be exchanged is refused on all ranks alike, with a text that says what to do; the ranks go on.

Run by ranks: `mpiexec -n N python bad_exchanges.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageProblem

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0


def refused(part: str, call, *arguments, **options) -> None:
    """All ranks get an error that says `part`."""
    with pytest.raises(UsageProblem) as caught:
        call(*arguments, **options)
    assert part in str(caught.value)


def main() -> None:
    grid = haloscope.Grid(COMM, (12, 6 * COMM.size), periodic=True)
    u = grid.zeros()
    exchange, make = haloscope.Exchange, haloscope.Grid
    frozen = u.copy()
    frozen.flags.writeable = False

    refused("no communicator", make, 3, (4, 4))
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
    refused("halo", exchange, grid, [grid.zeros(13)], 13)
    if COMM.size > 1:
        refused("" if FIRST else "rank 0: array 0 has shape", exchange, grid, [u[1:] if FIRST else u])
        refused("different exchanges", exchange, grid, [u.astype("f4") if FIRST else u])
        refused("different exchanges", exchange, grid, [u], strategy="ordered/p2p" if FIRST else "direct/p2p")
        refused("both own cell (0, 0)", make, COMM, (8, 8), owned=(slice(0, 8), slice(0, 8)))

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
