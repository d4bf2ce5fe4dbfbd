"""Micro-benchmarks as curves over sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from haloscope.records import patterns, stats
from haloscope.records.rows import Launched, group_records

MICROBENCH = "microbench"  # the kind of their records
BASE = "p2p"  # the reference of ratios
FACTORS = {"us": 1e6, "GB/s": 1e-9}  # of units


@dataclass
class Curve(Launched):
    """Results of one micro-benchmark over all its launches: per size the samples of each launch."""

    id: str
    request: dict
    records: list[dict]

    def measures(self) -> list[str]:
        """Return the measured keys of `patterns.MEASURES`, in their order."""
        found = {key for record in self.records for entry in record["sizes"] for key in entry}
        return [key for key in patterns.MEASURES if key in found]

    def sizes(self, key: str = "") -> list[int]:
        """Return the sizes in bytes; if `key` is passed, only the sizes at which it was measured."""
        entries = (entry for record in self.records for entry in record["sizes"])
        return sorted({entry["bytes"] for entry in entries if not key or key in entry})

    def samples(self, size: int, key: str) -> dict[str, list[float]]:
        """Return samples in seconds by launch."""
        found: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            for entry in record["sizes"]:
                if entry["bytes"] == size and key in entry:
                    found[record["launch"]["id"]] += entry[key]
        return dict(found)

    def time(self, size: int, key: str = "latency_s") -> stats.Estimate:
        """Return the median time over launches, seconds, with its interval."""
        return stats.median_over_launches(list(self.samples(size, key).values()))

    def window(self, size: int) -> int:
        """Return the messages in one batch of this size, 1 if the records lack them."""
        entries = (entry for record in self.records for entry in record["sizes"] if entry["bytes"] == size)
        return next((entry["window"] for entry in entries if "window" in entry), 1)

    def bandwidth(self, size: int, key: str = "batch_s") -> float:
        """Return the bytes per second that all pairs, or all threads, move together, by the median time of `key`."""
        paired = self.kind in (patterns.PAIRS, patterns.ONESIDED)
        at_once = self.pairs * self.window(size) if paired else self.own_sets
        return at_once * size * patterns.MEASURES[key].moved / self.time(size, key).value

    def message_rate(self, size: int, key: str = "batch_s") -> float:
        """Return the messages per second of all pairs together."""
        return self.bandwidth(size, key) / size

    def value(self, size: int, key: str) -> tuple[float, str]:
        """Return the value of a measure for tables, and its unit: GB/s for measures with a bandwidth, else us."""
        if patterns.MEASURES[key].moved:
            return self.bandwidth(size, key) * FACTORS["GB/s"], "GB/s"
        return self.time(size, key).value * FACTORS["us"], "us"

    @property
    def kind(self) -> str:
        """The kind of its pattern: messages or one-sided operations of pairs, a ring, all ranks, threads on memory."""
        return patterns.KIND_OF[self.measures()[0]]

    @property
    def transport(self) -> str:
        """The transport of messages, "" for collectives and for benchmarks of memory."""
        return str(self.request.get("transport", ""))

    @property
    def pairs(self) -> int:
        """Number of concurrent pairs of ranks."""
        return int(self.request.get("pairs", 1))

    @property
    def own_sets(self) -> int:
        """Working sets of one size that were in use: one per thread; the arrays of `stream` are shared."""
        return self.request.get("threads", 1) if "cache" in self.request.get("patterns", ()) else 1

    @property
    def check(self) -> str:
        """The state of the verification, and a note if cores were too few."""
        return self.verification + ", oversubscribed" * self.oversubscribed


def group_curves(found: Iterable[dict]) -> list[Curve]:
    """Group micro-benchmarks by configuration, in the order in which they were first measured."""
    groups = group_records(found, MICROBENCH)
    return [Curve(name, group[0]["request"], group) for name, group in groups.items()]
