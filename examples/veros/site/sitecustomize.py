"""Install the exchange in every Python process that finds this folder on PYTHONPATH, as soon as the process imports
Veros.

Programs that Veros starts, for example in its distributed tests by MPI_Comm_spawn, inherit PYTHONPATH and so have the
exchange as well. With HALOSCOPE_VEROS_COUNTS=FILE each rank of several appends a line to FILE when it ends: rank,
ranks, exchanges that Veros requested, exchanges that Haloscope made.
"""

import atexit
import importlib.abc
import importlib.util
import json
import os
import sys
from pathlib import Path


class InstallAfterImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads veros.distributed as usual, then installs the exchange; before that, Veros may have no settings yet."""

    def find_spec(self, name, _path=None, _target=None):
        """Return the spec of veros.distributed, with this loader in front of its own; None for all other modules."""
        if name != "veros.distributed":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        self.loader, spec.loader = spec.loader, self
        return spec

    def exec_module(self, module):
        """Execute the module, then put the exchange into it."""
        self.loader.exec_module(module)
        import haloscope.veros

        haloscope.veros.install()
        if "HALOSCOPE_VEROS_COUNTS" in os.environ:
            count_exchanges(module, Path(os.environ["HALOSCOPE_VEROS_COUNTS"]))


def count_exchanges(distributed, file):
    """Count the exchanges that Veros requests and the exchanges that Haloscope makes; append both to a file at the
    end.
    """
    import veros.restart
    from mpi4py import MPI

    from haloscope.exchange import Exchange

    rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    counts = {"asked": 0, "carried_out": 0}

    def counted(name, function):
        def count(*args, **options):
            counts[name] += 1
            return function(*args, **options)

        return count

    Exchange.__call__ = counted("carried_out", Exchange.__call__)
    distributed.exchange_overlap = veros.restart.exchange_overlap = counted("asked", distributed.exchange_overlap)

    @atexit.register
    def write():
        if ranks > 1:  # one rank alone exchanges nothing
            line = {"rank": rank, "ranks": ranks, **counts}
            with file.open("a") as out:
                out.write(json.dumps(line) + "\n")


sys.meta_path.insert(0, InstallAfterImport())
