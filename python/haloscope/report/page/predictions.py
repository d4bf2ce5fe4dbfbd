"""Sections on a machine profile: predicted against measured steps, regret, and a roofline."""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.advice import advise, validate
from haloscope.model.profile import Profile
from haloscope.records.regret import mean_regret
from haloscope.records.rows import Row, group_rows
from haloscope.report import tables
from haloscope.report.page import Chart, Section, Table, label
from haloscope.report.page.choices import basis
from haloscope.report.page.marks import SYMBOLS, colour_of

SAMPLES = 50  # of a prediction's interval
REGIMES = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d")


def section(found: Sequence[dict], profile: Profile) -> Section:
    """Return predictions of a profile against the measured steps, and the regret of its picks."""
    made = validate.validate(found, profile, SAMPLES)
    words = [f"Warning: {text}." for text in made.warnings]
    words += [f"{count} choices are not compared: {reason}" for reason, count in made.left_out.items()]
    if not made.pairs:
        return Section("Predicted against measured", [*words, "The profile predicts none of these choices."])
    title = f"Steps of {len(made.pairs)} choices by profile {profile.name}"
    charts, listed = [_scatter(title, made.pairs)], []
    if cases := validate.cases(made.pairs):
        mean, worst = mean_regret([case.regret.value for case in cases]), max(case.regret.value for case in cases)
        words.append(
            f"The model's pick takes {mean:.3f} times as long as the fastest choice, in the geometric mean of "
            f"{len(cases)} cases, at worst {worst:.3f} times."
        )
        listed.append(_regrets(cases))
    return Section("Predicted against measured", words, charts, listed)


def _scatter(title: str, pairs: Sequence[validate.Pair]) -> Chart:
    lines: list[list] = [
        [p.row.id, 1e6 * p.row.step.value, 1e6 * p.prediction.time_s, p.error, p.regime] for p in pairs
    ]
    traces = []
    for number, regime in enumerate(sorted({p.regime for p in pairs})):
        of = [line for line in lines if line[-1] == regime]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(f"bound by {regime} ({len(of)})"),
                "x": [line[1] for line in of],
                "y": [line[2] for line in of],
                "text": [label(line[0]) for line in of],
                "marker": {"color": REGIMES[number % 6], "symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
                "customdata": [line[0] for line in of],
                "hovertemplate": "%{text}<br>measured %{x:.4g} us, predicted %{y:.4g} us<extra></extra>",
            }
        )
    ends = [0.8 * min(min(line[1:3]) for line in lines), 1.25 * max(max(line[1:3]) for line in lines)]
    traces.append({"type": "scatter", "mode": "lines", "name": "equal", "x": ends, "y": ends, "line": {"dash": "dot"}})
    layout = {
        "xaxis": {"title": {"text": "measured, us per step"}, "type": "log"},
        "yaxis": {"title": {"text": "predicted, us per step"}, "type": "log"},
    }
    columns = ["choice", "measured (us)", "predicted (us)", "error", "bound by"]
    caption = f"{basis([p.row for p in pairs])} Predicted: a model, by the costs of the profile."
    return Chart(title, caption, traces, layout, Table(columns, lines), 480)


def _regrets(cases: Sequence[validate.MeasuredCase]) -> Table:
    lines = []
    for case in cases:
        pick, best = (advise.name(pair.prediction.choice) for pair in (case.pick, case.best))
        ends = tables.interval(case.regret, "{:.3f}".format)
        lines.append([case.name, case.count, pick, best, case.regret.value, ends])
    return Table(["case", "choices", "pick of the model", "fastest measured", "regret", "95 % interval"], lines)


def roofline(found: Sequence[dict], profile: Profile | None) -> Section:
    """Return the rates of choices over the operations per byte of their fields, below the ceiling of the memory."""
    rows = [row for row in group_rows(found) if row.gflops and _intensity(row)]
    if not rows:
        return Section("Roofline")
    lines: list[list] = [[row.id, _intensity(row), row.gflops] for row in rows]
    traces: list[dict] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "measured",
            "x": [line[1] for line in lines],
            "y": [line[2] for line in lines],
            "text": [label(line[0]) for line in lines],
            "marker": {"color": [colour_of(row.request.get("strategy", "")) for row in rows], "size": 8},
            "customdata": [line[0] for line in lines],
            "hovertemplate": "%{text}<br>%{x:.3g} flop per byte, %{y:.4g} GF/s<extra></extra>",
        }
    ]
    ends = [min(line[1] for line in lines) / 2, max(line[1] for line in lines) * 2]
    ceilings = [_ceiling(cores, rate, ends) for cores, rate in sorted(_memory(profile).items())]
    words = ["Ceilings need a profile with measured copies beyond the cache: --profile."] * (not ceilings)
    layout = {
        "xaxis": {"title": {"text": "flop per byte of fields that are read or written"}, "type": "log"},
        "yaxis": {"title": {"text": "GF/s"}, "type": "log"},
    }
    table = Table(["choice", "flop per byte", "GF/s"], lines)
    caption = f"{basis(rows)} Points above the memory's line have fields that stay in cache."
    chart = Chart("Rates of the measured choices", caption, [*traces, *ceilings], layout, table, 460)
    return Section("Roofline", words, [chart])


def _ceiling(cores: int, rate: float, ends: Sequence[float]) -> dict:
    """Return the line of the rate that a number of cores reaches by reading and writing memory alone."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"memory, {cores} core{'s' * (cores > 1)}: {1e-9 * rate:.3g} GB/s",
        "x": list(ends),
        "y": [1e-9 * rate * x for x in ends],
        "line": {"dash": "dash", "color": REGIMES[cores % 6]},
    }


def _intensity(row: Row) -> float:
    counts = row.records[0].get("counts", {})
    return counts.get("flops", 0.0) / counts["field_bytes"] if counts.get("field_bytes") else 0.0


def _memory(profile: Profile | None) -> dict[int, float]:
    """Return the bytes per second that a profile's contiguous copies beyond the cache read and write, by cores."""
    beyond = profile.data.get("beyond_cache", {}).get("copy", {}).get("contiguous", {}) if profile else {}
    return {int(cores): 2 / segments[-1]["per_byte_s"] for cores, segments in beyond.items()}
