"""Schroeter 2021: one-sided against two-sided MPI and shared memory on the Poisson problem, Jacobi and Gauss-Seidel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope.measure import slurm, space
from haloscope.measure.request import Request
from haloscope.studies import Options
from haloscope.studies.checks import Replay
from haloscope.studies.findings import Finding
from haloscope.studies.paper_panels import Line
from haloscope_studies.schroeter2021 import findings as schroeter2021_findings
from haloscope_studies.schroeter2021 import replay as schroeter2021_replay
from haloscope_studies.schroeter2021 import report as schroeter2021_report
from haloscope_studies.schroeter2021.cases import FULL_SIZES, FULL_STEPS, comparisons, request

SUMMARY = (
    "Schroeter 2021: two-sided, one-sided or shared-memory MPI? Eight experiments on the Poisson problem, and the "
    "costs of their parts"
)
# sizes: interlines of strong scaling, and of one rank in weak scaling; launches: the thesis has three, too few to name
# a faster version (schroeter2021_report.LEAST_LAUNCHES)
DEFAULTS = {
    "quick": Options(sizes=(96, 64), ranks=2, steps=40, repetitions=2, launches=5, nodes=2),
    "full": Options(sizes=FULL_SIZES, ranks=0, steps=FULL_STEPS, repetitions=1, launches=5, nodes=4),
}


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once."""
    whole: space.Space[Request] = space.Space()
    known: set[str] = set()
    for comparison in comparisons(options):
        for _, case in comparison.variants:
            part = request(case, options)
            whole.requests += [r for r in part.requests if r.id not in known]
            whole.refused += [(r, reason) for r, reason in part.refused if r.id not in known]
            known |= {r.id for r in part.requests} | {r.id for r, _ in part.refused}
    return space.with_verification(whole, None)


def report(found: Sequence[dict], options: Options) -> str:
    """Return tables of all comparisons with intervals, ratios to p2p, fastest versions, and published numbers next to
    measured ones.
    """
    return schroeter2021_report.report(found, options)


def findings(found: Sequence[dict], options: Options) -> list[Finding]:
    """Return the conclusions of the thesis, judged by its printed numbers and by records."""
    return schroeter2021_findings.judge_all(found, options)


def paper_lines(found: Sequence[dict], options: Options, stem: Path | None) -> dict[str, list[Line]]:  # noqa: ARG001
    """Return the lines of the panels of the paper's figures, besides the printed ones."""
    from haloscope_studies.schroeter2021 import paper

    return paper.lines(found, options)


def replay() -> Replay:
    """Return the printed results, recomputed: residuals, precisions, sizes, bounds, ratios, winners."""
    return schroeter2021_replay.replay()


def figures(found: Sequence[dict], options: Options, stem: Path) -> list[Path]:
    """Draw the ratios to p2p; returns the files written."""
    return schroeter2021_report.figure(found, options, stem)


def slurm_jobs(options: Options) -> list[slurm.Job]:
    """Return the runs as Slurm jobs, one per number of ranks and nodes. Blocks of ranks are nodes, as in requests."""
    groups: dict[tuple[int, int], dict] = {}
    for comparison in comparisons(options):
        for _, case in comparison.variants:
            for r in request(case, options).requests:
                groups.setdefault((case.ranks, case.nodes), {})[r.id] = r
    jobs = []
    for (ranks, nodes), requests in sorted(groups.items()):
        name = f"schroeter2021-{nodes}x{ranks // nodes}"
        about = (
            f"{SUMMARY.partition(':')[0]}: {ranks} ranks on {nodes} node{'s' * (nodes > 1)}, {len(requests)} requests"
        )
        jobs.append(slurm.Job(name, about, tuple(requests.values()), nodes, minutes=480, repeats=options.launches))
    return jobs
