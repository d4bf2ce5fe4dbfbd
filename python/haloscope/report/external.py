"""The report of `haloscope validate --external`: Markdown and JSON of predictions for exchanges timed by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloscope.fit import external_fit as fits
from haloscope.fit import external_judge as model
from haloscope.fit.external_table import Measured
from haloscope.records.text import cell, count_of
from haloscope.report import tables


def markdown(
    fitted: fits.Fit, basis: str, judged: model.Judged, folds: Sequence[model.Fold], notes: Sequence[str]
) -> str:
    """Return the whole report. basis: a sentence on the rows that were fitted and the rows that were predicted."""
    parts = [f"# Predicted against measured: {len(judged.pairs)} exchanges of others\n\n{basis}"]
    parts += [f"Note: {note}." for note in notes]
    parts.append("## Fitted costs\n\n" + _costs(fitted))
    if judged.pairs:
        parts += [
            "## Errors\n\n" + tables.errors(model.grouped(judged.pairs)),
            "## Regret\n\n" + _regret(model.cases(judged.pairs)),
        ]
        parts.append("## Largest errors\n\n" + _largest(judged.pairs))
    if folds:
        parts.append("## Cross-validation\n\n" + _folds(folds))
    if judged.left_out:
        parts.append("## Not predicted\n\n" + "\n".join(f"- {n}: {reason}" for reason, n in judged.left_out.items()))
    return "\n\n".join(parts)


def document(
    fitted: fits.Fit, basis: str, judged: model.Judged, folds: Sequence[model.Fold], notes: Sequence[str]
) -> dict[str, Any]:
    """Return the same contents as one JSON object; seconds, and errors as parts of the measured time."""
    return {
        "schema": "haloscope.external",
        "schema_version": 1,
        "told": basis,
        "notes": list(notes),
        "costs": dict(fitted.values),
        "residual": fitted.residual,
        **_figures(judged),
        "exchanges": [_exchange(pair) for pair in judged.pairs],
        "cross_validation": [{"left_out": fold.left_out, **_figures(fold.judged)} for fold in folds],
        "not_predicted": dict(judged.left_out),
    }


def _figures(judged: model.Judged) -> dict[str, Any]:
    found = model.summarize_regret(model.cases(judged.pairs))
    return {
        "errors": [vars(e) for e in model.grouped(judged.pairs)] if judged.pairs else [],
        "regret": vars(found) | {"constant": found.constant and " ".join(found.constant)} if found else None,
    }


def _exchange(pair: model.Pair) -> dict[str, Any]:
    row = pair.row
    return {
        **{axis: of(row) for axis, of in model.AXES.items()},
        "line": row.line,
        "measured_s": row.median_s,
        "predicted_s": pair.predicted_s,
        "error": pair.error,
        "bound_by": pair.regime,
        "terms": {name: seconds for name, seconds in pair.terms.items() if seconds},
    }


def _costs(fitted: fits.Fit) -> str:
    meanings = {p.name: p.meaning for p in fits.PARAMETERS}
    rows = [[name, f"{value:.4g}", meanings[name.partition(" ")[0]]] for name, value in fitted.values.items()]
    residual = f"the root mean square of log(predicted / measured) is {fitted.residual:.3f}"
    words = f"Fitted to {fitted.rows} exchanges; {residual}."
    return f"{words}\n\n" + tables.markdown(rows, ["cost", "value", "meaning"], right=["value"])


def _regret(cases: Sequence[model.ExternalCase]) -> str:
    found = model.summarize_regret(cases)
    if found is None:
        return "No case was measured in two ways."
    words = f"Over {count_of(found.count, 'case')}, measured time over the time of the fastest of the case."
    rows = [["the model's pick", f"{found.mean:.3f}", f"{found.worst:.3f}"]]
    if found.constant:
        rows.append([f"always {' '.join(found.constant)}", f"{found.constant_mean:.3f}", f"{found.constant_worst:.3f}"])
    headers = ["choice", "geometric mean", "worst"]
    text = f"{words}\n\n" + tables.markdown(rows, headers, right=headers[1:])
    dear = []
    for c in (case for case in cases[:10] if case.regret > 1):
        ways = [" ".join(pair.row.way) for pair in (c.pick, c.best)]
        dear.append([_name(c.pick.row), *ways, f"{c.regret:.3f}"])
    if dear:
        text += "\n\n" + tables.markdown(dear, ["case", "pick", "fastest", "regret"], right=["regret"])
    return text


def _largest(pairs: Sequence[model.Pair]) -> str:
    rows = []
    for pair in sorted(pairs, key=lambda p: -abs(p.error))[:20]:
        terms = sorted(((s, name) for name, s in pair.terms.items() if s > 0), reverse=True)[:3]
        shares = ", ".join(f"{name} {s / pair.predicted_s:.0%}" for s, name in terms)
        times = tables.compared(pair.row.median_s, pair.predicted_s, pair.error)
        rows.append([_name(pair.row), " ".join(pair.row.way), *times, shares])
    headers = ["case", "choice", "measured (us)", "predicted (us)", "error", "largest terms"]
    return tables.markdown(rows, headers, right=headers[2:5])


def _name(row: Measured) -> str:
    team = f", {row.threads} threads a rank" * (row.threads > 1)
    fields = f"{count_of(row.fields, 'field')} of {row.element_bytes} B"
    return f"{cell(list(row.cells))}, {count_of(row.nodes, 'node')}{team}, halo {row.halo}, {fields}"


def _folds(folds: Sequence[model.Fold]) -> str:
    rows = []
    for fold in folds:
        cost = model.summarize_regret(model.cases(fold.judged.pairs))
        figures = (cost.mean, cost.worst, cost.constant_mean, cost.constant_worst) if cost else ()
        errors: list = [0, "", "", ""]
        if fold.judged.pairs:
            e = model.grouped(fold.judged.pairs)[0]
            errors = [e.count, f"{e.signed:+.1%}", f"{e.median:.1%}", f"{e.p90:.1%}"]
        rows.append([fold.left_out, *errors, *([f"{x:.3f}" for x in figures] or [""] * 4)])
    of_regret = ["regret", "worst", "regret of a constant", "worst "]
    headers = ["left out", "count", "signed median", "median", "p90", *of_regret]
    return "Fitted to all other rows each time.\n\n" + tables.markdown(rows, headers, right=headers[1:])
