"""The library call `haloscope.best`: the fastest exchange for a grid by a machine profile, as one value. No MPI, no
clock.

It chooses in the same way as `haloscope advise`. C++ programs get the same answer from `haloscope::best`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haloscope import bridge
from haloscope.advice import advise
from haloscope.arguments import count, each, flag, for_axes, named, number, shown, text, whole
from haloscope.bridge import capi
from haloscope.errors import UsageError
from haloscope.model import predict
from haloscope.model import profile as profiles

STANDARD = {2: "laplace2d", 3: "laplace3d"}  # the app that represents a program that names none, by dimensions


@dataclass(frozen=True)
class Best:
    """The choice predicted fastest, and the certainty of that; times in seconds per time step.

    interval: 90 % of time_s, None where the profile has none. reason: the components of the time. equals: choices that
    this profile cannot distinguish from it, fastest first; () when it is a clear winner. notes: limits of the
    prediction that a reader must consider.
    """

    choice: bridge.Choice
    profile: str
    time_s: float
    interval: tuple[float, float] | None
    reason: str
    equals: tuple[bridge.Choice, ...]
    notes: tuple[str, ...]

    @property
    def wins(self) -> bool:
        """True when it is distinguishable from the runner-up; if not, measure it and its equals: `haloscope run`."""
        return not self.equals

    @property
    def halo(self) -> int:
        """The number of ghost layers on every side that a field needs for it."""
        return _layers(self.choice)

    @property
    def shared_memory(self) -> bool:
        """True when it needs fields in memory that the ranks of a node share."""
        return bridge.needs_shared_fields(self.choice.strategy)


def best(
    app: str | int,
    cells: int | Sequence[int],
    ranks: int,
    profile: str | os.PathLike[str] | profiles.Profile,
    *,
    periodic: bool | Sequence[bool] = (),
    process_grid: str | Sequence[int] = "",
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

    app: the app with a sweep similar to yours, or the dimensions of the grid (2: laplace2d, 3: laplace3d). cells:
    global, per dimension or one number for all. ranks. threads: per rank. nodes: to split the ranks over (0: the
    profile's, filled sequentially). profile: a shipped name, the path of a JSON file, or a loaded one. periodic: per
    dimension or for all, () = all True. process_grid: rule, "2x3" or (2, 3), x first, "" = the app's rule. depths: time
    steps per exchange to choose from.
    seconds_per_cell: of your sweep, > 0: one cell and step on one thread while all ranks work; it replaces the
    profile's kernel. fused: your program can apply all sub-steps of a deep halo tile by tile in the cache (substeps
    blocked), as fast as the app does. halo: ghost layers that the fields have room for, None = any. shared_memory:
    true when fields may lie in memory that the ranks of a node share. samples: number of parameter samples. here:
    "cpu" and "mpi_library" of the calling program; a note reports where the profile has others.
    Raises UsageError for an invalid request or profile, UnavailableError when the profile lacks costs that all choices
    need. Cost: a prediction of every legal choice: a fraction of a second, or seconds for thousands of ranks.
    """
    machine = _machine(profile)
    choice = replace(
        _requested(app, cells, periodic),
        ranks=_whole("ranks", ranks),
        process_grid=_process_grid(process_grid),
        threads=_whole("threads", threads),
        real=_text("real", real),
        form=_text("form", form),
        nodes=_whole("nodes", nodes),
    )
    return best_of(
        choice,
        machine,
        _steps(depths),
        flag("fused", fused),
        _whole("samples", samples, "draws"),
        assumed_app=not isinstance(app, str),
        seconds_per_cell=None if seconds_per_cell is None else _seconds(seconds_per_cell),
        halo=None if halo is None else whole("halo", halo),
        shared_memory=flag("shared_memory", shared_memory),
        **_asking(here),
    )


def best_of(
    choice: bridge.Choice, machine: profiles.Profile, depths: Sequence[int], fused: bool, samples: int, **more: Any
) -> Best:
    """Return the fastest strategy, schedule, depth and substeps for the grid, app, ranks and threads of a choice.

    depths, fused, samples: as in `best`. more: further parameters of `best`, and `assumed_app`, which is true where the
    app follows from the dimensions. Errors and cost: as for `best`.
    """
    among, _ = advise.own_candidates(choice, depths)
    question = {"choice": choice.to_json(), "depths": list(depths), "fused": fused, "samples": samples, "among": among}
    found = capi.answer("hs_best", question | more, machine.handle)
    return Best(
        choice=advise.changed(choice, found["changes"]),
        profile=machine.name,
        time_s=found["time_s"],
        interval=None if found["interval"] is None else (found["interval"][0], found["interval"][1]),
        reason=found["reason"],
        equals=tuple(advise.changed(choice, other) for other in found["equals"]),
        notes=tuple(found["notes"]),
    )


def _machine(profile: str | os.PathLike[str] | profiles.Profile) -> profiles.Profile:
    if isinstance(profile, profiles.Profile):
        return profile
    if not isinstance(profile, str | os.PathLike):
        raise UsageError(f"profile is {shown(profile)}; pass a name, the path of a JSON file, or a loaded profile")
    with named("profile", profile):
        return profiles.load(profile)


def _requested(app: str | int, cells: int | Sequence[int], periodic: bool | Sequence[bool]) -> bridge.Choice:
    """Return a choice for the requested app and grid."""
    app = _text("app", app) if isinstance(app, str) else _standard_app(app)
    dims = bridge.find_app(app).dims
    shape = for_axes("cells", cells, dims, _whole, "a number for each dimension, as (512, 512)")
    wraps = for_axes("periodic", periodic, dims, flag, "True or False for each dimension") or [True] * dims
    for name, values in (("cells", shape), ("periodic", wraps)):
        if len(values) != dims:
            raise UsageError(f"{app} has {dims} dimensions, {name} {values} has {len(values)}; pass {dims} values")
    return bridge.Choice(app=app, cells=tuple(shape), periodic=tuple(wraps))


def _standard_app(app: int) -> str:
    """Return the app that represents grids of `app` dimensions."""
    try:
        dims = whole("app", app)
    except UsageError:
        raise UsageError(f"app is {shown(app)}; pass the name of an app, or the dimensions of the grid") from None
    if dims not in STANDARD:
        raise UsageError(f"no app represents grids of {dims} dimensions; name one: {', '.join(bridge.app_names())}")
    return STANDARD[dims]


def _whole(name: str, value: int, bound: str = "") -> int:
    """Return a whole number within a range of the library, by default the range of the argument's name."""
    found, limits = count(name, value), bridge.bounds()[bound or name]
    if not limits.least <= found <= limits.most:
        raise UsageError(f"{name} is {found}; it is a whole number from {limits.least:.0f} to {limits.most:.0f}")
    return found


def _steps(depths: Sequence[int]) -> list[int]:
    """Return the depths. Raises UsageError for an empty sequence."""
    steps = [whole("depths", depth) for depth in each("depths", depths, "time steps per exchange, as (1, 2)")]
    if not steps:
        raise UsageError("depths [] are not possible; give time steps per exchange, each >= 1")
    return steps


def _text(name: str, value: str) -> str:
    return text(name, value).decode()


def _process_grid(value: str | Sequence[int]) -> str:
    if isinstance(value, str):
        return _text("process_grid", value)
    numbers = each("process_grid", value, "a rule, as 'cubic', or a number of ranks for each axis, as (2, 1)")
    return "x".join(str(_whole("process_grid", ranks, "ranks")) for ranks in numbers)


def _seconds(value: float) -> float:
    seconds = number("seconds_per_cell", value)
    if not 0 < seconds < math.inf:
        raise UsageError(f"seconds_per_cell {seconds} is not possible; give the seconds of one cell, > 0")
    return seconds


def _asking(here: Mapping[str, str] | None) -> dict[str, str]:
    """Return the names to compare with the names in the profile; "" where one is missing."""
    if here is not None and not isinstance(here, Mapping):
        raise UsageError(f"here is {shown(here)}; pass a mapping of 'cpu' and 'mpi_library' to their names")
    return {key: _text("here", (here or {}).get(key) or "") for key in ("cpu", "mpi_library")}


def _layers(choice: bridge.Choice) -> int:
    """Return the number of ghost layers that the widest stencil of a choice's app needs for its depth."""
    layers = (read.layers for stage in bridge.step_of(choice).stages for sweep in stage.sweeps for read in sweep.reads)
    return choice.depth * max(layers, default=0)
