"""Arrays in files of NumPy's format .npy, which any number of ranks writes and reads.

A file has the points of the grid, each once, in the shape of the grid; `numpy.load()` reads it too. A node or a face
that several ranks hold is written by its owner and read by all holders; where a staggered axis is periodic, the file
has both of its ends. Ghost layers are neither written nor read. Where ranks have several blocks, a list of arrays takes
the place of an array: one for each of `grid.blocks`.
"""

from __future__ import annotations

import os

from haloscope.arguments import named, text
from haloscope.fields import Arrays, Described, Field, by_block, refuse_other_types, structs_of
from haloscope.grid import Centring, Grid, Halo, require_grid
from haloscope.ranks import call, library, refuse

Path = str | os.PathLike[str]


def write(grid: Grid, u: Arrays, path: Path, halo: Halo = 1, centring: Centring = "cell") -> None:
    """Write the points of an array to a file.

    u: of any type without Python objects, in host memory. Axes beyond the grid's are one axis in the file.
    path: of the file; until it is complete, it is PATH.part, and an earlier file stays.
    halo: the ghost layers that the array has, on every side, or per axis a number or (low, high).
    centring: as Field.centring, which is not inferred from the shape: a layer too many would be written.
    Points in holes of the grid are 0. Raises UsageError, on all ranks, for arrays that do not fit the grid and for
    different paths; HaloscopeError where the file system fails. Collective; cost: a redistribution to whole planes,
    and the file's bytes divided by the ranks.
    """
    _move("write", grid, u, path, halo, centring)


def read(grid: Grid, u: Arrays, path: Path, halo: Halo = 1, centring: Centring = "cell") -> None:
    """Read the points of an array from a file, written by write() on any number of ranks or by numpy.save().

    Raises UsageError, on all ranks, also for a file of another format, type, shape or order of axes in memory, and
    HaloscopeError where the file changes meanwhile. Others: see write().
    """
    _move("read", grid, u, path, halo, centring)


def _move(verb: str, grid: Grid, u: Arrays, path: Path, halo: Halo, centring: Centring) -> None:
    ffi, _ = library()
    require_grid(grid, "a file of a field")
    try:
        each = enumerate(by_block(grid, u))
        fields = [Described(block, Field(one, halo, centring), n, (1, None), 1) for n, (block, one) in each]
        refuse_other_types(fields, 1)
        structs = structs_of(grid, fields)
        with named("path", path):
            name = ffi.new("char[]", text("path", os.fspath(path)))
        kind = ffi.new("char[]", fields[0].arrays[0].dtype.str.encode())
    except Exception as error:
        refuse(f"hs_grid_refuse_{verb}", grid._handle, error)
    call(f"hs_grid_{verb}", grid._handle, structs, kind, grid.order.encode(), name)
