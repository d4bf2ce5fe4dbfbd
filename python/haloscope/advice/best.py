"""The library call `haloscope.best`: the fastest exchange for a grid by a machine profile, as one value. No MPI, no clock.

It chooses as `haloscope advise` does. C++ programs get the same answer from `haloscope::best`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from haloscope import core
from haloscope.advice import advise
from haloscope.core import capi
from haloscope.errors import UsageProblem
from haloscope.model import predict
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
    need. Cost: a prediction of every legal choice: a fraction of a second, or seconds for thousands of ranks.
    """
    machine = profile if isinstance(profile, profiles.Profile) else profiles.load(profile)
    choice = _asked(app, cells, periodic)
    choice = replace(choice, ranks=ranks, process_grid=process_grid, threads=threads, real=real, form=form, nodes=nodes)
    if not depths:
        raise UsageProblem(f"depths {list(depths)} are not possible; give time steps per exchange, each >= 1")
    if seconds_per_cell is not None and not 0 < seconds_per_cell < math.inf:
        raise UsageProblem(f"seconds_per_cell {seconds_per_cell} is not possible; give the seconds of one cell, > 0")
    among, _ = advise.own_candidates(choice, depths)
    question = {
        "choice": choice.to_json(),
        "assumed_app": isinstance(app, int),
        "depths": list(depths),
        "seconds_per_cell": seconds_per_cell,
        "fused": fused,
        "halo": halo,
        "shared_memory": shared_memory,
        "samples": samples,
        "among": among,
        **{key: (here or {}).get(key) or "" for key in ("cpu", "mpi_library")},
    }
    found = json.loads(capi.result_text("hs_best", json.dumps(question).encode(), machine.handle))
    return Best(
        choice=advise.changed(choice, found["changes"]),
        profile=machine.name,
        time_s=found["time_s"],
        interval=None if found["interval"] is None else (found["interval"][0], found["interval"][1]),
        reason=found["reason"],
        equals=tuple(advise.changed(choice, other) for other in found["equals"]),
        notes=tuple(found["notes"]),
    )


def _asked(app: str | int, cells: int | Sequence[int], periodic: Sequence[bool]) -> core.Choice:
    """Return a choice for the requested app and grid."""
    if isinstance(app, int):
        if app not in STANDARD:
            raise UsageProblem(f"no app stands for grids of {app} dimensions; name one: {', '.join(core.app_names())}")
        app = STANDARD[app]
    dims = core.find_app(app).dims
    shape = (cells,) * dims if isinstance(cells, int) else tuple(cells)
    for what, given in (("cells", shape), ("periodic", tuple(periodic) or (True,) * dims)):
        if len(given) != dims:
            raise UsageProblem(
                f"{app} has {dims} dimensions, {what} {list(given)} has {len(given)}; give {dims} values"
            )
    return core.Choice(app=app, cells=shape, periodic=tuple(map(bool, periodic)) or (True,) * dims)


def _layers(choice: core.Choice) -> int:
    """Return the ghost layers that the stencils of a choice's app need, the widest of them, for its depth."""
    layers = (read.layers for stage in core.step_of(choice).stages for sweep in stage.sweeps for read in sweep.reads)
    return choice.depth * max(layers, default=0)
