"""Tables of costs measured alone, scaled to whole steps.

Sweeps, packing and copies are timed alone, repeatedly on one block. In a step the exchange and the sweep take turns in
the cache, and both slots of a field are used. Each table is scaled by one factor for this difference: the median, over
the blocks of plain steps, of the time in the step over the time from the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from haloscope import bridge
from haloscope.fit.laws import Terms
from haloscope.records import stats

if TYPE_CHECKING:
    from haloscope.fit.in_step import Step

NAME = "steps/of alone"
FEW = 4  # steps below which a table stays as it is
# Tables of a profile, and the terms of a prediction of plain steps that come from them.
TABLES = {"kernels": ("compute",), "pack": ("pack", "unpack"), "copy": ("copy",)}
FIELDS = ("latency_s", "per_byte_s", "per_row_s", "fixed_s", "per_cell_s")  # of a segment


def scale(
    data: dict, base: Sequence[Step], terms: Callable[[bridge.Choice], Mapping[str, float]], networked: bool
) -> Terms | None:
    """Scale the tables of a profile in place; return the factors, None where there are too few steps.

    base: steps in bulk with plain messages. terms: the profile's prediction of a step, by term. networked: messages
    come from other nodes; their interrupts lengthen sweeps, which is a separate cost, so kernels are not scaled.
    """
    found: dict[str, stats.Estimate] = {}
    errors: list[float] = []
    for table, parts in TABLES.items():
        for far in (False, True):
            ratios = _ratios([s for s in base if s.counts["beyond"] == far], parts, terms)
            if sum(map(len, ratios.values())) < FEW or (networked and table == "kernels"):
                continue
            factor = stats.median_over_launches(list(ratios.values()))
            if _scale_table(data, table, far, factor.value):
                found[f"{'far_' * far}{table}_share"] = factor
                errors += [factor.value / ratio - 1 for launch in ratios.values() for ratio in launch]
    if not found:
        return None
    values, ends = {name: e.value for name, e in found.items()}, {name: (e.low, e.high) for name, e in found.items()}
    return Terms(NAME, values, ends, (), len(errors), np.array(errors))


def _ratios(
    steps: Sequence[Step], parts: tuple[str, ...], terms: Callable[[bridge.Choice], Mapping[str, float]]
) -> dict[str, list[float]]:
    """Return measured over predicted seconds of these parts of steps, by launch."""
    found: dict[str, list[float]] = defaultdict(list)
    for s in steps:
        predicted = s.choice.depth * sum(terms(s.choice)[part] for part in parts)
        measured = sum(s.parts.get(part, 0.0) for part in parts)
        if predicted > 0 and measured > 0:
            found[s.launch].append(measured / predicted)
    return found


def _scale_table(data: dict, table: str, far: bool, factor: float) -> bool:
    """Scale a table by name; return whether it exists. Kernels have one table for blocks of all sizes."""
    of_size = data.get("beyond_cache", {}) if far else data
    segments = list(_segments(of_size.get(table, {})))
    for segment in segments:
        for name in FIELDS:
            if name in segment:
                segment[name] *= factor
        for ends in segment.get("interval", {}).values():
            ends[:] = [end * factor for end in ends]
    return bool(segments)


def _segments(table: dict | list) -> Iterator[dict]:
    """Yield the segments of a table, which is nested by kernel, kind of memory or count."""
    if isinstance(table, list):
        yield from table
    else:
        for inner in table.values():
            yield from _segments(inner)
