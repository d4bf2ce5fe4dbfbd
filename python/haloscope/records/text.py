"""Texts of values: parts of requests and environments, numbers of things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return CPU and cores of a record's environment: `AMD EPYC, 2 cores`."""
    cores = [count_of(environment["cores"], "core")] if "cores" in environment else []
    return ", ".join([environment.get("cpu", "a CPU"), *cores])


def mpi_of(environment: Mapping[str, Any]) -> str:
    """Return name and version of a record's MPI library, which may name much else: `MPICH 5.0.2`."""
    return " ".join(environment["mpi_library"].split()).replace("Version: ", "")[:40]
