"""Boxes of cells. Dimension 0 is x."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Box:
    """Half-open box [lo, hi) of cells."""

    lo: Triple
    hi: Triple

    @functools.cached_property
    def shape(self) -> Triple:
        """Cells per dimension, 0 where it is empty."""
        x, y, z = (max(0, hi - lo) for lo, hi in zip(self.lo, self.hi, strict=True))
        return x, y, z

    @functools.cached_property
    def volume(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def cells(self) -> Iterator[Triple]:
        """Yield every cell, x fastest. Cost O(volume)."""
        ranges = [range(lo, hi) for lo, hi in zip(self.lo, self.hi, strict=True)]
        return ((x, y, z) for z, y, x in itertools.product(*reversed(ranges)))

    def shifted(self, by: Sequence[int]) -> Box:
        """Return the box moved by `by` cells."""
        x, y, z = by
        return Box(*((side[0] + x, side[1] + y, side[2] + z) for side in (self.lo, self.hi)))

    def __str__(self) -> str:
        """`[0,4)x[0,4)x[2,3)`; dimensions that a grid lacks are [0,1)."""
        return "x".join(f"[{lo},{hi})" for lo, hi in zip(self.lo, self.hi, strict=True))
