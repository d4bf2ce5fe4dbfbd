"""White & Dongarra 2011: advection in 3D, implementations A to D, threads per task tuned, and E to I on a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope.measure import space
from haloscope.measure.request import Request
from haloscope.records.rows import Row, group_rows
from haloscope.studies import Options, checks
from haloscope.studies.findings import Finding
from haloscope.studies.paper_panels import Line
from haloscope_studies.white2011 import findings as paper
from haloscope_studies.white2011 import report as tables_of
from haloscope_studies.white2011.versions import ON_DEVICE, Point, points

__all__ = ["ON_DEVICE"]
SUMMARY = (
    "White & Dongarra 2011: does overlap pay? Implementations A to D of 3D advection, E to I with a GPU, threads per "
    "task tuned"
)
DEFAULTS = {
    "quick": Options(sizes=(128,), seconds=0.2, repetitions=3, launches=3, short=True),
    "full": Options(sizes=(420,), seconds=5.0, repetitions=3, launches=5),
}


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once: A is B with one task."""
    whole: space.Space[Request] = space.Space()
    for part in points(options).values():
        whole.requests += [r for r in part.requests if r not in whole.requests]
        whole.refused += part.refused
    return space.with_verification(whole, None)


def measured_points(found: Sequence[dict], options: Options) -> dict[Point, Row]:
    """Return the rows of records by the points that planned them."""
    by_id = {row.id: row for row in group_rows(found)}
    return {
        point: by_id[part.requests[0].id]
        for point, part in points(options).items()
        if part.requests and part.requests[0].id in by_id
    }


def report(found: Sequence[dict], options: Options) -> str:
    """Return tables of all points, the best per core count, gains of overlap, code size."""
    return tables_of.report(measured_points(found, options), options)


def findings(found: Sequence[dict], options: Options) -> list[Finding]:
    """Return the conclusions of the paper, judged by its stated numbers and by records."""
    return paper.findings(measured_points(found, options), options)


def paper_lines(found: Sequence[dict], options: Options, stem: Path | None) -> dict[str, list[Line]]:  # noqa: ARG001
    """Return the lines of the panels of the paper's figures, besides the printed ones."""
    from haloscope_studies.white2011 import paper

    return paper.lines(measured_points(found, options), options)


def replay() -> checks.Replay:
    """Return the results of the model of concurrent parts on the paper's stated speeds, without measuring."""
    from haloscope_studies.white2011 import replay as white2011_replay

    return white2011_replay.replay()
