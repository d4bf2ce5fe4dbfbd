"""States of a machine: on a shared machine, messages may take two or three times as long in one hour as in the next.

The host's scheduler decides whether the cores of a virtual machine share a last-level cache. No factor converts one
such state to the other: caches hold other blocks, and some costs change while others do not. So records are separated
by the time of large messages measured with them, if it has two clearly separate values.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from haloscope.model import pace

KIND = "bandwidth_s"  # the kernel of the pace that distinguishes states
APART = 1.5  # min ratio of the times of two states
RARE = 0.1  # min share of the records in a state
BETWEEN = 0.05  # max share of the records in the middle between two states


def split(found: Sequence[dict]) -> list[list[dict]]:
    """Return the records of each state, the most frequent state first: two lists, or one with all of them.

    found: records of a calibration; only records of the same number of ranks are compared. Records without timed
    messages are in both lists. Cost: local.
    """
    groups: dict[int, list[dict]] = defaultdict(list)
    for record in found:
        if KIND in record.get("pace", {}):
            groups[record["pace"]["ranks"]].append(record)
    slow: dict[int, bool] = {}  # by identity of a record
    for group in groups.values():
        times = np.log([record["pace"][KIND] for record in group])
        if (border := _border(times)) is not None:
            slow |= {id(record): bool(time > border) for record, time in zip(group, times, strict=True)}
    if not slow:
        return [list(found)]
    sides = [[record for record in found if slow.get(id(record), side) == side] for side in (False, True)]
    return sorted(sides, key=len, reverse=True)


def _border(times: np.ndarray) -> float | None:
    """Return the middle between the two values around which logarithms of times lie; None without two values."""
    if not len(times):
        return None
    middles = np.quantile(times, (RARE / 2, 1 - RARE / 2))
    border = middles.mean()
    for _ in range(20):  # the two means, as medians
        sides = times[times <= border], times[times > border]
        if min(map(len, sides)) < RARE * len(times):
            return None
        middles = np.array([np.median(side) for side in sides])
        border = middles.mean()
    third = (middles[1] - middles[0]) / 3
    between = np.mean((times > middles[0] + third) & (times < middles[1] - third))
    return float(border) if 3 * third >= math.log(APART) and between <= BETWEEN else None


def describe(others: Sequence[Sequence[Mapping]], usual: Sequence[Mapping]) -> list[str]:
    """Describe the difference of other states of a calibration from its usual state. others, usual: their records."""
    texts = []
    for state in others:
        paces = [pace.by_ranks(records) for records in (usual, state)]
        ranks = max((r for r in paces[0] if KIND in paces[0][r] and r in paces[1]), key=int)
        share = len(state) / (len(state) + len(usual))
        texts.append(
            f"the machine was in another state for {share:.0%} of the records, with separate costs: "
            f"{pace.describe(pace.difference(paces[0][ranks], paces[1][ranks]))}"
        )
    return texts
