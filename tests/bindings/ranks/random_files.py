"""Arrays written to files by some ranks and read by others, of random grids: right to the byte, also for NumPy.

Run by ranks: `mpiexec -n N python random_files.py SEED ROUNDS FOLDER`. All ranks draw the same numbers.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from random_exchanges import NONE, check_many
from random_redistributions import Pair, random_split

import haloscope

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0
FOLDER = Path(sys.argv.pop())


def check_one(draw: random.Random) -> None:
    dims = draw.randint(1, 3)
    cells = [COMM.size + draw.randint(1, 5) for _ in range(dims)]
    periodic, order = [draw.random() < 0.5 for _ in range(dims)], draw.choice("CF")
    first, second = (random_split(draw, cells, periodic, order) for _ in range(2))
    pair, path = Pair(draw, first, second, 1), FOLDER / f"u{draw.randint(0, 2)}.npy"
    pair.source.fill(0, 7)
    pair.target.fill(0, 8)
    source, target = pair.source.arrays[0], pair.target.arrays[0]
    haloscope.write(first, source, path, pair.source.sides, pair.source.centring)
    haloscope.read(second, target, str(path), pair.target.sides, pair.target.centring)
    for side in (pair.source, pair.target):
        side.check(0, 7, True, NONE[:dims])
    inner = tuple(slice(low, n - high) for (low, high), n in zip(pair.source.sides, source.shape, strict=False))
    whole = np.load(path)
    if order == "F" and whole.ndim > dims:  # the numbers of a point are the first axis
        whole = np.moveaxis(whole, 0, -1)
    between = [n - cells_here for n, cells_here in zip(first.points(pair.source.centring), first.shape, strict=True)]
    mine = whole[tuple(slice(p.start, p.stop + more) for p, more in zip(first.owned, between, strict=True))]
    held = source[inner]
    if 0 not in first.shape:
        assert mine.tobytes() == np.ascontiguousarray(held).tobytes()
    COMM.barrier()
    assert not list(FOLDER.glob("*.part"))


def check_refusals() -> None:
    grid = haloscope.Grid(COMM, (4 * COMM.size, 3))
    u, path = grid.zeros(), FOLDER / "u.npy"

    def refused(part: str, call: object, *arguments: object) -> None:
        with pytest.raises(haloscope.HaloscopeError) as caught:
            call(grid, *arguments)
        assert part in str(caught.value), str(caught.value)

    haloscope.write(grid, u, path)
    refused("numbers of type <f8, and the field <i8", haloscope.read, grid.zeros(dtype="i8"), path)
    other = haloscope.Grid(COMM, (4 * COMM.size, 5))
    with pytest.raises(haloscope.UsageError, match="extents"):
        haloscope.read(other, other.zeros(), path)
    refused("path", haloscope.write, u, 3)
    refused("has shape", haloscope.write, u, path, 2)
    refused("", haloscope.read, u, FOLDER / "none.npy")
    refused("", haloscope.write, u, FOLDER / "none" / "u.npy")
    if COMM.size > 1:
        refused("different files", haloscope.write, u, FOLDER / f"u{COMM.rank == 0}.npy")
    for number, (damage, part) in enumerate(
        (
            (lambda data: data[:-8], "was cut off"),
            (lambda data: b"no array", "is not of this format"),
            (lambda data: data[:6] + b"\7" + data[7:], "of version 7"),
            (lambda data: b"", "is not of this format"),
            (lambda data: data.replace(b"(", b"[", 1), "a shape that cannot be read"),
        )
    ):
        damaged = FOLDER / f"damaged{number}.npy"
        if COMM.rank == 0:
            damaged.write_bytes(damage(path.read_bytes()))
        COMM.barrier()
        refused(part, haloscope.read, u, damaged)
    COMM.barrier()
    if COMM.rank == 0:
        np.save(path, np.asfortranarray(np.arange(12.0 * COMM.size).reshape(4 * COMM.size, 3)))
    COMM.barrier()
    refused("ascontiguousarray", haloscope.read, u, path)
    turned = haloscope.Grid(COMM, (4 * COMM.size, 3), order="F")
    v = turned.zeros()
    haloscope.read(turned, v, path)
    assert (v[turned.inner()] == np.load(path)[turned.owned]).all()
    COMM.barrier()
    refused("not a regular file", haloscope.write, u, FOLDER)
    if COMM.size > 1:
        refused("do not make the same thing", haloscope.write if FIRST else haloscope.read, u, FOLDER / "both.npy")
        for transfer in (haloscope.write, haloscope.read):
            refused("path, which is 3", transfer, u, path if FIRST else 3)
    if FIRST:
        (FOLDER / "link.npy").symlink_to(FOLDER / "target.npy")
        (FOLDER / "target.npy").write_bytes(b"earlier")
        (FOLDER / "target.npy").chmod(0o600)
    COMM.barrier()
    haloscope.write(grid, u, FOLDER / "link.npy")
    if FIRST:
        assert (FOLDER / "link.npy").is_symlink()
        assert (FOLDER / "target.npy").stat().st_mode & 0o777 == 0o600
        assert np.load(FOLDER / "target.npy").shape == (4 * COMM.size, 3)


if __name__ == "__main__":
    check_refusals()
    check_many(check_one, "file")
