"""Arrays in the memory of imitated devices, shown as CuPy and DLPack show theirs: right halos, with and without
streams.

Run by ranks: `mpiexec -n N python device_exchanges.py`.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from mpi4py import MPI

import haloscope
from haloscope import memory, ranks
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD


class DeviceArray:
    """An array in the memory of an imitated device that shows itself as CuPy's do."""

    def __init__(self, like: np.ndarray):
        ffi, lib = ranks.library()
        self.like, self.memory = like, ffi.new("void**")
        assert lib.hs_imitated_allocate(like.nbytes, 0, self.memory) == 0
        self.set(like)

    @property
    def address(self) -> int:
        return int(ranks.library()[0].cast("intptr_t", self.memory[0]))

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.like.shape,
            "typestr": self.like.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": 1,
        }

    def set(self, values: np.ndarray) -> None:
        ffi, lib = ranks.library()
        assert lib.hs_imitated_copy(self.memory[0], ffi.from_buffer(np.ascontiguousarray(values)), values.nbytes) == 0

    def get(self) -> np.ndarray:
        ffi, lib = ranks.library()
        values = np.empty_like(self.like)
        assert lib.hs_imitated_copy(ffi.from_buffer(values), self.memory[0], values.nbytes) == 0
        return values

    def free(self) -> None:
        assert ranks.library()[1].hs_imitated_release(self.memory[0]) == 0


class ByDlpack:
    """The same array by DLPack alone, as a device that is none of those with a name."""

    def __init__(self, array: DeviceArray):
        self.array = array
        like = array.like
        self.shape = (ctypes.c_int64 * like.ndim)(*like.shape)
        kind = {"f": 2, "i": 0, "c": 5, "b": 6}[like.dtype.kind]
        self.tensor = memory._Tensor(array.address, 12, 0, like.ndim, kind, 8 * like.itemsize, 1, self.shape, None, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (12, 0)

    def __dlpack__(self, *, stream: int | None = None) -> object:
        assert stream == -1
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Stream:
    """A stream that has its address where CuPy's have it."""

    def __init__(self):
        self.handle = ranks.library()[0].new("void**")
        assert ranks.library()[1].hs_imitated_make_stream(0, self.handle) == 0
        self.ptr = int(ranks.library()[0].cast("intptr_t", self.handle[0]))

    def finish(self) -> None:
        assert ranks.library()[1].hs_imitated_finish(self.handle[0]) == 0


def filled(grid: haloscope.Grid, u: np.ndarray) -> np.ndarray:
    """Return the array with the number of each global cell in its own points, and NaN around them."""
    everything = np.arange(np.prod(grid.cells), dtype=u.dtype).reshape(grid.cells)
    values = np.full_like(u, -1)
    values[grid.inner()] = everything[grid.owned]
    return values


def whole(grid: haloscope.Grid, u: np.ndarray) -> np.ndarray:
    """Return what it holds after an exchange."""
    everything = np.arange(np.prod(grid.cells), dtype=u.dtype).reshape(grid.cells)
    around = [np.arange(part.start - 1, part.stop + 1) for part in grid.owned]
    return everything[np.ix_(*(line % cells for line, cells in zip(around, grid.cells, strict=True)))]


def check_sums(grid: haloscope.Grid, halo: haloscope.Exchange, array: DeviceArray, stream: Stream) -> None:
    """Each point gets as many as halos hold it, and itself."""
    ends = [1 + (np.arange(n) == 0).astype(int) + (np.arange(n) == n - 1) for n in grid.shape]
    expected = np.zeros_like(array.like)
    expected[grid.inner()] = ends[0][:, None, None] * ends[1][None, :, None] * ends[2]
    array.set(np.ones_like(array.like))
    halo.accumulate(stream=stream)
    halo.start_accumulate(0, stream.ptr)  # the halos are clear
    halo.finish(stream)
    stream.finish()
    np.testing.assert_array_equal(array.get(), expected)
    halo.accumulate()
    np.testing.assert_array_equal(array.get(), expected)


def check_guard(grid: haloscope.Grid, stream: Stream) -> None:
    """A forgotten exchange is named, and found."""
    u = DeviceArray(filled(grid, grid.zeros()))
    with haloscope.Exchange(grid, [u], guard=True) as halo:
        halo(stream=stream)
        halo.require_fresh(1)
        halo.changed(stream=stream)
        halo.check_clean(stream=stream)
        with pytest.raises(UsageError, match="is stale"):
            halo.require_fresh(1)
        stream.finish()
        values = u.get()
        assert np.isnan(values).any()
        values[1, 1, 1] = values[0, 1, 1]
        u.set(values)
        with pytest.raises(UsageError, match="from a stale halo"):
            halo.check_clean()
        u.set(filled(grid, u.like))
        halo.changed()
        halo()
        np.testing.assert_array_equal(u.get(), whole(grid, u.like))
    u.free()


def main() -> None:
    grid = haloscope.Grid(COMM, (7, 5 * COMM.size, 6), periodic=True)
    stream = Stream()
    check_guard(grid, stream)
    for dtype in ("f8", "f4", "i4", "c16"):
        u, v = DeviceArray(filled(grid, grid.zeros(dtype=dtype))), DeviceArray(filled(grid, grid.zeros(dtype=dtype)))
        with haloscope.Exchange(grid, [u, ByDlpack(v)]) as halo:
            halo()
            assert halo.report().startswith("direct:merged/auto-device: ")
            assert "memory of device 0 of back end 'host'" in halo.report()
            for array in (u, v):
                np.testing.assert_array_equal(array.get(), whole(grid, array.like))
                array.set(array.like)
            halo.start(stream=stream)
            halo.finish(stream.ptr)
            halo(stream=stream)
            stream.finish()
            np.testing.assert_array_equal(u.get(), whole(grid, u.like))
            other = DeviceArray(u.like)
            halo.rebind([other, v])
            halo(stream=0)
            np.testing.assert_array_equal(other.get(), whole(grid, u.like))
            check_sums(grid, halo, other, stream)
            with pytest.raises(UsageError, match="in host memory"):
                halo.rebind([u.like, v])
            with pytest.raises(UsageError, match="not a stream"):
                halo.start(stream="fast")
        with pytest.raises(UsageError, match="'array 1' is in host memory"):
            haloscope.Exchange(grid, [u, u.like])
        with pytest.raises(UsageError, match="staged"):
            haloscope.Exchange(grid, [u], strategy="ordered/p2p")
        with (
            haloscope.Exchange(grid, [u.like], strategy="ordered/p2p") as halo,
            pytest.raises(UsageError, match="in host memory"),
        ):
            halo.start(stream=stream)
        for array in (u, v, other):
            array.free()
    COMM.barrier()
    if COMM.rank == 0:
        print("right")


if __name__ == "__main__":
    main()
