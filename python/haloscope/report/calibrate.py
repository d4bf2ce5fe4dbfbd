"""Calibrations for readers: fitted parameters, with intervals and errors, and parameters indistinguishable from 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from haloscope.fit import calibrate
from haloscope.fit.calibrate import Calibration
from haloscope.fit.laws import Law, Terms
from haloscope.model.segments import evaluate
from haloscope.report import tables


def markdown(made: Calibration, verbose: bool) -> str:
    """Return the fitted parameters as Markdown: segments with borders, intervals and residuals, transports, notes."""
    m = made.data["machine"]
    cores = f"{m['nodes']} x {m['sockets_per_node']} x {m['cores_per_socket']} cores"
    parts = [
        f"# Machine profile '{made.data['name']}'",
        f"{m['cpu']}, {cores}, {made.data['mpi_library']}. Errors refer to the fitted points.",
    ]
    if made.laws:
        parts.append(_laws(made.laws))
    if made.contention:
        parts.append(_contention(made.contention))
    steps = [t for t in made.transports if t.name.startswith("steps/")]
    for title, terms in (
        ("Costs of steps in addition to their parts", steps),
        (
            "Costs added by transports: by p2p to messages alone, by others to p2p",
            [t for t in made.transports if t not in steps],
        ),
    ):
        if terms:
            parts.append(_terms(title, terms))
    for call, rows in made.data.get("reductions", {}).items():
        times = ", ".join(f"{r['time_s'] * 1e6:.3g} us on {r['ranks']} ranks" for r in rows)
        parts.append(f"{call.replace('all', 'All-')} of one number: {times}.")
    if verbose:
        parts += [_points(law) for law in made.laws]
        unknown = calibrate.not_identified(made)
        parts.append("\n".join(f"- {name}: {', '.join(names)} not distinguishable from 0" for name, names in unknown))
    if made.data["notes"]:
        parts.append("\n".join(f"- {note}" for note in made.data["notes"]))
    return "\n\n".join(parts)


def _laws(laws: Sequence[Law]) -> str:
    headers = ["cost", "from", "to", "fixed (us)", "95 %", "per unit (ns)", "95 % ", "points", "median error", "worst"]
    rows = []
    segments = [(law, s) for law in laws for s in law.segments]
    for law, s in segments:
        span = [f"{s.start:g} {law.unit}", "" if math.isinf(s.end) else f"{s.end:g}"]
        costs = *_value(s.fixed, s.interval.get("fixed"), 1e6), *_value(s.slope, s.interval.get("slope"), 1e9)
        errors = law.errors(s)
        figures = [len(errors), f"{100 * np.median(errors):.1f} %", f"{100 * errors.max():.0f} %"]
        rows.append([law.name, *span, *costs, *figures])
    return tables.markdown(rows, headers, right=headers[1:])


def _value(value: float, interval: tuple[float, float] | None, factor: float) -> tuple[str, str]:
    """Return a parameter and its interval as texts; both "" without an interval: the data do not identify it."""
    if interval is None:
        return "", ""
    return f"{value * factor:.3g}", " .. ".join(f"{end * factor:.3g}" for end in interval)


def _contention(terms: Terms) -> str:
    texts = {name: _value(value, terms.interval[name], 1) for name, value in terms.values.items()}
    shown = ", ".join(f"{name} {value} ({ends})" for name, (value, ends) in texts.items())
    return f"Messages at the same time: {shown}; median error {100 * np.median(np.abs(terms.errors)):.1f} %."


def _terms(title: str, fits: Sequence[Terms]) -> str:
    names = list(dict.fromkeys(name for t in fits for name in t.values))
    unit = {name: _unit(name) for name in names}
    headers = ["of", *(f"{name.removesuffix('_s')} ({unit[name][1]})" for name in names), "points", "median error"]
    rows = []
    for t in fits:
        cells = []
        for name in names:
            value, ends = _value(t.values.get(name, 0.0), t.interval.get(name), unit[name][0])
            cells.append(f"{value} ({ends})" if value else "")
        rows.append([t.name.partition("/")[2], *cells, t.rows, f"{100 * np.median(np.abs(t.errors)):.0f} %"])
    return f"{title}:\n\n" + tables.markdown(rows, headers, right=headers[1:])


def _unit(parameter: str) -> tuple[float, str]:
    """Return the factor that scales a parameter for display, and the unit."""
    if parameter.endswith("_share"):
        return 100, "%"
    in_us = parameter in ("per_message_s", "per_round_s", "per_exchange_s", "per_program_s")
    return (1e6, "us") if in_us else (1e9, "ns")


def _points(law: Law) -> str:
    rows = []
    for amount in sorted({r.amount for r in law.rows}):
        measured = float(np.median([r.seconds for r in law.rows if r.amount == amount]))
        fitted = evaluate(law.segments, amount)
        times = [f"{seconds * 1e6:.3g}" for seconds in (measured, fitted)]
        rows.append([f"{amount:g}", *times, f"{100 * (fitted / measured - 1):+.1f} %"])
    headers = [law.unit, "measured (us)", "fitted (us)", "error"]
    return f"{law.name}\n\n" + tables.markdown(rows, headers, right=headers)
