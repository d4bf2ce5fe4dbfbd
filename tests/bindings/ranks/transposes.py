"""The program of transposes.cpp in Python: filters along rows and columns, with redistributions in between.

Run by ranks: `mpiexec -n N python transposes.py [STRATEGY]`; `python transposes.py reference` computes the same without
ranks.
"""

import sys

import numpy as np

CELLS, STEPS = (14, 20), 10  # x is the last axis


def initial(j: np.ndarray, i: np.ndarray) -> np.ndarray:
    return ((i * 7919 + j * 104729) % 1000003) / 1000003


def filter_along(axis: int, u: np.ndarray) -> None:
    lines = np.moveaxis(u, axis, 0)
    for n in range(1, len(lines)):
        lines[n] = 0.25 * lines[n] + 0.5 * lines[n - 1]


def checksum(u: np.ndarray) -> int:
    weight = 2 * np.arange(u.size, dtype=np.uint64).reshape(u.shape) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def reference() -> int:
    u = initial(np.arange(CELLS[0])[:, None], np.arange(CELLS[1]))
    for _ in range(STEPS):
        filter_along(1, u)
        filter_along(0, u)
    return checksum(u)


def on_ranks(strategy: str) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    comm = MPI.COMM_WORLD
    rows = haloscope.Grid(comm, CELLS, process_grid=(comm.size, 1))
    columns = haloscope.Grid(comm, CELLS, process_grid=(1, comm.size))
    one = haloscope.Grid(comm, CELLS, active_ranks=1)
    u, v, whole = rows.zeros(halo=1), columns.zeros(halo=0), one.zeros(halo=0)
    j, i = (np.arange(part.start, part.stop) for part in rows.owned)
    inner = u[rows.inner()]
    inner[:] = initial(j[:, None], i)
    v_field = haloscope.Field(v, halo=0)
    with (
        haloscope.Redistribution(rows, columns, u, v_field, strategy=strategy) as forth,
        haloscope.Redistribution(columns, rows, v_field, u, strategy=strategy) as back,
    ):
        for _ in range(STEPS):
            filter_along(1, inner)
            forth()
            filter_along(0, v)
            back.start()
            while not back.progress():
                pass
    haloscope.redistribute(rows, one, u, haloscope.Field(whole, halo=0))
    return checksum(whole) if comm.rank == 0 else None


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else "auto"
    found = reference() if word == "reference" else on_ranks(word)
    if found is not None:
        print(f"{found % 2**64:016x}")
