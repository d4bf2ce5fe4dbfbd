"""Arrays of any library as NumPy arrays: addresses and strides. Memory of a device is never read."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from haloscope.arguments import count, is_number, is_one, named, shown
from haloscope.errors import UsageError

# Kinds of devices of DLPack: memory that the host reads directly, pinned memory included, and memory that it does not
# simply read: CUDA, ROCm, another device, managed memory of CUDA.
_HOSTS, _DEVICES = {1, 3, 11}, {2, 10, 12, 13}
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}  # of numbers, by DLPack's code; 6: Booleans
_VERSION = (1, 0)  # of DLPack: the newest one with the structures below
_READ_ONLY, _COPIED = 1, 2  # flags of a versioned tensor
# Methods by which a subclass of NumPy's arrays passes more than memory to other arrays: units, masks, names.
_HOOKS = {"__array_finalize__", "__array_ufunc__", "__array_function__", "__array_wrap__"}


class _Tensor(ctypes.Structure):
    """DLTensor, which a capsule named "dltensor" points to."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("dims", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, which a capsule named "dltensor_versioned" points to."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class _Described:
    """A description that NumPy makes an array from. It keeps the owner of the memory alive."""

    def __init__(self, interface: dict, owner: Any):
        self.__array_interface__ = {**interface, "version": 3}
        self.owner = owner


def is_array(value: Any) -> bool:
    """Return whether an argument is an array, or passes for one, and not a number, a text or nothing."""
    if is_number(value) or getattr(value, "ndim", 1) == 0:
        return False
    return not is_one(value) or any(hasattr(value, f"__{name}__") for name in ("dlpack", "array_interface"))


def described(array: Any, name: str, only_read: bool = False) -> np.ndarray:
    """Return the same memory as a plain NumPy array. Elements in device memory must not be accessed.

    Raises UsageError for objects that carry more than memory (masks, units, names of axes), cannot be written to unless
    they are only read, do not expose their memory in a supported way, or have types that NumPy lacks. Cost:
    microseconds.
    """
    with named(name, array):
        found = _described(array, name)
    if not (only_read or found.flags.writeable):
        raise UsageError(
            f"{name} cannot be written to, and an exchange fills its halo in place: pass memory of your own, as a copy"
        )
    return found


def _described(array: Any, name: str) -> np.ndarray:
    if isinstance(array, np.ndarray):
        _refuse_more_than_memory(array, name)
        return np.ndarray.view(array, np.ndarray)
    _refuse_mask_and_units(array, name)
    if hasattr(array, "__cuda_array_interface__"):
        return np.asarray(_Described(_of_interface(array.__cuda_array_interface__, name), array))
    if hasattr(array, "__array_interface__"):
        _of_interface(array.__array_interface__, name)
        return np.asarray(array)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array, name)
    try:
        view = memoryview(array)
    except TypeError:
        several = "" if isinstance(array, list) else ", and several arrays in a list or a tuple"
        raise UsageError(
            f"{name} is of type {type(array).__name__}, which does not show its memory; pass {_inside(array)}{several}"
        ) from None
    return np.asarray(view)


def _refuse_more_than_memory(array: np.ndarray, name: str) -> None:
    """Refuse all arrays except NumPy's kinds and subclasses that add neither data nor rules."""
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError(
            f"{name} is a masked array, whose mask would stay as it is; pass its .data and its .mask as two arrays (a "
            "mask that is one: numpy.ma.getmaskarray)"
        )
    own = [cls for cls in type(array).__mro__ if cls.__module__.partition(".")[0] != "numpy" and cls is not object]
    carries = any(_HOOKS & vars(cls).keys() for cls in own)
    if carries or (own and not isinstance(array, np.memmap) and getattr(array, "__dict__", None)):
        raise UsageError(
            f"{name} is of type {type(array).__name__}, which carries more than its memory, as units or a mask, that "
            "would not be exchanged; pass .view(numpy.ndarray), and other data to exchange as separate arrays"
        )


def _refuse_mask_and_units(array: Any, name: str) -> None:
    for extra in ("mask", "units", "unit"):
        carried = getattr(array, extra, None)
        if carried is not None and not callable(carried):
            raise UsageError(
                f"{name} is of type {type(array).__name__} and has a {extra.rstrip('s')}, which an exchange does not "
                f"move; pass {_inside(array)}, and a mask as another array"
            )


def _inside(array: Any) -> str:
    """Return the position of the NumPy array in an object that holds one, as objects of pint and xarray do."""
    for attribute in ("magnitude", "values", "data"):
        if isinstance(getattr(array, attribute, None), np.ndarray):
            return f"its .{attribute}"
    return "an array of NumPy, or one with the buffer protocol or DLPack"


def _of_interface(interface: Any, name: str) -> dict:
    """Return the description by __array_interface__ or __cuda_array_interface__, without its stream."""
    shown_by = dict(interface)
    if shown_by.pop("mask", None) is not None:
        raise UsageError(f"{name} has a mask, which an exchange does not move; pass an array without")
    shown_by.pop("stream", None)  # nothing is read now
    if isinstance(shown_by.get("data"), tuple):
        address, read_only = shown_by["data"]
        shown_by["data"] = (int(address), bool(read_only))
    return shown_by


def _of_dlpack(array: Any, name: str) -> np.ndarray:
    """Return the memory of a tensor. Its capsule is not consumed but kept, and with it the memory.

    Versions of DLPack before 1.0 do not mark read-only memory, so all memory counts as writable.
    """
    kind = int(array.__dlpack_device__()[0]) if hasattr(array, "__dlpack_device__") else 1
    if kind not in _HOSTS | _DEVICES:
        raise UsageError(f"{name} is on a device of DLPack's kind {kind}, which the library does not reach")
    capsule = _capsule(array, {"stream": -1} if kind in _DEVICES else {})  # -1: no waiting, since nothing is read
    flags, tensor = _tensor_in(capsule, name)
    if flags & _COPIED:
        raise UsageError(
            f"{name} shows a copy of its memory, and a halo filled there would not reach it; pass the array itself"
        )
    if tensor.lanes != 1 or (tensor.code not in _KINDS and tensor.code != 6) or tensor.bits % 8:
        raise UsageError(f"{name} has elements of a type that NumPy does not have; view it as integers of that size")
    size = tensor.bits // 8
    shape = tuple(tensor.shape[: tensor.dims])
    strides = tuple(size * step for step in tensor.strides[: tensor.dims]) if tensor.strides else None
    typestr = "|b1" if tensor.code == 6 else f"<{_KINDS[tensor.code]}{size}"
    data = ((tensor.data or 0) + tensor.offset, bool(flags & _READ_ONLY))
    interface = {"data": data, "shape": shape, "strides": strides, "typestr": typestr}
    return np.asarray(_Described(interface, (array, capsule)))


def _capsule(array: Any, options: dict) -> Any:
    try:
        return array.__dlpack__(max_version=_VERSION, **options)
    except TypeError:  # a producer from before version 1.0
        return array.__dlpack__(**options)


def _tensor_in(capsule: Any, name: str) -> tuple[int, _Tensor]:
    """Return the flags and the tensor that a capsule points to, for as long as it lives."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    if api.PyCapsule_IsValid(capsule, b"dltensor"):
        return 0, _Tensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    if not api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        raise UsageError(f"{name} returns {shown(capsule)} from __dlpack__, which is not a capsule of DLPack")
    found = _Versioned.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
    if found.major > _VERSION[0]:
        raise UsageError(f"{name} uses DLPack {found.major}.{found.minor}; this library reads up to {_VERSION[0]}")
    return found.flags, found.tensor


def stream_address(stream: Any) -> int:
    """Return the driver's address of a stream. stream: an address, or an object of CuPy, PyTorch or NVIDIA.

    Raises UsageError for anything else.
    """
    with named("stream", stream):
        address = _address_of(stream)
    if count("stream", address) < 0:
        raise UsageError(f"stream is {address}; an address is 0 (the default stream) or more")
    return address


def _address_of(stream: Any) -> int:
    for attribute in ("ptr", "cuda_stream"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    if isinstance(stream, int):
        return stream
    raise UsageError(
        f"{shown(stream)} is not a stream of a device; pass one of CuPy or PyTorch, or its address as a number (0: the "
        "default stream)"
    )
