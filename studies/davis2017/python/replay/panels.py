"""The study's printed series as panels: its scaling, its model, its variants, its solver and messages.

Every number comes from a published table. `figures` draws the panels; `pair` adds other measurements to a panel.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from haloscope.studies import published
from haloscope_studies.davis2017.replay import components, hydra_runs, results, variants, whatif

MEASURED, ALSO, MODEL, OURS, HERE = "measured", "also measured", "model", "ours", "here"
MACHINES = {"minerva": "Minerva", "hector": "HECToR", "dawndev": "DawnDev", "hera": "Hera"}
COMPONENTS = ("walltime", "compute", "point_to_point", "update_bounds", "memory", "collectives")
LETTERS = ("A", *variants.PREDECESSOR)
PES, SECONDS, ERROR = "processing elements", "seconds of a run", "model over measured, %"

Row = Mapping[str, str]
Points = Mapping[float | str, float]


@dataclass(frozen=True)
class Series:
    """One line of a panel.

    points: y by x. colour: its number; lines of one subject share it. source: MEASURED by the study, ALSO (the second
    of two measured lines), the study's MODEL, OURS of the same runs, or measured HERE. ends: least and most by x, drawn
    as a band.
    """

    label: str
    points: Points
    colour: int
    source: str = MEASURED
    ends: Mapping[float | str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """One drawing: title, the machine and tables it is printed in, axes, lines. log: the logarithmic axes, of "xy".
    level: the reference y."""

    title: str
    printed: str
    x: str
    y: str
    series: Sequence[Series]
    log: str = "x"
    level: float = 0.0

    def find(self, label: str, source: str = MEASURED) -> Series:
        """Return the line of that label and source. Raises StopIteration if it does not exist."""
        return next(s for s in self.series if (s.label, s.source) == (label, source))


def pair(
    panel: Panel,
    label: str,
    points: Points | Mapping[float, float],
    source: str = MEASURED,
    ends: Mapping | None = None,
) -> Series:
    """Return the points measured here at every x where the line `label` of a panel has a point."""
    theirs = panel.find(label, source)
    kept = {x: y for x, y in points.items() if x in theirs.points}
    return Series(label, kept, theirs.colour, HERE, {x: e for x, e in (ends or {}).items() if x in kept})


@functools.cache
def sheets() -> dict[str, dict[str, Panel]]:
    """Return all panels by figure and name. Takes a second: our model's predictions are computed."""
    return {
        "scaling": {
            "weak": scaling("weak"),
            "strong": scaling("strong"),
            "others": other_machines(),
            "spread": spread(),
            "mapping": mapping(),
            "barriers": barriers(),
        },
        "model": {
            "serial errors": serial_errors(),
            "errors": errors(),
            "other errors": other_errors(),
            "weak model": modelled("weak"),
            "strong model": modelled("strong"),
            "sockets": sockets(),
        },
        "variants": {
            "serial": serial(),
            "weak variants": over_a("weak"),
            "strong variants": over_a("strong"),
            "blocks": blocks(),
            "thread": communication_thread(),
            "overlap": overlap(),
        },
        "solver": {
            "iteration": iteration(),
            "shares": shares(),
            "product": product(),
            "dots": dots(),
            "messages": messages(),
            "all-reduce": all_reduce(),
        },
    }


# ---- reading ---------------------------------------------------------------------------------------------------------


def rows(table: str, **wanted: str) -> list[Row]:
    """Return the rows of a published table with these entries."""
    return [r for r in published("davis2017", table) if all(r[name] == value for name, value in wanted.items())]


def line(found: Iterable[Row], x: str, y: str, factor: float = 1.0) -> dict[float | str, float]:
    """Return y by x, which is a number or a name."""
    return {r[x] if r[x].isidentifier() else float(r[x]): factor * float(r[y]) for r in found}


def over_processes(
    found: Sequence[Row], x: str, factor: float = 1.0
) -> tuple[Points, dict[float | str, tuple[float, float]]]:
    """Return the mean of times over processes by x, and the least and most."""
    least, mean, most = (
        line([r for r in found if r["statistic"] == s], x, "time_s", factor) for s in ("min", "mean", "max")
    )
    return mean, {place: (least[place], most[place]) for place in mean}


def by(found: Iterable[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    """Return rows by their entries in some columns, in the table's order."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def printed(found: Iterable[Row]) -> str:
    """Return the machines and tables of rows, as a panel names them."""
    found = list(found)
    machines = dict.fromkeys(MACHINES[r.get("machine", "minerva")] for r in found)
    tables = list(dict.fromkeys(r["source_table"] for r in found))
    return f"{', '.join(machines)}, published: table{'s' * (len(tables) > 1)} {', '.join(tables)}"


def cells(found: Sequence[Row]) -> str:
    """Return the cells of rows of one size."""
    return f"{found[0]['cells_per_side']}^3 cells"


def words(name: str) -> str:
    """Return a column's word as text."""
    return name.replace("_", " ")


# ---- scaling ---------------------------------------------------------------------------------------------------------


def scaling(kind: str) -> Panel:
    """Return walltime and components of weak or strong scaling on Minerva, each by the statistic that counts."""
    found = rows("scaling_components", machine="minerva", scaling=kind)
    series = [
        Series(words(name), line([r for r in found if r["component"] == name], "pes", "time_s"), colour)
        for colour, name in enumerate(COMPONENTS)
    ]
    title = f"{kind.title()} scaling, {cells(found)}{' a PE' * (kind == 'weak')}"
    return Panel(title, printed(found), PES, SECONDS, series, log="xy")


def other_machines() -> Panel:
    """Return walltime and components of weak scaling on DawnDev and Hera."""
    found = rows("scaling_components", machine="hera") + rows("scaling_components", machine="dawndev")
    series = [
        Series(
            f"{MACHINES[machine]} {words(name)}",
            line(own, "pes", "time_s"),
            COMPONENTS.index(name),
            MEASURED if machine == "hera" else ALSO,
        )
        for (machine, name), own in by(found, "machine", "component").items()
    ]
    return Panel(f"Weak scaling, {cells(found)} a PE", printed(found), PES, SECONDS, series, log="xy")


def spread() -> Panel:
    """Return the mean of components over processes, from least to most, in weak scaling."""
    found = rows("process_spread", scaling="weak")
    series = []
    for (name,), own in by(found, "component").items():
        mean, ends = over_processes(own, "pes")
        series.append(Series(words(name), mean, COMPONENTS.index(name), MEASURED, ends))
    return Panel(f"Spread over processes, {cells(found)} a PE", printed(found), PES, SECONDS, series, log="xy")


def mapping() -> Panel:
    """Return walltime and the most compute of weak scaling, by placement of processes."""
    found = rows("mapping")
    colours = list(by(found, "mapping"))
    series = [
        Series(
            f"{words(rule)}, {words(quantity)}",
            line(own, "pes", "time_s"),
            colours.index((rule,)),
            MEASURED if quantity == "walltime" else ALSO,
        )
        for (rule, quantity), own in by(found, "mapping", "quantity").items()
    ]
    return Panel("Placement of processes, weak scaling", printed(found), PES, SECONDS, series)


def barriers() -> Panel:
    """Return walltimes of weak scaling without and with a barrier before each exchange."""
    found = rows("barriered")
    columns = {"as studied": "original_s", "with barriers": "barriered_s"}
    series = [Series(label, line(found, "pes", name), n) for n, (label, name) in enumerate(columns.items())]
    return Panel("A barrier before each exchange, weak scaling", printed(found), PES, SECONDS, series)


# ---- the model -------------------------------------------------------------------------------------------------------


def _errors(found: Sequence[Row], x: str, label: str, colour: int) -> list[Series]:
    """Return signed errors of the study's model and of ours in the same runs, in per cent."""
    ours: dict[float | str, float] = {}
    for r in found:
        run = hydra_runs.run(r["scaling"], int(r["pes"]), int(r["cells_per_side"]))
        ours[float(r[x])] = 100 * (results.minerva(run).total / float(r["measured_s"]) - 1)
    theirs = line(found, x, "error_recomputed_percent")
    return [Series(label, theirs, colour, MODEL), Series(label, ours, colour, OURS)]


def serial_errors() -> Panel:
    """Return signed errors of models in serial runs."""
    found = rows("validation", machine="minerva", scaling="serial")
    return Panel(
        "Errors, serial runs",
        printed(found),
        "cells per side",
        ERROR,
        _errors(found, "cells_per_side", "serial", 0),
        log="",
    )


def errors() -> Panel:
    """Return signed errors of models in weak and strong scaling on Minerva."""
    found = {kind: rows("validation", machine="minerva", scaling=kind) for kind in components.SCALINGS}
    series = [s for colour, (kind, own) in enumerate(found.items()) for s in _errors(own, "pes", kind, colour)]
    sizes = ", and ".join(f"{kind}, {cells(own)}{' a PE' * (kind == 'weak')}" for kind, own in found.items())
    return Panel(f"Errors: {sizes}", printed(r for own in found.values() for r in own), PES, ERROR, series)


def other_errors() -> Panel:
    """Return signed errors of the study's model on DawnDev and Hera."""
    found = [r for r in rows("validation") if r["machine"] != "minerva"]
    series = [
        Series(f"{MACHINES[machine]}, {side}^3 cells", line(own, "pes", "error_recomputed_percent"), colour, MODEL)
        for colour, ((machine, side), own) in enumerate(by(found, "machine", "cells_per_side").items())
    ]
    return Panel("Errors, weak scaling", printed(found), PES, ERROR, series)


def modelled(kind: str) -> Panel:
    """Return components of a scaling as measured, by the study's model and by ours."""
    found = rows("validation_components", scaling=kind)
    series = []
    for name, colour in ((name, colour) for colour, name in enumerate(COMPONENTS) if name != "walltime"):
        own = [r for r in found if r["component"] == name]
        measured = line(own, "pes", "measured_s")
        ours = {float(c.ranks): c.ours for c in components.minerva() if (c.scaling, c.name) == (kind, name)}
        series += [
            Series(words(name), measured, colour),
            Series(words(name), line(own, "pes", "model_s"), colour, MODEL),
            Series(words(name), {x: y for x, y in ours.items() if x in measured}, colour, OURS),
        ]
    title = f"Components, {kind} scaling, {cells(found)}{' a PE' * (kind == 'weak')}"
    return Panel(title, printed(found), PES, SECONDS, series, log="xy")


def sockets() -> Panel:
    """Return walltimes of weak scaling by active cores of a socket: the study's what-if and ours."""
    found = rows("cores_per_socket")
    series = []
    for colour, ((active, kind), own) in enumerate(by(found, "active_cores_per_socket", "kind").items()):
        label = f"{active} core{'s' * (active != '1')} a socket"
        series.append(Series(label, line(own, "pes", "time_s"), colour, MEASURED if kind == "measured" else MODEL))
        ours: Points = {float(r["pes"]): _with_active(int(r["pes"]), int(active)) for r in own}
        series.append(Series(label, ours, colour, OURS))
    return Panel("Fewer active cores of a socket, weak scaling", printed(found), PES, SECONDS, series)


def _with_active(pes: int, active: int) -> float:
    run = hydra_runs.run("weak", pes)
    [found] = whatif.cores_per_socket(hydra_runs.validated(), results.machine("minerva"), run, (active,))
    return found.prediction.total


# ---- variants --------------------------------------------------------------------------------------------------------


def iterations(side: int) -> int:
    """Return the iterations of a run with side^3 cells."""
    return sum(hydra_runs.iterations(side).values())


def serial() -> Panel:
    """Return the time of a cell and iteration in serial runs of each variant: walltimes over table 4.3's iterations."""
    found = rows("variant_walltimes", scaling="serial")
    series = []
    for (letter,), own in by(found, "variant").items():
        times = line(own, "cells_per_side", "time_s", 1e9)
        per_cell = {n: s / iterations(int(n)) / float(n) ** 3 for n, s in times.items()}
        series.append(Series(letter, per_cell, LETTERS.index(letter)))
    note = printed([*found, *rows("iterations")])
    return Panel("Serial runs", note, "cells per side", "ns per cell and iteration", series, log="")


def over_a(kind: str) -> Panel:
    """Return the speed of each variant over A at the same processing elements; of two MPI libraries the first."""
    base = rows("scaling_components", machine="minerva", scaling=kind, component="walltime")
    of_a = line(base, "pes", "time_s")
    found = [r for r in rows("variant_walltimes", scaling=kind) if r["variant"] != "A"]
    series = []
    for (letter,), own in sorted(by(found, "variant").items()):
        times = line(reversed(own), "pes", "time_s")
        series.append(Series(letter, {x: of_a[x] / times[x] for x in sorted(times)}, LETTERS.index(letter)))
    title = f"Variants, {kind} scaling, {cells(found)}{' a PE' * (kind == 'weak')}"
    return Panel(title, printed([*base, *found]), PES, "times as fast as A", series, level=1.0)


def blocks() -> Panel:
    """Return walltimes of variant J by the loops that a thread takes at a time, and of I with even shares."""
    found = rows("openmp_block_size")
    letter, kind, pes = variants.STATIC
    [static] = rows("variant_walltimes", variant=letter, scaling=kind, pes=str(pes))
    dynamic = line(found, "block", "time_s")
    even = dict.fromkeys((min(dynamic), max(dynamic)), float(static["time_s"]))
    series = [
        Series("J, blocks as they come", dynamic, LETTERS.index("J")),
        Series(f"{letter}, even shares", even, LETTERS.index(letter), ALSO),
    ]
    title = f"OpenMP block size, {cells([static])}, {pes} threads"
    return Panel(title, printed([*found, static]), "inner loops a block", SECONDS, series)


def communication_thread() -> Panel:
    """Return seconds a call of a remap stage in K and in L, where one thread communicates meanwhile, means over
    processes.
    """
    means = rows("overlap_functions", statistic="mean")
    found = [r for r in means if r["variant"] in ("K", "L") and r["function"].startswith("Madvm")]
    colours = list(by(found, "function"))
    series = [
        Series(
            f"{letter} {function}",
            line(own, "pes", "time_s"),
            colours.index((function,)),
            MEASURED if letter == "K" else ALSO,
        )
        for (function, letter), own in by(found, "function", "variant").items()
    ]
    title = f"A thread that communicates, {cells(found)} a PE"
    return Panel(title, printed(found), PES, "seconds a call", series, log="xy")


def overlap() -> Panel:
    """Return seconds a call of exchanges and kernels in H, which overlaps them, and in F and G, which do not."""
    found = [r for r in rows("overlap_functions") if r["variant"] in ("F", "G", "H")]
    series = []
    for (letter,), own in sorted(by(found, "variant").items()):
        mean, ends = over_processes(own, "function")
        series.append(Series(letter, mean, LETTERS.index(letter), ALSO if letter == "H" else MEASURED, ends))
    title = f"Overlap by messages, {cells(found)} a PE, {found[0]['pes']} PEs"
    return Panel(title, printed(found), "", "seconds a call", series, log="y")


# ---- solver and messages ---------------------------------------------------------------------------------------------


def iteration() -> Panel:
    """Return the time of an iteration of conjugate gradients, base and coalesced, on both machines."""
    found = rows("cg_iteration_time")
    solvers = list(by(found, "solver"))
    series = [
        Series(
            f"{MACHINES[machine]} {solver}",
            line(own, "pes", "time_per_iteration_s", 1e3),
            solvers.index((solver,)),
            MEASURED if machine == "hector" else ALSO,
        )
        for (machine, solver), own in by(found, "machine", "solver").items()
    ]
    return Panel("Conjugate gradients, one iteration", printed(found), PES, "ms an iteration", series, log="xy")


def _parts(table: str, column: str, y: str, factor: float = 1.0) -> list[Series]:
    groups = by(rows(table), column)
    return [Series(name, line(own, "pes", y, factor), colour) for colour, ((name,), own) in enumerate(groups.items())]


def shares() -> Panel:
    """Return the share of each function in an iteration."""
    series = _parts("cg_shares", "function", "share_percent")
    return Panel("Shares of an iteration", printed(rows("cg_shares")), PES, "%", series)


def product() -> Panel:
    """Return the parts of a product of matrix and vector."""
    series = _parts("cg_matmult_parts", "part", "time_s", 1e3)
    return Panel("MatMult by part", printed(rows("cg_matmult_parts")), PES, "ms a call", series, log="xy")


def dots() -> Panel:
    """Return work and all-reduce of the dot products of the base method, and of an all-reduce alone."""
    found = [r for r in rows("cg_calls") if r["solver"] in ("base", "none")]
    series = []
    for colour, ((function, part), own) in enumerate(by(found, "function", "part").items()):
        mean, ends = over_processes(own, "pes", 1e6)
        if mean:
            series.append(Series(f"{function} {part}", mean, colour, MEASURED, ends))
        else:
            series.append(Series(f"{function} alone", line(own, "pes", "time_s", 1e6), colour, ALSO))
    return Panel("Dot products", printed(found), PES, "us a call", series, log="xy")


def messages() -> Panel:
    """Return half round trips of one message alone by its size, inside a node and between nodes."""
    found = rows("pingpong", quantity="half_round_trip", pairs="1")
    machines = list(by(found, "machine"))
    series = [
        Series(
            f"{MACHINES[machine]}, {'in a node' if place == 'intra' else 'between nodes'}",
            line(own, "message_bytes", "time_us"),
            machines.index((machine,)),
            ALSO if place == "intra" else MEASURED,
        )
        for (machine, place), own in by(found, "machine", "placement").items()
    ]
    return Panel("Ping-pong, half a round trip", printed(found), "bytes", "us", series, log="xy")


def all_reduce() -> Panel:
    """Return the time of an all-reduce alone."""
    found = rows("allreduce")
    series = [
        Series(f"{MACHINES[machine]}, {size} bytes", line(own, "processes", "time_us"), colour)
        for colour, ((machine, size), own) in enumerate(by(found, "machine", "message_bytes").items())
    ]
    return Panel("All-reduce by itself", printed(found), "processes", "us", series, log="xy")
