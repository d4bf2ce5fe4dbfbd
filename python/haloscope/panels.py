"""Panels of grids, which meet at seams: the faces of cubed spheres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from haloscope.arguments import count, each, flag, order_of, shown, whole
from haloscope.errors import UsageError
from haloscope.ranks import call, library

Edge = tuple[int, int, str]  # a panel, an axis, and "low" or "high"
_SIDES = ("low", "high")
_EDGE = "(panel, axis, 'low' or 'high')"


@dataclass(frozen=True)
class Seam:
    """Two edges of panels that meet, with as many cells each: the cells beyond one are the cells inside the other.

    first, second: each (panel, axis, "low" or "high"), with panels and axes counted from 0.
    reversed: whether the first cell along one edge is the last one along the other.
    """

    first: Edge
    second: Edge
    reversed: bool = False


@dataclass(frozen=True)
class Panels:
    """The panels of a grid, blocks of cells that meet only at seams, turned against each other or not.

    boxes: the cells of each panel, a slice for each axis; in 3D from end to end of z, the first axis (with order "F":
        the last). Seams are in the other two.
    seams: where they meet.
    """

    boxes: Sequence[tuple[slice, ...]]
    seams: Sequence[Seam]


def cubed_sphere(edge: int, levels: int | None = None, order: Literal["C", "F"] = "C") -> Panels:
    """Return the six faces of a cube of edge x edge cells each, in a row in x, and their seams.

    x is the last axis, with order "F" the first. The faces fit a grid of (edge, 6 * edge) cells; with levels, of
    (levels, edge, 6 * edge). They have the order of MITgcm's cubed spheres. Of faces 0, 2, 4 the high x edge meets the
    low x edge of the next face, and the high y edge the low x edge of the next but one, reversed. Of faces 1, 3, 5 the
    high y edge meets the low y edge of the next face, and the high x edge the low y edge of the next but one, reversed.
    Raises UsageError for less than 1 cell. Local.
    """
    ffi, _ = library()
    boxes, seams = ffi.new("hs_box[6]"), ffi.new("hs_seam[12]")
    dims = 2 if levels is None else 3
    order = order_of(order)
    call("hs_cubed_sphere", count("edge", edge), 1 if levels is None else count("levels", levels), boxes, seams)

    def by_axis(values: Any) -> list[Any]:
        listed = list(values)[:dims]
        return listed if order == "F" else listed[::-1]

    def edge_of(seam: Any, end: int) -> Edge:
        d = seam.dimension[end]
        return seam.panel[end], d if order == "F" else dims - 1 - d, _SIDES[seam.side[end]]

    return Panels(
        [tuple(slice(low, high) for low, high in zip(by_axis(box.lo), by_axis(box.hi), strict=True)) for box in boxes],
        [Seam(edge_of(seam, 0), edge_of(seam, 1), bool(seam.reversed)) for seam in seams],
    )


def structs_of(panels: Panels, dimensions: Sequence[int]) -> tuple[Any, Any]:
    """Return panels and seams as arrays of structs of C. dimensions: the library's dimension of each axis."""
    if not isinstance(panels, Panels):
        raise UsageError(f"panels is {shown(panels)}; pass a Panels, as cubed_sphere(32)")
    ffi, _ = library()
    given = each("panels", panels.boxes, "the slices of each panel")
    boxes = ffi.new("hs_box[]", len(given))
    for box, slices in zip(boxes, given, strict=True):
        parts = each("panels", slices, "a slice for each axis of a panel")
        if len(parts) != len(dimensions) or not all(isinstance(part, slice) for part in parts):
            raise UsageError(f"a panel is {shown(slices)}; pass a slice for each of the {len(dimensions)} axes")
        for d, part in zip(dimensions, parts, strict=True):
            if part.step not in (None, 1) or part.start is None or part.stop is None:
                raise UsageError(f"a panel has {shown(part)}; pass its first cell and its end, as slice(0, 32)")
            box.lo[d], box.hi[d] = count("panels", part.start), count("panels", part.stop)
    listed = each("seams", panels.seams, "a Seam for each two edges that meet")
    seams = ffi.new("hs_seam[]", len(listed))
    for struct, seam in zip(seams, listed, strict=True):
        if not isinstance(seam, Seam):
            raise UsageError(f"seams has {shown(seam)}; pass a Seam")
        struct.reversed = flag("reversed", seam.reversed)
        for end, edge in enumerate((seam.first, seam.second)):
            struct.panel[end], struct.dimension[end], struct.side[end] = _edge_of(edge, dimensions)
    return boxes, seams


def _edge_of(edge: Any, dimensions: Sequence[int]) -> tuple[int, int, int]:
    parts = each("seams", edge, _EDGE)
    if len(parts) != 3 or parts[2] not in _SIDES:
        raise UsageError(f"a seam has the edge {shown(edge)}; it is {_EDGE}")
    axis = whole("axis of a seam", parts[1])
    if axis not in (axes := [a for a, d in enumerate(dimensions) if d < 2]):
        raise UsageError(f"a seam has axis {axis}; on this grid x and y are axes {' and '.join(map(str, axes))}")
    return whole("panel of a seam", parts[0]), dimensions[axis], _SIDES.index(cast(str, parts[2]))
