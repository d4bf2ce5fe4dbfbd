"""Regret: the measured time of a model's recommendation over the time of the fastest choice of the same case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Pair = TypeVar("Pair")


def group_cases(pairs: Iterable[Pair], case: Callable[[Pair], Hashable]) -> list[list[Pair]]:
    """Return the pairs of each case that was measured in two ways or more. case: returns the case of a pair."""
    groups: dict[Hashable, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[case(pair)].append(pair)
    return [group for group in groups.values() if len(group) > 1]


def mean_regret(regrets: Sequence[float]) -> float:
    """Return the geometric mean of some regrets, at least one."""
    from scipy.stats import gmean

    return float(gmean(regrets))
