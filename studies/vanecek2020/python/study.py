"""Vanecek 2020: blocks of a GPU that signal the CPU to send; measured on a GPU or an imitated device, and replayed.

Measured: baselines, task queues, kernels per block and the thesis' ideas for each workload (tables 4.2 to 4.6, figure
4.28), packing by block (4.9, 4.14), iterations of a test, sends after block 0 was raised (4.22), activity of the CPU
(4.15), and timelines (4.4, 4.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope.measure import space
from haloscope.studies import Options, checks
from haloscope.studies.findings import Finding
from haloscope.studies.paper_panels import Line
from haloscope_studies.vanecek2020 import findings as vanecek2020_findings
from haloscope_studies.vanecek2020 import matrix
from haloscope_studies.vanecek2020 import replay as vanecek2020_replay
from haloscope_studies.vanecek2020 import report as vanecek2020_report

SUMMARY = (
    "Vanecek 2020: GPU blocks that exchange their own buffers: phased, by task queues in one kernel, "
    "by kernels per block"
)
ON_DEVICE = ANY_PLAN = True
# Tests of 3 + 10 iterations: 40 of each variant in full, a launch's share of them close in time (section 4.1).
DEFAULTS = {
    "quick": Options(sizes=(), repetitions=2, launches=2, short=True),
    "full": Options(sizes=(), repetitions=8, launches=5),
}


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once."""
    return matrix.plan(options)


def report(found: Sequence[dict], options: Options) -> str:  # noqa: ARG001 (the records contain the options)
    """Return the study's tables, published numbers next to measured ones."""
    return vanecek2020_report.report(found)


def figures(found: Sequence[dict], options: Options, stem: Path) -> list[Path]:  # noqa: ARG001
    """Draw speed-ups, packing, iterations and sends in one figure, timelines in another. Returns the files written."""
    from haloscope_studies.vanecek2020 import figures as vanecek2020_figures

    return vanecek2020_figures.draw(found, stem)


def findings(found: Sequence[dict], options: Options) -> list[Finding]:  # noqa: ARG001
    """Return the conclusions of the thesis, judged by its printed numbers and by records."""
    return vanecek2020_findings.judge(found)


def paper_lines(found: Sequence[dict], options: Options, stem: Path | None) -> dict[str, list[Line]]:  # noqa: ARG001
    """Return the lines of the panels of the paper's figures, besides the printed ones."""
    from haloscope_studies.vanecek2020 import paper

    return paper.lines(found)


def replay() -> checks.Replay:
    """Recompute all results that the printed data allow, without measuring."""
    return vanecek2020_replay.replay()
