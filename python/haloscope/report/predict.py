"""Predictions for readers: a table, fastest first, remarks on their limits, and the JSON document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from haloscope.model.predict import Prediction
from haloscope.model.predict import terms as all_terms
from haloscope.records.text import cell
from haloscope.report import tables


def document(made: list) -> dict:
    """Return predictions as plain data: seconds per time step."""
    return {
        "schema": "haloscope.predictions",
        "schema_version": 1,
        "predictions": [
            {"id": request.id, **dataclasses.asdict(p), "choice": p.choice.to_json(), "exchange_s": p.exchange_s}
            for request, p in made
        ],
    }


def markdown(made: list, pace: str = "") -> str:
    """Return a table of predictions, then remarks on their limits. pace: a sentence on the assumed machine speed."""
    axes = tables.differing([r.choice for r, _ in made], ("schedule", "strategy"))
    terms = [term for term in all_terms() if any(p.terms[term] > 0 for _, p in made)]
    unit, factor = tables.unit(p.time_s for _, p in made)
    timed = f"step ({unit})"
    headers = ["#", *axes, timed, "90 %", *terms, "slowest rank"]
    rows = []
    for place, (request, p) in enumerate(made, 1):
        ends = "" if p.interval is None else " .. ".join(tables.number(end * factor) for end in p.interval)
        values = [tables.number(p.terms[term] * factor) for term in terms]
        shown = [cell(getattr(request.choice, axis)) for axis in axes]
        rows.append([place, *shown, tables.number(p.time_s * factor), ends, *values, p.worst_rank])
    first = made[0][0].choice
    alike = f"{first.shape} cells, {first.ranks} ranks" if len(made) == 1 else f"{len(made)} choices, fastest first"
    text = f"# Predicted: {first.app}, {alike}\n\nMachine profile: {made[0][1].profile}. Times in {unit} per step.\n\n"
    text += f"{pace}\n\n" if pace else ""
    text += tables.markdown(rows, headers, right=("#", timed, "90 %", *terms, "slowest rank"))
    lines = [*remarks(made), *_source_of_intervals(p for _, p in made)]
    return text + "".join(f"\n\n{line}" for line in lines)


def _source_of_intervals(predictions: Iterable[Prediction]) -> list[str]:
    """Return lines on the sources of the intervals, none without intervals."""
    regimes = {p.interval_from for p in predictions if p.interval is not None}
    sources = {
        "": "- 90 %: the model's own interval, which no held-out measurement has confirmed (haloscope validate "
        "--keep-intervals)",
        "all": "- 90 %: from held-out measurements of all regimes, as this regime has too few",
    }
    texts = [sources[name] for name in sorted(regimes) if name in sources]
    known = sorted(regimes - set(sources))
    return texts + ([f"- 90 %: from held-out measurements of the same regime ({', '.join(known)})"] if known else [])


def remarks(made: list) -> list[str]:
    """List each note once, with the rows it applies to."""
    rows: dict[str, list[int]] = {}
    for place, (_, prediction) in enumerate(made, 1):
        for text in [f"outside the calibrated range: {o}" for o in prediction.outside] + list(prediction.notes):
            rows.setdefault(text, []).append(place)
    return [f"- {text}{_rows(places, len(made))}" for text, places in rows.items()]


def _rows(places: list[int], count: int) -> str:
    if len(places) == count:
        return ""
    shown = ", ".join(map(str, places[:8])) + (", ..." if len(places) > 8 else "")
    return f" (row{'s' * (len(places) > 1)} {shown})"
