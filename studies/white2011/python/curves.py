"""Curves over cores of versions B to D, simulated to the largest machine of the paper (figures 3 to 6).

Neither the speeds of JaguarPF and Hopper II nor their networks are stated. The simulated machine has the network of
HECToR, a Cray XE6 as Hopper II, as the shipped profile `hector` has it, and the sweeps of a machine that was
calibrated. So the curves show how the versions' order changes with the cores, and not a speed of the paper's machines.
"""

from __future__ import annotations

import functools
import json

from haloscope import bridge
from haloscope.model import profile
from haloscope.report import tables
from haloscope.simulate.simulate import SimulationOptions, simulate
from haloscope.studies import published
from haloscope_studies.white2011.data import DATA
from haloscope_studies.white2011.versions import APP, FORM, IMPLEMENTATIONS

CORES = (12, 48, 192, 768, 3072, 12288, 49152)  # the last one is the paper's largest count, on Hopper II
THREADS = (1, 2)  # of a task; the sweeps were calibrated with up to two
OPTIONS = SimulationOptions(steps=6)


def machine() -> profile.Profile:
    """Return the profile of the simulated machine. Raises UsageError if its parts do not fit."""
    sweeps = json.loads((DATA / "sweeps.json").read_text())
    network = profile.load("hector").data
    return profile.checked(
        network | sweeps["sections"] | {"name": f"{network['name']} with sweeps of {sweeps['name']}"}
    )


def speeds(cores: int, on: profile.Profile) -> dict[tuple[str, int], float]:
    """Return simulated GF by version and threads per task, at the size of the paper.

    cores: a multiple of the numbers of threads. Cost: two seconds for 49,152 cores.
    """
    stated = {row["quantity"]: float(row["value"]) for row in published("white2011", "stated_results")}
    side = int(stated["points_per_side"])
    return {
        (letter, threads): stated["flops_per_point"] * side**3 / _step(letter, cores, threads, side, on) / 1e9
        for letter, version in IMPLEMENTATIONS.items()
        for threads in THREADS
        if version.most_tasks > 1 and threads >= version.least_threads
    }


def _step(letter: str, cores: int, threads: int, side: int, on: profile.Profile) -> float:
    version = IMPLEMENTATIONS[letter]
    choice = bridge.Choice(
        APP,
        (side,) * 3,
        ranks=cores // threads,
        threads=threads,
        schedule=version.schedule,
        strategy=version.strategy,
        form=FORM,
    )
    return simulate(choice, on, options=OPTIONS).time_s


@functools.cache
def table() -> str:
    """Return the simulated speeds by cores, with the gain of overlap and of threads, as a Markdown table and a note."""
    on = machine()
    lines = [_line(cores, speeds(cores, on)) for cores in CORES]
    headers = ["cores", "B", "C", "D", "C over B", "D over B", "2 threads over 1, B"]
    note = (
        f"\n\n**Simulated**, no measurement: GF of 420^3 points, the better of 1 and 2 threads per task, on {on.name} "
        "(network: Davis 2017, a Cray XE6 as Hopper II; sweeps: two cores of an AMD EPYC). The paper's C falls behind "
        "B at 4000 to 6000 cores of JaguarPF, and at about ten times as many of Hopper II."
    )
    return tables.markdown(lines, headers, right=headers) + note


def _line(cores: int, found: dict[tuple[str, int], float]) -> list[str]:
    best = {letter: max(gf for (name, _), gf in found.items() if name == letter) for letter in "BCD"}
    ratios = (best["C"] / best["B"], best["D"] / best["B"], found["B", 2] / found["B", 1])
    return [str(cores), *(f"{gf:.0f}" for gf in best.values()), *(f"{ratio:.2f}" for ratio in ratios)]
