"""`haloscope whatif` for readers: tables of variants and of two machines, and their JSON documents."""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.advice import whatif
from haloscope.advice.whatif import Compared
from haloscope.records.text import cell, count_of
from haloscope.report import tables
from haloscope.report.predict import remarks


def document(found: Sequence) -> dict:
    """Return variants as plain data: seconds per time step, speed-ups and node-hours against the first variant."""
    return {
        "schema": "haloscope.whatif",
        "schema_version": 1,
        "profile": found[0].prediction.profile,
        "variants": [
            {
                "choice": v.choice.to_json(),
                "mapping": v.setting.placement,
                "active": v.setting.active,
                "nodes": v.prediction.nodes,
                "busiest_socket": v.busiest,
                "pairs_inside": v.pairs[0],
                "pairs_across": v.pairs[1],
                "time_s": v.prediction.time_s,
                "speedup": speedup,
                "node_hours": cost,
            }
            for v, (speedup, cost) in zip(found, whatif.relative(found), strict=True)
        ],
    }


def markdown(found: Sequence) -> str:
    """Return variants as a table, then remarks on their limits."""
    axes = tables.differing([v.choice for v in found], never="nodes")
    of_setting = [name for name in ("placement", "active") if len({getattr(v.setting, name) for v in found}) > 1]
    unit, factor = tables.unit(v.prediction.time_s for v in found)
    titles = {"placement": "mapping", "active": "cores per socket"}
    numbers = ["nodes", "busiest socket", "pairs inside", "pairs across", f"step ({unit})", "speed-up", "node-hours"]
    rows = []
    for v, (speedup, cost) in zip(found, whatif.relative(found), strict=True):
        shown = [cell(getattr(v.choice, axis)) for axis in axes]
        shown += [getattr(v.setting, name) or "all" for name in of_setting]
        amounts = [v.prediction.nodes, v.busiest, *v.pairs, tables.number(v.prediction.time_s * factor)]
        rows.append([*shown, *amounts, f"{speedup:.2f}", f"{cost:.2f}"])
    headers = [*axes, *(titles[name] for name in of_setting), *numbers]
    table = tables.markdown(rows, headers, right=numbers)
    profile = f"Machine profile: {found[0].prediction.profile}. Speed-up and node-hours are against the first row."
    notes = remarks([(None, v.prediction) for v in found])
    return "\n\n".join([f"{_title([v.choice for v in found])}\n\n{profile}", table, *notes])


def _title(choices: Sequence) -> str:
    """Return a title with the common properties of all choices: the app, and cells and ranks where they are equal."""
    first, alike = choices[0], [choices[0].app]
    if all(c.cells == first.cells for c in choices):
        alike.append(f"{first.shape} cells")
    if all(c.ranks == first.ranks for c in choices):
        alike.append(count_of(first.ranks, "rank"))
    return f"# What if: {', '.join(alike)}"


def crossover_document(made: Compared) -> dict:
    """Return a comparison as plain data: seconds per time step of both machines."""
    return {
        "schema": "haloscope.crossover",
        "schema_version": 1,
        "machines": made.machines,
        "steps": [{"ranks": n, "time_s": [v.prediction.time_s for v in vs]} for n, vs in made.predictions.items()],
        "crossing": made.crossing,
    }


def crossover_text(made: Compared) -> str:
    """Return a comparison as a table, and the number of ranks where the order of the machines changes."""
    first, second = made.machines
    unit, factor = tables.unit(v.prediction.time_s for pair in made.predictions.values() for v in pair)
    headers = ["ranks", f"1: {first} ({unit})", f"2: {second} ({unit})", "2 over 1", "node-hours, 2 over 1"]
    rows = []
    for ranks, (a, b) in made.predictions.items():
        ratios = (b.prediction.time_s / a.prediction.time_s, b.node_s / a.node_s)
        times = (tables.number(v.prediction.time_s * factor) for v in (a, b))
        rows.append([ranks, *times, *(f"{ratio:.3f}" for ratio in ratios)])
    app, table = next(iter(made.predictions.values()))[0].choice.app, tables.markdown(rows, headers, right=headers)
    return f"# {app}: {first} and {second}\n\n{table}\n\n{_verdict(made)}"


def _verdict(made: Compared) -> str:
    low, high = made.crossing or (0, max(made.predictions))
    a, b = made.predictions[high]
    leader = made.machines[0 if a.prediction.time_s < b.prediction.time_s else 1]
    if made.crossing is None:
        return f"They do not change places up to {high} ranks: {leader} is ahead."
    return f"They change places between {low} and {high} ranks: from there on {leader} is ahead."
