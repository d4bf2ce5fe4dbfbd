"""Conclusions of the 2021 thesis, judged by the numbers that it prints and by measurements here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from haloscope.records import stats
from haloscope.studies import Options, findings, published
from haloscope.studies.findings import (
    FAILS,
    HOLDS,
    NEEDS,
    UNCLEAR,
    Finding,
    Judgement,
    Launches,
    judge_cases,
    judge_printed,
)
from haloscope_studies.schroeter2021 import cases
from haloscope_studies.schroeter2021.cases import Case
from haloscope_studies.schroeter2021.report import Compared, Run, extra_iterations, headline, measured, published_ratios

EQUAL = (1 / 1.01, 1.01)  # section 5.3.1 calls schemes equally fast that differ by at most 1 %
MANY_RANKS = 16  # PSCW is fastest below, figure 5.4
SPLIT_RANKS = 200  # of which split communicators are faster, section 5.3.5; of 96 and fewer no difference was found
FENCE, PSCW = "direct/rma-fence", "direct/rma-pscw"
PASSIVE = "direct/rma-lock:get"  # without barriers, which the reduction by precision makes superfluous
TWO_WINDOWS, SPLIT = "direct/rma-fence:per-message", "direct/rma-fence:split"
P2P, RMA, SHARED = (cases.VERSIONS[version] for version in ("p2p", "rma", "shared"))
NOT_PRINTED = findings.needs("printed numbers")
Runs = Mapping[Case, Run]


def judge_all(found: Sequence[dict], options: Options) -> list[Finding]:
    """Return the conclusions of the thesis, judged by some records."""
    everything = measured(found, options)
    eight = runs_of(everything, "Eight experiments")
    return [
        *judge_versions(everything, eight),
        *judge_synchronisation(everything, eight),
        *judge_residuals(everything),
        *judge_windows(everything),
        *judge_nodes(everything, options),
        judge_overshoot(eight, options),
    ]


def runs_of(everything: Compared, *topics: str) -> dict[Case, Run]:
    """Return the runs of some topics by their cases."""
    return {run.case: run for comparison, runs in everything if comparison.topic in topics for run in runs}


def matched(runs: Runs, change: Mapping[str, Any], **wanted: Any) -> list[tuple[Run, Run]]:
    """Return the runs of the cases with the wanted parts, each with the run of the case after a change."""
    chosen = [case for case in runs if all(getattr(case, name) == value for name, value in wanted.items())]
    return [(runs[case], runs[other]) for case in chosen if (other := replace(case, **change)) in runs]


def pairs(runs: Runs, change: Mapping[str, Any], **wanted: Any) -> list[tuple[Launches, Launches]]:
    """Return the seconds of the runs that matched() returns."""
    return [(one.seconds, other.seconds) for one, other in matched(runs, change, **wanted)]


# ---- the three final versions ----------------------------------------------------------------------------------------


def judge_versions(everything: Compared, eight: Runs) -> list[Finding]:
    """Return the conclusions on the three final versions (chapter 6)."""
    shared = [pair for m in cases.METHODS for pair in pairs(eight, {"strategy": P2P[m]}, strategy=SHARED[m])]
    jacobi, seidel = (
        pairs(eight, {"strategy": P2P[m]}, strategy=RMA[m], scaling="strong", method=m) for m in cases.METHODS
    )
    lacking = "measured final versions"
    return [
        Finding("winner", "No version is the fastest in all cases.", "6.2, 6.3", most_named(), beaten(everything)),
        Finding(
            "shared",
            "Shared memory is slower than messages over the eight experiments.",
            "6.2, 6.3",
            NOT_PRINTED,
            judge_cases(shared, low=1, lacking=lacking),
        ),
        Finding(
            "jacobi",
            "PSCW and messages are equally fast (within 1 %) in strong scaling of Jacobi.",
            "figures 6.5, 6.6, 6.16, 6.17",
            NOT_PRINTED,
            judge_cases(jacobi, *EQUAL, lacking=lacking),
        ),
        Finding(
            "gauss-seidel",
            "Messages are faster than PSCW in strong scaling of Gauss-Seidel.",
            "figures 6.9, 6.10, 6.20, 6.21",
            NOT_PRINTED,
            judge_cases(seidel, low=1, lacking=lacking),
        ),
        Finding(
            "waiting",
            "Ranks wait less with shared memory than with PSCW in strong scaling of Jacobi by iterations.",
            "7.1",
            judge_printed([blocked("shared") / blocked("rma (pscw)")], high=1, about="16 ranks, Mistral"),
            judge_cases(waits(eight), high=1, lacking=lacking),
        ),
    ]


def most_named() -> Judgement:
    """Judge by the winner matrix whether a version wins all cases: by the cells that name the most frequent one."""
    winners = [row["winner"].lower() for row in published("schroeter2021", "winner_matrix") if row["winner"] != "-"]
    most = max(sum(version in winner for winner in winners) for version in cases.VERSIONS)
    share, below_all = most / len(winners), (len(winners) - 1) / len(winners)
    return judge_printed([share], high=below_all, about="largest share of cases that name one version")


def beaten(everything: Compared) -> Judgement:
    """Judge whether each version is slower than another one in some case.

    The intervals of all comparisons hold together. A version is the fastest in all cases where every single interval
    shows it.
    """
    ratios = version_ratios(everything)
    if not ratios:
        return findings.needs("measured final versions")
    confidence = 1 - 2 * (1 - stats.CONFIDENCE) / len(ratios)  # two versions have one interval, read both ways
    slower = {version for version, by in ratios if stats.mean_over_launches(by, confidence).low > 1}
    fastest = set(cases.VERSIONS) - {version for version, by in ratios if stats.mean_over_launches(by).high >= 1}
    verdict = HOLDS if slower == set(cases.VERSIONS) else FAILS if fastest else UNCLEAR
    return Judgement(verdict, f"slower than another in some case: {', '.join(sorted(slower)) or 'none'}")


def version_ratios(everything: Compared) -> list[tuple[str, dict[str, float]]]:
    """Return each version with its time over another version's by launch, in each of the eight experiments."""
    found = []
    for comparison, runs in everything:
        if comparison.topic == "Eight experiments" and len(runs) == len(cases.VERSIONS):
            found += [(a.name, stats.ratio_by_launch([(a.seconds, b.seconds)])) for a, b in permutations(runs, 2)]
    return [(version, by_launch) for version, by_launch in found if by_launch]


def blocked(version: str) -> float:
    """Return the printed seconds that all ranks of a version were blocked in a traced run."""
    return headline(quantity="blocked_time_all_ranks_s_approx", variant=version)


def waits(eight: Runs) -> list[tuple[Launches, Launches]]:
    """Return the mean seconds in waits per step by launch, with shared memory and with PSCW."""
    wanted = {"strategy": SHARED["jacobi"], "scaling": "strong", "end": "iterations"}
    both = matched(eight, {"strategy": RMA["jacobi"]}, **wanted)
    return [(waiting(one), waiting(other)) for one, other in both]


def waiting(run: Run) -> dict[str, list[float]]:
    """Return the mean seconds over ranks in waits per step, by launch."""
    return {r["launch"]["id"]: [r["phases_s"]["wait"]["mean"]] for r in run.row.records}


# ---- their parts -----------------------------------------------------------------------------------------------------


def judge_synchronisation(everything: Compared, eight: Runs) -> list[Finding]:
    """Return the conclusions on fence, PSCW and locks in Jacobi, and on the reduction of residuals."""
    runs = {case: run for case, run in runs_of(everything, "Synchronisation").items() if case.method == "jacobi"}
    many = {case: run for case, run in runs.items() if case.ranks >= MANY_RANKS and case.scaling == "strong"}
    reduced = pairs(eight, {"end": "iterations"}, method="jacobi", scaling="strong", end="precision")
    return [
        Finding(
            "pscw",
            "PSCW is the fastest one-sided synchronisation of Jacobi by iterations.",
            "figures 5.3, 5.5",
            NOT_PRINTED,
            fastest(PSCW, (FENCE, cases.BARRIERS), runs, "iterations", lacking="measured forms of synchronisation"),
        ),
        Finding(
            "passive",
            "Locks are the fastest synchronisation of Jacobi by precision on many ranks.",
            "figure 5.4",
            NOT_PRINTED,
            fastest(PASSIVE, (FENCE, PSCW), many, "precision", lacking=f"{MANY_RANKS} ranks or more"),
        ),
        Finding(
            "allreduce",
            "Jacobi by precision is slower than by iterations, as it reduces residuals in every iteration.",
            "figures 5.3, 5.4",
            NOT_PRINTED,
            judge_cases(reduced, low=1, lacking="measured final versions"),
        ),
    ]


def fastest(strategy: str, others: Sequence[str], runs: Runs, end: str, *, lacking: str) -> Judgement:
    """Judge whether a strategy is faster than each of some others; the others' times over its time."""
    judged = [
        judge_cases(pairs(runs, {"strategy": strategy}, strategy=other, end=end), low=1, lacking=lacking)
        for other in others
    ]
    verdicts = [one.verdict for one in judged]
    worst = next(verdict for verdict in (NEEDS, FAILS, UNCLEAR, HOLDS) if verdict in verdicts)
    if worst == NEEDS:
        return findings.needs(lacking)
    names = (other.partition("/")[2] for other in others)
    return Judgement(worst, "; ".join(f"{name} {one.basis}" for name, one in zip(names, judged, strict=True)))


def judge_residuals(everything: Compared) -> list[Finding]:
    """Return the conclusions on schemes that collect residuals of Gauss-Seidel."""
    runs = runs_of(everything, "Residual scheme")
    one_sided, two_sided = (version["gauss-seidel"] for version in (RMA, P2P))
    bottleneck = pairs(runs, {"strategy": two_sided}, strategy=one_sided, residual="all-to-last")
    chain = pairs(runs, {"residual": "chain"}, strategy=one_sided, residual="all-to-last")
    lacking = "measured residual schemes"
    ratio = published_ratios()["rma over p2p, all-to-last"]
    return [
        Finding(
            "bottleneck",
            "PSCW is slower than messages where all ranks send residuals to the last one.",
            "5.3.1",
            judge_printed([ratio], low=1, about="16 ranks, WR"),
            judge_cases(bottleneck, low=1, lacking=lacking),
        ),
        Finding(
            "chain",
            "A chain of residuals is faster than sending all to the last rank, one-sided.",
            "5.3.1, figure 5.11",
            NOT_PRINTED,
            judge_cases(chain, low=1, lacking=lacking),
        ),
    ]


def judge_windows(everything: Compared) -> list[Finding]:
    """Return the conclusions on windows and communicators of fences."""
    runs = runs_of(everything, cases.WINDOWS.topic)
    large = {case: run for case, run in runs.items() if case.ranks >= SPLIT_RANKS}
    ratio = published_ratios()["split over one communicator"]
    return [
        Finding(
            "window",
            "One window for both lines is faster than a window per line.",
            "figure 5.12",
            NOT_PRINTED,
            judge_cases(pairs(runs, {"strategy": FENCE}, strategy=TWO_WINDOWS), low=1, lacking="measured windows"),
        ),
        Finding(
            "split",
            "Fences of split communicators are faster than global ones on 200 ranks.",
            "5.3.5",
            judge_printed([ratio], high=1, about="5 nodes, WR"),
            judge_cases(pairs(large, {"strategy": FENCE}, strategy=SPLIT), high=1, lacking=f"{SPLIT_RANKS} ranks"),
        ),
    ]


# ---- nodes, and the end by precision ---------------------------------------------------------------------------------


def judge_nodes(everything: Compared, options: Options) -> list[Finding]:
    """Return the conclusions on one full node and on two nodes, of Gauss-Seidel."""
    ratios = published_ratios()
    runs = {c: run for c, run in runs_of(everything, "Full node").items() if not run.row.oversubscribed}
    full = {c: run for c, run in runs.items() if run.nodes == 1 and c.ranks >= options.cores}
    several = {c: run for c, run in runs.items() if run.hosts > 1}
    change = {"strategy": P2P["gauss-seidel"]}
    return [
        Finding(
            "full node",
            "Shared memory is faster than messages on one full node.",
            "6.3.3, table 6.1",
            judge_printed([ratios["shared over p2p, one full node"]], high=1, about="72 ranks, Mistral"),
            judge_cases(pairs(full, change, strategy=SHARED["gauss-seidel"]), high=1, lacking="a measured full node"),
        ),
        Finding(
            "two nodes",
            "Messages are faster than shared memory on two nodes.",
            "6.3.3, table 6.1",
            judge_printed([ratios["shared over p2p, two nodes"]], low=1, about="72 ranks, Mistral"),
            judge_cases(pairs(several, change, strategy=SHARED["gauss-seidel"]), low=1, lacking="more than one node"),
        ),
    ]


def judge_overshoot(eight: Runs, options: Options) -> Finding:
    """Return the conclusion on the iterations that a pipeline needs to stop."""
    done = {"quantity": "iterations_until_stop"}
    sequential = headline(**done, variant="sequential")
    theirs = [headline(**done, ranks=ranks) - sequential for ranks in ("4", "96")]
    ours = [
        extra_iterations(run, options)
        for case, run in eight.items()
        if (case.method, case.end) == ("gauss-seidel", "precision")
    ]
    about = "extra iterations"
    return Finding(
        "overshoot",
        "Gauss-Seidel by precision takes more iterations on several ranks than on one.",
        "figure 5.8",
        judge_printed(theirs, low=1, about=about),
        judge_printed(ours, low=1, about=about) if ours else findings.needs("measured final versions"),
    )
