"""The guard through the Python binding: a forgotten exchange is named, and found in the array.

Run by ranks: `mpiexec -n N python guarded_exchanges.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD


def problem_of(work: Callable[[], object]) -> str:
    try:
        work()
    except UsageError as problem:
        return str(problem)
    return ""


def main() -> None:
    grid = haloscope.Grid(COMM, (12 * COMM.size, 15), periodic=True)
    u, kind = grid.zeros(halo=2), grid.zeros(halo=1, dtype="i4")
    fields = [haloscope.Field(u, halo=2, name="u"), haloscope.Field(kind, halo=1, name="kind")]
    with haloscope.Exchange(grid, fields, strategy="ordered/p2p", guard=True) as halo:
        halo()
        halo.require_fresh(1)
        assert "field 'kind'" in problem_of(lambda: halo.require_fresh(2))
        halo.changed(fresh=1)
        halo.require_fresh(1)
        assert np.isnan(u[0, :]).all(), u[0, :]
        assert not np.isnan(u[1:-1, 1:-1]).any()
        halo.changed()
        assert "'u' in slot 0 is stale" in problem_of(lambda: halo.require_fresh(1))
        assert (kind[0, 1:-1] // 16 == np.int32(-606348336) // 16).all(), kind[0]
        halo.check_clean()
        with np.errstate(invalid="ignore"):  # poison is a signalling NaN
            u[2, 2] = u[2, 1] + 1.0
        problem = problem_of(halo.check_clean)
        assert "own point (0, 0) of field 'u'" in problem, problem
        assert "the low side in x" in problem, problem
    with haloscope.Exchange(grid, fields, strategy="ordered/p2p") as halo:
        halo.changed()
        halo.require_fresh(9)
        halo.check_clean()
    COMM.barrier()
    if COMM.rank == 0:
        print("named")


if __name__ == "__main__":
    main()
