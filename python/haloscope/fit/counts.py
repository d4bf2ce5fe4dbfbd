"""Features of the cost model: contiguous runs of memory, pieces of blocks, sectors of a device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from haloscope import bridge

PLAIN = "p2p"  # the transport that network costs are measured with; descriptions of others are relative to it
CONTIGUOUS_FROM, LINES_FROM = 4096, 64  # bytes without a gap: a page streams, a cache line is used whole
SCATTERED_FROM = 4096  # bytes from one run to the next: no two lie in one page
SECTOR = 32  # bytes of the smallest read or write of a device (both NVIDIA and AMD)


def stride_class(run_bytes: float, pitch_bytes: float) -> str:
    """Return the class, in the profile's `pack` section, of contiguous runs of `run_bytes` that begin `pitch_bytes`
    apart."""
    if run_bytes >= LINES_FROM:
        return "contiguous" if run_bytes >= CONTIGUOUS_FROM else "lines"
    return "scattered" if pitch_bytes >= SCATTERED_FROM else "strided"


def short_rows(traffic: bridge.Traffic) -> float:
    """Return the number of contiguous runs shorter than a cache line in a message; 0 if it is sent in place."""
    return 0.0 if traffic.in_place or traffic.run_bytes >= LINES_FROM else traffic.bytes / traffic.run_bytes


def touched(size: float, run_bytes: float) -> float:
    """Return the bytes of all sectors of `size` bytes in contiguous runs of `run_bytes` that begin at a sector."""
    return size / run_bytes * SECTOR * math.ceil(run_bytes / SECTOR) if size else 0.0


def slot_bytes(plan: bridge.Plan) -> int:
    """Return the bytes of one slot of a rank's first field, halos included."""
    return plan.allocated[0].volume * plan.spec.quantities[0].element_bytes


def beyond_cache(block_bytes: npt.ArrayLike, limits: tuple[float, float]) -> Any:
    """Return the part of a block, 0 to 1, that remains only in memory after its sweeps: between the limits, linear in
    the logarithm.

    block_bytes: of one slot, halos included; a number or an array of them. limits: `Profile.cache_limits`.
    """
    begin, end = limits
    if begin == end:
        return np.where(np.asarray(block_bytes) >= begin, 1.0, 0.0)
    return np.clip(np.log(np.asarray(block_bytes) / begin) / math.log(end / begin), 0.0, 1.0)


def piece_counts(region: bridge.Box, plan: bridge.Plan, dims: int) -> tuple[int, float]:
    """Return the extra cost units of a piece of a block over its share: the cells of its lowest plane (2D: row), and
    its rows in excess of the block's rows for the same number of cells."""
    x, y, z = region.shape
    return (x * y if dims == 3 else x), max(0.0, y * z - region.volume / plan.owned[0].shape[0])


def near_transport(strategy: str) -> str:
    """Return the transport inside nodes of a strategy such as `ordered/shared+p2p`, as profiles name it."""
    return strategy.partition("/")[2].split("+")[0] if "/" in strategy else strategy
