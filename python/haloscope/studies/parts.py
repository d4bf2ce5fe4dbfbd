"""Times made of parts: sequential parts add up, of concurrent parts the longest counts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from haloscope.errors import UsageError

Seconds = TypeVar("Seconds", float, np.ndarray)


@dataclass(frozen=True)
class Composition:
    """Parts, each a name or a composition; `side_by_side` ones overlap fully, others run sequentially."""

    parts: tuple[str | Composition, ...]
    side_by_side: bool

    def __str__(self) -> str:
        """Return the formula, such as `pack + max(inner, message + unpack)`."""
        texts = [str(part) for part in self.parts]
        return f"max({', '.join(texts)})" if self.side_by_side else " + ".join(texts)

    @property
    def names(self) -> tuple[str, ...]:
        """All parts by name, each once, in the order of the formula."""
        nested = (part.names if isinstance(part, Composition) else (part,) for part in self.parts)
        return tuple(dict.fromkeys(name for names in nested for name in names))

    def time(self, times: Mapping[str, Seconds]) -> Seconds:
        """Return the time of the whole, without any cost for overlapping: a lower bound.

        times: seconds by part, numbers or arrays of one shape; other names are ignored. Raises UsageError for parts
        without a time.
        """
        if lacking := [name for name in self.names if name not in times]:
            raise UsageError(f"no time is specified for {', '.join(lacking)}; '{self}' needs all of its parts")
        return self._time(times)

    def _time(self, times: Mapping[str, Seconds]) -> Seconds:
        values = [part._time(times) if isinstance(part, Composition) else times[part] for part in self.parts]
        return functools.reduce(np.maximum if self.side_by_side else np.add, values)


def sequence(*parts: str | Composition) -> Composition:
    """Return a composition of sequential parts: their times add up."""
    return Composition(parts, side_by_side=False)


def concurrent(*parts: str | Composition) -> Composition:
    """Return a composition of concurrent parts: the longest counts."""
    return Composition(parts, side_by_side=True)
