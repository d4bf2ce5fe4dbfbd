"""Arguments of calls: what is wrong with one becomes a UsageError that names it, whatever was raised by it."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from haloscope.errors import HaloscopeError, UsageError

_LONGEST = 200  # characters of a value or of another library's message
_INT32, _INT64 = 2**31, 2**63
_BYTES = bytes | bytearray | memoryview
# What may be well the next time; anything else that comes of an argument will come of it again.
_OF_THE_MACHINE = (MemoryError, OSError, KeyboardInterrupt, SystemExit)


def _safe(write: Any, value: Any) -> str:
    """Return what a function writes of a value, shortened; objects may raise even then."""
    try:
        text = str.encode(write(value), "utf-8", "backslashreplace").decode()
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def shown(value: Any) -> str:
    """Return a value as messages show it."""
    return _safe(repr, value)


def as_problem(error: BaseException, what: str = "an argument") -> HaloscopeError:
    """Return an error as one of ours: itself, or what it says about `what`."""
    if isinstance(error, HaloscopeError):
        return error
    kind = HaloscopeError if isinstance(error, _OF_THE_MACHINE) else UsageError
    return kind(f"{what} cannot be used ({type(error).__name__}: {_safe(str, error)})")


@contextlib.contextmanager
def named(name: str, value: Any) -> Iterator[None]:
    """Raise whatever goes wrong with an argument as an error that names it."""
    try:
        yield
    except HaloscopeError:
        raise
    except Exception as error:
        raise as_problem(error, f"{name}, which is {shown(value)},") from error


def is_one(value: Any) -> bool:
    """Return whether an argument is one value for all axes or sides, as numbers, texts and arrays of no axes are."""
    return (
        isinstance(value, str) or not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and not value.ndim)
    )


def each(name: str, value: Any, wanted: str) -> list[Any]:
    """Return the values of an argument that gives one for each axis, rank or side, in that order.

    wanted: what to pass, for the message. Raises UsageError for one value, and for values that may be in another
    order than they seem to be, or are read once only: mappings, sets, bytes, generators, arrays of several axes.
    """
    with named(name, value):
        if not is_one(value) and _is_list(value):
            return list(value)
    raise UsageError(f"{name} is {shown(value)}, of type {type(value).__name__}; pass {wanted}, in a list or a tuple")


def for_axes(name: str, value: Any, axes: int, check: Callable[[str, Any], Any], wanted: str) -> list[Any]:
    """Return the values of an argument that gives one for each axis, or one for all, which is repeated.

    check: returns one of the values, or raises UsageError. wanted: as for each(). How many a list has is not checked.
    """
    return [check(name, value)] * axes if is_one(value) else [check(name, one) for one in each(name, value, wanted)]


def _is_list(value: Any) -> bool:
    """Return whether values come in the order of axes, each at its place, as in a list or an array of one axis."""
    indexed = all(hasattr(value, method) for method in ("__len__", "__getitem__"))
    by_key = isinstance(value, Mapping) or hasattr(value, "keys")  # as of a table of pandas
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


def count(name: str, value: Any) -> int:
    """Return a whole number of 64 bits."""
    return whole(name, value, _INT64 - 1)


def number(name: str, value: Any) -> float:
    """Return a number as a float. Raises UsageError for anything else, texts among them."""
    with named(name, value):
        if not isinstance(value, str | _BYTES):
            return float(value)
    raise UsageError(f"{name} is {shown(value)}; it is a number")


def flag(name: str, value: Any) -> bool:
    """Return True or False. Raises UsageError for what is neither they nor 1 or 0, texts among them."""
    with named(name, value):
        if not isinstance(value, str) and value in (True, False):
            return bool(value)
    raise UsageError(f"{name} is {shown(value)}; it is True or False")


def text(name: str, value: Any) -> bytes:
    """Return a text as the C library takes it. Raises UsageError for what it cannot hold, as surrogates and NUL."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {shown(value)}; it is a text")
    try:
        encoded = str.encode(value, "utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{name} is {shown(value)}, which holds halves of characters; pass whole ones") from None
    if b"\0" in encoded:
        raise UsageError(f"{name} is {shown(value)}, which holds the character NUL; leave it out")
    return encoded
