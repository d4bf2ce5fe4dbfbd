"""The halo exchange of the ocean model Veros, run by this library.

    import haloscope.veros
    haloscope.veros.install()  # then set up and run a model as usual

Veros exchanges one array at a time (veros.distributed.exchange_overlap, 28 call sites): up to eight blocking messages,
each of which copies the whole array. Here an exchange is opened once for each shape and type of array and reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloscope.errors import UnavailableError
from haloscope.exchange import Exchange, Field, Grid
from haloscope.ranks import member

WIDTH = 2  # layers of a halo of Veros

_original: Callable | None = None
_exchanges: dict[tuple, Exchange] = {}


def install() -> None:
    """Make Veros exchange halos by this library from now on, in all models of this process.

    Results have the same bits. Raises UnavailableError where Veros is not installed or computes with JAX, whose arrays
    cannot be exchanged in place.
    """
    global _original  # noqa: PLW0603 (uninstall() restores it)
    if _original is not None:
        return
    distributed, restart = _veros()
    _original = distributed.exchange_overlap
    replacement = distributed.dist_context_only(noop_return_arg=0)(_exchange_overlap)
    distributed.exchange_overlap = restart.exchange_overlap = replacement


def uninstall() -> None:
    """Restore the exchange of Veros. Collective where models have run: exchanges are freed.

    Where one cannot be freed, as on a thread that may not call MPI, nothing is restored, and a later call continues.
    """
    global _original  # noqa: PLW0603
    if _original is None:
        return
    for exchange in _exchanges.values():
        exchange.free()
    _exchanges.clear()
    distributed, restart = _veros()
    distributed.exchange_overlap = restart.exchange_overlap = _original
    _original = None


def reports() -> list[str]:
    """Return the arrays of each opened exchange, with its report."""
    return [
        f"{shape} {dtype} by {axes}: {exchange.report()}" for (shape, dtype, axes, _), exchange in _exchanges.items()
    ]


def _veros() -> tuple[Any, Any]:
    try:
        from veros import distributed, restart, runtime_settings
    except ImportError:
        raise UnavailableError("Veros is not installed; install it with 'pip install veros mpi4py'") from None
    if runtime_settings.backend != "numpy":
        raise UnavailableError(
            f"Veros computes with {runtime_settings.backend}; set veros.runtime_settings.backend = 'numpy'"
        )
    return distributed, restart


def _exchange_overlap(arr: np.ndarray, var_grid: Sequence[str], cyclic: bool) -> np.ndarray:
    """Return a copy of an array with its halos filled, as veros.distributed.exchange_overlap does."""
    from veros.distributed import SCATTERED_DIMENSIONS

    axes = tuple(number for number, names in enumerate(SCATTERED_DIMENSIONS) for dim in var_grid[:2] if dim in names)
    if not axes:
        return arr
    filled = np.array(arr, order="C")
    both = filled if len(axes) == 2 else np.expand_dims(filled, 1 - axes[0])  # axes x and y
    key = (arr.shape, str(arr.dtype), axes, bool(cyclic))
    if key in _exchanges:
        _exchanges[key].rebind([both])
    else:
        _exchanges[key] = _open(both, axes, bool(cyclic))
    _exchanges[key]()
    filled.flags.writeable = arr.flags.writeable
    return filled


def _open(array: np.ndarray, axes: tuple[int, ...], cyclic: bool) -> Exchange:
    """Open an exchange of an array [x, y, ...] over x, y or both (0, 1). Collective.

    Veros also sends cells beyond the edges of its grid, so these count as cells of the outermost ranks. Along an axis
    over which nothing is exchanged, each rank has one cell.
    """
    from veros import runtime_settings

    comm, ranks = runtime_settings.mpi_comm, runtime_settings.num_proc
    rank, _ = member(comm)
    cells, owned, periodic, halo = [], [], [], []
    for axis, place in enumerate((rank % ranks[0], rank // ranks[0])):
        width = WIDTH if axis in axes else 0
        wraps, block = cyclic and axis == 0, array.shape[axis] - 2 * width
        beyond = 0 if wraps else width
        start = place * block + (beyond if place > 0 else 0)
        stop = (place + 1) * block + (2 * beyond if place + 1 == ranks[axis] else beyond)
        cells.append(ranks[axis] * block + 2 * beyond)
        owned.append(slice(start, stop))
        periodic.append(wraps)
        halo.append(width)
    grid = Grid(comm, cells, periodic=periodic, owned=owned)
    return Exchange(grid, [Field(array, halo, outer=False)])
