"""Measurements by configuration: a row has all launches of one."""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from haloscope import records
from haloscope.records import stats

# Parts of a record's environment in which records may differ, in words.
SURROUNDINGS = {
    "cpu": "processors",
    "mpi_library": "MPI libraries",
    "device": "devices",
    "emulated_network": "networks",
    "mapping": "mappings",
}


class Launched:
    """The records of one configuration in all its launches."""

    records: list[dict]

    @property
    def oversubscribed(self) -> bool:
        """True if some launch had more threads than cores, so that its times are not representative."""
        return any(r["environment"]["oversubscribed"] for r in self.records)

    @property
    def verification(self) -> str:
        """The worst state of all launches: failed, off (also where another program measured), passed."""
        states = {r["verification"]["status"] for r in self.records}
        return next(state for state in ("failed", "off", "passed") if state in states)


@dataclass
class Row(Launched):
    """One configuration over all its launches."""

    id: str
    request: dict
    launches: dict[str, list[float]]  # seconds per step of each repetition, by launch
    records: list[dict]

    @functools.cached_property
    def step(self) -> stats.Estimate:
        """Median over launches of the seconds per step, with the interval that a bootstrap takes time for."""
        return stats.median_over_launches(list(self.launches.values()))

    def surroundings(self, part: str) -> set[str]:
        """Return the values of a part of the records' environment; times from several values are not comparable."""
        found = [r["environment"].get(part) for r in self.records]
        return {repr(one.get("name", one) if isinstance(one, dict) else one) for one in found}

    @property
    def gflops(self) -> float:
        """Median over launches of the rate by the app's own measure of work, 0 when it was not recorded."""
        return float(statistics.median(r.get("gflops", 0.0) for r in self.records))

    @property
    def outliers(self) -> int:
        """Number of repetitions far from the others of their launch; they stay in all figures."""
        return sum(len(stats.outliers(values)) for values in self.launches.values())

    def phase(self, name: str, statistic: str) -> float:
        """Return the seconds per step in a phase, by a statistic over ranks; the median over launches."""
        found = (r.get("phases_s", {}).get(name, {}).get(statistic, 0.0) for r in self.records)
        return float(statistics.median(found))

    def notes(self) -> str:
        """Return the warnings about the row's reliability."""
        words = ["oversubscribed"] * self.oversubscribed
        words += [f"of several {many}" for part, many in SURROUNDINGS.items() if len(self.surroundings(part)) > 1]
        words += [f"{self.outliers} outlier{'s' * (self.outliers > 1)}"] * bool(self.outliers)
        warnings = sorted({w for r in self.records for w in r.get("warnings", [])})
        return "; ".join(words + [w for w in warnings if "oversubscribed" not in w.lower() or not self.oversubscribed])


def group_records(found: Iterable[dict], kind: str) -> dict[str, list[dict]]:
    """Return the records of a kind by configuration, in the order in which they were first measured."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for record in found:
        if record["kind"] == kind:
            groups[record["id"]].append(record)
    return groups


def group_rows(found: Iterable[dict]) -> list[Row]:
    """Group measurements by configuration and rank them: fastest first, oversubscribed ones after all others."""
    made = []
    for name, group in group_records(found, "measurement").items():
        launches: dict[str, list[float]] = defaultdict(list)
        for record in group:
            launches[record["launch"]["id"]] += records.step_times(record)
        made.append(Row(name, group[0]["request"], dict(launches), group))
    return sorted(made, key=lambda row: (row.oversubscribed, stats.middle(list(row.launches.values()))))


def speedup(row: Row, baseline: Row, confidence: float = stats.CONFIDENCE) -> stats.Estimate:
    """Return the speed-up of a row over the baseline, paired by launch."""
    return stats.ratio_of_launches(baseline.launches, row.launches, confidence=confidence)


def are_close(one: Row, other: Row) -> bool:
    """Return whether the times of two rows cannot be distinguished in the launches that both have."""
    ratios = stats.ratio_by_launch([(one.launches, other.launches)])
    return not ratios or stats.verdict_text(stats.mean_over_launches(ratios), "+", "-") == stats.NO_CHOICE
