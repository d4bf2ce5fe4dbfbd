"""Layouts: grids split over ranks."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from haloscope.bridge import capi
from haloscope.bridge.box import Box
from haloscope.bridge.choice import Choice, text_of
from haloscope.bridge.json_values import decoded, encoded
from haloscope.errors import UsageError

if TYPE_CHECKING:  # importing NumPy takes long
    import numpy as np

# The fields of a choice that a layout depends on.
SPLIT_BY = ("app", "cells", "ranks", "process_grid", "periodic", "nodes", "placement", "reorder")


def padded(values: Sequence[int], fill: int = 1) -> list[int]:
    """Return three numbers: `values`, then `fill` for the dimensions that the grid lacks."""
    if len(values) > 3:
        raise UsageError(f"a grid has 1 to 3 dimensions, not {len(values)}; write up to three numbers")
    return [int(v) for v in values] + [fill] * (3 - len(values))


class Layout:
    """A grid split over a process grid: `cells`, `periodic` and `ranks` per dimension, `size` ranks in total.

    Layouts with equal blocks of every rank are equal.

    Raises UsageError for cells or ranks < 1, more ranks than cells in a dimension, not 1 to 3 dimensions.
    """

    def __init__(self, cells: Sequence[int], ranks: Sequence[int], periodic: Sequence[bool] = ()):
        """Split `cells` over `ranks` per dimension; periodic: one flag per dimension, () = all."""
        wraps = [bool(on) for on in padded(periodic or [True] * len(cells), 0)]
        grid = {"dims": len(cells), "cells": padded(cells), "periodic": wraps}
        self._take({"grid": grid, "ranks": padded(ranks)})
        self.rank(0)  # raises where the layout is not valid

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Layout:
        """Return the layout of a description by the library."""
        return cls.__new__(cls)._take(found)

    def _take(self, found: dict[str, Any]) -> Layout:
        grid = found["grid"]
        self.dims = grid["dims"]
        self.cells, self.periodic, self.ranks = (
            tuple(numbers)[: self.dims] for numbers in (grid["cells"], grid["periodic"], found["ranks"])
        )
        x, y, z = found["ranks"]
        self.size = x * y * z
        self.text = json.dumps({name: found[name] for name in ("grid", "ranks", "places") if name in found})
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def request(self, **parts: object) -> bytes:
        """Return a request to the library about this layout, with further parts."""
        return f'{{"layout": {self.text}, '.encode() + encoded(parts)[1:]

    def rank(self, rank: int) -> dict[str, Any]:
        """Return the library's facts on a rank: coords, owned, neighbours. Raises UsageError for one beyond `size`."""
        found: dict[str, Any] = capi.answer("hs_plan", self.request(rank=rank))
        return found

    @functools.cached_property
    def _places(self) -> np.ndarray:
        import numpy as np

        return np.array(json.loads(self.text).get("places", range(self.size)), np.int32)

    def places(self) -> np.ndarray:
        """Return the position of each rank in the process grid as a NumPy array; positions are numbered x fastest."""
        return self._places

    def coords(self, rank: int) -> tuple[int, int, int]:
        """Return the rank's position in the process grid."""
        x, y, z = self.rank(rank)["coords"]
        return x, y, z

    def owned(self, rank: int) -> Box:
        """Return the cells that a rank owns, in global coordinates."""
        return decoded(Box, self.rank(rank)["owned"])

    def neighbour(self, rank: int, offset: Sequence[int]) -> int:
        """Return the rank at `offset` (-1, 0, 1 per dimension); -1 beyond an edge; may be `rank` itself."""
        if not set(offset) <= {-1, 0, 1}:
            raise UsageError("a neighbour's offset is -1, 0 or 1 in each dimension")
        x, y, z = padded(offset, 0)
        found: int = self.rank(rank)["neighbours"][x + 1 + 3 * (y + 1) + 9 * (z + 1)]
        return found


def make_layout(choice: Choice, nodes: np.ndarray | None = None, sockets: np.ndarray | None = None) -> Layout:
    """Return the layout of a choice.

    nodes, sockets: of each rank, by which a choice with `reorder` maps its ranks; None: its emulated nodes, if any.
    """
    splits = Choice(**{name: getattr(choice, name) for name in SPLIT_BY})
    if choice.reorder == "none" or nodes is None or sockets is None:
        return layout_of(splits)
    return layout_of(splits, nodes.astype("i4").tobytes(), sockets.astype("i4").tobytes())


@functools.lru_cache(maxsize=16)
def layout_of(choice: Choice, *sites: bytes) -> Layout:
    """Return the layout of a choice; choices that differ in other ways share it."""
    ffi, _ = capi.load()
    pointers = [ffi.from_buffer("int32_t[]", numbers) for numbers in sites] or [ffi.NULL, ffi.NULL]
    return Layout.from_json(capi.answer("hs_make_layout", text_of(choice), *pointers))
