"""Advice from measured records, on records made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from haloscope.records.rows import group_rows
from haloscope.report import conclusion, tables
from test_records import measurement

LAUNCHES = 8


def group(cells, *, launches=LAUNCHES, crowded=(), failed=(), **choices):
    """Return a table and its base: `plain` takes 1 s a step; choices: how many times as fast, and the request's
    parts.
    """
    found = []
    for k in range(launches):
        drift = 1 + 0.1 * (k % 3)  # of the machine: common to all choices of a launch
        for name, (factor, parts) in {"plain": (1.0, {}), **choices}.items():
            gain = factor[k] if isinstance(factor, tuple) else factor
            record = measurement(
                name, f"launch-{k}", [10 * drift / gain * e for e in (0.99, 1.0, 1.01)], cells=cells, **parts
            )
            record["environment"]["oversubscribed"] = name in crowded
            record["verification"]["status"] = "failed" if name in failed else "passed"
            found.append(record)
    rows = group_rows(found)
    return rows, tables.baseline(rows)


SHARED = {"strategy": "direct:merged/shared"}
DEEP = {"depth": 8, "substeps": "blocked"}


def test_winners_are_named_with_their_grids_and_what_they_gain():
    groups = [
        group([24, 24, 24], a=(2.31, SHARED), b=(1.5, {"strategy": "ordered/persistent"})),
        group([2048, 2048], a=(1.9, DEEP), b=(1.3, {"schedule": "split"})),
    ]
    assert conclusion.conclude(groups) == (
        "Here, use direct:merged/shared for small 3D grids like 24x24x24 (2.31 times as fast as ordered/p2p) "
        "and --depth 8 --substeps blocked for large 2D grids like 2048x2048 (1.90 times as fast)."
    )


def test_grids_with_the_same_winner_share_its_name():
    groups = [group([24, 24, 24], a=(2.0, SHARED)), group([128, 128], a=(1.5, SHARED))]
    text = conclusion.conclude(groups)
    assert text.count("direct:merged/shared") == 1
    assert "24x24x24 (2.00 times as fast as ordered/p2p) and small 2D grids like 128x128 (1.50 times as fast)" in text


def test_where_nothing_is_surely_faster_the_simplest_exchange_is_advised():
    unsure = tuple(1.3 if k % 2 else 0.8 for k in range(LAUNCHES))
    slower = group([24, 24, 24], a=(0.9, SHARED))
    noisy = group([128, 128], a=(unsure, SHARED))
    assert conclusion.conclude([slower, noisy]) == (
        "Here, the simplest exchange, ordered/p2p, is as good as any, as far as this can tell."
    )
    text = conclusion.conclude([slower, group([2048, 2048], a=(1.9, DEEP))])
    assert text.endswith(
        "; for small 3D grids like 24x24x24 the simplest exchange, ordered/p2p, is as good as any, "
        "as far as this can tell."
    )


def test_the_largest_of_many_lucky_ones_is_not_sure():
    """Of many choices that are all equal, some are ahead by chance: most often none of them is advised."""
    rng = np.random.default_rng(5)
    advised = 0
    for _ in range(20):
        equal = {f"c{i}": (tuple(rng.lognormal(0, 0.1, LAUNCHES)), {"strategy": f"s/{i}"}) for i in range(8)}
        advised += conclusion.find_faster(*group([8, 8], **equal)) is not None
    assert advised <= 4


@pytest.mark.parametrize("spoilt", [{"crowded": ("a",)}, {"failed": ("a",)}])
def test_what_is_oversubscribed_or_wrong_is_not_advised(spoilt):
    assert conclusion.find_faster(*group([8, 8], a=(3.0, SHARED), **spoilt)) is None


def test_few_launches_decide_nothing():
    few = group([8, 8], launches=4, a=(3.0, SHARED))
    assert conclusion.conclude([few]) == "4 launches cannot tell choices apart for sure: 8 can."


def test_a_choice_is_named_by_what_the_plain_one_lacks():
    rows, base = group([8, 8], a=(2.0, SHARED | DEEP | {"schedule": "split", "process_grid": [1, 2]}))
    other = next(row for row in rows if row is not base)
    assert conclusion.name_difference(other, base) == (
        "direct:merged/shared --process-grid 1x2 --schedule split --depth 8 --substeps blocked"
    )
