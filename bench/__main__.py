"""Performance figures, each measured in interleaved pairs with its counterpart: `python -m bench [--figure NAME]`.

A program prints one JSON line per case with the seconds of both sides, pair by pair (`bench/harness.hpp`). This module
converts them to a median paired ratio with a 95 % interval, one line in results/bench.jsonl and one row of a Markdown
table. Memory placement differs from launch to launch, so launches differ more than pairs of one launch: figures of
programs with several launches are medians over launches.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from haloscope import errors
from haloscope.bridge import build
from haloscope.measure import answers, inventory, launch
from haloscope.records import stats
from haloscope.report import tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "bench.jsonl"
PROFILE = ROOT / "results" / "accuracy" / "machine.json.xz"
FEWEST_PAIRS = 20
LIMIT_S = 3600


@dataclass(frozen=True)
class Program:
    """One program of a figure: a bench program of a build (under mpiexec when ranks > 0), or a Python script.

    preset: the CMake preset whose build folder holds it, "" for the build that Haloscope uses. launches: number of
    starts. scripts: the folder of Python scripts. profile: it reads PROFILE, which is unpacked next to it.
    """

    name: str
    ranks: int = 0
    threads: int = 1
    preset: str = ""
    launches: int = 1
    scripts: Path = ROOT / "bench"
    profile: bool = False

    def folder(self) -> Path:
        """Return the folder of the build that holds the program."""
        return ROOT / "build" / self.preset if self.preset else build.rank_program().parent

    def command(self) -> list[str]:
        """Return the command words. Raises UnavailableError when the program is not built."""
        if self.name.endswith(".py"):
            return [sys.executable, str(self.scripts / self.name)]
        folder = self.folder()
        path = folder / "bench" / self.name
        if self.preset:
            build.build_preset(self.preset, self.name, build.RANK_PROGRAM)
        if not path.exists():
            raise errors.UnavailableError(f"{path} is not built; run 'make build'")
        if self.profile:
            path.with_name("machine.json").write_bytes(lzma.decompress(PROFILE.read_bytes()))
        words = launch.launcher_words(launch.mpiexec(folder), self.ranks, self.threads) if self.ranks else []
        return [*words, str(path)]


FIGURES = {
    "sweep": [Program("bench_sweep")],
    "deep": [Program("bench_deep")],
    "exchange": [Program("bench_exchange", ranks=2, launches=5)],
    "exchange-shared": [Program("bench_exchange_shared", ranks=2, launches=5, preset=mpi) for mpi in ("", "openmpi4")],
    "auto": [Program("bench_auto", ranks=2, launches=5, preset=mpi) for mpi in ("", "openmpi4")],
    "opening": [Program("bench_opening", ranks=2, launches=5)],
    "phases": [Program("bench_phases", ranks=2, launches=3)],
    "exchange-petsc": [Program("bench_exchange_petsc", ranks=2, preset="petsc", launches=5)],
    "plan": [Program("plan.py")],
    "predict": [Program("predict.py")],
    "best": [Program("bench_best", profile=True)],
    "accuracy": [Program("accuracy.py")],
    "lab": [Program("lab.py")],
    "tune": [Program("tune.py")],
    "simulate": [Program("bench_simulate")],
    "view": [Program("bench_view", ranks=2, launches=5)],
    "own_app": [Program("bench_own_app", launches=3)],
    "redistribute": [Program("bench_redistribute", ranks=2, launches=3)],
    "ported": [Program("bench_ported", ranks=2, launches=5)],
    "replaced": [Program("bench_replaced", ranks=2, launches=5, profile=True)],
    "python": [Program("python.py")],
    "overhead": [Program("bench_overhead"), Program("bench_overhead", ranks=2)],
    "stepper_order": [Program("bench_stepper_order", launches=3)],
}


def study_figures() -> dict[str, dict]:
    """Return the figures that studies add, each with its programs and its description (`about`)."""
    found: dict[str, dict] = {}
    for file in sorted(ROOT.glob("studies/*/bench/figures.toml")):
        for name, figure in tomllib.loads(file.read_text()).items():
            programs = [Program(scripts=file.parent, **program) for program in figure.get("programs", ())]
            found[name] = {"programs": programs, "about": figure.get("about", "")}
    return found


FIGURES |= {
    name: [*FIGURES.get(name, ()), *figure["programs"]]
    for name, figure in study_figures().items()
    if figure["programs"]
}


# Functions from a pair (seconds of a, seconds of b) to the figure; "a" has no counterpart.
COMBINED = {
    "a/b": lambda a, b: a / b,
    "b/a": lambda a, b: b / a,
    "a-b": lambda a, b: a - b,
    "a": lambda a, b: a,
}


def results_of(program: Program, quick: bool) -> list[list[dict]]:
    """Run one program and return the cases it printed, each as one dict per launch.

    Raises HaloscopeError when it fails, prints no case, or prints different cases in different launches.
    """
    command = [*program.command(), *(["--quick"] if quick else [])]
    launches = []
    for _ in range(1 if quick else program.launches):
        try:
            run = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise errors.HaloscopeError(f"'{' '.join(command)}' did not end within {LIMIT_S} s") from None
        cases = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        if run.returncode or not cases:
            raise errors.HaloscopeError(
                f"'{' '.join(command)}' ended with code {run.returncode} after {len(cases)} cases"
            )
        launches.append(cases)
    if len({tuple(case["case"] for case in cases) for cases in launches}) > 1:
        raise errors.HaloscopeError(f"'{' '.join(command)}' printed different cases in different launches")
    return [list(launches_of_case) for launches_of_case in zip(*launches, strict=True)]


def pairs_of(case: dict) -> list[float]:
    """Combine each pair of samples of one launch by the function that `value` names, a key of COMBINED."""
    a, b = case["samples_a"], case.get("samples_b") or []
    combine = COMBINED.get(case["value"])
    if combine is None:
        known = ", ".join(COMBINED)
        raise errors.HaloscopeError(f"figure {case['figure']}: value '{case['value']}' is none of {known}")
    if case["value"] != "a" and len(a) != len(b):
        raise errors.HaloscopeError(
            f"figure {case['figure']}, {case['case']}: {len(a)} and {len(b)} samples make no pairs"
        )
    return [combine(x, y) for x, y in zip(a, b or a, strict=True)]


def judged(launches: list[dict]) -> dict:
    """Convert one case's samples to the figure's value with interval, and judge it by its bar (None: it has no bar).

    launches: the output of each launch for the case. The value is the median over the pairs, or of several launches the
    median of their medians; side `a` is named as in most launches. A program whose figure is not a median of pairs
    prints value and interval itself.
    """
    case = launches[0]
    pairs = [pairs_of(launch) for launch in launches] if isinstance(case["value"], str) else []
    found = _estimate(case, pairs)
    bar, at_least = case["bar"], case["direction"] == ">="
    return {
        "figure": case["figure"],
        "case": case["case"],
        "value": found.value,
        "interval": [found.low, found.high],
        "unit": case["unit"],
        "bar": bar,
        "direction": case["direction"],
        "holds": None if bar is None else found.value >= bar if at_least else found.value <= bar,
        "pairs": sum(map(len, pairs)) or case["pairs"],
        "launches": case.get("launches", len(launches)),
        "a": Counter(launch.get("a", "") for launch in launches).most_common(1)[0][0],
        "b": case.get("b", ""),
        "notes": case.get("notes", ""),
    }


def _estimate(case: dict, pairs: list[list[float]]) -> stats.Estimate:
    if not pairs:
        return stats.Estimate(case["value"], *case["interval"], case["pairs"], case["launches"])
    return stats.median_of(pairs[0]) if len(pairs) == 1 else stats.median_over_launches(pairs)


def environment(folder: Path) -> dict:
    """Return the machine, compiler, MPI library and commit with which the figures of one build were measured."""
    information = answers.information(folder)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], check=False, capture_output=True, text=True, cwd=ROOT
    ).stdout
    return {
        "cpu": inventory.cpu(),
        "cores": launch.cores(),
        "load_before": round(os.getloadavg()[0], 2),
        "host": platform.node(),
        "compiler": information["compiler"],
        "compiler_flags": information.get("compiler_flags", ""),
        "mpi_library": " ".join(information["mpi_library"].split()),
        "commit": commit.strip() or information.get("commit", ""),
        "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def mpi_name(environment: dict) -> str:
    """Return the MPI library's name and version: "Open MPI 4.1.4"."""
    name, version = re.match(r"(.*?)\s+(?:Version:\s*|v)?([\d.]+)", environment["mpi_library"]).groups()
    return f"{name} {version}"


def verdict(result: dict) -> tuple[str, str]:
    """Return the bar of a judged case and whether it holds, as texts."""
    if result["bar"] is None:
        return "none", ""
    return f"{result['direction']} {result['bar']:g}", "yes" if result["holds"] else "NO"


def table(results: Sequence[dict], named: bool = True) -> str:
    """Return the Markdown table of judged cases, which contain their environments. named: with a column of figures."""
    headers = ["figure", "case", "MPI", "a against b", "value", "95 %", "bar", "holds", "pairs", "launches", "notes"]
    lines = []
    for r in results:
        few = f"fewer than {FEWEST_PAIRS} pairs" if r["pairs"] < FEWEST_PAIRS else ""
        low, high = r["interval"]
        unit = "" if r["unit"] == "ratio" else f" {r['unit']}"
        sides = " : ".join(filter(None, (r["a"], r["b"])))
        mpi = mpi_name(r["environment"])
        lines.append(
            [
                r["figure"],
                r["case"],
                mpi,
                sides,
                tables.number(r["value"]) + unit,
                f"{tables.number(low)} .. {tables.number(high)}",
                *verdict(r),
                r["pairs"],
                r.get("launches", 1),
                "; ".join(filter(None, (few, r["notes"]))),
            ]
        )
    if not named:
        headers, lines = headers[1:], [line[1:] for line in lines]
    return tables.markdown(lines, headers, right=("value", "bar", "pairs", "launches"))


@click.command()
@click.option("--figure", "names", multiple=True, help=f"One of {', '.join(FIGURES)}; may be repeated. [all]")
@click.option("--quick", is_flag=True, help="Few pairs, for a smoke test; not written to results/bench.jsonl.")
def main(names, quick):
    """Measure the performance figures and append them to results/bench.jsonl."""
    for name in names:
        if name not in FIGURES:
            raise errors.UsageError(errors.unknown_name("figure", name, FIGURES))
    results, absent = [], []
    for name in names or FIGURES:
        for program in FIGURES[name]:
            try:
                program.command()  # reports missing programs before anything runs
                where = environment(program.folder())
                found = [judged(case) | {"environment": where} for case in results_of(program, quick)]
            except errors.UnavailableError as error:
                absent.append(f"figure {name} was not measured: {error}")
                continue
            results += found
            if not quick:
                _append(found)
    if results:
        print(table(results))
        held = [r["holds"] for r in results if r["holds"] is not None]
        print(f"\n{sum(held)} of {len(held)} cases with a bar reach it.")
    for text in absent:
        print(f"\n{text}")
    return errors.UNAVAILABLE if absent and not results else errors.OK


def _append(lines: list[dict]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def guarded() -> int:
    """Run and turn errors into one line and an exit code."""
    try:
        return main(standalone_mode=False) or errors.OK
    except click.ClickException as error:
        print(f"bench: {error.format_message()}", file=sys.stderr)
        return errors.USAGE
    except errors.HaloscopeError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(guarded())
