"""The pace of a machine, its speed: times of fixed kernels that ran next to the work, and differences of two paces.

A pace is the `pace` of a record: ranks, seconds of each kernel by name, and their relative standard errors. The C++
core converts a profile to another pace (`model/pace.cpp`).
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

KINDS = ("compute", "memory", "latency", "bandwidth", "far_latency", "far_bandwidth")
WORDS = {
    "compute": "arithmetic",
    "memory": "memory",
    "latency": "small messages",
    "bandwidth": "large messages",
    "far_latency": "small messages between nodes",
    "far_bandwidth": "large messages between nodes",
}
STALE_S = 3600.0  # on the machine of docs/understand/measured/demo.md, hours differ by 11 to 14 %
TELLING = 0.03  # smaller differences are not reported
CHANGED = 0.05  # of launches of one calibration: the tolerable error of a predicted step
# For normal distributions: the standard error of a median, and the ratio of standard to median absolute deviation.
_OF_MEDIAN, _OF_MAD = 1.2533, 1.4826


def of_records(found: Sequence[Mapping]) -> dict | None:
    """Return the median pace of some records; None where no record has a pace, or their rank counts differ.

    found: records of one configuration or launch. The errors refer to the median; they follow from the errors or the
    scatter of the records, whichever is larger.
    """
    paces = [r["pace"] for r in found if "pace" in r]
    if not paces or len({p["ranks"] for p in paces}) > 1:
        return None
    pace: dict = {"ranks": paces[0]["ranks"], "error": {}}
    for name in (f"{kind}_s" for kind in KINDS):
        times = np.array([p[name] for p in paces if name in p])
        if not len(times):
            continue
        middle = float(np.median(times))
        own = float(np.median([p["error"][name] for p in paces if name in p]))
        scatter = _OF_MEDIAN * _OF_MAD * float(np.median(np.abs(times - middle))) / middle
        pace[name], pace["error"][name] = middle, max(own, scatter) / math.sqrt(len(times))
    return pace


def by_ranks(found: Iterable[Mapping]) -> dict[str, dict]:
    """Return the paces of a calibration's records in the form of profiles: by rank count, with their latest time."""
    groups: dict[int, list[Mapping]] = defaultdict(list)
    for record in found:
        if "pace" in record:
            groups[record["pace"]["ranks"]].append(record)
    paces = {}
    for ranks, records in sorted(groups.items()):
        pace = of_records(records)
        assert pace is not None  # records of one rank count that have paces
        times = [r["launch"]["time_utc"] for r in records if "time_utc" in r["launch"]]
        paces[str(ranks)] = {k: v for k, v in pace.items() if k != "ranks"} | (
            {"measured": max(times)} if times else {}
        )
    return paces


def difference(then: Mapping, now: Mapping) -> dict[str, float]:
    """Return by kind the ratio of kernel times at pace `now` to times at pace `then`, for kinds that both have."""
    return {k: now[f"{k}_s"] / then[f"{k}_s"] for k in KINDS if f"{k}_s" in then and f"{k}_s" in now}


def describe(ratios: Mapping[str, float]) -> str:
    """Return differences of TELLING or more as text: "memory +12 %"; "" without any."""
    away = [(kind, ratio - 1) for kind, ratio in ratios.items() if abs(ratio - 1) >= TELLING]
    return ", ".join(f"{WORDS[kind]} {change:+.0%}".replace("%", " %") for kind, change in away)


def changes(found: Iterable[Mapping]) -> list[str]:
    """Return texts on the launches in which the machine had changed: by more than CHANGED and three standard errors.

    found: records of a calibration. Each launch is compared with the median of all with the same number of ranks.
    """
    groups: dict[int, dict[str, list[Mapping]]] = defaultdict(lambda: defaultdict(list))
    for record in found:
        if "pace" in record:
            groups[record["pace"]["ranks"]][record["launch"]["id"]].append(record)
    texts = []
    for ranks, launches in sorted(groups.items()):
        usual = of_records([r for records in launches.values() for r in records])
        for name, records in launches.items():
            pace = of_records(records)
            if usual is None or pace is None:
                continue
            moved = {
                kind: ratio
                for kind, ratio in difference(usual, pace).items()
                if abs(math.log(ratio)) > max(CHANGED, 3 * _error(usual, pace, kind))
            }
            if moved:
                texts.append(
                    f"the machine changed while it was calibrated: {describe(moved)} in {name} with {ranks} "
                    f"rank{'s' * (ranks > 1)}, against all launches"
                )
    return texts


def _error(a: Mapping, b: Mapping, kind: str) -> float:
    return math.hypot(*(p.get("error", {}).get(f"{kind}_s", 0.0) for p in (a, b)))


def age_s(pace: Mapping, now: datetime.datetime | None = None) -> float | None:
    """Return the age of a profile's pace in seconds; None without a time of measurement."""
    if "measured" not in pace:
        return None
    then = datetime.datetime.fromisoformat(pace["measured"].replace("Z", "+00:00"))
    return ((now or datetime.datetime.now(datetime.UTC)) - then).total_seconds()


def ago(seconds: float) -> str:
    """Return a time span in words: "40 minutes", "3 hours", "5 days"."""
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * length or length == 60:
            return f"{seconds / length:.0f} {word}s"
    return ""
