"""Random sums through the Python binding: the same bits as on one rank.

Run by ranks: `mpiexec -n N python random_sums.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD


def part_of(block: haloscope.grid.Block, whole: np.ndarray, halo: int, centring: str) -> np.ndarray:
    """Return a block's points of an array of all points of a grid, with a halo of other numbers."""
    part = block.zeros(halo, whole.dtype, centring) - 12345
    points = (np.arange(p.start, p.start + n) for p, n in zip(block.owned, block.points(centring), strict=True))
    if 0 not in block.shape:
        part[block.inner(halo)] = whole[np.ix_(*(at % n for at, n in zip(points, whole.shape, strict=True)))]
    return part


def dealt(draw: np.random.Generator, cells: list[int]) -> list[list[tuple[slice, ...]]]:
    """Return each rank's blocks of a grid: slabs between random cuts, of which some ranks may have several or none."""
    cuts = [0, *np.flatnonzero(draw.integers(0, 2, cells[0] - 1)) + 1, cells[0]]
    hands: list[list[tuple[slice, ...]]] = [[] for _ in range(COMM.size)]
    for low, high in itertools.pairwise(cuts):
        hands[draw.integers(COMM.size)].append((slice(low, high), *(slice(0, n) for n in cells[1:])))
    return hands


def results(comm: MPI.Comm, arrays: list[np.ndarray], cells: list[int], periodic: list[bool], how: dict) -> list[Any]:
    if comm is COMM and how["dealt"]:
        grid = haloscope.Grid(comm, cells, periodic=periodic, owned=how["dealt"][comm.rank])
    else:
        grid = haloscope.Grid(comm, cells, periodic=periodic, process_grid="slabs" if how["slabs"] else None)
    u, v = ([part_of(block, one, how["halo"], how["centring"]) for block in grid.blocks] for one in arrays)
    for array in (*u, *v):
        array.setflags(write=False)
    if not how["dealt"]:
        (u,), (v,) = u, v
    options = {"halo": how["halo"], "centring": how["centring"]}
    found = [haloscope.sum(grid, u, **options), haloscope.norm(grid, v, **options)]
    return found if arrays[0].dtype.kind == "c" else [*found, haloscope.dot(grid, u, v, **options)]


def check_random(draw: np.random.Generator) -> None:
    dims = int(draw.integers(1, 4))
    cells = [int(n) for n in draw.integers(COMM.size, COMM.size + 8, dims)]
    periodic = [bool(one) for one in draw.integers(0, 2, dims)]
    centring = draw.choice(["cell", "node", *(f"face-{axis}" for axis in range(dims))])
    dtype = np.dtype(draw.choice(["f4", "f8", "c8", "c16"]))
    between = [centring in ("node", f"face-{axis}") for axis in range(dims)]
    points = [n + (more and not wraps) for n, more, wraps in zip(cells, between, periodic, strict=True)]
    arrays = []
    for _ in range(2):
        numbers = draw.standard_normal((2, *points)) * 2.0 ** draw.integers(-40, 40, (2, *points))
        arrays.append((numbers[0] + 1j * numbers[1] if dtype.kind == "c" else numbers[0]).astype(dtype))
    how = {"halo": int(draw.integers(0, 3)), "centring": centring, "slabs": bool(draw.integers(0, 2)), "dealt": None}
    if draw.integers(0, 2):
        how["dealt"] = dealt(draw, cells)
    alone = results(MPI.COMM_SELF, arrays, cells, periodic, how)
    found = results(COMM, arrays, cells, periodic, how)
    assert np.array(found).tobytes() == np.array(alone).tobytes(), (found, alone, how)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    terms = arrays[0].astype(wide)
    assert abs(alone[0] - terms.sum()) <= 1e-12 * np.abs(terms).sum(), (alone[0], terms.sum())


def refusal(work: Callable[[], Any]) -> str:
    try:
        work()
    except UsageError as error:
        return str(error)
    return "no error"


def check_refusals() -> None:
    """Arguments that are wrong on one rank are an error on all ranks."""
    grid = haloscope.Grid(COMM, [COMM.size * 3, 5])
    right, wrong = grid.zeros(), grid.zeros(halo=2)
    mine = COMM.rank == COMM.size - 1
    one_row = np.lib.stride_tricks.as_strided(right, strides=(0, right.strides[1]))
    wrongs = ((wrong, "shape"), (right.astype(int), "int64"), ("text", "u"), (right.astype(">f8"), ">f8"))
    for bad, text in (*wrongs, (one_row, "points share memory")):
        for work in (
            lambda one: haloscope.sum(grid, one),
            lambda one: haloscope.dot(grid, right, one),
            lambda one: haloscope.norm(grid, one),
        ):
            found = refusal(lambda work=work, bad=bad: work(bad if mine else right))
            assert text in found, (text, found)
            assert found.startswith(f"rank {COMM.size - 1}: ") == (not mine), found
    assert "complex" in refusal(lambda: haloscope.dot(grid, right + 1j, right))
    assert haloscope.sum(grid, right + 1) == COMM.size * 15
    padded = np.ones([n + 3 for n in grid.shape])  # of nodes with a halo of one, or of cells with a layer too many
    assert "shape" in refusal(lambda: haloscope.sum(grid, padded))


if __name__ == "__main__":
    seed, rounds = map(int, sys.argv[1:])
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        check_random(generator)
    check_refusals()
    if COMM.rank == 0:
        print("right")
