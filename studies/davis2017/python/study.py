"""Davis 2017: a hydrodynamics code measured, modelled and improved; and its model replayed from its printed data.

Measured: `hydro3d` as the studied code runs it, serial, weak and strong scaling by component, the walltime composed of
components, a model fitted to some sizes and tested on others, and the variants of chapter 6.

Replayed: rows C1 to C13, D1, D3, F1 to F5 and H2 of the checklist against the printed values; results without a bar are
reports. Tables then compare our predictions, whose costs come from runs on one node, with measured times and the
study's model, and evaluate the study's other measurements: its variants, waiting, memory and clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from haloscope import records, terminal
from haloscope.measure import space
from haloscope.records.rows import Row, group_rows
from haloscope.studies import Options, checks
from haloscope.studies.findings import Finding
from haloscope.studies.paper_panels import Line
from haloscope_studies.davis2017 import findings as davis2017_findings
from haloscope_studies.davis2017.measured import cg, experiments, scaling
from haloscope_studies.davis2017.replay import replay as davis2017_replay

SUMMARY = "Davis 2017: a 3D hydrocode with near-neighbour exchange, measured, modelled and improved"
DEFAULTS = {
    "quick": Options(sizes=(16, 24, 32, 40, 48), repetitions=2, launches=3, short=True),
    "full": Options(sizes=(30, 50, 80, 100, 120, 150), repetitions=1, launches=5),
}


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once."""
    return experiments.plan(options)


def measured_points(found: Sequence[dict], options: Options) -> dict[experiments.Point, Row]:
    """Return the row of each point that the records hold."""
    by_id = {row.id: row for row in group_rows(found)}
    return {point: by_id[run.id] for point, run in experiments.planned(options).items() if run.id in by_id}


def figures(found: Sequence[dict], options: Options, stem: Path) -> list[Path]:
    """Draw the measurements, and the study's figures redrawn with them, conjugate gradients from the records next to
    the study's. Returns the files written, none without measurements."""
    from haloscope_studies.davis2017.measured import figures as davis2017_figures

    measured = measured_points(found, options)
    return davis2017_figures.draw(measured, _solves(stem), stem) if measured else []


def report(found: Sequence[dict], options: Options) -> str:
    """Return tables in the study's form, with its printed numbers where sizes and ranks are the same."""
    measured = measured_points(found, options)
    sections = {
        "Serial runs": scaling.serial(measured),
        "Weak scaling, ms per step": scaling.by_component(measured, "weak"),
        "Strong scaling, ms per step": scaling.by_component(measured, "strong"),
        "The model against runs that it was not fitted to": scaling.validation(measured),
        "The same for iterations of conjugate gradients": scaling.validation(measured, experiments.CG),
        "Parts that leave their line": scaling.anomalies(measured),
        "Variants": scaling.variants(measured),
        "Pieces of a threaded sweep": scaling.pieces(measured),
        "A barrier before each exchange": scaling.barriers(measured),
        "Memory management": scaling.memory(measured),
        "Parts of a product of conjugate gradients": scaling.products(measured),
    }
    return "\n\n".join(f"### {title}\n\n{body}" for title, body in sections.items())


def findings(found: Sequence[dict], options: Options) -> list[Finding]:
    """Return the conclusions of the study, judged by its printed numbers and by the records."""
    return davis2017_findings.judged(measured_points(found, options))


def paper_lines(found: Sequence[dict], options: Options, stem: Path | None) -> dict[str, list[Line]]:
    """Return the lines of the panels of the paper's figures, besides the printed ones."""
    from haloscope_studies.davis2017 import paper

    return paper.lines(measured_points(found, options), _solves(stem) if stem else [])


def other_programs(file: Path, options: Options, measure: bool) -> str:
    """Return the tables of chapter 7, measured by PETSc's program and ours; without `measure`, from the records next to
    the study's records, "" without such records."""
    found = cg.run(_records_of_cg(file), options.short) if measure else _solves(file, records.read_aloud)
    if measure and found:
        terminal.say(f"records: {_records_of_cg(file)}")
    return cg.tables(found) if found else ""


def _records_of_cg(file: Path) -> Path:
    return file.with_name(f"{file.name.partition('.')[0]}-cg.jsonl")


def _solves(file: Path, read: Callable[..., records.RecordFile] = records.read) -> list[dict]:
    """Return the records of conjugate gradients next to the study's records; none if the file does not exist."""
    kept = _records_of_cg(file)
    return read(kept, records.CG).records if kept.exists() else []


def replay() -> checks.Replay:
    """Recompute all results that the printed data allow. Takes some seconds."""
    return davis2017_replay.replay()
