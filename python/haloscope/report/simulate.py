"""Simulations for readers: a table, remarks on their limits, the JSON document, and a figure over ranks."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path

from haloscope.bridge import capi
from haloscope.records.text import cell
from haloscope.report import tables
from haloscope.report.predict import remarks
from haloscope.simulate.simulate import SimulationOptions


def document(made: list) -> dict:
    """Return simulations as plain data: seconds per time step."""
    return {
        "schema": "haloscope.simulations",
        "schema_version": 1,
        "simulations": [{"id": r.id, **dataclasses.asdict(s), "choice": s.choice.to_json()} for r, s in made],
    }


def markdown(made: list, weak: bool) -> str:
    """Return a table of simulations, then remarks on their limits."""
    always = ("ranks", "schedule", "strategy")
    axes = tables.differing([r.choice for r, _ in made], always, never="process_grid")
    kinds = [kind for kind in capi.names("operations") if any(s.by_operation[kind] > 0 for _, s in made)]
    unit, factor = tables.unit(s.time_s for _, s in made)
    timed = f"simulated step ({unit})"
    headers = [*axes, timed, "rank mean", "95 % of ranks", *kinds, "last rank", "events", "took (s)"]
    rows = []
    for r, s in made:
        times = [s.time_s, s.mean_s, s.percentiles[95], *(s.by_operation[kind] for kind in kinds)]
        shown = [cell(getattr(r.choice, axis)) for axis in axes]
        rows.append([*shown, *(tables.number(t * factor) for t in times), s.worst_rank, s.events, f"{s.wall_s:.1f}"])
    options = made[0][1].options
    title = f"# Simulated: {made[0][0].choice.app}" + (", weak scaling" if weak else "")
    text = (
        f"{title}\n\nMachine profile: {made[0][1].profile}. Simulated times in {unit} per step over the second half of "
        f"{options.steps} steps (at least two exchanges), {_noise(options)}. "
        "Operations: mean over ranks, waiting included.\n\n"
    )
    of_run = ("rank mean", "95 % of ranks", *kinds, "last rank", "events")
    text += tables.markdown(rows, headers, right=("ranks", "depth", "threads", timed, *of_run))
    return text + "".join(f"\n\n{line}" for line in remarks(made))


def _noise(options: SimulationOptions) -> str:
    if options.noise_s > 0:
        delay = f"{options.noise_s:g} s"
    elif options.noise_share > 0:
        delay = f"{options.noise_share:.3g} of its time"
    else:
        return "no noise"
    return f"each operation delayed by {delay} on the mean, seed {options.seed}"


def draw(made: list, weak: bool, stem: Path) -> list[Path]:
    """Draw simulated seconds per step over ranks, one line per strategy, schedule and depth; return the files."""
    from haloscope.report import figures

    series: dict[str, list[tuple[int, float]]] = defaultdict(list)
    one_grid = weak or len({request.choice.shape for request, _ in made}) == 1
    for request, s in made:
        c = request.choice
        label = f"{c.schedule} · {c.strategy}" + f" · depth {c.depth}" * (c.depth > 1)
        series[label if one_grid else f"{label} {c.shape}"].append((c.ranks, s.time_s))
    title = f"Simulated {'weak' if weak else 'strong'} scaling: {made[0][0].choice.app}, profile {made[0][1].profile}"
    return figures.scaling(series, title, weak, stem)
