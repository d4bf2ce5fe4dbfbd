"""Sums, inner products and norms of arrays over all ranks, with the same bits on any number of ranks.

Each point of the grid counts once: of nodes and faces that several ranks hold, the value that `Exchange.share()` gives
to all of them. Ghost layers do not count. An infinite or undefined term gives an infinite or undefined sum.
"""

from __future__ import annotations

import math

import numpy as np

from haloscope import memory
from haloscope.errors import UsageError
from haloscope.fields import Array, Described, Field, can_be_added
from haloscope.grid import Centring, Grid, Halo
from haloscope.ranks import call, library, refuse


def sum(grid: Grid, u: Array, halo: Halo = 1, centring: Centring = "cell") -> float | complex:
    """Return the sum of an array.

    u: reals or complex numbers of single or double precision, in host memory.
    halo: the ghost layers that it has, on every side, or per axis a number or (low, high).
    centring: as Field.centring, which is not inferred from the shape: a layer too many would count.
    Raises UsageError, on all ranks, for other types and shapes. Collective; cost: two reductions (complex: four), and
    two passes over the points.
    """
    try:
        array = memory.described(u, "u")
        parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    except Exception as error:
        refuse("hs_grid_refuse_sum", grid._handle, error)
    found = [_reduced("hs_grid_sum", grid, [part], halo, centring) for part in parts]
    return found[0] if len(found) == 1 else complex(*found)


def dot(grid: Grid, u: Array, v: Array, halo: Halo = 1, centring: Centring = "cell") -> float:
    """Return the inner product of two arrays of reals with the same ghost layers and centring.

    Points may have several numbers, in axes beyond the grid's: all of them count. Others: see sum().
    """
    return _reduced("hs_grid_dot", grid, [u, v], halo, centring)


def norm(grid: Grid, u: Array, halo: Halo = 1, centring: Centring = "cell") -> float:
    """Return the square root of the sum of the squares of an array's numbers, real or complex. Others: see sum()."""
    return _reduced("hs_grid_norm", grid, [u], halo, centring)


def _reduced(function: str, grid: Grid, arrays: list[Array], halo: Halo, centring: Centring) -> float:
    ffi, _ = library()
    try:
        fields = [_described(grid, Field(array, halo, centring), n) for n, array in enumerate(arrays)]
        structs = ffi.new("hs_field[]", len(fields))
        for field, struct in zip(fields, structs, strict=True):
            field.fill(grid, struct)
        if len(arrays) > 1 and "c" in {field.arrays[0].dtype.kind for field in fields}:
            raise UsageError("an inner product of complex numbers; take products of their real and imaginary parts")
    except Exception as error:
        refuse("hs_grid_refuse_sum", grid._handle, error)
    result = ffi.new("double*", math.nan)
    call(function, grid._handle, *(ffi.addressof(structs, n) for n in range(len(fields))), result)
    return float(result[0])


def _described(grid: Grid, field: Field, number: int) -> Described:
    """Return the description of an array. Raises UsageError for types that are not added."""
    found = Described(grid, field, number, (1, None), 1)
    dtype: np.dtype = found.arrays[0].dtype
    if dtype.kind not in "fc" or not can_be_added(dtype):
        raise UsageError(
            f"{found.name} has elements of type {dtype}; sums take reals and complex numbers of single or double "
            "precision: convert it, as by astype(float)"
        )
    return found
