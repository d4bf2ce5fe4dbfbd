"""Costs of concurrent messages: measured factors over one message alone.

Source: Davis 2017, sections 5.3.4 and 5.3.5, where PingPing takes 2 and Exchange 4 times PingPong inside a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.records import stats
from haloscope.records.curves import Curve
from haloscope.report import tables
from haloscope.report.microbench import Group

LARGE_BYTES = 65536  # from here on, bytes dominate the cost of a message
COLUMNS = 6  # sizes in the table


@dataclass(frozen=True)
class Contention:
    """Factors by which a pattern takes longer than one message alone, by size in bytes.

    at_once: number of messages in flight concurrently.
    """

    pattern: str
    curve: Curve
    at_once: int
    factors: dict[int, stats.Estimate]

    @property
    def large(self) -> float:
        """Median over the sizes from LARGE_BYTES on; the largest size where all are smaller."""
        sizes = [size for size in self.factors if size >= LARGE_BYTES] or [max(self.factors)]
        return float(np.median([self.factors[size].value for size in sizes]))


def measured(table: Sequence[Curve]) -> list[Contention]:
    """Return the factors of every pattern with concurrent messages, where one message alone was measured as well.

    The reference is a ping-pong of one pair through the same transport: with the same number of ranks if it was
    measured, else with the fewest. Factors are paired by launch.
    """
    found = []
    for curve in table:
        if (alone := _alone(curve, table)) is None:
            continue
        single = {size: alone.samples(size, "latency_s") for size in alone.sizes("latency_s")}
        for key, pattern, at_once in _at_once(curve):
            sizes = [size for size in curve.sizes(key) if size in single]
            factors = {size: stats.ratio_of_launches(curve.samples(size, key), single[size]) for size in sizes}
            if factors:
                found.append(Contention(pattern, curve, at_once, factors))
    return sorted(found, key=lambda c: (c.curve.transport, c.at_once))


def _at_once(curve: Curve) -> list[tuple[str, str, int]]:
    """Return the keys of concurrent messages, each with the pattern's name and the number of messages."""
    keys, pairs = curve.measures(), curve.pairs
    found = [("latency_s", "pingpong", pairs)] if "latency_s" in keys and pairs > 1 else []
    found += [("exchange_s", "pingping", 2 * pairs)] if "exchange_s" in keys else []
    return found + ([("ring_s", "exchange", 2 * curve.request["ranks"])] if "ring_s" in keys else [])


def _alone(curve: Curve, table: Sequence[Curve]) -> Curve | None:
    def like(other: Curve) -> tuple:
        return other.transport, other.request.get("nodes", 0), other.request.get("fresh", False)

    alone = [c for c in table if "latency_s" in c.measures() and c.pairs == 1 and like(c) == like(curve)]
    ranks = curve.request["ranks"]
    return min(alone, key=lambda c: (c.request["ranks"] != ranks, c.request["ranks"]), default=None)


def table(found: Sequence[Contention]) -> str:
    """Return the table of factors: up to six sizes from the smallest to the largest, and the interval at the last."""
    sizes = sorted({size for c in found for size in c.factors})
    shown = [sizes[round(k)] for k in np.linspace(0, len(sizes) - 1, min(COLUMNS, len(sizes)))]
    titles = [f"x at {size} B" for size in shown]
    headers = ["transport", "pattern", "where", "concurrent messages", *titles, "95 % of the last", "check"]
    lines = []
    for c in found:
        values = [f"{c.factors[size].value:.2f}" if size in c.factors else "" for size in shown]
        last = tables.interval(c.factors[max(c.factors)], "{:.2f}".format)
        where = str(Group.of(c.curve))
        lines.append([c.curve.transport, c.pattern, where, c.at_once, *values, last, c.curve.check])
    return tables.markdown(lines, headers, right=["concurrent messages", *titles, "95 % of the last"])


def laws(found: Sequence[Contention]) -> list[str]:
    """Return a phrase per transport: the factors of two ranks in terms of `shared` and `duplex` of a profile.

    Two opposite messages take `duplex` times one; two each way, as in a ring of two ranks, duplex (1 + shared) times.
    """
    two = {
        (c.curve.transport, c.curve.request.get("nodes", 0), c.pattern): c.large
        for c in found
        if c.curve.request["ranks"] == 2
    }
    sentences = []
    for (transport, nodes, pattern), duplex in two.items():
        if pattern == "pingping":
            ring = two.get((transport, nodes, "exchange"))
            shared = "" if ring is None else f", shared {ring / duplex - 1:.2f}"
            where = f" on {nodes} emulated nodes" if nodes else ""
            sentences.append(f"{transport}{where}, large messages of two ranks: duplex {duplex:.2f}{shared}")
    return sentences
