"""The library call `haloscope.best`: the fastest exchange for a grid by a machine profile, as one value. No MPI, no clock.

It chooses as `haloscope advise` does. C++ programs get the same answer from `haloscope::best`, which asks `haloscope
best`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from haloscope import core
from haloscope.advice import advise
from haloscope.errors import NotAvailable, UsageProblem, unknown_name
from haloscope.model import predict, price
from haloscope.model import profile as profiles

STANDARD = {2: "laplace2d", 3: "laplace3d"}  # the app that stands for a program that names none, by dimensions


@dataclass(frozen=True)
class Best:
    """The choice predicted fastest, and how sure that is; times in seconds per time step.

    interval: 90 % of time_s, None where the profile gives none. reason: what the time consists of. equals: choices that
    this profile cannot tell from it, fastest first; () when it is a clear winner. notes: what a reader must know.
    """

    choice: core.Choice
    profile: str
    time_s: float
    interval: tuple[float, float] | None
    reason: str
    equals: tuple[core.Choice, ...]
    notes: tuple[str, ...]

    @property
    def wins(self) -> bool:
        """Whether it can be told from the runner-up; if not, measure it and its equals with `haloscope run`."""
        return not self.equals

    @property
    def halo(self) -> int:
        """The ghost layers on every side that a field needs for it."""
        return _layers(self.choice)

    @property
    def shared_memory(self) -> bool:
        """Whether it needs fields in memory that the ranks of a node share."""
        return core.needs_shared_fields(self.choice.strategy)


def best(
    app: str | int,
    cells: int | Sequence[int],
    ranks: int,
    profile: str | Path | profiles.Profile,
    *,
    periodic: Sequence[bool] = (),
    process_grid: str = "",
    threads: int = 1,
    real: str = "f64",
    form: str = "",
    nodes: int = 0,
    depths: Sequence[int] = advise.DEPTHS,
    seconds_per_cell: float | None = None,
    fused: bool = False,
    halo: int | None = None,
    shared_memory: bool = True,
    samples: int = predict.SAMPLES,
    here: Mapping[str, str] | None = None,
) -> Best:
    """Return the strategy, schedule, depth and substeps that are predicted fastest.

    app: the app whose sweep is like yours, or the dimensions of the grid (2: laplace2d, 3: laplace3d). cells: global, per
    dimension or one number for all. ranks, threads per rank, nodes to split the ranks over (0: the profile's, filled one
    after another). profile: a shipped name, the path of a JSON file, or a loaded one. periodic: per dimension, () = all.
    process_grid: rule or "2x3", "" = the app's rule. depths: time steps per exchange to choose from, each >= 1.
    seconds_per_cell: of your own sweep, > 0: one cell and step on one thread while all ranks work; it replaces the
    profile's kernel. fused: your program can apply all sub-steps of a deep halo tile by tile in the cache (substeps
    blocked), as fast as the app does. halo: ghost layers that the fields have room for, None = any. shared_memory:
    whether fields may lie in memory that the ranks of a node share. samples: draws of the profile's parameters. here:
    "cpu" and "mpi_library" of the program that asks; where the profile has others, a note says so.
    Raises UsageProblem for a request or profile that cannot be right, NotAvailable when the profile lacks what all choices
    need. Cost: a prediction of every legal choice: a few seconds, or tens of seconds for thousands of ranks.
    """
    machine = profile if isinstance(profile, profiles.Profile) else profiles.load(profile)
    choice, notes = _asked(app, cells, periodic)
    given = {
        "ranks": ranks,
        "process_grid": process_grid,
        "threads": threads,
        "real": real,
        "form": form,
        "nodes": nodes,
    }
    choice = replace(choice, **given)
    _check(choice)
    cpus, libraries = (filter(None, [(here or {}).get(key)]) for key in ("cpu", "mpi_library"))
    notes += machine.foreign(cpus, libraries, "this program")
    depths, left_out = _fitting(choice, depths, halo)
    notes += left_out
    if not fused or seconds_per_cell is not None:
        machine = profiles.Profile({key: part for key, part in machine.data.items() if key != "fused"})
    if not shared_memory:
        machine = _without_shared_fields(machine)
    if seconds_per_cell is not None:
        machine = _with_kernel(machine, price.kernel_of(choice), seconds_per_cell)
    _require_kernel(machine, choice)
    found = advise.advise(choice, machine, depths=depths, samples=samples, orders=advise.ORDERS[:1])
    first = found.best
    again = predict.predict(first.prediction.choice, machine, samples=samples)  # advice has no intervals
    outside = [f"outside the calibrated range: {text}" for text in again.outside]
    return Best(
        choice=again.choice,
        profile=machine.name,
        time_s=again.time_s,
        interval=again.interval,
        reason=first.reason,
        equals=tuple(c.prediction.choice for c in found.equals if c is not first),
        notes=(*notes, *again.notes, *outside),
    )


def _asked(app: str | int, cells: int | Sequence[int], periodic: Sequence[bool]) -> tuple[core.Choice, list[str]]:
    """Return a choice for the requested app and grid, and what was assumed."""
    notes = []
    if isinstance(app, int):
        if app not in STANDARD:
            raise UsageProblem(f"no app stands for grids of {app} dimensions; name one: {', '.join(core.app_names())}")
        app = STANDARD[app]
        notes.append(
            f"the sweep is taken to be that of {app}; name another app, or give seconds_per_cell, if it is not"
        )
    dims = core.find_app(app).dims
    shape = (cells,) * dims if isinstance(cells, int) else tuple(cells)
    for what, given in (("cells", shape), ("periodic", tuple(periodic) or (True,) * dims)):
        if len(given) != dims:
            raise UsageProblem(
                f"{app} has {dims} dimensions, {what} {list(given)} has {len(given)}; give {dims} values"
            )
    return core.Choice(app=app, cells=shape, periodic=tuple(map(bool, periodic)) or (True,) * dims), notes


def _check(choice: core.Choice) -> None:
    """Raise UsageProblem for faults that no strategy, schedule or depth could mend."""
    core.make_layout(choice)
    app = core.find_app(choice.app)
    if choice.real not in app.reals:
        raise UsageProblem(unknown_name(f"scalar type of {choice.app}", choice.real, app.reals))
    if choice.form and choice.form not in app.forms:
        raise UsageProblem(unknown_name(f"form of {choice.app}", choice.form, app.forms))


def _fitting(choice: core.Choice, depths: Sequence[int], halo: int | None) -> tuple[list[int], list[str]]:
    """Return the depths that a halo has room for, and a note when there are others."""
    if not depths or min(depths) < 1:
        raise UsageProblem(f"depths {list(depths)} are not possible; give time steps per exchange, each >= 1")
    layers = {depth: _layers(replace(choice, depth=depth)) for depth in depths}
    fit = [depth for depth in depths if halo is None or layers[depth] <= halo]
    if not fit:
        raise UsageProblem(
            f"a halo of {halo} layers has no room for depth {min(depths)} of {choice.app}, which needs "
            f"{layers[min(depths)]}; give the field a wider halo"
        )
    few = [f"deeper exchanges were not looked at: the field has {halo} ghost layers"] if len(fit) < len(depths) else []
    return fit, few


def _layers(choice: core.Choice) -> int:
    """Return the ghost layers that the stencils of a choice's app need, the widest of them, for its depth."""
    layers = (read.layers for stage in core.step_of(choice).stages for sweep in stage.sweeps for read in sweep.reads)
    return choice.depth * max(layers, default=0)


def _without_shared_fields(machine: profiles.Profile) -> profiles.Profile:
    """Return a profile without the transports that access neighbours' fields directly."""
    known = machine.data.get("transports", {})
    kept = {name: cost for name, cost in known.items() if not core.needs_shared_fields(f"ordered/{name}")}
    return profiles.Profile({**machine.data, "transports": kept})


def _with_kernel(machine: profiles.Profile, kernel: str, seconds_per_cell: float) -> profiles.Profile:
    """Return a profile in which a sweep has this cost per cell, whatever the block and the number of busy cores."""
    if not 0 < seconds_per_cell < math.inf:
        raise UsageProblem(f"seconds_per_cell {seconds_per_cell} is not possible; give the seconds of one cell, > 0")
    row = {"from_cells": 0, "to_cells": None, "fixed_s": 0.0, "per_cell_s": float(seconds_per_cell)}
    counts = sorted({1, machine.machine["cores_per_socket"]})
    known = machine.data.get("kernels", {})
    return profiles.Profile({**machine.data, "kernels": {**known, kernel: {str(count): [row] for count in counts}}})


def _require_kernel(machine: profiles.Profile, choice: core.Choice) -> None:
    try:
        price.require_kernels(machine, choice)
    except NotAvailable as problem:
        raise NotAvailable(
            f"{problem}; or name the app whose sweep is like yours, or give seconds_per_cell of your own"
        ) from None
