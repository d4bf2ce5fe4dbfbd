"""Tables in the form of the 2017 study from runs of hydro3d: scaling by component, the model against measurements,
variants, barriers, memory. Published numbers appear only next to runs of the same size, steps and number of processing
elements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from haloscope.records import stats
from haloscope.records.rows import Row
from haloscope.report import components, tables
from haloscope.report.tables import number
from haloscope.studies import published
from haloscope_studies.davis2017.measured import experiments, launches, timed
from haloscope_studies.davis2017.measured.experiments import APP, PIECES, VARIANTS, Point, Variant

Measured = Mapping[Point, Row]
MS = 1e3
WORTH = 0.02  # of a step: smaller components are not judged
PRODUCT_STAGE = "multiply"  # of cg3d
LEAST_PART = 0.005  # of a step, of parts against their line


def of(measured: Measured, experiment: str, letter: str = "A") -> dict[Point, Row]:
    """Return the runs of an experiment and variant of hydro3d; scalings start from the serial run."""
    serial = experiment in ("weak", "strong")
    return {
        p: row
        for p, row in measured.items()
        if (p.app, p.letter) == (APP, letter) and (p.experiment == experiment or (serial and p.experiment == "serial"))
    }


def published_walltime(variant: str, scaling: str, side: int, pes: int, steps: int) -> float | None:
    """Return the printed seconds of a run of that size, number of processing elements and of steps, or None."""
    wanted = variant, scaling, side, pes
    for row in published("davis2017", "variant_walltimes"):
        if (row["variant"], row["scaling"], int(row["cells_per_side"]), int(row["pes"])) == wanted:
            return float(row["time_s"]) if steps == published_steps(side) else None
    return None


def published_steps(side: int) -> int:
    """Return the steps of the study's runs of a size, by table 4.3."""
    return sum(map(int, experiments.replay_of(side, short=False).split(",")))


def walltime(row: Row) -> float:
    """Return seconds of a whole run, of all steps of its replay: the median over launches, as components have it."""
    return float(components.step_time(row.records) * row.request["steps"])


def serial(measured: Measured) -> str:
    """Return walltimes and time per cell of serial runs of each variant, by size."""
    found = [(p, row) for p, row in measured.items() if (p.app, p.experiment) == (APP, "serial")]
    lines = []
    for p, row in found:
        step, steps, per_cell = launches.mean(row), row.request["steps"], 1e9 / p.side**3
        printed = published_walltime(p.letter, "serial", p.side, 1, steps)
        lines.append(
            [
                p.letter,
                f"{p.side}^3",
                number(step.value * steps),
                number(step.value * per_cell),
                tables.interval(step, factor=per_cell),
                number(printed) if printed else "",
            ]
        )
    headers = ["variant", "cells", "run (s)", "step per cell (ns)", "95 %", "published run (s)"]
    return tables.markdown(lines, headers, right=headers[2:])


def by_component(measured: Measured, scaling: str) -> str:
    """Return walltime, components and the composed walltime of a scaling, as tables 4.4 and 4.7 print them (ms a
    step).
    """
    lines = []
    for p, row in sorted(of(measured, scaling).items(), key=lambda item: (item[0].side, item[0].pes)):
        if not is_timed(row):
            continue
        step, steps = launches.mean(row), row.request["steps"]
        composed = launches.seconds_of(row, components.composed)
        off = launches.ratio(composed, launches.seconds_of(row))
        printed = published_walltime("A", scaling, p.side, p.pes, steps)
        lines.append(
            [
                f"{p.side}^3",
                p.pes,
                *(number(MS * counting(row, name)) for name in components.COMPONENTS if name != "barrier"),
                number(MS * stats.mean_over_launches(composed).value),
                number(MS * step.value),
                launches.text(off, digits=3),
                f"{components.named_share(row.records):.2%}",
                number(step.value * steps),
                number(printed) if printed else "",
            ]
        )
    titles = [
        f"{components.statistic_of(name)} {name.replace('_', ' ')}"
        for name in components.COMPONENTS
        if name != "barrier"
    ]
    headers = [
        "cells a rank" if scaling == "weak" else "cells",
        "PEs",
        *titles,
        "composed",
        "step",
        "composed over step",
        "named",
        "run (s)",
        "published (s)",
    ]
    return tables.markdown(lines, headers, right=headers[1:])


def counting(row: Row, name: str) -> float:
    """Return seconds per step of a component by the statistic over ranks that counts, the mean over launches."""
    return launches.mean(row, launches.of_component(name, components.statistic_of(name))).value


def is_timed(row: Row) -> bool:
    """Return whether a row has named timers that ran, and components, in every launch."""
    return bool(timed.parts_of(row.records)) and all(launches.seconds_of(row, components.composed).values())


def held_out(measured: Measured, app: str = APP) -> tuple[list[Row], list[tuple[Point, Row]]]:
    """Return timed runs of A (or of conjugate gradients) to fit costs to, and others to predict: every second size; the
    smallest and the largest are fitted."""
    scaled = [
        (p, r)
        for p, r in measured.items()
        if (p.app, p.letter) == (app, "A") and p.experiment in ("serial", "weak", "strong") and is_timed(r)
    ]
    sizes = sorted({p.side for p, _ in scaled})
    tested = set(sizes[1:-1:2])
    return [row for p, row in scaled if p.side not in tested], [(p, row) for p, row in scaled if p.side in tested]


def errors(
    measured: Measured, make_law: Callable[[Sequence[float], Sequence[float]], timed.Law] = timed.joined, app: str = APP
) -> list[tuple[Point, Row, timed.Prediction]]:
    """Return the predictions of all runs whose size no cost was fitted to, without runs whose parts have no cost.

    make_law: `timed.joined` or `timed.by_rule`.
    """
    fitted, tested = held_out(measured, app)
    if not fitted or not tested:
        return []
    model = timed.Model(fitted, make_law)
    return [(p, row, model.predict(row)) for p, row in tested if not model.lacks(row)]


def validation(measured: Measured, app: str = APP) -> str:
    """Return measured and predicted step times with signed errors, and by component (tables 5.12 to 5.14, A.25)."""
    found = errors(measured, app=app)
    if not found:
        return "Costs are fitted to every second size and the others predicted; that needs three sizes at least."
    names = [name for name in components.COMPONENTS if name not in ("barrier", "rest")]
    lines = []
    for p, row, prediction in found:
        real, parts = components.step_time(row.records), components.counting(row.records)
        cells = [f"{number(MS * parts[n])} / {number(MS * prediction.by_component.get(n, 0.0))}" for n in names]
        lines.append(
            [
                p.experiment,
                f"{p.side}^3",
                p.pes,
                number(MS * real),
                number(MS * prediction.total),
                f"{prediction.total / real - 1:+.1%}",
                f"{timed.repeatability(row):.1%}",
                *cells,
            ]
        )
    headers = [
        "scaling",
        "cells",
        "PEs",
        "measured (ms)",
        "model (ms)",
        "error",
        "repeatability",
        *(n.replace("_", " ") for n in names),
    ]
    medians = _medians(found, errors(measured, timed.by_rule, app))
    return f"{tables.markdown(lines, headers, right=headers[2:])}\n\n{medians}"


def error_lists(found: Sequence[tuple[Point, Row, timed.Prediction]]) -> dict[str, list[float]]:
    """Return absolute relative errors: of serial and of parallel step times, of components that make up more than 2 %
    of a step; and differences between halves of the launches (`repeatability`). Empty lists are omitted."""
    lists: dict[str, list[float]] = {"serial": [], "parallel": [], "components": [], "repeatability": []}
    for p, row, prediction in found:
        real = components.step_time(row.records)
        lists["serial" if p.pes == 1 else "parallel"].append(abs(prediction.total / real - 1))
        lists["repeatability"].append(timed.repeatability(row))
        for name, seconds in components.counting(row.records).items():
            if seconds > WORTH * real:
                lists["components"].append(abs(prediction.by_component.get(name, 0.0) / seconds - 1))
    return {name: values for name, values in lists.items() if values}


def _medians(
    found: Sequence[tuple[Point, Row, timed.Prediction]], by_rule: Sequence[tuple[Point, Row, timed.Prediction]]
) -> str:
    meanings = {
        "serial": "step times of one PE",
        "parallel": "of several",
        "components": f"components above {WORTH:.0%} of a step",
    }
    medians, theirs = (
        {name: statistics.median(values) for name, values in error_lists(one).items()} for one in (found, by_rule)
    )
    texts = [f"{meanings[name]} {medians[name]:.1%} ({theirs[name]:.1%})" for name in meanings if name in medians]
    return (
        f"Medians of absolute errors, and with the study's own rule of segments: {', '.join(texts)}; halves of the "
        "launches "
        f"differ by {medians['repeatability']:.1%}. Components: measured / model, ms per step. No cost was fitted to "
        "these sizes."
    )


def variants(measured: Measured) -> str:
    """Return every variant against its baseline and its control, paired by launch, and the published ratio to the
    baseline at the same size and number of PEs."""
    known = {(p.letter, p.pes): (p, row) for p, row in measured.items() if p.experiment == "variants"}
    lines = []
    for variant in VARIANTS:
        for pes in sorted({pes for letter, pes in known if letter == variant.letter}):
            point, row = known[variant.letter, pes]
            spent = [launches.mean(row, launches.of_component(name, "max")).value for name in ("compute", "memory")]
            line = [
                f"{variant.letter} {variant.title}",
                f"{point.side}^3",
                pes,
                *(number(MS * seconds) for seconds in (launches.mean(row).value, *spent)),
            ]
            for other in (variant.baseline, variant.control):
                line += _against(row, known.get((other, pes)), other)
            lines.append([*line, _published_ratio(variant, point, row.request["steps"]), row.verification, row.notes()])
    headers = [
        "variant",
        "cells",
        "PEs",
        "step (ms)",
        "compute (ms)",
        "memory (ms)",
        "baseline",
        "x as fast",
        "control",
        "x as fast ",
        "published",
        "check",
        "notes",
    ]
    absent = [v.letter for v in VARIANTS if not any(letter == v.letter for letter, _ in known)]
    note = f"\n\nNot measured here: {', '.join(absent)}." if absent else ""
    return tables.markdown(lines, headers, right=headers[2:6]) + f"\n\n{launches.STATISTIC}\n\n{_overlap(known)}{note}"


def _against(row: Row, other: tuple[Point | None, Row] | None, letter: str) -> list[str]:
    if other is None:
        return [letter, ""]
    return [letter, launches.text(times_as_fast(row, other[1]))]


def times_as_fast(row: Row, other: Row) -> stats.Estimate | None:
    """Return the time of another row over that of a row, None without a common launch."""
    return launches.ratio(launches.seconds_of(other), launches.seconds_of(row))


def _published_ratio(variant: Variant, point: Point, steps: int) -> str:
    own, base = (
        published_walltime(letter, "strong" if point.pes > 1 else "serial", point.side, point.pes, steps)
        for letter in (variant.letter, variant.baseline)
    )
    return f"{base / own:.2f}" if own and base else ""


def _overlap(known: Mapping[tuple[str, int], tuple[Point, Row]]) -> str:
    """Return the part that H hides of the shorter of communication and computing, against control G (row E4)."""
    texts = []
    for (letter, pes), (_, row) in known.items():
        shares = hidden_shares(row, known["G", pes][1]) if letter == "H" and ("G", pes) in known else []
        if shares:
            share = launches.mean_share(shares)
            unsure = math.isfinite(share.high) and share.low <= 0 <= share.high
            ends = tables.interval(share, "{:+.0%}".format) + f", {stats.NO_CHOICE} from 0" * unsure
            texts.append(f"{share.value:+.0%} ({ends}) at {pes} PEs")
    if not texts:
        return "Overlap was not measured: it needs two processing elements."
    return f"H hides {', '.join(texts)} of the shorter of communication and computing of G; less than 0 costs time."


def hidden_shares(row: Row, control: Row) -> list[float]:
    """Return the overlap efficiency of each launch: the time that a row saves against its control, over the shorter of
    communication and computing of the control."""
    found = []
    alone = launches.by_launch(control)
    for launch, seconds in launches.seconds_of(row).items():
        if launch not in alone:
            continue
        parts = components.counting(alone[launch].records)
        shorter = min(parts["point_to_point"], parts["compute"])
        if shorter > 0:
            found.append((components.step_time(alone[launch].records) - seconds) / shorter)
    return found


def pieces(measured: Measured) -> str:
    """Return step times of variant J by layers per piece, against I's even shares (table A.64)."""
    shares = next((row for p, row in measured.items() if p.letter == "I"), None)
    lines = []
    for piece in PIECES:
        row = next((row for p, row in measured.items() if p.experiment == "pieces" and p.piece == piece), None)
        if row:
            lines.append(
                [
                    piece,
                    number(MS * launches.mean(row).value),
                    *_against(row, (None, shares) if shares else None, "I")[1:],
                ]
            )
    if not lines:
        return "Threads take pieces where there are two of them at least."
    table = tables.markdown(lines, ["layers a piece", "step (ms)", "x as fast as even shares"], right=("step (ms)",))
    return f"{table}\n\n{launches.STATISTIC}"


def products(measured: Measured) -> str:
    """Return the parts of a product with the matrix, least, mean and largest over ranks, with the study's means of as
    many ranks (table A.74)."""
    printed = {
        (int(row["pes"]), row["part"]): float(row["time_s"]) for row in published("davis2017", "cg_matmult_parts")
    }
    lines = []
    for p, row in measured.items():
        if p.experiment == "product" and all(record.get("timers") for record in row.records):
            for part in PARTS_OF_PRODUCT:
                times = [launches.mean(row, of_product(part, statistic)).value for statistic in OPPOSITE]
                times.append(printed.get((p.pes, part), 0.0))
                lines.append([p.pes, f"{p.side}^3", part, *(number(MS * t) if t else "" for t in times)])
    if not lines:
        return "A product has parts where two ranks exchange: it needs two processing elements."
    headers = ["PEs", "block", "part", *(f"{statistic} (ms)" for statistic in OPPOSITE), "published mean"]
    return f"{tables.markdown(lines, headers, right=headers[3:])}\n\n{BOUNDS}"


def of_product(part: str, statistic: str) -> launches.Measure:
    """Return the measure of a part of the product: seconds per step, the mean over ranks, or bounds of the least and
    the largest: the sum of this statistic of its timers."""
    timers, sign = PARTS_OF_PRODUCT[part]
    wanted = {(PRODUCT_STAGE, name) for name in timers}
    of_outer = statistic if sign >= 0 else OPPOSITE[statistic]

    def seconds(record: Mapping) -> float:
        timed = sum(t["seconds"][statistic] for t in record["timers"] if (t["stage"], t["name"]) in wanted)
        return float(timed + sign * record.get("phases_s", {}).get("outer", {}).get(of_outer, 0.0))

    return lambda found: statistics.median(map(seconds, found))


# The parts by the names of the study: start of messages, cells inside, end of messages, cells that wait for them. Of
# each the timers that it adds up, and the sign of the time of cells that wait, which only this stage has.
PARTS_OF_PRODUCT: Mapping[str, tuple[tuple[str, ...], int]] = {
    "VecScatterBegin": (("post", "pack", "send"), 0),
    "Multiply": (("multiply",), -1),
    "VecScatterEnd": (("wait", "unpack", "complete"), 0),
    "MultiplyAdd": ((), 1),
}
OPPOSITE = {"min": "max", "mean": "mean", "max": "min"}  # statistics over ranks, for times that are taken off
BOUNDS = (
    "Over ranks, geometric means over launches. A part of several timers has bounds: min is the sum of the timers' "
    "least, max of their largest."
)


def barriers(measured: Measured) -> str:
    """Return the cost of a barrier before each exchange, its time, and the ranks' range of compute (table 5.7)."""
    lines = []
    for p, row in measured.items():
        if p.experiment != "barrier" or not is_timed(row):
            continue
        scalings = of(measured, "strong")
        plain = next((r for q, r in scalings.items() if (q.side, q.pes) == (p.side, p.pes)), None)
        least, most = (launches.mean(row, launches.of_component("compute", s)).value for s in ("min", "max"))
        waiting = launches.mean(row, launches.of_component("barrier", "max")).value
        lines.append(
            [
                p.pes,
                number(MS * launches.mean(row).value),
                launches.text(times_as_fast(plain, row), digits=3) if plain else "",
                number(MS * (most - least)),
                number(MS * waiting),
            ]
        )
    headers = ["PEs", "step (ms)", "over no barrier", "range of compute (ms)", "most time in barriers (ms)"]
    return tables.markdown(lines, headers, right=headers)


def memory(measured: Measured) -> str:
    """Return the costs and savings of freeing temporaries (checklist row A8)."""
    lines = []
    for p, kept in measured.items():
        if p.experiment != "memory":
            continue
        freed = [r for q, r in of(measured, "serial").items() if q.side == p.side]
        for name, row in (("kept", kept), *(("freed", r) for r in freed[:1])):
            used = [r["counts"]["resident_bytes"] for r in row.records if "resident_bytes" in r["counts"]]
            step, spent = (
                launches.mean(row, m).value for m in (components.step_time, launches.of_component("memory", "max"))
            )
            resident = f"{statistics.median(used) / 1e6:.1f}" if used else ""
            lines.append([f"{p.side}^3", name, number(MS * step), number(MS * spent), resident])
    headers = ["cells", "temporaries", "step (ms)", "in memory management (ms)", "most memory of fields (MB)"]
    return tables.markdown(lines, headers, right=headers[2:])


def anomalies(measured: Measured, threshold: float = 0.3) -> str:
    """Return parts whose time per unit of work deviates from the line through the smaller sizes (checklist row F3)."""
    rows = [row for row in of(measured, "serial").values() if is_timed(row)]
    rows.sort(key=lambda row: row.request["cells"])
    if len(rows) < 3:
        return "Three sizes at least are needed."
    off = {part: by for part, by in over_line(rows).items() if abs(by[1].value - 1) > threshold}
    lines = [
        [p.stage, p.name, number(MS * s), number(MS * s / ratio.value), launches.text(ratio), _leaves(ratio, threshold)]
        for p, (s, ratio) in sorted(off.items(), key=lambda item: -item[1][0])
    ]
    if not lines:
        cells = "x".join(map(str, rows[-1].request["cells"]))
        return f"At {cells} every part is within {threshold:.0%} of the line through the smaller sizes."
    headers = ["stage", "timer", "measured (ms)", "line (ms)", "measured over line", "verdict"]
    return f"{tables.markdown(lines, headers, right=headers[2:4])}\n\n{launches.STATISTIC}"


def over_line(rows: Sequence[Row]) -> dict[timed.Part, tuple[float, stats.Estimate]]:
    """Return seconds per step of the parts of the last row, and their ratio to a line through the other rows, fitted in
    each launch; parts of less than 0.5 % of a step, and launches in which a part has no line, are left out."""
    seconds: dict[timed.Part, dict[str, float]] = {}
    ratios: dict[timed.Part, dict[str, float]] = {}
    for launch, found in launches.common([*rows]).items():
        model, last = timed.Model(found[:-1], timed.one_line), found[-1]
        if model.lacks(last):
            continue
        line, step = model.predict(last).parts, components.step_time(last.records)
        for part, (calls, per_call) in timed.parts_of(last.records).items():
            if max(calls * per_call, line[part]) > LEAST_PART * step and line[part] > 0:
                seconds.setdefault(part, {})[launch] = calls * per_call
                ratios.setdefault(part, {})[launch] = calls * per_call / line[part]
    return {p: (stats.mean_over_launches(seconds[p]).value, stats.mean_over_launches(ratios[p])) for p in ratios}


def _leaves(ratio: stats.Estimate, threshold: float) -> str:
    """Return the verdict on a part: its whole interval must be off by more than the threshold."""
    if ratio.low > 1 + threshold or ratio.high < 1 - threshold:
        return "leaves the line"
    return "cannot be told"
