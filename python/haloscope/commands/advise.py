"""`haloscope advise`: all ways to exchange halos, priced from a machine profile, ranked, explained; and the code to use
one.
"""

from __future__ import annotations

import dataclasses
import re
import shlex

import click

from haloscope import terminal
from haloscope.commands import predict
from haloscope.errors import UsageProblem
from haloscope.measure.request import words_of
from haloscope.options import ChoiceOptions, app_of, one_choice, option
from haloscope.options import command as command_of

DECIDED = (
    "strategy",
    "stage_strategies",
    "schedule",
    "substeps",
    "depth",
    "tiles",
    "sharing",
    "pack",
    "capture",
    "barrier",
    "device_kernel",
    "device_block",
    "reorder",
    "process_grid",
)


@command_of(
    short_help="Rank all strategies, schedules and depths from a profile, and say why.",
    choice=ChoiceOptions(without=(*predict.HERE, *DECIDED), usual={"ranks": "2"}),
)
@click.argument("app")
@option("--depth", "-d", default="1,2,4,8,16", metavar="LIST", help="Time steps per exchange to try. [1,2,4,8,16]")
@option(
    "--reorder",
    default="none,nodes",
    metavar="LIST",
    group="nodes",
    help="Orders of ranks to try, where they differ. [none,nodes]",
)
@option(
    "--process-grid",
    default="",
    metavar="LIST",
    group="grid",
    help="Rules or process grids to try, where they differ: slabs,cubic,8x2. [the app's rule]",
)
@option("--top", type=click.IntRange(1), default=10, help="Rows of the table. [10]")
@option("--members", is_flag=True, help="List who is in each row.")
@predict.MACHINE
def command(app, depth, reorder, process_grid, top, members, profile, samples, refresh, as_json, **options):
    """Advise on the halo exchange of APP: which strategy, schedule and depth, why, and what would change the answer.

    \b
    haloscope advise advection3d --cells 420 --ranks 64 --profile machine.json
    haloscope advise laplace2d --cells 8192 --ranks 16 --depth 1,2,4 --profile machine.json
    haloscope advise laplace2d --cells 4096 --profile machine.json --refresh

    Nothing is measured, but with --refresh the pace of this machine. A row stands for all candidates that this profile
    cannot tell apart, and names the simplest near its fastest: fewest options off default, then the simplest transport.
    """
    from haloscope.advice import advise as model
    from haloscope.measure import lists
    from haloscope.model import profile as profiles

    machine, pace = predict.at_pace(profiles.load(profile), refresh)
    choice = one_choice(app_of(app, options), options | {"device": predict.device_of(options["device"], machine)})
    depths = lists.numbers(depth, "--depth")
    if min(depths) < 1:
        raise UsageProblem(f"--depth {min(depths)} is not possible; use 1 or more")
    orders = lists.names(reorder, model.ORDERS, "--reorder")
    grids = [text for text in process_grid.split(",") if text]
    advice = model.advise(choice, machine, predict.setting_of(options), depths, samples, orders, grids)
    assumed = "\n\n".join(filter(None, (nodes_assumed(advice.best.prediction, machine, options["mapping"]), pace)))
    terminal.echo(terminal.json_text(document(advice)) if as_json else markdown(advice, machine, assumed, top, members))


def document(advice) -> dict:
    """Return advice as plain data."""
    return {
        "schema": "haloscope.advice",
        "schema_version": 1,
        "candidates": [
            {
                **dataclasses.asdict(c.prediction),
                "choice": c.prediction.choice.to_json(),
                "equal_to_best": c.equal,
                "group": c.group,
            }
            for c in advice.candidates
        ],
        "pick": advice.pick.prediction.choice.to_json(),
        "groups": [
            {"simplest": g.simplest.prediction.choice.to_json(), "members": len(g.members)} for g in advice.groups
        ],
        "best_by_depth": {depth: c.prediction.choice.to_json() for depth, c in advice.by_depth.items()},
        "changes": advice.changes,
        "refused": advice.refused,
    }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def nodes_assumed(best, machine, mapping: str) -> str:
    """Say on which nodes ranks are taken to run, and of which network the profile is."""
    m, c = machine.machine, best.choice
    ranks = f"{c.ranks} rank{'s' * (c.ranks > 1)}" + f" of {c.threads} threads" * (c.threads > 1)
    nodes = f"{best.nodes} node{'s' * (best.nodes > 1)}"
    split = ", which --nodes makes of the profile's" if c.nodes > 1 else f", placed by rule {mapping}"
    text = f"Nodes: {ranks} on {nodes} of {m['sockets_per_node']} x {m['cores_per_socket']} cores{split}."
    lacking = [text for text in best.outside if "which the profile lacks" in text]
    for note in dict.fromkeys([*best.notes, *lacking]):
        text += f" {_sentence(note)}"
    if link := m.get("emulated_network"):
        text += (
            f" The profile is of an emulated network ({', '.join(f'{k} {v}' for k, v in link.items())}), no real one."
        )
    return text


def markdown(advice, machine, assumed: str, top: int = 10, members: bool = False) -> str:
    """Return the ranking, the best depth, what would change the answer, and the lines of code to use it.

    assumed: of nodes and pace, in words. top: groups that are shown. members: list who is in them.
    """
    pick = advice.pick.prediction.choice
    parts = [
        _title(advice),
        assumed,
        _answer(advice),
        _ranking(advice, top),
        _members(advice, top) if members else "",
        _depths(advice),
    ]
    if advice.changes:
        parts.append("## What would change the answer\n\n" + "\n".join(f"- {text}" for text in advice.changes))
    parts += [code_for(pick), shape_hint(pick, machine), _left_out(advice)]
    return "\n\n".join(filter(None, parts))


def _title(advice) -> str:
    c = advice.best.prediction.choice
    return (
        f"# Advice: {c.app}, {'x'.join(map(str, c.cells))} cells, {c.ranks} ranks\n\n"
        f"Machine profile: {advice.best.prediction.profile}."
    )


def _answer(advice) -> str:
    from haloscope.advice.advise import name
    from haloscope.report import tables

    pick, best, others = advice.pick.prediction, advice.best.prediction, len(advice.equals) - 1
    if not others:
        return f"**{name(pick.choice)}** is predicted fastest. {_sentence(pick.reason)}"
    unit, factor = tables.unit((pick.time_s, best.time_s))
    fastest = f"; fastest of them by {tables.number((pick.time_s - best.time_s) * factor)} {unit}: {name(best.choice)}"
    return (
        f"**{name(pick.choice)}** is the simplest of {others + 1} candidates that cannot be told apart: no winner"
        f"{fastest * (pick is not best)}. {_sentence(pick.reason)}"
    )


def _ranking(advice, top: int) -> str:
    from haloscope.report import tables

    shown = advice.groups[:top]
    unit, factor = tables.unit(g.simplest.time_s for g in shown)
    best, rows = advice.best.time_s, []
    choices = (advice.best.asked, *(g.simplest.prediction.choice for g in shown))
    arranged = [field for field in ("process_grid", "reorder") if len({getattr(c, field) for c in choices}) > 1]
    for place, group in enumerate(shown, 1):
        p = group.simplest.prediction
        ends = " .. ".join(tables.number(c.time_s * factor) for c in (group.members[0], group.members[-1]))
        rows.append(
            [
                place,
                p.choice.strategy,
                p.choice.schedule,
                *(getattr(p.choice, field) or "the app's" for field in arranged),
                f"{p.choice.depth}{f' {p.choice.substeps}' if p.choice.depth > 1 else ''}",
                tables.number(p.time_s * factor),
                f"{p.time_s / best:.2f}",
                len(group.members) - 1 or "",
                ends if len(group.members) > 1 else "",
                p.reason,
            ]
        )
    titles = [field.replace("_", " ") for field in arranged]
    headers = [
        "#",
        "strategy",
        "schedule",
        *titles,
        "depth",
        f"step ({unit})",
        "times the best",
        "others",
        f"all of them ({unit})",
        "why",
    ]
    return tables.markdown(rows, headers, right=("#", *headers[-5:-1]))


def _members(advice, top: int) -> str:
    """List the candidates of the groups shown, the fastest of each first."""
    from haloscope.advice.advise import name
    from haloscope.report import tables

    lists = []
    for place, group in enumerate(advice.groups[:top], 1):
        unit, factor = tables.unit(c.time_s for c in group.members)
        lines = [f"- {name(c.prediction.choice)}: {tables.number(c.time_s * factor)} {unit}" for c in group.members]
        lists.append(f"Row {place}:\n\n" + "\n".join(lines))
    return "## Who is in each row\n\n" + "\n\n".join(lists)


def _depths(advice) -> str:
    from haloscope.report import tables

    best = advice.by_depth
    if len(best) < 2:
        return ""
    unit, factor = tables.unit(c.time_s for c in best.values())
    texts = [f"{depth}: {tables.number(c.time_s * factor)} {unit}" for depth, c in best.items()]
    return f"Best step by depth: {', '.join(texts)}."


def code_for(c) -> str:
    """Return the code that uses a choice in the user's own program, and the command that measures it here."""
    from haloscope import core

    step = core.step_of(c)
    if c.device or len(step.stages) > 1 or len(step.quantities) > 1:
        return f"## To measure it\n\n`{measuring_command(c)}`"
    layout, halo = core.make_layout(c), max(core.exchange_spec(c).low)
    cells, wraps = ", ".join(map(str, c.cells)), ", ".join(str(p).lower() for p in layout.periodic)
    memory = ", .memory = haloscope::MemoryKind::shared" if core.needs_shared_fields(c.strategy) else ""
    order = f', .process_grid = "{c.process_grid}"' * bool(c.process_grid)
    order += ", .reorder = true" * (c.reorder != "none")
    real = {"f64": "double", "f32": "float"}[c.real]
    plain = c.schedule == "bulk" and c.depth == 1 and c.threads == 1
    in_place = any(sweep.in_place for stage in step.stages for sweep in stage.sweeps)
    return (
        f"## To use it\n\n```cpp\n"
        f"haloscope::Grid<{layout.dims}> grid{{comm, {{.cells = {{{cells}}}, .periodic = {{{wraps}}}{order}}}}};\n"
        f"haloscope::Field<{real}, {layout.dims}> u{{grid, {{.halo = {halo}, .slots = 2{memory}}}}};\n"
        f"{_exchange_code(c) if plain or in_place else _stepper_code(c)}```\n\n"
        f"To measure it: `{measuring_command(c)}`"
    )


def _exchange_code(c) -> str:
    verbs = (
        "halo.exchange(slot);"
        if c.schedule == "bulk"
        else "halo.start(slot);  /* interior */  halo.finish();  /* boundary */"
    )
    return f'auto halo = haloscope::make_exchange(grid, {{u}}, "{c.strategy}");\n{verbs}\n'


def _stepper_code(c) -> str:
    """Return the lines of a Stepper, whose sweep is the user's function over boxes."""
    members = [f'choice.schedule = "{c.schedule}";', f'choice.strategy = "{c.strategy}";']
    members += [f"choice.threads = {c.threads};"] if c.threads > 1 else []
    if c.depth > 1:
        members += [f"choice.depth = {c.depth};", f"choice.substeps = haloscope::Substeps::{c.substeps};"]
    fused = ", {.fused = true}" if c.depth > 1 and c.substeps == "blocked" else ""
    note = "  // sweep: all steps of a tile at once, see docs/library.md" if fused else ""
    return (
        f"haloscope::Choice choice;\n{' '.join(members)}\n"
        f"haloscope::Stepper step{{grid, {{u}}, choice, sweep{fused}}};{note}\nstep.run(steps);\n"
    )


def measuring_command(c) -> str:
    """Return the command that measures a choice."""
    return f"haloscope run {shlex.join(words_of(c))}"


def shape_hint(c, machine) -> str:
    """Return the device block shape that the profile found to be faster than the kernel's own, if there is one."""
    from haloscope import core

    found = machine.data.get("device", {}).get("shapes", {}).get(core.kernel_of(c)) if c.device else None
    if not found:
        return ""
    return (
        f"Sweeps took {found['times']:.2f} of their time in other blocks when this machine was calibrated: "
        f"`--device-kernel {found['kernel']} --device-block {found['block']}`."
    )


def _left_out(advice) -> str:
    """List the candidates without a price, the most frequent first."""
    lacking = {reason: count for reason, count in advice.refused.items() if reason.startswith("profile ")}
    if not lacking:
        return ""
    transports = re.compile("has no cost of transport '([^']+)'")
    names = sorted({found[1] for reason in lacking if (found := transports.search(reason))})
    others = sorted(reason for reason in lacking if not transports.search(reason))
    said = [f"Not priced, as the profile does not know them: {', '.join(names)}."] if names else []
    return "\n\n".join(said + [f"Not priced: {reason}." for reason in others])
