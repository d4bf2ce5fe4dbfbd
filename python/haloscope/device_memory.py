"""Arrays in the memory of a device, as NumPy describes arrays: addresses and strides, of which nothing is ever read."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from haloscope.errors import UsageProblem

# Kinds of devices of DLPack whose memory the host does not simply read: CUDA, ROCm, managed memory of CUDA, another one.
_DEVICES = {2, 10, 12, 13}
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}  # of numbers, by DLPack's code; 6: Booleans


class _Tensor(ctypes.Structure):
    """DLTensor, which a capsule named "dltensor" points to."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("dims", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Described:
    """What NumPy makes an array of. It keeps the owner of the memory alive."""

    def __init__(self, interface: dict, owner: Any):
        self.__array_interface__ = {**interface, "version": 3}
        self.owner = owner


def on_device(array: Any) -> bool:
    """Return whether an array says that it is in the memory of a device."""
    if hasattr(array, "__cuda_array_interface__"):
        return True
    return hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) in _DEVICES


def described(array: Any, name: str) -> np.ndarray:
    """Return the array as one of NumPy's, for its address, shape, strides and type. Its elements must not be touched.

    Raises UsageProblem for masked arrays, those that cannot be written to, and types that NumPy does not have.
    """
    if hasattr(array, "__cuda_array_interface__"):
        shown = dict(array.__cuda_array_interface__)
        if shown.pop("mask", None) is not None:
            raise UsageProblem(f"{name} has a mask, which an exchange does not move; pass an array without")
        shown.pop("stream", None)  # nothing is read now
        address, read_only = shown["data"]
        shown["data"] = (int(address), read_only)
    else:
        shown = _of_dlpack(array, name)
    if shown["data"][1]:
        raise UsageProblem(f"{name} cannot be written to; an exchange fills its halo in place: pass a copy")
    return np.asarray(_Described(shown, array))


def _of_dlpack(array: Any, name: str) -> dict:
    """Return the description of a tensor. Its capsule is not consumed: the array itself keeps the memory."""
    capsule = array.__dlpack__(stream=-1)  # no waiting: nothing is read
    at = ctypes.pythonapi.PyCapsule_GetPointer
    at.restype, at.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(at(capsule, b"dltensor"))
    if tensor.lanes != 1 or (tensor.code not in _KINDS and tensor.code != 6):
        raise UsageProblem(f"{name} has elements of a type that NumPy does not have; view it as integers of that size")
    size = tensor.bits // 8
    shape = tuple(tensor.shape[: tensor.dims])
    strides = tuple(size * step for step in tensor.strides[: tensor.dims]) if tensor.strides else None
    kind = "|b1" if tensor.code == 6 else f"<{_KINDS[tensor.code]}{size}"
    return {"data": (tensor.data + tensor.offset, False), "shape": shape, "strides": strides, "typestr": kind}


def stream_address(stream: Any) -> int:
    """Return the address by which the driver knows a stream: a number, or of CuPy's, PyTorch's or NVIDIA's own objects.

    Raises UsageProblem for anything else.
    """
    for attribute in ("ptr", "cuda_stream"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    if isinstance(stream, int):
        return stream
    raise UsageProblem(
        f"{stream!r} is no stream of a device; pass one of CuPy or PyTorch, or its address as a number (0: the default "
        "stream)"
    )
