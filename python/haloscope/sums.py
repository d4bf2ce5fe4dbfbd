"""Sums, inner products and norms of arrays over all ranks, with the same bits on any number of ranks.

Each point of the grid counts once: of nodes and faces that several ranks hold, the value that `Exchange.share()` gives
to all of them. Ghost layers do not count. An infinite or undefined term gives an infinite or undefined sum. Where ranks
have several blocks, a list of arrays takes the place of an array: one for each of `grid.blocks`.
"""

from __future__ import annotations

import math

import numpy as np

from haloscope import memory
from haloscope.errors import UsageError
from haloscope.fields import Arrays, Described, Field, by_block, can_be_added, refuse_other_types, structs_of
from haloscope.grid import Block, Centring, Grid, Halo, require_grid
from haloscope.ranks import call, library, refuse


def sum(grid: Grid, u: Arrays, halo: Halo = 1, centring: Centring = "cell") -> float | complex:
    """Return the sum of an array.

    u: reals or complex numbers of single or double precision, in host memory.
    halo: the ghost layers that it has, on every side, or per axis a number or (low, high).
    centring: as Field.centring, which is not inferred from the shape: a layer too many would count.
    Raises UsageError, on all ranks, for other types and shapes. Collective; cost: two reductions (complex: four), and
    two passes over the points.
    """
    require_grid(grid, "a sum")
    try:
        arrays = [memory.described(array, "u", only_read=True) for _, array in by_block(grid, u)]
        kinds = {array.dtype.kind for array in arrays}
        if len(kinds) > 1 and "c" in kinds:
            raise UsageError("a sum of real and complex numbers; pass arrays of one type for all blocks")
    except Exception as error:
        refuse("hs_grid_refuse_sum", grid._handle, error)
    if "c" not in kinds:
        return _reduced("hs_grid_sum", grid, [arrays], halo, centring)
    parts = [a.real for a in arrays], [a.imag for a in arrays]
    return complex(*(_reduced("hs_grid_sum_of_parts", grid, [part], halo, centring) for part in parts))


def dot(grid: Grid, u: Arrays, v: Arrays, halo: Halo = 1, centring: Centring = "cell") -> float:
    """Return the inner product of two arrays of reals with the same ghost layers and centring.

    Points may have several numbers, in axes beyond the grid's: all of them count. Others: see sum().
    """
    return _reduced("hs_grid_dot", grid, [u, v], halo, centring)


def norm(grid: Grid, u: Arrays, halo: Halo = 1, centring: Centring = "cell") -> float:
    """Return the square root of the sum of the squares of an array's numbers, real or complex. Others: see sum()."""
    return _reduced("hs_grid_norm", grid, [u], halo, centring)


def _reduced(function: str, grid: Grid, factors: list[Arrays], halo: Halo, centring: Centring) -> float:
    ffi, _ = library()
    require_grid(grid, "a sum")
    try:
        each = enumerate(pair for factor in factors for pair in by_block(grid, factor))
        fields = [_described(block, Field(array, halo, centring), n) for n, (block, array) in each]
        refuse_other_types(fields[: len(grid.blocks)], 1)
        structs = structs_of(grid, fields)
        if len(factors) > 1 and "c" in {field.arrays[0].dtype.kind for field in fields}:
            raise UsageError("an inner product of complex numbers; take products of their real and imaginary parts")
    except Exception as error:
        refuse("hs_grid_refuse_sum", grid._handle, error)
    result = ffi.new("double*", math.nan)
    call(function, grid._handle, *(structs + n * len(grid.blocks) for n in range(len(factors))), result)
    return float(result[0])


def _described(block: Block, field: Field, number: int) -> Described:
    """Return the description of an array. Raises UsageError for types that are not added."""
    found = Described(block, field, number, (1, None), 1, only_read=True)
    dtype: np.dtype = found.arrays[0].dtype
    if dtype.kind not in "fc" or not can_be_added(dtype):
        raise UsageError(
            f"{found.name} has elements of type {dtype}; sums take reals and complex numbers of single or double "
            "precision: convert it, as by astype(float)"
        )
    return found
