"""Arrays in files of NumPy's format .npy or in datasets of HDF5, which any number of ranks writes and reads.

A file has the points of the grid, each once, in the shape of the grid; `numpy.load()` reads it too. A node or a face
that several ranks hold is written by its owner and read by all holders; where a staggered axis is periodic, the file
has both of its ends. Ghost layers are neither written nor read. Where ranks have several blocks, a list of arrays takes
the place of an array: one for each of `grid.blocks`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from haloscope import hdf5
from haloscope.arguments import count, named, shown, text
from haloscope.errors import UsageError
from haloscope.fields import Arrays, Described, Field, by_block, refuse_other_types, structs_of
from haloscope.grid import Centring, Grid, Halo, points_between, require_grid
from haloscope.ranks import agree, call, gather, library, mark, refuse, refuse_unlike_types

Path = str | os.PathLike[str]


def write(
    grid: Grid,
    u: Arrays,
    path: Path,
    halo: Halo = 1,
    centring: Centring = "cell",
    dataset: str | None = None,
    offset: int | None = None,
) -> None:
    """Write the points of an array to a file.

    u: of any type without Python objects, in host memory. Axes beyond the grid's are one axis in the file.
    path: of the file; until it is complete, it is PATH.part, and an earlier file stays.
    halo: the ghost layers that the array has, on every side, or per axis a number or (low, high).
    centring: as Field.centring, which is not inferred from the shape: a layer too many would be written.
    dataset: its path in a file of HDF5, in place of a file of NumPy's format. Rank 0 creates both where they
        are missing, with h5py; a dataset that exists is overwritten. Its shape is the grid's, slowest axis first.
    offset: of the first point, in bytes, in a file of another format that exists and has these bytes.
    With dataset or offset, the file must not be open by h5py in this program, and a write that fails may leave some
    points changed.
    Points in holes of the grid are 0. Raises UsageError, on all ranks, for arrays that do not fit the grid or the
    dataset and for different paths; UnavailableError for a dataset without h5py; HaloscopeError where the file system
    fails. Collective; cost: a redistribution to whole planes, and the file's bytes divided by the ranks.
    """
    _move("write", grid, u, path, halo, centring, dataset, offset)


def read(
    grid: Grid,
    u: Arrays,
    path: Path,
    halo: Halo = 1,
    centring: Centring = "cell",
    dataset: str | None = None,
    offset: int | None = None,
) -> None:
    """Read the points of an array from a file, written by write() on any number of ranks or by numpy.save().

    dataset: contiguous, written by any program. offset: the type of the numbers in the file is not checked.
    Raises UsageError, on all ranks, also for a file of another format, type, shape or order of axes in memory, and
    HaloscopeError where the file changes meanwhile. Others: see write().
    """
    _move("read", grid, u, path, halo, centring, dataset, offset)


class _Request:
    """The arguments of a call of the library."""

    def __init__(self, grid: Grid, u: Arrays, path: Path, halo: Halo, centring: Centring, only_read: bool):
        each = enumerate(by_block(grid, u))
        fields = [Described(block, Field(one, halo, centring), n, (1, None), 1, only_read) for n, (block, one) in each]
        refuse_other_types(fields, 1)
        self.fields, self.structs = fields, structs_of(grid, fields)
        with named("path", path):
            name = text("path", os.fspath(path))
        self.path, self.name = name.decode(), library()[0].new("char[]", name)
        self.dtype = fields[0].arrays[0].dtype
        self.type = library()[0].new("char[]", self.dtype.str.encode())

    def shape(self, grid: Grid) -> list[int]:
        """Return the shape of the points of the whole grid, slowest axis first."""
        one = self.fields[0]
        if one.element_bytes < 1:
            raise UsageError(f"{one.name} has points of {one.element_bytes} bytes; a point has at least 1")
        points = [n + more for n, more in zip(grid.cells, points_between(one.centring, grid._dims), strict=True)]
        components = math.prod(one.arrays[0].shape[grid._dims :])
        return (points if grid.order == "C" else points[::-1]) + ([components] if components != 1 else [])


def _move(
    verb: str,
    grid: Grid,
    u: Arrays,
    path: Path,
    halo: Halo,
    centring: Centring,
    dataset: str | None,
    offset: int | None,
) -> None:
    require_grid(grid, "a file of a field")
    only_read = verb == "write"
    if dataset is None and offset is None:
        try:
            request = _Request(grid, u, path, halo, centring, only_read)
        except Exception as error:
            refuse(f"hs_grid_refuse_{verb}", grid._handle, error)
        call(f"hs_grid_{verb}", grid._handle, request.structs, request.type, grid.order.encode(), request.name)
    else:
        request, at = _placed(verb, grid, lambda: _Request(grid, u, path, halo, centring, only_read), dataset, offset)
        call(f"hs_grid_{verb}_at", grid._handle, request.structs, request.name, at)


def _placed(
    verb: str, grid: Grid, make: Callable[[], _Request], dataset: str | None, offset: int | None
) -> tuple[_Request, int]:
    """Return the arguments of a call, and an offset: of a dataset, which rank 0 finds or creates once all ranks have
    passed arguments that fit. Collective.
    """
    name = f"a part of a file that is {'written' if verb == 'write' else 'read'}"

    def checked() -> tuple[_Request, str, list[int], int]:
        if dataset is not None and offset is not None:
            raise UsageError("dataset and offset are two places in a file; pass one of them")
        request = make()
        hdf5.refuse_open_file(request.path, verb == "write")
        at = -1 if offset is None else count("offset", offset)
        where = "" if dataset is None else text("dataset", dataset).decode()
        return request, where, request.shape(grid), at

    request, where, shape, at = agree(grid.comm, name, checked)
    types = [request.fields[0].type]
    marks = gather(grid.comm, name, [mark(types), mark([request.path, str(dataset), str(at)])])
    refuse_unlike_types(grid.comm, types, marks[:, 0], "files")
    if (marks[:, 1] != marks[0, 1]).any():
        raise UsageError(
            f"the ranks pass different files, datasets or offsets; this one '{request.path}', {shown(dataset)} and"
            f" {shown(offset)}: pass the same on all of them"
        )
    if dataset is None:
        return request, at

    def found() -> int:
        if grid._rank != 0:
            return 0
        return hdf5.offset_of(request.path, where, shape, request.dtype, verb == "write")

    own = agree(grid.comm, name, found)
    return request, int(gather(grid.comm, name, [own])[0, 0])
