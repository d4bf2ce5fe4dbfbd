"""Checks of call arguments: any exception that an argument causes becomes a HaloscopeError that names it."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np

from haloscope.errors import HaloscopeError, UsageError

_LONGEST = 200  # characters of a value or of another library's message
_INT32, _INT64 = 2**31, 2**63
_BYTES = bytes | bytearray | memoryview
# Exceptions that the same argument may not raise the next time. It will raise all others again.
_OF_THE_MACHINE = (MemoryError, OSError, KeyboardInterrupt, SystemExit)


def _safe(write: Any, value: Any) -> str:
    """Return the text that a function makes of a value, shortened; objects may raise even here."""
    try:
        text = str.encode(write(value), "utf-8", "backslashreplace").decode()
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def shown(value: Any) -> str:
    """Return the text of a value in messages."""
    return _safe(repr, value)


def as_problem(error: BaseException, subject: str = "an argument") -> HaloscopeError:
    """Return an error as a HaloscopeError: itself if it is one, else a new one with its text that names `subject`."""
    if isinstance(error, HaloscopeError):
        return error
    kind = HaloscopeError if isinstance(error, _OF_THE_MACHINE) else UsageError
    return kind(f"{subject} cannot be used ({type(error).__name__}: {_safe(str, error)})")


@contextlib.contextmanager
def named(name: str, value: Any) -> Iterator[None]:
    """Raise any exception that an argument causes as an error that names it."""
    try:
        yield
    except HaloscopeError:
        raise
    except Exception as error:
        raise as_problem(error, f"{name}, which is {shown(value)},") from error


def is_one(value: Any) -> bool:
    """Return whether an argument is one value for all axes or sides: a number, a text or an array without axes."""
    return (
        isinstance(value, str) or not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and not value.ndim)
    )


def each(name: str, value: Any, wanted: str) -> list[Any]:
    """Return the values of an argument with one value for each axis, rank or side, in that order.

    wanted: the values to pass, for the message. Raises UsageError for a single value, and for values whose order may
    differ from the apparent one or that can be read only once: mappings, sets, bytes, generators, arrays of several
    axes.
    """
    with named(name, value):
        if not is_one(value) and _is_list(value):
            return list(value)
    raise UsageError(f"{name} is {shown(value)}, of type {type(value).__name__}; pass {wanted}, in a list or a tuple")


def for_axes(name: str, value: Any, axes: int, check: Callable[[str, Any], Any], wanted: str) -> list[Any]:
    """Return the values of an argument with one value for each axis, or with one for all, which is repeated.

    check: returns one of the values, or raises UsageError. wanted: as for each(). The length of a list is not checked.
    """
    return [check(name, value)] * axes if is_one(value) else [check(name, one) for one in each(name, value, wanted)]


def flags(name: str, value: Any, axes: int) -> list[bool]:
    """Return a flag for each axis. Raises UsageError for anything but one for each, or one for all."""
    found = for_axes(name, value, axes, flag, "True or False for each axis")
    if len(found) != axes:
        raise UsageError(f"{name} has {len(found)} flags for {axes} axes; pass one for each, or one for all")
    return found


def order_of(value: Any) -> Literal["C", "F"]:
    """Return the order of axes. Raises UsageError for anything but "C" and "F"."""
    if isinstance(value, str) and value in ("C", "F"):
        return "F" if value == "F" else "C"
    raise UsageError(f"order is {shown(value)}; it is 'C' (the last axis contiguous) or 'F' (the first)")


def _is_list(value: Any) -> bool:
    """Return whether values are indexed in the order of axes, as in a list or an array of one axis."""
    indexed = all(hasattr(value, method) for method in ("__len__", "__getitem__"))
    by_key = isinstance(value, Mapping) or hasattr(value, "keys")  # as a table of pandas has
    return indexed and not by_key and not isinstance(value, _BYTES) and getattr(value, "ndim", 1) == 1


def whole(name: str, value: Any, most: int = _INT32 - 1) -> int:
    """Return a whole number from -most-1 to most. Raises UsageError for anything else. Cost: 0.1 us."""
    if type(value) is not int:
        try:
            value = operator.index(value)
        except Exception:
            raise UsageError(f"{name} is {shown(value)}; it is a whole number") from None
    if not -most - 1 <= value <= most:
        raise UsageError(f"{name} is {shown(value)}; it is a whole number of {most.bit_length() + 1} bits")
    return int(value)


def is_number(value: Any) -> bool:
    """Return whether an argument is a whole number, and no array of them."""
    return type(value) is int or (hasattr(type(value), "__index__") and getattr(value, "ndim", 0) == 0)


def count(name: str, value: Any) -> int:
    """Return a whole number of 64 bits."""
    return whole(name, value, _INT64 - 1)


def number(name: str, value: Any) -> float:
    """Return a number as a float. Raises UsageError for anything else, including texts."""
    with named(name, value):
        if not isinstance(value, str | _BYTES):
            return float(value)
    raise UsageError(f"{name} is {shown(value)}; it is a number")


def flag(name: str, value: Any) -> bool:
    """Return True or False. Raises UsageError for anything but these, 1 and 0; texts are refused too."""
    with named(name, value):
        if not isinstance(value, str) and value in (True, False):
            return bool(value)
    raise UsageError(f"{name} is {shown(value)}; it is True or False")


def text(name: str, value: Any) -> bytes:
    """Return a text for the C library. Raises UsageError for other types, and for texts with surrogates or NUL."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {shown(value)}; it is a text")
    try:
        encoded = str.encode(value, "utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{name} is {shown(value)}, which holds halves of characters; pass whole ones") from None
    if b"\0" in encoded:
        raise UsageError(f"{name} is {shown(value)}, which holds the character NUL; leave it out")
    return encoded
