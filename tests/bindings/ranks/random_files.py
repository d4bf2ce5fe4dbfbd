"""Arrays of random grids, written by some ranks and read by others: right to the byte, also for NumPy and HDF5.

Run by ranks: `mpiexec -n N python random_files.py SEED ROUNDS FOLDER`. All ranks draw the same numbers.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from mpi4py import MPI
from random_exchanges import NONE, check_many
from random_redistributions import Pair, random_split

import haloscope

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0
FOLDER = Path(sys.argv.pop())


class File:
    """A file of NumPy's format, a dataset of HDF5, or a file of the program that has the points from byte 24 on."""

    def __init__(self, draw: random.Random):
        self.ending = draw.choice(("npy", "h5", "raw"))
        self.path = FOLDER / f"u{draw.randint(0, 2)}.{self.ending}"
        dataset = f"/step {draw.randrange(10**9)}/u"
        self.place = {"npy": {}, "h5": {"dataset": dataset}, "raw": {"offset": 24}}[self.ending]

    def prepare(self, shape: list[int], dtype: np.dtype) -> None:
        """Make the file of the program."""
        if FIRST and self.ending == "raw":
            self.path.write_bytes(b"\xab" * (24 + int(np.prod(shape)) * dtype.itemsize + 8))
        COMM.barrier()

    def load(self, shape: list[int], dtype: np.dtype, order: str) -> np.ndarray:
        """Return the points, with the axes of the grid."""
        if self.ending == "npy":
            return np.load(self.path)
        if self.ending == "h5":
            with h5py.File(self.path) as opened:
                found = opened[self.place["dataset"]][()]
        else:
            data = self.path.read_bytes()
            assert data[:24] + data[-8:] == b"\xab" * 32
            found = np.frombuffer(data[24:-8], dtype).reshape(shape)
        assert list(found.shape) == shape
        return found.T if order == "F" else found


def check_one(draw: random.Random) -> None:
    dims = draw.randint(1, 3)
    cells = [COMM.size + draw.randint(1, 5) for _ in range(dims)]
    periodic, order = [draw.random() < 0.5 for _ in range(dims)], draw.choice("CF")
    first, second = (random_split(draw, cells, periodic, order) for _ in range(2))
    pair, file = Pair(draw, first, second, 1), File(draw)
    pair.source.fill(0, 7)
    pair.target.fill(0, 8)
    source, target = pair.source.arrays[0], pair.target.arrays[0]
    between = [n - cells_here for n, cells_here in zip(first.points(pair.source.centring), first.shape, strict=True)]
    shape = [n + more for n, more in zip(cells, between, strict=True)]
    if order == "F":
        shape.reverse()
    shape += pair.source.components
    file.prepare(shape, pair.source.dtype)
    haloscope.write(first, source, file.path, pair.source.sides, pair.source.centring, **file.place)
    haloscope.read(second, target, str(file.path), pair.target.sides, pair.target.centring, **file.place)
    for side in (pair.source, pair.target):
        side.check(0, 7, True, NONE[:dims])
    inner = tuple(slice(low, n - high) for (low, high), n in zip(pair.source.sides, source.shape, strict=False))
    whole = file.load(shape, pair.source.dtype, order)
    if order == "F" and whole.ndim > dims:  # the numbers of a point are the first axis
        whole = np.moveaxis(whole, 0, -1)
    mine = whole[tuple(slice(p.start, p.stop + more) for p, more in zip(first.owned, between, strict=True))]
    held = source[inner]
    if 0 not in first.shape:
        assert mine.tobytes() == np.ascontiguousarray(held).tobytes()
    COMM.barrier()
    assert not list(FOLDER.glob("*.part"))


def check_refused_places(refused: Callable) -> None:
    """Offsets and datasets that do not fit; the file of a refused write stays as it was."""
    grid, path = haloscope.Grid(COMM, (4 * COMM.size, 3)), FOLDER / "v.h5"
    u, short = grid.zeros(), FOLDER / "short"
    if FIRST:
        short.write_bytes(b"x" * (96 * COMM.size - 1))
        with h5py.File(path, "w") as made:
            made.create_dataset("whole", (4 * COMM.size, 3), "f8", np.ones((4 * COMM.size, 3)))
            made.create_dataset("pieces", (4 * COMM.size, 3), "f8", chunks=(1, 3))
            made.create_dataset("late", (4 * COMM.size, 3), "f8")
            made.create_dataset("other", (4 * COMM.size, 4), "f8")
            made.create_dataset("turned", (4 * COMM.size, 3), ">f8")
            made.create_group("group")
            made["elsewhere"] = h5py.ExternalLink("w.h5", "/whole")
            made["others"] = h5py.ExternalLink("w.h5", "/")
            padded = np.dtype({"names": ["r", "i"], "formats": ["f8", "f8"], "offsets": [0, 8], "itemsize": 24})
            made.create_dataset("wide", (4 * COMM.size, 3), padded, np.zeros((4 * COMM.size, 3), padded))
        with h5py.File(FOLDER / "w.h5", "w") as made:
            made.create_dataset("whole", (4 * COMM.size, 3), "f8", np.zeros((4 * COMM.size, 3)))
        os.mkfifo(FOLDER / "pipe")
    COMM.barrier()
    before = path.read_bytes()
    for call in (haloscope.write, haloscope.read):
        for dataset, part in {
            "pieces": "not in one piece",
            "late": "not in one piece",
            "other": "has shape",
            "turned": "and type >f8",
            "group": "is a group",
            3: "dataset is 3",
            "": "dataset is ''",
            "group/": "dataset is 'group/'",
            "elsewhere": "is in another file",
            "others/whole": "is in another file",
            "others/new": "is in another file",
        }.items():
            refused(part, call, u, path, 1, "cell", dataset)
        refused("are other bytes in the file", call, grid.zeros(dtype="c16"), path, 1, "cell", "wide")
        refused("the type", call, grid.zeros(dtype="U3"), FOLDER / "new.h5", 1, "cell", "u")
        refused("not a regular file", call, u, FOLDER / "pipe", 1, "cell", "u")
        if FIRST:
            held = h5py.File(FOLDER / "w.h5", "r+")
        refused("is open in this program", call, u, FOLDER / "w.h5", 1, "cell", "whole")
        if FIRST:
            held.close()
        COMM.barrier()
        refused("pass one of them", call, u, path, 1, "cell", "whole", 0)
        refused("is it a file of HDF5", call, u, short, 1, "cell", "whole")
        refused("which has", call, u, short, 1, "cell", None, 0)
        refused("from byte -8 of file", call, u, path, 1, "cell", None, -8)
        refused("offset is 0.5", call, u, path, 1, "cell", None, 0.5)
        refused("make it with its full size", call, u, FOLDER / "no such file", 1, "cell", None, 0)
        if COMM.size > 1:
            refused("different files", call, u, path, 1, "cell", None, 8 * FIRST)
            refused("different files", call, u, FOLDER / "new.h5", 1, "cell", f"u{FIRST}")
            refused("files: types", call, u if FIRST else grid.zeros(dtype="i8"), FOLDER / "new.h5", 1, "cell", "u")
            refused("do not make the same thing", call, u, path, 1, "cell", "whole" if FIRST else None)
            refused("has shape", call, u if FIRST else u[1:], FOLDER / "new.h5", 1, "cell", "u")
    refused("does not exist", haloscope.read, u, path, 1, "cell", "none")
    COMM.barrier()
    assert path.read_bytes() == before
    assert not (FOLDER / "new.h5").exists()
    haloscope.read(grid, u, path, dataset="whole")
    assert (u[grid.inner()] == 1).all()
    haloscope.read(grid, u, FOLDER / "w.h5", dataset="whole")
    assert (u[grid.inner()] == 0).all()


def check_refusals() -> None:
    grid = haloscope.Grid(COMM, (4 * COMM.size, 3))
    u, path = grid.zeros(), FOLDER / "u.npy"

    def refused(part: str, call: object, *arguments: object) -> None:
        with pytest.raises(haloscope.HaloscopeError) as caught:
            call(grid, *arguments)
        assert part in str(caught.value), str(caught.value)

    constant = u.copy()
    constant.setflags(write=False)
    haloscope.write(grid, constant, path)
    refused("cannot be written to", haloscope.read, constant, path)
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
    check_refused_places(refused)
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
