"""Predictions against measurements for readers: tables, sentences and a plot of predicted against measured times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from haloscope import outputs
from haloscope.advice import advise
from haloscope.advice import anomalies as kernels
from haloscope.advice import validate as model
from haloscope.model import pace
from haloscope.model.held_out import NOMINAL
from haloscope.model.profile import Profile
from haloscope.records import stats
from haloscope.records.regret import mean_regret
from haloscope.records.rows import group_rows
from haloscope.report import tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def markdown(found: model.Validation, profile: Profile, measured: Sequence[dict]) -> str:
    """Return the whole report of records that were compared with a profile. measured: the records."""
    parts = [f"# Predicted against measured: {len(found.pairs)} choices\n\nMachine profile: {profile.name}."]
    parts += [f"Warning: {text}." for text in found.warnings]
    if found.pairs:
        parts.append(_pace(found.pairs))
        parts += _figures(found.pairs, model.are_held_out(found.pairs, profile))
    if found.crowded:
        errors = errors_table(found.crowded, exchange=False)
        parts.append(f"## With more threads than cores, apart from all above\n\n{errors}")
    if found.left_out:
        lines = "\n".join(f"- {count}: {reason}" for reason, count in found.left_out.items())
        parts.append(f"## Not compared\n\n{lines}")
    parts.append(anomalies(measured))
    return "\n\n".join(filter(None, parts))


def _pace(pairs: Sequence[model.Pair]) -> str:
    """Return a sentence on the machine speed that the predictions assume."""
    paced = sum(p.paced for p in pairs)
    if not paced:
        return (
            "Pace: that of the calibration, as records or profile have none to compare; if the machine has changed "
            "since, that shows as an error."
        )
    away = pace.describe(model.pace_against(pairs))
    others = f" The other {len(pairs) - paced}: at the pace of the calibration." if paced < len(pairs) else ""
    return (
        f"Pace: each of {paced} choices is predicted at the pace of its own launches; against the calibration: "
        f"{away or 'as fast'} (median).{others}"
    )


def _figures(pairs: Sequence[model.Pair], held_out: bool) -> list[str]:
    parts = ["## Time of a step\n\n" + errors_table(pairs, exchange=False)]
    held = sum(p.exchange_error is not None for p in pairs)
    if held:
        words = f"Not hidden by computing, in the mean over ranks; measured on {held} of {len(pairs)}.\n\n"
        parts.append("## Time of the exchange itself\n\n" + words + errors_table(pairs, exchange=True))
    parts.append(_coverage(model.coverage(pairs), len(pairs), held_out))
    if c := model.coverage(pairs, exchange=True):
        parts.append(f"Of the exchange itself: {c.inside} of {c.count} ({c.inside / c.count:.0%}).")
    return [*parts, _cases(model.cases(pairs)), _each(pairs)]


def errors_table(pairs: Sequence[model.Pair], exchange: bool) -> str:
    """Return the errors of steps, or of exchanges, per strategy and regime as a table."""
    return tables.errors(model.grouped(pairs, exchange))


def _coverage(c: model.Coverage | None, count: int, held_out: bool) -> str:
    if c is None:
        return "## Intervals\n\nNone: the profile contains none, or --samples is 0."
    source = "They are the model's own; --keep-intervals makes them from measurements."
    if c.from_held_out:
        seen = "" if held_out else ", these among them: this does not test them"
        source = f"{c.from_held_out} intervals are from held-out measurements{seen}."
    verdict = "rejected" if c.p_value < 0.05 else "not rejected"
    return (
        f"## Intervals\n\n{c.inside} of {c.count} measurements lie in their predicted intervals "
        f"({c.inside / c.count:.0%}); as {NOMINAL:.0%} intervals they are {verdict} (binomial test, "
        f"p = {c.p_value:.2g})."
        + (f" {count - c.count} predictions have no interval." if c.count < count else "")
        + f" {source}"
    )


def _cases(found: Sequence[model.MeasuredCase]) -> str:
    if not found:
        return "## Order and regret\n\nNo case was measured with two choices."
    headers = ["case", "choices", "order (tau)", "pick of the model", "regret", "95 %", "fastest measured"]
    rows = []
    for case in found:
        same = case.pick is case.best
        unsure = not same and stats.verdict_text(case.regret, "slower", "faster") == stats.NO_CHOICE
        ends = "" if same else stats.NO_CHOICE if unsure else tables.interval(case.regret, "{:.3f}".format)
        order = "" if case.order != case.order else f"{case.order:+.2f}"  # NaN: all times equal
        pick, best = (advise.name(pair.prediction.choice) for pair in (case.pick, case.best))
        regret = f"{case.regret.value:.3f}"
        rows.append([case.name, case.count, order, pick, regret, ends, "the pick" if same else best])
    mean = mean_regret([case.regret.value for case in found])
    words = (
        f"Regret over {len(found)} cases: geometric mean {mean:.3f}, worst {found[0].regret.value:.3f}. From "
        f"records the fastest is the luckiest too: `haloscope tune --exhaustive` measures the two again."
    )
    table = tables.markdown(rows, headers, right=("choices", "order (tau)", "regret"))
    return f"## Order and regret\n\n{words}\n\n{table}"


def _each(pairs: Sequence[model.Pair]) -> str:
    of_step, of_exchange = ["measured (us)", "predicted (us)", "error"], ["exchange (us)", "predicted", "error "]
    headers = ["configuration", *of_step, *of_exchange, "bound by"]
    rows = []
    for p in sorted(pairs, key=lambda p: -abs(p.error)):
        step = tables.compared(p.row.step.value, p.prediction.time_s, p.error)
        exchange = ["", "", ""]
        if p.exchange_s and p.exchange_error is not None:
            exchange = tables.compared(p.exchange_s, p.prediction.exchange_s, p.exchange_error)
        rows.append([p.row.id, *step, *exchange, _parts(p)])
    table = tables.markdown(rows, headers, right=headers[1:-1])
    return f"## Each configuration, largest error first\n\nWith the two largest predicted terms.\n\n{table}"


def anomalies(measured: Sequence[dict]) -> str:
    """Return the sweeps whose time deviates from the line through smaller blocks; "" if no kernel has enough sizes."""
    known = kernels.points(group_rows(measured))
    if not known:
        return ""
    found = {name: kernels.leaving(list(by_size), list(by_size.values())) for name, by_size in known.items()}
    rows = [[name, f"{a.last_on:.0f}", f"{a.first_off:.0f}", f"{a.ratio:.2f}"] for name, a in found.items() if a]
    headers = ["kernel", "on the line up to (points)", "off it from", "measured over the line"]
    many = f"{len(known)} kernel{'s' * (len(known) > 1)} measured at {kernels.FEWEST} sizes or more"
    text = f"Points a rank sweeps per step; {many}, off by more than {kernels.THRESHOLD:.0%}."
    listed = tables.markdown(rows, headers, right=headers[1:]) if rows else "None leaves its line."
    return f"## Sweeps that leave their line\n\n{text}\n\n{listed}"


def _parts(pair: model.Pair) -> str:
    terms, whole = pair.prediction.terms, pair.prediction.time_s
    largest = sorted(terms, key=lambda term: -terms[term])[:2]
    shares = ", ".join(f"{term} {terms[term] / whole:.0%}" for term in largest if terms[term] > 0)
    return f"{pair.regime}: {shares}"


def kept(residuals: dict, file: str) -> str:
    """Return a sentence on the regimes whose residuals were written into a profile."""
    regimes = ", ".join(f"{name} ({r['count']})" for name, r in residuals["step"].items())
    return f"Intervals of steps written to {file}: {regimes}. They apply to measurements other than these."


def refuse_foreign(stem: Path | None) -> None:
    """Raise UsageError where `write` would replace a file that Haloscope did not write. stem: None: nothing is."""
    if stem is None:
        return
    outputs.refuse_foreign(outputs.beside(stem, ".md"), outputs.REPORT)
    outputs.refuse_foreign_figure(stem)


def write(text: str, found: model.Validation, stem: Path) -> list[Path]:
    """Write a report, and its plot where anything was compared; return the files. Errors: as `outputs.writing`."""
    outputs.write_report(outputs.beside(stem, ".md"), text)
    return [outputs.beside(stem, ".md"), *(plot(found, stem) if found.pairs else [])]


def plot(found: model.Validation, stem: Path) -> list[Path]:
    """Draw predicted against measured times, steps and exchanges, coloured by regime. Returns the files written."""
    from matplotlib import pyplot as plt

    from haloscope.report import figures

    steps = [(p.regime, p.row.step.value, p.prediction.time_s) for p in found.pairs]
    exchanges = [(p.exchange_regime, p.exchange_s, p.prediction.exchange_s) for p in found.pairs if p.exchange_s]
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
        _scatter(axes[0], "time of a step", steps)
        _scatter(axes[1], "time of the exchange itself", exchanges)
        return figures.save(figure, stem)


def _scatter(axes: Axes, title: str, points: Sequence[tuple[str, float, float]]) -> None:
    from haloscope.report import figures

    axes.set_title(title)
    points = [(name, x, y) for name, x, y in points if x > 0 and y > 0]
    if not points:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
        return
    for number, name in enumerate(sorted({name for name, _, _ in points})):
        x, y = zip(*((1e6 * a, 1e6 * b) for n, a, b in points if n == name), strict=True)
        label = figures.legend_label(f"{name} ({len(x)})")
        axes.plot(x, y, "o", markersize=4, alpha=0.7, color=f"C{number}", label=label)
    low, high = min(min(p[1:]) for p in points) * 0.8e6, max(max(p[1:]) for p in points) * 1.25e6
    axes.plot([low, high], [low, high], color=figures.INK, linewidth=1)
    for factor in (0.9, 1.1):
        axes.plot([low, high], [factor * low, factor * high], color=figures.PALE, linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axes.set(xlabel="measured (us per step)", ylabel="predicted (us per step); dashed: 10 % off")
    axes.legend()
