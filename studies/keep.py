"""Run the studies as far as a machine allows, and keep records, reports and figures under results/studies/.

usage: .venv/bin/python studies/keep.py [--reports] [RUN...]

kept.toml has the options of each run, and the parts of the publication that it leaves out. Each run has a report, its
figures, standard_errors.csv with the mean and the standard error of all times behind them, and about.json with machine,
compiler, MPI library and repetitions. A killed run continues where it was: its records are in build/studies/.
--reports measures nothing: reports and figures are made again from the kept records, after a change of their code.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope import records
from haloscope.bridge import build
from haloscope.studies import provenance

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "results" / "studies"
RAW = ROOT / "build" / "studies"
PLANS = Path(__file__).with_name("kept.toml")
HALOSCOPE = build.python("-m", "haloscope.cli")
# Parts of a record's environment that describe its measurement.
DESCRIBED = (
    "commit",
    "compiler",
    "compiler_flags",
    "mpi_library",
    "cpu",
    "cores",
    "device",
    "emulated_network",
    "hosts",
)


def main(words: Sequence[str] | None = None) -> None:
    """Keep all runs, or the named ones."""
    plans = tomllib.loads(PLANS.read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="RUN", choices=[*plans, []], help=", ".join(plans))
    parser.add_argument("--reports", action="store_true", help="measure nothing: make the reports again")
    options = parser.parse_args(words)
    for name in options.names or plans:
        if not options.reports:
            measure(name, plans[name])
        write_report(name, plans[name])


def measure(name: str, plan: Mapping[str, Any]) -> None:
    """Measure a run, or the rest of it, and keep its records and their description."""
    raw = RAW / f"{name}.jsonl"
    others = raw.with_name(f"{name}-cg.jsonl")  # of other programs, which are measured again
    for file in (others, raw.with_name(f"{name}-cg-runs.jsonl")):
        file.unlink(missing_ok=True)
    run(*HALOSCOPE, "study", plan["study"], *plan["options"], "--output", str(raw), "--resume")
    folder = KEPT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "records.jsonl.xz").write_bytes(lzma.compress(raw.read_bytes()))
    if others.exists():
        shutil.copy(others, folder / "records-cg.jsonl")
    about = describe(records.read(raw).records, plan)
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def describe(found: Iterable[Mapping], plan: Mapping[str, Any]) -> dict:
    """Return the machine, commits, launches and days of some records, and the plan behind them."""
    measured = [record for record in found if record["kind"] in records.MEASURED]
    about = {part: distinct(r["environment"].get(part) for r in measured) for part in DESCRIBED}
    return {part: values for part, values in about.items() if values} | {
        "days": distinct(record["launch"]["time_utc"][:10] for record in measured),
        "launches": distinct(record["launch"]["id"] for record in measured),
        "repetitions": distinct(record["request"]["repetitions"] for record in measured),
        "records": len(measured),
        "command": " ".join(["haloscope study", plan["study"], *plan["options"]]),
        "left_out": plan["left_out"],
    }


def distinct(values: Iterable[Any]) -> list:
    """Return the distinct values in the order in which they first come, without missing ones."""
    return list({json.dumps(value): value for value in values if value is not None}.values())


def write_report(name: str, plan: Mapping[str, Any]) -> None:
    """Write the report of the kept records and their standard errors, and draw the figures next to them.

    Of the figures of the paper, the SVG files are kept.
    """
    folder = KEPT / name
    report = (*HALOSCOPE, "study", plan["study"], "--from", str(folder / "records.jsonl.xz"))
    (folder / "report.md").write_text(run(*report, capture=True))
    (folder / "standard_errors.csv").write_text(provenance.table(kept_records(name)))
    if plan.get("figures", True):
        run(*report, "--figures", str(folder / "figures"))
        for file in (folder / "figures").glob("*.png"):
            file.unlink()


def kept_records(name: str) -> list[dict]:
    """Return the records of a kept run, of the other programs too."""
    others = KEPT / name / "records-cg.jsonl"
    more = records.read(others, records.CG).records if others.exists() else []
    return records.read(KEPT / name / "records.jsonl.xz").records + more


def run(*command: str, capture: bool = False) -> str:
    """Run a command in the root of the project and return its output. Raises CalledProcessError where it fails."""
    done = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE if capture else None)
    return done.stdout or ""


if __name__ == "__main__":
    main()
