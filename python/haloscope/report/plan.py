"""`haloscope plan` for readers: the data movements of one exchange and their order, as a document and as tables."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from haloscope import bridge
from haloscope.bridge import Box, Choice, Layout

# ---- the document ----------------------------------------------------------------------------------------------------


def describe(choice: Choice, rank: int = 0, with_program: bool = False, **schedule_options: Any) -> dict:
    """Return, as plain data, one rank's plans by stage, the totals over all ranks and, if requested, its programs.

    choice: a haloscope.bridge.Choice. schedule_options replace fields of haloscope.bridge.ScheduleOptions.
    Raises UsageError for an illegal choice or a rank outside the layout. Cost O(ranks).
    """
    layout, step = bridge.make_layout(choice), bridge.step_of(choice)
    return {
        "schema": "haloscope.plan",
        "schema_version": 2,
        "request": choice.to_json()
        | {"periodic": layout.periodic, "ranks": choice.ranks, "depth": choice.depth, "schedule": choice.schedule},
        "process_grid": layout.ranks,
        "block_cells_min": [n // p for n, p in zip(layout.cells, layout.ranks, strict=True)],
        "block_cells_max": [-(-n // p) for n, p in zip(layout.cells, layout.ranks, strict=True)],
        "rank": rank,
        "coords": layout.coords(rank)[: layout.dims],
        "owned": dataclasses.asdict(layout.owned(rank)),
        "neighbours": _neighbours(layout, rank),
        "stages": [_stage(choice, layout, s, rank, with_program, schedule_options) for s in range(len(step.stages))],
    }


def _stage(choice: Choice, layout: Layout, number: int, rank: int, with_program: bool, options: dict) -> dict:
    step, spec = bridge.step_of(choice), bridge.exchange_spec(choice, number)
    plan, stage = bridge.make_plan(layout, rank, spec), step.stages[number]
    found = {
        "name": stage.name,
        "strategy": choice.strategy_of(stage.name),
        "sweeps": [sweep.name for sweep in stage.sweeps],
        "reductions": [dataclasses.asdict(reduction) for reduction in stage.reductions],
        "repeats": stage.repeats,
        "exchange": dataclasses.asdict(spec),
        "rounds": plan.rounds,
        "messages": [dataclasses.asdict(m) for m in plan.messages],
        "copies": [dataclasses.asdict(c) for c in plan.copies],
        "totals": dataclasses.asdict(bridge.plan_totals(layout, spec)),
    }
    if choice.nodes > 1:
        found["between_nodes_bytes"] = bridge.bytes_between(layout, spec, bridge.choice_nodes(choice))
    if with_program:
        scheduled = dataclasses.replace(bridge.schedule_options(choice, number), **options)
        found["program"] = dataclasses.asdict(bridge.make_program(choice.schedule, step, plan, scheduled, number))
    return found


def _neighbours(layout: Layout, rank: int) -> list[dict]:
    """Return the rank in every direction, faces first; -1 beyond an edge."""
    directions = [o for o in itertools.product((-1, 0, 1), repeat=layout.dims) if any(o)]
    directions.sort(key=lambda o: sum(map(abs, o)))
    return [{"direction": direction, "rank": layout.neighbour(rank, direction)} for direction in directions]


# ---- tables ----------------------------------------------------------------------------------------------------------


def markdown(document: dict) -> str:
    """Return the document as Markdown tables."""
    parts = [_title(document), _overview(document), _neighbour_table(document)]
    for stage in document["stages"]:
        if len(document["stages"]) > 1:
            parts.append(_stage_title(stage))
            parts.append(_table(_exchange_rows(document | stage), ["", "value"]))
        about = document | stage
        parts += [_message_table(about), _copy_table(about), _totals_table(about), _program_table(about)]
    return "\n\n".join(filter(None, parts))


def _stage_title(stage: dict) -> str:
    sweeps, reductions = ", ".join(stage["sweeps"]), ", ".join(map(_reduction_words, stage["reductions"]))
    words = f"Sweeps: {sweeps}." + f" Reductions: {reductions}." * bool(reductions)
    if repeats := stage["repeats"]:
        words += f" It repeats, with the {repeats - 1} after it." if repeats > 1 else " It repeats."
    return f"# Stage {stage['name']}, {stage['strategy']}\n\n{words}"


def _reduction_words(reduction: dict) -> str:
    by = "" if reduction["by"] == "reduce" else f" by {reduction['by']}"
    return f"{reduction['name']} ({reduction['op']}{by})"


MOST_NAMED = 12  # numbers of a list that are shown
AMOUNTS = ("bytes", "cells", "sum", "least per rank", "most per rank")  # columns of amounts get thousands separators


def _table(rows: list, headers: list[str]) -> str:
    from tabulate import tabulate

    numeric = [all(isinstance(v, int) or v == "" for v in column) for column in zip(*rows, strict=True)]
    texts = [
        [f"{v:,}" if isinstance(v, int) and h in AMOUNTS else str(v) for v, h in zip(row, headers, strict=True)]
        for row in rows
    ]
    align = ["right" if n else "left" for n in numeric]
    text: str = tabulate(texts, headers, tablefmt="pipe", disable_numparse=True, colalign=align)
    return text


def _sizes(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _title(document: dict) -> str:
    r = document["request"]
    words = [r["app"], f"{_sizes(r['cells'])} cells", f"{r['ranks']} ranks", r["strategy"], f"depth {r['depth']}"]
    return "# Plan: " + ", ".join(words)


def _overview(document: dict) -> str:
    low, high = document["block_cells_min"], document["block_cells_max"]
    blocks = _sizes(high) if low == high else f"{_sizes(low)} to {_sizes(high)}"
    wraps = "".join(letter for letter, on in zip("xyz", document["request"]["periodic"], strict=False) if on)
    rows = [
        ["process grid", _sizes(document["process_grid"])],
        ["block per rank", blocks],
        ["periodic in", wraps or "no dimension"],
    ]
    if len(document["stages"]) == 1:
        rows += _exchange_rows(document | document["stages"][0])
    return _table(rows, ["", "value"])


def _exchange_rows(about: dict) -> list[list[str]]:
    e, dims = about["exchange"], len(about["process_grid"])
    named = []
    for q in e["quantities"]:
        centring = "" if q["centring"] == "cell" else f", {q['centring']}"
        named.append(f"{q['name']} ({q['element_bytes']} bytes{centring})")
    layers = [sides[0] for sides in e["widths"]] or [e["low"]]
    widths = ", ".join(dict.fromkeys(_sizes(sides[:dims]) for sides in layers))
    return [
        ["halo layers", widths + (", edges and corners" if e["corners"] else ", faces only")],
        ["rounds per exchange", str(about["rounds"])],
        ["fields", ", ".join(named)],
    ]


def _who(rank: int, me: int) -> str:
    return "edge of the grid" if rank < 0 else "itself" if rank == me else str(rank)


def _neighbour_table(document: dict) -> str:
    me, dims = document["rank"], len(document["process_grid"])
    at = {tuple(n["direction"]): n["rank"] for n in document["neighbours"]}
    rows = []
    for d in range(dims):
        sides = [tuple(side if k == d else 0 for k in range(dims)) for side in (-1, 1)]
        rows.append(["xyz"[d], *(_who(at[side], me) for side in sides)])
    others = {n["rank"] for n in document["neighbours"]} - {me, -1}
    place, owned = "(" + ", ".join(map(str, document["coords"])) + ")", _box(document["owned"], dims)
    head = f"## Rank {me}, at {place} in the process grid, owns {owned}\n\n"
    tail = f"\n\nRanks around it, edges and corners included: {_some(sorted(others))}." if dims > 1 else ""
    return head + _table(rows, ["dimension", "low neighbour", "high neighbour"]) + tail


def _some(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:MOST_NAMED]))
    return (text or "none") + (", ..." if len(numbers) > MOST_NAMED else "")


def _box(box: dict, dims: int) -> str:
    return "x".join(f"[{low},{high})" for low, high in zip(box["lo"][:dims], box["hi"][:dims], strict=True))


def _message_table(document: dict) -> str:
    dims = len(document["process_grid"])
    rows = []
    for number, m in enumerate(document["messages"]):
        regions = " + ".join(_box(r["box"], dims) for r in m["regions"])
        rows.append([number, m["round"], "to" if m["out"] else "from", m["peer"], m["tag"], m["bytes"], regions])
    if not rows:
        return f"Rank {document['rank']} sends and receives no messages."
    head = f"## Messages of rank {document['rank']} (regions count from its first owned cell)\n\n"
    return head + _table(rows, ["message", "round", "direction", "peer", "tag", "bytes", "regions"])


def _copy_table(document: dict) -> str:
    dims = len(document["process_grid"])
    rows = []
    for c in document["copies"]:
        to = Box(**c["to"])
        rows.append([c["round"], _box(c["to"], dims), _box(vars(to.shifted(c["shift"])), dims), to.volume])
    head = f"## Halos that rank {document['rank']} fills from itself\n\n"
    return head + _table(rows, ["round", "halo", "copied from", "cells"]) if rows else ""


def _totals_table(document: dict) -> str:
    t = document["totals"]
    rows = [
        ["messages sent", t["messages"], t["rank_messages_min"], t["rank_messages_max"]],
        ["bytes sent", t["bytes"], t["rank_bytes_min"], t["rank_bytes_max"]],
        ["ranks sent to", "", t["rank_peers_min"], t["rank_peers_max"]],
        ["bytes copied from itself", t["copy_bytes"], "", ""],
        ["cells", "", t["rank_cells_min"], t["rank_cells_max"]],
    ]
    if "between_nodes_bytes" in document:  # of the request
        rows.insert(2, ["... between nodes", document["between_nodes_bytes"], "", ""])
    tail = f"Largest message: {t['largest_message_bytes']:,} bytes. Rank {t['worst_rank']} sends most bytes."
    head = f"## One exchange, all {t['ranks']} ranks\n\n"
    return head + _table(rows, ["", "sum", "least per rank", "most per rank"]) + "\n\n" + tail


def _program_table(document: dict) -> str:
    program = document.get("program")
    if program is None:
        return ""
    rows = []
    for number, op in enumerate(program["ops"]):
        lane, target = op["lane"].replace("_", "-"), _target(program, op, len(document["process_grid"]))
        rows.append([number, lane, op["kind"], op["slot"], target, _some(op["after"])])
    lane = "all threads run both lanes"
    if program["comm_thread"]:
        lane = "one thread runs the comm lane, then joins"
    if program["device"]:
        lane = f"streams of a device ({document['request']['device']}) next to the host"
    lane += ", sweeps wrap around" if program["wraps"] else ""
    request = document["request"]
    head = f"## Program of rank {document['rank']}: {request['schedule']}, {program['steps']} steps, {lane}\n\n"
    return head + _table(rows, ["number", "lane", "operation", "slot", "on", "after"])


def _target(program: dict, op: dict, dims: int) -> str:
    """Return the target of an operation: messages by number, boxes of copies, the box of a sweep."""
    if op["kind"] in ("barrier", "progress"):
        return ""
    if op["kind"] in ("reduce", "reduced"):
        return f"reduction {op['target']}" if op["target"] >= 0 else "reduction of an earlier stage"
    if op["kind"] in ("gather", "transfer", "scatter"):
        ring = program["rings"][op["target"]]
        boxes = " + ".join(_box(b, dims) for b in ring["boxes"])
        return f"cells for the {'device' if ring['to_device'] else 'host'} {boxes}"
    if op["kind"] == "copy":
        return "halos " + " + ".join(_box(c["to"], dims) for c in program["copy_sets"][op["target"]])
    if op["kind"] != "sweep":
        return "messages " + ", ".join(map(str, program["sets"][op["target"]]))
    sweep = program["sweeps"][op["target"]]
    fused = f" to {sweep['step'] + sweep['levels'] - 1}" if sweep["levels"] > 1 else ""
    where = _box(sweep["region"], dims)
    if any(sweep["twin"]["lo"]) or any(sweep["twin"]["hi"]):
        where += " + " + _box(sweep["twin"], dims)
    name = f"sweep {sweep['number']}, " if sweep["number"] else ""
    return f"{name}{sweep['part']} {where}, step {sweep['step']}{fused}, into slot {sweep['into']}"
