"""Arrays of CuPy and PyTorch in the memory of a card: right halos, in order with kernels on the arrays' own streams.

Run by ranks: `mpiexec -n N python card_exchanges.py`. Ends with code 3 where neither package has a card.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
STEPS = 5


class CuPy:
    """What the checks need of CuPy."""

    def __init__(self):
        self.cupy = importlib.import_module("cupy")
        self.cupy.cuda.Device(0).use()

    def array(self, values: np.ndarray) -> Any:
        return self.cupy.asarray(values)

    def get(self, array: Any) -> np.ndarray:
        self.cupy.cuda.Device(0).synchronize()
        return self.cupy.asnumpy(array)

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def within(self, stream: Any) -> AbstractContextManager:
        return stream


class PyTorch:
    """What the checks need of PyTorch."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.torch.zeros(1, device="cuda")

    def array(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values.copy()).to("cuda")

    def get(self, array: Any) -> np.ndarray:
        self.torch.cuda.synchronize()
        return array.cpu().numpy()

    def stream(self) -> Any:
        return self.torch.cuda.Stream()

    def within(self, stream: Any) -> AbstractContextManager:
        return self.torch.cuda.stream(stream)


def numbers(grid: haloscope.Grid, dtype: str) -> np.ndarray:
    """The number of each global cell; sums over neighbours stay exact in all types for some steps."""
    return np.arange(np.prod(grid.cells)).reshape(grid.cells).astype(dtype)


def padded(grid: haloscope.Grid, everything: np.ndarray, halo: bool) -> np.ndarray:
    """The part of a rank, with halos of what lies beside it or of -1."""
    around = [np.arange(part.start - 1, part.stop + 1) for part in grid.owned]
    whole = everything[np.ix_(*(line % cells for line, cells in zip(around, grid.cells, strict=True)))]
    if halo:
        return whole
    own = np.full_like(whole, -1)
    own[grid.inner()] = whole[grid.inner()]
    return own


def neighbours(u: Any) -> Any:
    """The sum of six neighbours of each inner cell."""
    x, y, z = slice(1, -1), slice(1, -1), slice(1, -1)
    return u[:-2, y, z] + u[2:, y, z] + u[x, :-2, z] + u[x, 2:, z] + u[x, y, :-2] + u[x, y, 2:]


def rolled(everything: np.ndarray) -> np.ndarray:
    """The same of the whole periodic grid."""
    return sum(np.roll(everything, shift, axis) for axis in range(3) for shift in (1, -1))


def check_steps(package: Any, grid: haloscope.Grid, strategy: str, dtype: str) -> None:
    """Kernels and exchanges follow each other on one stream, and the host waits for the last one alone."""
    everything = numbers(grid, dtype)
    u = package.array(padded(grid, everything, halo=False))
    stream = package.stream()
    with haloscope.Exchange(grid, [u], strategy=strategy) as halo:
        with package.within(stream):
            for _ in range(STEPS):
                halo(stream=stream)
                u[grid.inner()] = neighbours(u)
                everything = rolled(everything)
            halo.start(stream=stream)
            halo.finish(stream=stream)
        np.testing.assert_array_equal(
            package.get(u), padded(grid, everything, halo=True), err_msg=f"{strategy} {dtype}"
        )


def check_calls(package: Any, grid: haloscope.Grid) -> None:
    """Without a stream, bound anew, added up, guarded, and refused beside an array of the host."""
    everything = numbers(grid, "f8")
    first, second = (package.array(padded(grid, everything, halo=False)) for _ in range(2))
    with haloscope.Exchange(grid, [first], guard=True) as halo:
        halo()
        np.testing.assert_array_equal(package.get(first), padded(grid, everything, halo=True))
        halo.rebind([second])
        halo()
        np.testing.assert_array_equal(package.get(second), padded(grid, everything, halo=True))
        halo.check_clean()
    ones = package.array(np.ones_like(padded(grid, everything, halo=False)))
    with haloscope.Exchange(grid, [ones]) as halo:
        halo.accumulate()
        ends = [1 + (np.arange(n) == 0).astype(int) + (np.arange(n) == n - 1) for n in grid.shape]
        expected = ends[0][:, None, None] * ends[1][None, :, None] * ends[2]
        np.testing.assert_array_equal(package.get(ones)[grid.inner()], expected)
    with pytest.raises(UsageError, match="in host memory"):
        haloscope.Exchange(grid, [first, np.ones(first.shape)])


def main() -> int:
    grid = haloscope.Grid(COMM, (7, 5 * COMM.size, 6), periodic=True)
    found = []
    for package in (CuPy, PyTorch):
        try:
            here = package()
        except Exception as problem:  # of any kind: the package is missing, or its driver is
            found.append(f"{package.__name__} cannot be used ({problem})")
            continue
        for strategy in (
            "auto-device",
            "ordered/staged",
            "direct/staged:stream",
            "direct:merged/ipc",
            "direct/taskqueue",
        ):
            for dtype in ("f8", "f4", "i4", "c16"):
                check_steps(here, grid, strategy if "/" in strategy else f"direct:merged/{strategy}", dtype)
        check_calls(here, grid)
        found.append(f"{package.__name__}: right")
    COMM.barrier()
    if COMM.rank == 0:
        print("; ".join(found), flush=True)
    return 0 if any(line.endswith(": right") for line in found) else 3


if __name__ == "__main__":
    sys.exit(main())
