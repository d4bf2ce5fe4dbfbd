"""Results of the thesis, recomputed from its printed numbers: residuals, precisions, sizes, bounds, ratios."""

from __future__ import annotations

import math

from haloscope.records.text import count_of
from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.checks import Check, Report
from haloscope_studies.schroeter2021 import cases, precision
from haloscope_studies.schroeter2021.report import headline, published_ratios

STUDY = "schroeter2021"
DIGIT = 1e-6  # the last of seven digits
MACHINES = ("wr", "mistral")


def replay() -> checks.Replay:
    """Recompute all results that the printed data allow. Returns Markdown, the checks, and results without a bar."""
    found = (*residuals(), *ends(), *weak_precisions(), *sizes(), *overshoot(), *printed_relations(), *winners())
    without = (*ratios(), defect())
    sections = {
        "Results against their bars": checks.table(found),
        "Reports: results without a bar": checks.report_table(without),
        "Winners by case and machine": winner_table(),
    }
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return checks.Replay(text, found, without)


def method_of(row: dict[str, str]) -> str:
    """Return the method of a row of published data, as programs call it."""
    return row["method"].replace("_", "-")


# ---- residuals, precisions, sizes ------------------------------------------------------------------------------------


def residuals() -> list[Check]:
    """SA3: reference residuals of the sequential program, and where it stops by precision."""
    return [_residual(row) for row in published(STUDY, "reference_residuals")]


def _residual(row: dict[str, str]) -> Check:
    method, iteration = method_of(row), int(row["iterations"])
    before, last = precision.residuals(method, int(row["interlines"]), iteration, int(row["function"]))
    reached = is_equal(last, float(row["residuum"]))
    bar = "7 digits"
    if row["termination"] == "precision":
        bar += f", the first below {row['target']}"
        reached = reached and last < float(row["target"]) <= before
    name = f"residual of iteration {iteration}, {method}, I = {row['interlines']}, function {row['function']}"
    return Check("SA3", name, row["residuum"], f"{last:.6e}", bar, checks.state(reached))


def is_equal(ours: float, printed: float) -> bool:
    """Return whether two residuals agree to one unit of the seventh digit."""
    unit = DIGIT * math.pow(10, math.floor(math.log10(printed)))
    return abs(ours - printed) < 1.5 * unit  # a difference of one unit, in spite of rounding


def ends() -> list[Check]:
    """SA5: the precisions of strong scaling stop the sequential program in iteration 5000."""
    found = []
    for (method, size, steps), target in cases.PUBLISHED_TARGETS.items():
        before, last = precision.residuals(method, size, steps)
        name = f"iteration in which {method} stops, I = {size}, precision {target:g}"
        inside = last < target <= before
        ours = str(steps) if inside else f"not {steps}"
        found.append(Check("SA5", name, str(steps), ours, "equal", checks.state(inside)))
    return found


def weak_precisions() -> list[Check]:
    """SG2: residuals of iterations 99 and 100 at the sizes of table 5.1, between which a precision takes 100."""
    rows = published(STUDY, "weak_scaling_precisions")
    return [_weak_precision(one, other) for one, other in zip(rows[::2], rows[1::2], strict=True) if is_weak(other)]


def is_weak(row: dict[str, str]) -> bool:
    """Return whether a row of residuals belongs to weak scaling."""
    return int(row["iteration"]) == cases.LONGEST_WEAK


def _weak_precision(one: dict[str, str], other: dict[str, str]) -> Check:
    ours = precision.residuals(method_of(other), int(other["interlines"]), int(other["iteration"]))
    printed = (float(one["residuum"]), float(other["residuum"]))
    return Check(
        "SG2",
        f"residuals of iterations {one['iteration']}, {other['iteration']}, {method_of(other)}, "
        f"I = {other['interlines']}",
        f"{printed[0]:.6e}, {printed[1]:.6e}",
        f"{ours[0]:.6e}, {ours[1]:.6e}",
        "7 digits",
        checks.state(all(map(is_equal, ours, printed))),
    )


def sizes() -> list[Check]:
    """SA1, SG1: lines, entries, gigabytes and bytes of a line of table 5.1."""
    return [_size(row) for row in published(STUDY, "table_5_1")]


def _size(row: dict[str, str]) -> Check:
    lines = precision.lines(int(row["interlines"]))
    printed = [row[name] for name in ("lines", "entries_per_matrix", "matrix_GB", "halo_line_kB")]
    ours = [str(lines), str(lines**2), f"{8 * lines**2 / 1e9:.2f}", f"{8 * lines / 1e3:.3f}"]
    name = f"table 5.1, {count_of(int(row['ranks']), 'rank')}: lines, entries, GB, kB of a line"
    return Check("SA1", name, ", ".join(printed), ", ".join(ours), "equal", checks.state(ours == printed))


# ---- statements of the text ------------------------------------------------------------------------------------------


def overshoot() -> list[Check]:
    """SB4: iterations beyond the sequential program's, within the bound that the pipeline allows."""
    done = {"quantity": "iterations_until_stop"}
    sequential = headline(**done, variant="sequential")
    found = []
    for ranks in (4, 96):
        extra, most = headline(**done, ranks=str(ranks)) - sequential, most_extra(ranks)
        name = f"extra iterations of Gauss-Seidel by precision, {ranks} ranks"
        found.append(
            Check("SB4", name, f"{extra:.0f}", f"0 .. {most}", "within", checks.state(0 <= extra <= most), "2(P-1) + 2")
        )
    return found


def most_extra(ranks: int) -> int:
    """Return the most iterations that a pipeline runs beyond the one that reaches the precision."""
    return 2 * (ranks - 1) + 2


def printed_relations() -> list[Check]:
    """SG4, SE6, SH1: relations between numbers that the text states."""
    traced = {"machine": "mistral"}
    times = [headline(**traced, quantity="traced_runtime_s", variant=v) for v in ("rma (pscw)", "shared")]
    blocked = [headline(quantity="blocked_time_all_ranks_s_approx", variant=v) for v in ("rma (pscw)", "shared")]
    requested = headline(quantity="shared_window_requested_B")
    lines = int(published_row("shared_window_requested_B")["lines"])
    matrices = 2 * 8 * lines**2
    return [
        _relation("SH1", "seconds between the traced runs of two versions", "0.3", times[0] - times[1], 1),
        _relation("SH1", "seconds per rank that PSCW is blocked longer", "0.75", (blocked[0] - blocked[1]) / 16, 2),
        _relation("SE6", "GB of both matrices of 91209 lines", "133.1", matrices / 1e9, 1),
        _relation("SE6", "bytes requested in shared memory over both matrices", "1.000", requested / matrices, 3),
    ]


def _relation(id: str, what: str, printed: str, value: float, digits: int) -> Check:
    ours = f"{value:.{digits}f}"
    return Check(id, what, printed, ours, "equal", checks.state(ours == printed))


def published_row(quantity: str) -> dict[str, str]:
    """Return the row of a quantity that the text states once."""
    [row] = [r for r in published(STUDY, "headline") if r["quantity"] == quantity]
    return row


def ratios() -> list[Report]:
    """Return the ratios of printed run times, which the text leaves to its readers."""
    return [
        Report(f"run time, {name}", "", f"{ratio:.3f}", "not printed") for name, ratio in published_ratios().items()
    ]


def defect() -> Report:
    """Return the precision of Gauss-Seidel that the text prints, which stops one iteration late."""
    _, last = precision.residuals("gauss-seidel", 512, 5000)
    return Report(
        "iteration in which gauss-seidel stops, I = 512, precision 7.0753e-05",
        "5000",
        "5000" if last < 7.0753e-5 else "5001",
        f"the residual of iteration 5000 is {last:.6e}: the text cuts the digits off; 7.0754e-05 stops in it",
    )


# ---- winners ---------------------------------------------------------------------------------------------------------


def winner_rows() -> list[dict[str, str]]:
    """Return the cells of the winner matrix that name a version."""
    return [row for row in published(STUDY, "winner_matrix") if row["winner"] != "-"]


def named(winner: str) -> set[str]:
    """Return the versions that a cell of the winner matrix names."""
    return {version for version in cases.VERSIONS if version in winner.lower()}


def winners() -> list[Check]:
    """SI1: no version wins each case; where run times are printed, the faster one is the winner."""
    rows, printed = winner_rows(), published_ratios()
    most = max(sum(version in named(row["winner"]) for row in rows) for version in cases.VERSIONS)
    [full] = [row["winner"] for row in rows if row["case"] == "one completely filled node"]
    faster = "shared" if printed["shared over p2p, one full node"] < 1 else "p2p"
    return [
        Check(
            "SI1",
            "cases of the most frequent winner",
            f"fewer than {len(rows)}",
            str(most),
            "fewer",
            checks.state(most < len(rows)),
        ),
        Check(
            "SI1", "winner on one full node, by run times", full, faster, "equal", checks.state(named(full) == {faster})
        ),
    ]


def winner_table() -> str:
    """Return the winner matrix as a table, one row per case."""
    by_case = {(row["case"], row["machine"]): row["winner"] for row in published(STUDY, "winner_matrix")}
    names = dict.fromkeys(case for case, _ in by_case)
    lines = [[case, *(by_case[case, machine] for machine in MACHINES)] for case in names]
    return tables.markdown(lines, ("case", "WR cluster", "Mistral"))
