"""A comparison of two halo exchanges in Veros: each array is exchanged by both, compared bit for bit, and timed.

pip install veros 'PATH_OF_HALOSCOPE[exchange]'
mpiexec -n 4 python compare.py 2 2          # ranks in x and y; a third number: days, default 10
"""

import sys
import time

import numpy as np
import veros.restart
from mpi4py import MPI
from veros import distributed, runtime_settings

import haloscope.veros

WARM = 100  # first exchanges, which include opening and trials of strategies, and are not timed

ranks, days = tuple(map(int, sys.argv[1:3])), float(sys.argv[3]) if len(sys.argv) > 3 else 10.0
runtime_settings.backend, runtime_settings.diskless_mode, runtime_settings.loglevel = "numpy", True, "error"
runtime_settings.num_proc, runtime_settings.mpi_comm = ranks, MPI.COMM_WORLD

before = distributed.exchange_overlap
haloscope.veros.install()
after = distributed.exchange_overlap
seconds = {before: [], after: []}


def exchange_both(array, var_grid, cyclic):
    """Exchange an array by both, alternating which one goes first; return the result."""
    found = {}
    for exchange in (before, after) if len(seconds[before]) % 2 else (after, before):
        MPI.COMM_WORLD.barrier()
        begin = time.perf_counter()
        found[exchange] = exchange(array, var_grid, cyclic)
        seconds[exchange].append(time.perf_counter() - begin)
    np.testing.assert_array_equal(found[before], found[after])
    return found[after]


distributed.exchange_overlap = veros.restart.exchange_overlap = exchange_both

from veros.setups.acc import ACCSetup  # noqa: E402 (after the settings)

model = ACCSetup(override={"runlen": 86400 * days})
model.setup()
model.run()
worst = {name: MPI.COMM_WORLD.allreduce(sum(list(all_of)[WARM:]), MPI.MAX) for name, all_of in seconds.items()}
if MPI.COMM_WORLD.rank == 0:
    count = len(seconds[before])
    print(f"{count} exchanges, the same bits; of {count - WARM}: {1e3 * worst[before]:.1f} ms by Veros, ", end="")
    print(f"{1e3 * worst[after]:.1f} ms by Haloscope: {worst[before] / worst[after]:.2f} times as fast")
