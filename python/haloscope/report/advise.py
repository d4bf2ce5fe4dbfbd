"""Advice for readers: the ranking, the best depth, changes that would alter the answer, and the JSON document."""

from __future__ import annotations

import dataclasses
import re

from haloscope.advice.advise import Advice, name
from haloscope.model.predict import Prediction
from haloscope.model.profile import Profile
from haloscope.records.text import count_of
from haloscope.report import tables
from haloscope.report.code import code_for, shape_hint


def document(advice: Advice) -> dict:
    """Return advice as plain data."""
    return {
        "schema": "haloscope.advice",
        "schema_version": 1,
        "candidates": [
            dataclasses.asdict(c.prediction)
            | {"choice": c.choice.to_json(), "equal_to_best": c.equal, "group": c.group}
            for c in advice.candidates
        ],
        "pick": advice.pick.choice.to_json(),
        "groups": [{"simplest": g.simplest.choice.to_json(), "members": len(g.members)} for g in advice.groups],
        "best_by_depth": {depth: c.choice.to_json() for depth, c in advice.by_depth.items()},
        "changes": advice.changes,
        "refused": advice.refused,
    }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def nodes_assumed(best: Prediction, machine: Profile, mapping: str) -> str:
    """Return a sentence with the nodes on which ranks are assumed to run, and the network of the profile."""
    m, c = machine.machine, best.choice
    ranks = count_of(c.ranks, "rank") + f" of {c.threads} threads" * (c.threads > 1)
    nodes = count_of(best.nodes, "node")
    split = ", which --nodes makes of the profile's" if c.nodes > 1 else f", placed by rule {mapping}"
    text = f"Nodes: {ranks} on {nodes} of {m['sockets_per_node']} x {m['cores_per_socket']} cores{split}."
    lacking = [text for text in best.outside if "which the profile lacks" in text]
    for note in dict.fromkeys([*best.notes, *lacking]):
        text += f" {_sentence(note)}"
    if link := m.get("emulated_network"):
        numbers = ", ".join(f"{name} {value}" for name, value in link.items())
        text += f" The profile is of an emulated network ({numbers}), not a real one."
    return text


def markdown(advice: Advice, machine: Profile, mapping: str, pace: str, top: int = 10, members: bool = False) -> str:
    """Return the ranking, the best depth, changes that would alter the answer, and the lines of code to use it.

    mapping: the rule that places ranks. pace: a sentence on the machine's speed. top: number of groups shown.
    members: also list the members of these groups.
    """
    pick = advice.pick.choice
    parts = [
        _title(advice),
        nodes_assumed(advice.best.prediction, machine, mapping),
        pace,
        _answer(advice),
        _ranking(advice, top),
        _members(advice, top) if members else "",
        _depths(advice),
    ]
    if advice.changes:
        parts.append("## Changes that would alter the answer\n\n" + "\n".join(f"- {text}" for text in advice.changes))
    parts += [code_for(pick), shape_hint(pick, machine), _left_out(advice)]
    return "\n\n".join(filter(None, parts))


def _title(advice: Advice) -> str:
    c, profile = advice.best.choice, advice.best.prediction.profile
    return f"# Advice: {c.app}, {c.shape} cells, {c.ranks} ranks\n\nMachine profile: {profile}."


def _answer(advice: Advice) -> str:
    pick, best, others = advice.pick.prediction, advice.best.prediction, len(advice.equals) - 1
    if not others:
        return f"**{name(pick.choice)}** is predicted fastest. {_sentence(pick.reason)}"
    unit, factor = tables.unit((pick.time_s, best.time_s))
    fastest = f"; fastest of them by {tables.number((pick.time_s - best.time_s) * factor)} {unit}: {name(best.choice)}"
    return (
        f"**{name(pick.choice)}** is the simplest of {others + 1} indistinguishable candidates: no winner"
        f"{fastest * (pick is not best)}. {_sentence(pick.reason)}"
    )


def _ranking(advice: Advice, top: int) -> str:
    shown = advice.groups[:top]
    unit, factor = tables.unit(g.simplest.time_s for g in shown)
    best, rows = advice.best.time_s, []
    choices = (advice.requested, *(g.simplest.choice for g in shown))
    arranged = [field for field in ("process_grid", "reorder") if len({getattr(c, field) for c in choices}) > 1]
    for place, group in enumerate(shown, 1):
        p = group.simplest.prediction
        arrangement = [getattr(p.choice, field) or "the app's" for field in arranged]
        depth = f"{p.choice.depth}" + f" {p.choice.substeps}" * (p.choice.depth > 1)
        times = [tables.number(p.time_s * factor), f"{p.time_s / best:.2f}"]
        ends = " .. ".join(tables.number(c.time_s * factor) for c in (group.members[0], group.members[-1]))
        others = [len(group.members) - 1, ends] if len(group.members) > 1 else ["", ""]
        rows.append([place, p.choice.strategy, p.choice.schedule, *arrangement, depth, *times, *others, p.reason])
    titles = ["strategy", "schedule", *(field.replace("_", " ") for field in arranged), "depth"]
    headers = ["#", *titles, f"step ({unit})", "times the best", "others", f"all of them ({unit})", "why"]
    return tables.markdown(rows, headers, right=("#", *headers[-5:-1]))


def _members(advice: Advice, top: int) -> str:
    """List the candidates of the groups shown, the fastest of each group first."""
    lists = []
    for place, group in enumerate(advice.groups[:top], 1):
        unit, factor = tables.unit(c.time_s for c in group.members)
        lines = [f"- {name(c.choice)}: {tables.number(c.time_s * factor)} {unit}" for c in group.members]
        lists.append(f"Row {place}:\n\n" + "\n".join(lines))
    return "## Members of each row\n\n" + "\n\n".join(lists)


def _depths(advice: Advice) -> str:
    best = advice.by_depth
    if len(best) < 2:
        return ""
    unit, factor = tables.unit(c.time_s for c in best.values())
    texts = [f"{depth}: {tables.number(c.time_s * factor)} {unit}" for depth, c in best.items()]
    return f"Best step by depth: {', '.join(texts)}."


def _left_out(advice: Advice) -> str:
    """List the reasons why candidates have no predicted time."""
    lacking = [reason for reason in advice.refused if reason.startswith("profile ")]
    transports = re.compile("has no cost of transport '([^']+)'")
    names = sorted({found[1] for reason in lacking if (found := transports.search(reason))})
    others = sorted(reason for reason in lacking if not transports.search(reason))
    lines = [f"Not priced, as the profile does not know them: {', '.join(names)}."] if names else []
    return "\n\n".join(lines + [f"Not priced: {reason}." for reason in others])
