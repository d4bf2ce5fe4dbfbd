"""Comparisons of measured versions, each at its best setting: gains of overlap, shares of the GPU's speed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.records.rows import Row
from haloscope.studies import Options, published
from haloscope_studies.white2011.versions import IMPLEMENTATIONS, Point

Launches = dict[str, list[float]]  # seconds of the repetitions, by launch
Measured = Mapping[Point, Row]
IMITATION = "host"  # the back end that imitates a device by threads of the CPU


def best_of(measured: Measured) -> dict[Point, Row]:
    """Return the fastest setting of each version at each size and core count; oversubscribed ones do not count."""
    best: dict[tuple, tuple[Point, Row]] = {}
    for point, row in measured.items():
        key = (point.cells, point.cores, point.letter)
        if not row.oversubscribed and (key not in best or row.step.value < best[key][1].step.value):
            best[key] = (point, row)
    return dict(best.values())


def best_elsewhere(rows: Sequence[Row]) -> Launches:
    """Return, by launch, the seconds of the row that is the fastest in the other launches; {} without rows.

    A row that is chosen and timed in the same launch profits from the noise that made it win. A single launch chooses
    its own. Launches that all rows have count.
    """
    launches = [key for key in rows[0].launches if all(key in row.launches for row in rows)] if rows else []
    found = {}
    for launch in launches:
        others = [key for key in launches if key != launch] or [launch]
        chosen = min(rows, key=lambda row: np.median([np.median(row.launches[key]) for key in others]))
        found[launch] = chosen.launches[launch]
    return found


def combine(sides: Sequence[Launches], rule: Callable[[Sequence[float]], float]) -> Launches:
    """Return one time per launch that all sides have: a rule over the medians of the sides."""
    common = [key for key in sides[0] if all(key in side for side in sides)] if sides else []
    return {key: [rule([float(np.median(side[key])) for side in sides])] for key in common}


def at_summed_speed(seconds: Sequence[float]) -> float:
    """Return the seconds of a machine that is as fast as several ones together."""
    return 1 / sum(1 / second for second in seconds)


@dataclass(frozen=True)
class Group:
    """The measurements of one size on one core count."""

    cells: int
    cores: int
    measured: Measured

    def rows(self, letters: Iterable[str], where: Callable[[Point], bool] = lambda _: True) -> list[Row]:
        """Return the rows of versions whose points satisfy a condition, without oversubscribed ones."""
        wanted = set(letters)
        return [row for p, row in self.measured.items() if p.letter in wanted and where(p) and not row.oversubscribed]

    def best(self, letters: Iterable[str], where: Callable[[Point], bool] = lambda _: True) -> Launches:
        """Return the seconds of the best setting of the best of some versions, by launch, as `best_elsewhere` does."""
        return best_elsewhere(self.rows(letters, where))


def groups(measured: Measured) -> list[Group]:
    """Return the measurements by size and core count, in their order."""
    keys = dict.fromkeys((p.cells, p.cores) for p in measured)
    return [
        Group(cells, cores, {p: row for p, row in measured.items() if (p.cells, p.cores) == (cells, cores)})
        for cells, cores in keys
    ]


def is_on_gpu(options: Options) -> bool:
    """Return whether E to I were measured on a GPU: not without a device, and not on one that the CPU imitates."""
    return options.device not in ("", IMITATION)


def sends_messages(point: Point) -> bool:
    """Return whether a setting has messages to overlap: a single task sends none."""
    return point.tasks > 1


@dataclass(frozen=True)
class Gain:
    """A comparison: its name, both sides of a group, and the letters of the two speeds that the paper may state."""

    name: str
    slower: Callable[[Group], Launches]
    faster: Callable[[Group], Launches]
    stated: Sequence[str] = ()


def _overlap(letter: str) -> Gain:
    return Gain(f"{letter} over B", lambda g: g.best("B", sends_messages), lambda g: g.best(letter, sends_messages))


def _over(one: str, other: str) -> Gain:
    return Gain(f"{one} over {other}", lambda g: g.best(other), lambda g: g.best(one), (one, other))


def gpu_plus_cpus(group: Group) -> Launches:
    """Return the times at the speed of E and of the best CPU version together."""
    return combine([group.best("E"), group.best(IMPLEMENTATIONS)], at_summed_speed)


GAINS = (
    _overlap("C"),
    _overlap("D"),
    _over("G", "F"),
    _over("I", "H"),
    *(_over(letter, "E") for letter in "FGHI"),
    Gain("I over best of F, G, H", lambda g: g.best("FGH"), lambda g: g.best("I")),
    Gain("I over best of A to D", lambda g: g.best(IMPLEMENTATIONS), lambda g: g.best("I")),
    Gain("I over E + best of A to D", gpu_plus_cpus, lambda g: g.best("I")),
)
LOWER_BOUNDS = {  # stated as bounds, by the quantity of stated_results.csv
    "I over H": "best_over_other_parallel",
    "I over best of F, G, H": "best_over_other_parallel",
    "I over best of A to D": "best_cpu_gpu_over_best_cpu_only",
}


def stated_gain(gain: Gain) -> str:
    """Return the published value of a gain as text: the ratio of two stated speeds, or a bound; "" without any."""
    rows = published("white2011", "stated_results")
    if bounds := [r["value"] for r in rows if r["quantity"] == LOWER_BOUNDS.get(gain.name)]:
        return f"{bounds[0]} or more"
    speed = {r["implementation"][0]: float(r["value"]) for r in rows if r["quantity"] == "performance"}
    if not (gain.stated and set(gain.stated) <= speed.keys()):
        return ""
    one, other = gain.stated
    return f"{speed[one] / speed[other]:.2f}"
