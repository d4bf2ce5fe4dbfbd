"""Contiguous datasets of HDF5 files, whose bytes ranks write and read without HDF5."""

from __future__ import annotations

import contextlib
import posixpath
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from haloscope.arguments import shown
from haloscope.errors import HaloscopeError, UnavailableError, UsageError


def offset_of(path: str, dataset: str, shape: Sequence[int], dtype: np.dtype, make: bool) -> int:
    """Return the byte at which the data of a dataset begin in its file. Local.

    make: create the file and the dataset where they are missing; where that fails, a new file is removed.
    Raises UsageError for a dataset of another shape or type, in several pieces or in another file; UnavailableError
    without h5py; HaloscopeError where HDF5 fails.
    """
    h5py = _h5py()
    name = f"dataset '{dataset}' of file '{path}'"
    if posixpath.basename(dataset) in ("", ".", ".."):
        raise UsageError(f"dataset is {shown(dataset)}; pass its path in the file, as 'u' or '/step 1/u'")
    with _failures(f"the type {dtype} of the field", UsageError):
        kind = h5py.h5t.py_create(dtype, logical=True)
    if kind.get_size() != dtype.itemsize:
        raise UsageError(f"HDF5 has no type of {dtype.itemsize} bytes for {dtype}; write the field as another type")
    if (place := Path(path)).exists() and not place.is_file():
        raise UsageError(f"'{path}' is not a regular file; pass the path of a file, or of one that does not exist")
    is_new = not place.exists()
    if not is_new or not make:
        with _failures(name), h5py.File(path, "r") as file:
            _refuse_other_file(h5py, file, dataset, name)
            found = file.get(dataset)
            if found is not None or not make:
                return _checked_offset(h5py, found, name, tuple(shape), kind)
    try:
        with _failures(name), h5py.File(path, "a") as file:
            made = file.create_dataset(dataset, shape, dtype, dcpl=_in_one_piece(h5py))
            return _checked_offset(h5py, made, name, tuple(shape), kind)
    except BaseException:
        if is_new:
            place.unlink(missing_ok=True)
        raise


def refuse_open_file(path: str, writes: bool) -> None:
    """Raise UsageError where this program has the file open: HDF5 would overwrite what ranks write, and may not have
    written yet what they read. Local.
    """
    h5py = sys.modules.get("h5py")
    if h5py is None:
        return
    for file in h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE):
        with contextlib.suppress(OSError, ValueError):
            same = Path(path).samefile(file.name.decode("utf-8", "surrogateescape"))
            if same and (writes or file.get_intent() & h5py.h5f.ACC_RDWR):
                raise UsageError(f"file '{path}' is open in this program by h5py; close it first")


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UnavailableError(f"datasets of HDF5 need h5py ({error}): install haloscope[hdf5]") from None
    return h5py


@contextlib.contextmanager
def _failures(name: str, kind: type[HaloscopeError] = HaloscopeError) -> Iterator[None]:
    """Raise failures of h5py as errors that name an object."""
    try:
        yield
    except HaloscopeError:
        raise
    except Exception as error:
        raise kind(
            f"{name} cannot be used ({type(error).__name__}: {error}); is it a file of HDF5, or a new one in a folder "
            "that exists, that no other program has open, on a file system with room?"
        ) from error


def _refuse_other_file(h5py: Any, file: Any, dataset: str, name: str) -> None:
    """Raise UsageError where links lead from this file to another one."""
    number = h5py.h5o.get_info(file.id).fileno
    at = posixpath.normpath("/" + dataset.lstrip("/"))
    while at != "/":
        found = file.get(at)
        if found is not None and h5py.h5o.get_info(found.id).fileno != number:
            other = found.file.filename
            found.file.close()
            raise UsageError(f"{name} is in another file, '{other}', by a link; pass that file")
        at = posixpath.dirname(at)


def _in_one_piece(h5py: Any) -> Any:
    """Return the properties of a dataset that has its place in the file from the start, without values."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return properties


def _checked_offset(h5py: Any, found: Any, name: str, shape: tuple[int, ...], kind: Any) -> int:
    if found is None:
        raise UsageError(f"{name} does not exist; pass the path of one in this file")
    if not isinstance(found, h5py.Dataset):
        raise UsageError(f"{name} is a group or a type; pass the path of a dataset")
    if found.shape != shape or found.id.get_type() != kind:
        raise UsageError(
            f"{name} has shape {found.shape} and type {found.dtype}, and the field {shape} and {kind.dtype}, or these "
            "are other bytes in the file; pass a field of the same grid, centring and type, or a new dataset"
        )
    offset = found.id.get_offset()
    if offset is None:
        raise UsageError(
            f"{name} is not in one piece: it is chunked, compressed, in other files, or has never been written; "
            "create it contiguous, with H5D_ALLOC_TIME_EARLY"
        )
    return int(offset)
