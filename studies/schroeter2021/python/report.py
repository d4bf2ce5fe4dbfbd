"""The report of the 2021 study: tables of comparisons with intervals, published next to measured numbers, a figure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope.records import hosts_of, stats
from haloscope.records.rows import Row, group_rows
from haloscope.records.text import count_of
from haloscope.report import tables
from haloscope.studies import Options, published
from haloscope_studies.schroeter2021 import cases, precision

MOST_FACTOR = 5  # of a logarithmic axis whose minor ticks have room for numbers
LEAST_LAUNCHES = 5  # four or fewer all lie on one side of 1 by chance too often (one in eight) for a 95 % verdict


@dataclass
class Run:
    """One measured variant."""

    name: str
    case: cases.Case
    row: Row

    @property
    def seconds(self) -> dict[str, list[float]]:
        """Seconds of every run, by launch."""
        found: dict[str, list[float]] = {}
        for record in self.row.records:
            found.setdefault(record["launch"]["id"], []).extend(record["time_s"]["repetitions"])
        return found

    @property
    def estimate(self) -> stats.Estimate:
        """Median over launches with its interval."""
        return stats.median_over_launches(list(self.seconds.values()))

    @property
    def hosts(self) -> int:
        """Number of hosts that the ranks ran on; 0 in records without hosts."""
        return max(len(hosts_of(record)) for record in self.row.records)

    @property
    def nodes(self) -> int:
        """Number of nodes that the ranks ran on: hosts, or the planned nodes in records without hosts."""
        return self.hosts or self.case.nodes

    @property
    def where(self) -> str:
        """The hosts, and the nodes that their ranks were split into to imitate more of them."""
        hosts = count_of(self.hosts, "host") if self.hosts else ""
        if self.hosts >= self.case.nodes:
            return hosts
        nodes = count_of(self.case.nodes, "node")
        return f"{hosts} split into {nodes}" if hosts else nodes

    @property
    def iterations(self) -> str:
        """Iterations that the runs took: one number, or the least and the most."""
        counts = sorted({record["request"]["steps"] for record in self.row.records})
        return str(counts[0]) if len(counts) == 1 else f"{counts[0]}..{counts[-1]}"


def ratio(a: Run, b: Run) -> stats.Estimate:
    """Return the run time of a over the run time of b, paired by launch."""
    return stats.ratio_of_launches(a.seconds, b.seconds)


def verdict(r: stats.Estimate) -> str:
    """Return the verdict on a ratio to the first variant; no winner inside the noise or from too few launches."""
    return stats.verdict_text(r, "slower", "faster", LEAST_LAUNCHES)


def fastest(runs: Sequence[Run]) -> str:
    """Name the fastest variant and all variants that cannot be distinguished from it."""
    if not runs:
        return ""
    best = min(runs, key=lambda run: run.estimate.value)
    rivals = [run.name for run in runs if run is not best and verdict(ratio(run, best)) == stats.NO_CHOICE]
    return f"{best.name}, {', '.join(rivals)}: {stats.NO_CHOICE}" if rivals else best.name


VERSION_NAMES = tuple(cases.VERSIONS)
Compared = Sequence[tuple[cases.Comparison, list[Run]]]


def measured(found: Sequence[dict], options: Options) -> list[tuple[cases.Comparison, list[Run]]]:
    """Return every comparison with its measured variants."""
    rows = {row.id: row for row in group_rows(found)}
    result = []
    for comparison in cases.comparisons(options):
        runs = []
        for name, case in comparison.variants:
            requests = cases.request(case, options).requests
            runs += [Run(name, case, rows[r.id]) for r in requests if r.id in rows]
        result.append((comparison, runs))
    return result


def report(found: Sequence[dict], options: Options) -> str:
    """Return all tables as Markdown."""
    everything = measured(found, options)
    texts = [f"Network: {network}." for network in tables.networks(found)]
    for topic, theirs in cases.TOPICS.items():
        here = [(c, runs) for c, runs in everything if c.topic == topic and runs]
        if here:
            texts.append(f"### {topic}\n\nPublished: {theirs}.\n\n{_table(here)}")
    texts.append("### Run time over that of p2p\n\n" + _ratios(everything))
    texts.append("### Which version for which case\n\n" + _winners(everything, options))
    texts.append("### Published figures next to ours\n\n" + _figures_of_the_thesis(everything, options))
    refused = tables.refusals(found)
    return "\n\n".join(texts + refused)


def _interval(e: stats.Estimate, digits: int = 3) -> str:
    """Return an interval as text; "" for one launch, which has none."""
    return tables.interval(e, f"{{:.{digits}f}}".format) if e.launches > 1 else ""


def _label(comparison: cases.Comparison, runs: Sequence[Run]) -> str:
    """Return the label of a comparison with the hosts and nodes of its runs."""
    return f"{comparison.label}, {' or '.join(sorted({run.where for run in runs}))}"


def _table(here: Compared) -> str:
    headers = ["case", "variant", "run (s)", "95 %", "sd", "iterations", "ratio", "95 % ", "verdict", "check", "notes"]
    lines = []
    for comparison, runs in here:
        for run in runs:
            e = run.estimate
            all_runs = [s for launch in run.seconds.values() for s in launch]
            line = [
                _label(comparison, runs) if run is runs[0] else "",
                run.name,
                f"{e.value:.4f}",
                _interval(e, digits=4),
                f"{statistics.stdev(all_runs):.4f}" if len(all_runs) > 1 else "",
                run.iterations,
            ]
            if run is runs[0]:
                line += ["1", "", ""]
            else:
                r = ratio(run, runs[0])
                line += [f"{r.value:.3f}", _interval(r), verdict(r)]
            lines.append([*line, run.row.verification, run.row.notes()])
    return tables.markdown(lines, headers, right=("run (s)", "sd", "iterations", "ratio"))


def _named(runs: Sequence[Run]) -> dict[str, Run]:
    return {run.name: run for run in runs}


def _ratios(everything: Compared) -> str:
    """Return the ratio to p2p of every experiment, as in figure 6.15."""
    lines = []
    for comparison, runs in everything:
        by = _named(runs)
        if set(VERSION_NAMES) - set(dict(comparison.variants)) or "p2p" not in by:
            continue
        line = [_label(comparison, runs)]
        for name in ("rma", "shared"):
            r = ratio(by[name], by["p2p"]) if name in by else None
            line += [f"{r.value:.3f}", _interval(r)] if r else ["", ""]
        lines.append([*line, fastest(runs)])
    return tables.markdown(
        lines, ["case", "rma / p2p", "95 %", "shared / p2p", "95 % ", "fastest"], right=("rma / p2p", "shared / p2p")
    )


def case_of(case: cases.Case) -> str:
    """Return the thesis' name of a case (in its winner matrix)."""
    size = "small" if case.scaling == "strong" else "large"
    return f"Jacobi, {size}" if case.method == "jacobi" else f"GS, {size}, {case.end}"


def _winners(everything: Compared, options: Options) -> str:
    """Return the fastest version of each case, the thesis' next to it where ranks, nodes, size and steps are equal."""
    theirs = {(row["case"], row["machine"]): row["winner"] for row in published("schroeter2021", "winner_matrix")}
    lines = []
    for comparison, runs in everything:
        if comparison.topic != "Eight experiments" or not runs:
            continue
        first = comparison.variants[0][1]
        known = theirs if all(cases.is_published(first, run.nodes, options) for run in runs) else {}
        of_case = [known.get((case_of(first), machine), "") for machine in ("wr", "mistral")]
        lines.append([_label(comparison, runs), fastest(runs), *of_case])
    return tables.markdown(lines, ["case", "fastest here", "published, WR cluster", "published, Mistral"])


# ---- figures that the thesis states ----------------------------------------------------------------------------------


def headline(**wanted: str) -> float:
    """Return a number of the thesis' text by the columns of the table that ships with the package."""
    [row] = [r for r in published("schroeter2021", "headline") if all(r[k] == v for k, v in wanted.items())]
    return float(row["value"])


def published_ratios() -> dict[str, float]:
    """Return ratios of run times that follow from the numbers in the thesis' text."""
    run = {"quantity": "runtime_s"}
    gs = run | {"termination_or_size": "precision 7.0753e-5"}
    node = run | {"lines": "8385"}
    traced = {"quantity": "traced_runtime_s"}
    return {
        "rma over p2p, all-to-last": headline(**gs, variant="pscw, residuum all-to-last")
        / headline(**gs, variant="p2p"),
        "split over one communicator": headline(**run, variant="fence, split communicators")
        / headline(**run, variant="fence, global communicator"),
        "shared over p2p, one full node": headline(**node, variant="shared", nodes="1")
        / headline(**node, variant="p2p", nodes="1"),
        "shared over p2p, two nodes": headline(**node, variant="shared", nodes="2")
        / headline(**node, variant="p2p", nodes="2"),
        "shared over rma, traced": headline(**traced, variant="shared") / headline(**traced, variant="rma (pscw)"),
    }


@dataclass(frozen=True)
class Stated:
    """The runs for which the thesis states a number."""

    method: str
    ranks: int
    nodes: int
    lines: int
    machine: str

    def __str__(self) -> str:
        """Describe the runs."""
        nodes = count_of(self.nodes, "node")
        return f"{self.method}, {self.ranks} ranks on {nodes}, {self.lines} lines, {self.machine}"

    def holds(self, run: Run, options: Options) -> bool:
        """Return whether a run has the stated ranks, nodes, lines, and the iterations of the thesis."""
        case = run.case
        here = (
            case.ranks,
            run.nodes,
            precision.lines(cases.interlines(case, options)),
            cases.iterations(case, options),
        )
        return here == (self.ranks, self.nodes, self.lines, cases.FULL_STEPS)


SEIDEL, JACOBI = "Gauss-Seidel", "Jacobi"
# Of each published ratio: its runs, and topic, word of the label and variant of both runs.
RATIOS = {
    "rma over p2p, all-to-last": (
        Stated(f"{SEIDEL} to a precision", 16, 2, 4105, "WR"),
        ("Residual scheme", "rma", "all-to-last"),
        ("Residual scheme", "p2p", "all-to-last"),
    ),
    "split over one communicator": (
        Stated(JACOBI, 200, 5, 24009, "WR"),
        ("Windows and communicators", "", "rma-fence:split"),
        ("Windows and communicators", "", "rma-fence"),
    ),
    "shared over p2p, one full node": (
        Stated(SEIDEL, 72, 1, 8385, "Mistral"),
        ("Full node", "", "shared"),
        ("Full node", "", "p2p"),
    ),
    "shared over p2p, two nodes": (
        Stated(SEIDEL, 72, 2, 8385, "Mistral"),
        ("Full node", "", "shared"),
        ("Full node", "", "p2p"),
    ),
    "shared over rma, traced": (
        Stated(JACOBI, 16, 2, 4105, "Mistral"),
        ("Eight experiments", "jacobi, strong, iterations", "shared"),
        ("Eight experiments", "jacobi, strong, iterations", "rma"),
    ),
}


def _find(everything: Compared, options: Options, stated: Stated, topic: str, word: str, name: str) -> Run | None:
    for comparison, runs in everything:
        run = _named(runs).get(name)
        if comparison.topic == topic and word in comparison.label and run and stated.holds(run, options):
            return run
    return None


def _figures_of_the_thesis(everything: Compared, options: Options) -> str:
    """Return the numbers that the thesis states, ours next to them where the runs have its ranks, nodes and size."""
    theirs = published_ratios()
    lines = []
    for pair, (stated, top, bottom) in RATIOS.items():
        a, b = (_find(everything, options, stated, *one) for one in (top, bottom))
        ours = ratio(a, b) if a and b else None
        values = [f"{ours.value:.3f}", _interval(ours)] if ours else ["not measured", ""]
        lines.append([f"run time, {pair}", str(stated), f"{theirs[pair]:.3f}", *values])
    lines += _overshoot(everything, options)
    headers = ["figure", "published for", "published", "ours", "95 %"]
    return tables.markdown(lines, headers, right=headers[2:4])


def _overshoot(everything: Compared, options: Options) -> list[list[str]]:
    """Return the iterations beyond the sequential program's when Gauss-Seidel stops by precision."""
    done = {"quantity": "iterations_until_stop"}
    sequential = headline(**done, variant="sequential")
    lines = []
    for ranks in (4, 96):
        stated = Stated(f"{SEIDEL} to a precision", ranks, cases.NODES_OF[ranks], 4105, "WR")
        run = _find(everything, options, stated, "Eight experiments", "gauss-seidel, strong, precision", "rma")
        theirs = headline(**done, ranks=str(ranks)) - sequential
        ours = str(extra_iterations(run, options)) if run else "not measured"
        lines.append(["extra iterations, Gauss-Seidel to a precision", str(stated), f"{theirs:.0f}", ours, ""])
    return lines


def extra_iterations(run: Run, options: Options) -> int:
    """Return the iterations of a run that stops by precision, beyond the iterations of the sequential program."""
    return int(max(record["request"]["steps"] for record in run.row.records)) - cases.iterations(run.case, options)


def ratios_to_p2p(found: Sequence[dict], options: Options) -> list[tuple[str, dict[str, stats.Estimate]]]:
    """Return the label of each of the eight experiments with the ratios of its other versions to p2p."""
    points: list[tuple[str, dict[str, stats.Estimate]]] = []
    for comparison, runs in measured(found, options):
        by = _named(runs)
        if comparison.topic == "Eight experiments" and "p2p" in by:
            points.append((comparison.label, {n: ratio(by[n], by["p2p"]) for n in ("rma", "shared") if n in by}))
    return points


def _span(points: Sequence[tuple[str, dict[str, stats.Estimate]]]) -> float:
    """Return the largest end of the intervals over the smallest."""
    ends = [end for _, ratios in points for r in ratios.values() for end in (r.low, r.high)]
    return max(ends, default=1.0) / min(ends, default=1.0)


def figure(found: Sequence[dict], options: Options, stem: Path) -> list[Path]:
    """Draw the run times over the run time of p2p with intervals (as figure 6.15). Returns the files written."""
    from matplotlib import pyplot as plt

    from haloscope.report import figures

    points = ratios_to_p2p(found, options)
    if not points:
        return []
    with figures.style():
        fig, axes = plt.subplots(figsize=(8.5, 0.45 * len(points) + 1.6), layout="constrained")
        for shift, (name, colour) in zip((-0.14, 0.14), (("rma", "#4c78a8"), ("shared", "#e4894b")), strict=True):
            here = [(place + shift, ratios[name]) for place, (_, ratios) in enumerate(points) if name in ratios]
            axes.errorbar(
                [r.value for _, r in here],
                [place for place, _ in here],
                fmt="o",
                color=colour,
                label=name,
                capsize=3,
                xerr=[[r.value - r.low for _, r in here], [r.high - r.value for _, r in here]],
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}" if _span(points) < MOST_FACTOR else "")
        axes.axvline(1, color=figures.INK, linewidth=1)
        axes.set_yticks(range(len(points)), [label for label, _ in points])
        axes.invert_yaxis()
        axes.xaxis.grid(True, color=figures.GRID)
        axes.set_axisbelow(True)
        axes.set_xlabel("run time over that of p2p, with 95 % intervals; left of 1: faster than p2p")
        axes.legend(frameon=False)
        return figures.save(fig, stem)
