"""Contiguous datasets of HDF5 files, whose bytes ranks write and read without HDF5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloscope.errors import HaloscopeError, UnavailableError, UsageError


def offset_of(path: str, dataset: str, shape: Sequence[int], dtype: np.dtype, make: bool) -> int:
    """Return the byte at which the data of a dataset begin in its file. Local; no other process has the file open.

    make: create the file and the dataset where they are missing.
    Raises UsageError for a dataset of another shape or type, or in several pieces; UnavailableError without h5py;
    HaloscopeError where the file cannot be opened.
    """
    try:
        import h5py
    except ImportError as error:
        raise UnavailableError(f"datasets of HDF5 need h5py ({error}): install haloscope[hdf5]") from None
    try:
        with h5py.File(path, "a" if make else "r") as file:
            found = file.get(dataset)
            if found is None and make:
                found = file.create_dataset(dataset, shape, dtype, dcpl=_in_one_piece(h5py))
            return _checked_offset(found, f"dataset '{dataset}' of file '{path}'", tuple(shape), dtype)
    except OSError as error:
        raise HaloscopeError(f"file '{path}' cannot be opened as HDF5: {error}") from error


def _in_one_piece(h5py: Any) -> Any:
    """Return the properties of a dataset that has its place in the file from the start, without values."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return properties


def _checked_offset(found: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> int:
    if found is None:
        raise UsageError(f"{name} does not exist; pass the path of one in this file")
    if not hasattr(found, "dtype"):
        raise UsageError(f"{name} is a group; pass the path of a dataset")
    if (found.shape, found.dtype) != (shape, dtype):
        raise UsageError(
            f"{name} has shape {found.shape} and type {found.dtype}, and the field {shape} and {dtype}; pass a field "
            "of the same grid, centring and type, or the name of a new dataset"
        )
    offset = found.id.get_offset()
    if offset is None:
        raise UsageError(
            f"{name} is not in one piece: it is chunked, compressed, in other files, or has never been written; "
            "create it contiguous, with H5D_ALLOC_TIME_EARLY"
        )
    return int(offset)
