"""Texts of values: parts of requests, numbers of things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def cell(value: Any) -> str:
    """Format one part of a request or field of a choice: lists of numbers as 64x64x32, flags of dimensions as xyz,
    parameters as name=value.
    """
    if isinstance(value, tuple):
        pairs = value and isinstance(value[0], tuple)
        value = dict(value) if pairs else list(value)
    if isinstance(value, dict):
        return " ".join(f"{name}={v}" for name, v in value.items())
    if isinstance(value, list) and value and isinstance(value[0], bool):
        return "".join(letter for letter, on in zip("xyz", value, strict=False) if on) or "none"
    if isinstance(value, list):
        return "x".join(map(str, value))
    return "" if value is None else str(value)


def listed(items: Sequence[object]) -> str:
    """Format a list, of one item or more, as people write it: `a, b and c`."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def count_of(number: int, thing: str) -> str:
    """Format a number of things: `1 rank`, `2 ranks`, `2 launches`."""
    ending = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{number} {thing}{ending * (number != 1)}"
