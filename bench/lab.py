"""Figure `lab`: predictions for held-out configurations on emulated networks, against measured times there.

Each network is calibrated, then all choices of every held-out case are measured in it, then the model's pick and the
fastest again, interleaved. Everything is stored in results/lab/; `python bench/lab.py --kept` prints the figures of the
stored records again.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from accuracy import Bars, Halves, again, cross_fitted, halved, keep, report_errors, report_intervals, report_regret

from haloscope import bridge, records
from haloscope.advice import validate
from haloscope.bridge import build
from haloscope.measure import programs
from haloscope.measure.campaign import Campaign
from haloscope.measure.request import Request
from haloscope.measure.space import Space
from haloscope.model import profile as profiles
from haloscope.records import stats
from haloscope.records.rows import speedup

FIGURE = "lab"
ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "results" / "lab"
SCRATCH = ROOT / "out" / "lab"
LATENCIES = ("20us", "50us", "200us", "1000us")
BANDWIDTHS = ("100Mbit", "1Gbit")
LAUNCHES = 2
BARS = Bars(exchange=(0.10, 0.25), step=(0.08, 0.25), regret=(1.03, 1.2), launches=LAUNCHES)
APPS = ("laplace2d", "laplace3d", "advection3d")
OWN = "gray-scott"  # an app with two fields, in a separate program
# Strategy, schedule, depth; choices that are illegal for an app are left out.
CHOICES = (
    ("ordered/p2p", "bulk", 1),
    ("ordered/p2p", "bulk", 4),
    ("ordered/p2p", "bulk", 12),
    ("ordered/p2p", "split", 1),
    ("ordered/p2p", "split", 4),
    ("direct:merged/persistent", "bulk", 1),
    ("direct:merged/persistent", "bulk", 4),
    ("direct:merged/persistent", "split", 1),
    ("ordered/rma-pscw", "bulk", 1),
)
OF_FIELDS = (
    ("ordered:merged/p2p", "bulk", 1),
    ("ordered:merged/p2p", "bulk", 4),
    ("ordered:fields=serial/p2p", "bulk", 1),
    ("ordered:fields=pipelined/p2p", "bulk", 1),
)
# App, form, sides that no calibration contains, process grid, choices.
GRIDS = (
    ("laplace2d", "", (72, 360, 1400), "1x2", CHOICES),
    ("laplace3d", "", (30, 72), "1x1x2", CHOICES),
    ("advection3d", "separable", (44,), "1x1x2", CHOICES),
    (OWN, "", (500,), "1x2", (*CHOICES, *OF_FIELDS)),
)


# The places of the map of docs/machine/lab.md: cells of a rank in each dimension, and the possible winners.
MAP_BANDWIDTH = "1Gbit"
BLOCKS = (32, 128, 512)
RIVALS = tuple(
    (strategy, schedule, depth)
    for strategy in ("ordered/p2p", "direct:merged/p2p")
    for schedule in ("bulk", "split")
    for depth in (1, 4, 16)
)


def of_map() -> Iterator[Request]:
    """Yield every rival of every block size."""
    for block in BLOCKS:
        for strategy, schedule, depth in RIVALS:
            choice = bridge.Choice(
                "laplace2d",
                (block, 2 * block),
                ranks=2,
                process_grid="1x2",
                strategy=strategy,
                schedule=schedule,
                depth=depth,
            )
            yield Request.of(choice, seconds=0.05, repetitions=2)


def program() -> Path:
    """Return the program with the app of several fields."""
    return build.built_rank_program().parent / "bench" / "bench_gray_scott"


def run_haloscope(words: list[str]) -> None:
    """Run a command of haloscope. Raises CalledProcessError when it fails."""
    subprocess.run([sys.executable, "-m", "haloscope.cli", *words], check=True, stdout=sys.stderr)


def networks(quick: bool) -> list[tuple[str, str]]:
    """Return latency and bandwidth of every network."""
    return [(latency, bandwidth) for latency in LATENCIES for bandwidth in BANDWIDTHS][:: 7 if quick else 1]


def held_out() -> Iterator[Request]:
    """Yield every request: all choices of every case."""
    for app, form, sides, grid, choices in GRIDS:
        for side in sides:
            for strategy, schedule, depth in choices:
                choice = bridge.Choice(
                    app,
                    (side,) * len(grid.split("x")),
                    ranks=2,
                    process_grid=grid,
                    form=form,
                    strategy=strategy,
                    schedule=schedule,
                    depth=depth,
                )
                if not bridge.illegal(choice):
                    yield Request.of(choice, seconds=0.05, repetitions=2)


def campaign(requests: Iterator[Request], file: Path, label: str) -> Campaign:
    """Return the campaign that appends records of requests to a file, except for requests that it already has."""
    return Campaign(Space(list(requests)), file, launches=LAUNCHES, resume=True, label=label)


def measure_there(folder: Path) -> None:
    """Calibrate and measure inside an emulated cluster; existing results are not measured again."""
    machine = folder / "machine.json"
    if not machine.exists():
        words = [
            "calibrate",
            "--quick",
            "--launches",
            "2",
            "--apps",
            ",".join((*APPS, OWN)),
            "--program",
            str(program()),
        ]
        run_haloscope([*words, "--app", OWN, "-o", str(machine)])
    measured = campaign(held_out(), folder / "held-out.jsonl", "measuring held-out cases").run()
    found = validate.validate(measured, profiles.load(machine), samples=0)
    again(validate.cases(found.pairs), folder / "confirmed.jsonl", held_out())
    if folder.name.endswith(MAP_BANDWIDTH):
        campaign(of_map(), folder / "map.jsonl", "measuring the map").run()


def folder_of(network: tuple[str, str]) -> Path:
    """Return the folder with the measurements of a network."""
    return SCRATCH / "-".join(network)


def measure(quick: bool) -> None:
    """Measure in every network. Raises CalledProcessError when that fails."""
    for network in networks(quick):
        folder = folder_of(network)
        folder.mkdir(parents=True, exist_ok=True)
        latency, bandwidth = network
        there = [sys.executable, str(Path(__file__).resolve()), "--there", str(folder)]
        words = ["lab", "--hosts", "2", "--latency", latency, "--bandwidth", bandwidth, "--", *there]
        run_haloscope(words)


@dataclasses.dataclass
class Found:
    """Measurements of one network, with predictions from its calibration. halves: of the launches; crossed: with
    intervals from other grids."""

    pairs: tuple[validate.Pair, ...]
    halves: Halves
    crossed: list[validate.Pair]
    regrets: list[stats.Estimate | None]


def compared(folder: Path, suffix: str) -> Found:
    """Compare the records of a folder with the predictions."""
    machine = profiles.load(folder / f"machine.json{suffix}")
    measured = records.read(folder / f"held-out.jsonl{suffix}").records
    found = validate.validate(measured, machine)
    regrets = again(validate.cases(found.pairs), folder / f"confirmed.jsonl{suffix}")
    return Found(found.pairs, halved(measured, machine), cross_fitted(measured, machine, found.pairs), regrets)


@dataclasses.dataclass
class Technique:
    """Counts for one technique: places where the step was faster, slower, and correctly predicted, beyond noise."""

    name: str
    wins: int = 0
    loses: int = 0
    right: int = 0

    @property
    def distinct(self) -> int:
        """Number of places where the measurements distinguish the step with the technique from the step without it."""
        return self.wins + self.loses


# Strategy, schedule and depth with a technique, and without it.
TECHNIQUES = {
    "depth 4": (("ordered/p2p", "bulk", 4), ("ordered/p2p", "bulk", 1)),
    "depth 12": (("ordered/p2p", "bulk", 12), ("ordered/p2p", "bulk", 1)),
    "overlap (split)": (("ordered/p2p", "split", 1), ("ordered/p2p", "bulk", 1)),
    "one message for all fields": (("ordered:merged/p2p", "bulk", 1), ("ordered/p2p", "bulk", 1)),
    "direct, merged, persistent": (("direct:merged/persistent", "bulk", 1), ("ordered/p2p", "bulk", 1)),
}


def pairs_of(folder: Path) -> tuple[validate.Pair, ...]:
    """Return the measurements of a stored folder with their predictions, without intervals."""
    measured = records.read(folder / "held-out.jsonl.xz").records
    return validate.validate(measured, profiles.load(folder / "machine.json.xz"), samples=0).pairs


def techniques(found: Sequence[Sequence[validate.Pair]]) -> list[Technique]:
    """Count for each technique the places where it wins, where it loses, and where the model is right."""
    counts = {name: Technique(name) for name in TECHNIQUES}
    for network in found:
        places: dict[tuple, dict[tuple, validate.Pair]] = defaultdict(dict)
        for pair in network:
            request = pair.row.request
            place = (request["app"], *request["cells"])
            places[place][request["strategy"], request["schedule"], request["depth"]] = pair
        for here in places.values():
            for name, (with_it, without) in TECHNIQUES.items():
                if with_it in here and without in here:
                    count(counts[name], here[with_it], here[without])
    return list(counts.values())


def count(technique: Technique, with_it: validate.Pair, without: validate.Pair) -> None:
    """Count one place, if the measurements distinguish the step with the technique from the step without it."""
    gain = speedup(with_it.row, without.row)
    if gain.low <= 1 <= gain.high:
        return
    wins = gain.low > 1
    technique.wins += wins
    technique.loses += not wins
    technique.right += wins == (with_it.prediction.time_s < without.prediction.time_s)


def report(folders: list[Path], suffix: str) -> None:
    """Print the figures over all networks."""
    found = [compared(folder, suffix) for folder in folders]
    halves = tuple([pair for one in found for pair in one.halves[side]] for side in (0, 1))
    report_errors([pair for one in found for pair in one.pairs], halves, BARS, FIGURE)
    report_intervals([pair for one in found for pair in one.crossed], BARS, FIGURE)
    report_regret([regret for one in found for regret in one.regrets], BARS, FIGURE)


def main() -> None:
    """Measure (or with --kept read results/lab), store the records and print one JSON line per figure."""
    programs.use(program(), OWN, {})
    if "--there" in sys.argv:
        return measure_there(Path(sys.argv[-1]))
    if "--kept" in sys.argv:
        return report(sorted(KEPT.iterdir()), ".xz")
    quick = "--quick" in sys.argv
    measure(quick)
    folders = [folder_of(network) for network in networks(quick)]
    report(folders, "")
    if not quick:
        for folder in folders:
            keep(folder, KEPT / folder.name)
    return None


if __name__ == "__main__":
    main()
