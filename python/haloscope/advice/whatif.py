"""Predictions for the same ranks elsewhere: fewer cores of a socket, another placement or process grid or machine.

Each variant is predicted; its cost follows from its nodes. Source: Davis 2017, sections 5.6 and 6.5, tables 4.5, 5.8,
6.6.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import bridge
from haloscope.errors import UsageError
from haloscope.measure import lists
from haloscope.measure.request import Request
from haloscope.model import placement
from haloscope.model.predict import DEFAULTS, Prediction, RunSettings, layout_on, places_of, predict
from haloscope.model.profile import Profile

MOST = 2000  # predictions of one command
ALL = "all"


@dataclass(frozen=True)
class Variant:
    """One way to run, with its prediction.

    busiest: most ranks on a socket. pairs: neighbour pairs inside the worst node and across its border, all dimensions.
    """

    choice: bridge.Choice
    setting: RunSettings
    prediction: Prediction
    busiest: int
    pairs: tuple[int, int]

    @property
    def node_s(self) -> float:
        """Seconds of a step times the number of nodes that it takes, each counted whole."""
        return self.prediction.time_s * self.prediction.nodes


def variant(choice: bridge.Choice, profile: Profile, setting: RunSettings = DEFAULTS) -> Variant:
    """Return a choice under a setting, predicted without interval. Errors and cost: as for `predict`."""
    where = places_of(choice, profile, setting)
    layout = layout_on(where, choice)
    at = np.argsort(layout.places())  # the rank at each place
    by_place = placement.Placement(where.node[at], where.socket[at])
    inside, across = placement.pair_counts(layout.ranks, by_place, layout.periodic).worst
    return Variant(
        choice, setting, predict(choice, profile, setting, samples=0), where.sockets()[0], (sum(inside), sum(across))
    )


def process_grids(ranks: int, dims: int) -> Iterator[tuple[int, ...]]:
    """Yield every process grid of a number of ranks (>= 1) in 1 to 3 dimensions, the last dimension changing fastest.

    Cost O(ranks) a dimension.
    """
    if dims == 1:
        yield (ranks,)
        return
    for first in (n for n in range(1, ranks + 1) if ranks % n == 0):
        for rest in process_grids(ranks // first, dims - 1):
            yield (first, *rest)


def scaled(choice: bridge.Choice, ranks: int) -> bridge.Choice:
    """Return a choice for other ranks whose blocks have the cells of `choice`: the grid grows with the process grid.

    Its process grid follows from its rule for a cube that is large enough for any grid. Raises UsageError where no
    process grid exists.
    """
    cube = (ranks,) * len(choice.cells)
    grid = bridge.make_layout(dataclasses.replace(choice, cells=cube, ranks=ranks)).ranks
    cells = tuple(n * p for n, p in zip(choice.cells, grid, strict=False))
    return dataclasses.replace(choice, cells=cells, ranks=ranks, process_grid="x".join(map(str, grid)))


def cost_ratio(seconds: float, nodes: float, base_seconds: float, base_nodes: float) -> float:
    """Return the node-hours relative to a base case: the cost of a faster run on more nodes."""
    return seconds * nodes / (base_seconds * base_nodes)


def crossover(
    first: Callable[[int], float], second: Callable[[int], float], counts: Iterable[int]
) -> tuple[int, int] | None:
    """Return the adjacent rank counts, in ascending order, between which two curves cross; None without a crossing.

    first, second: seconds by rank count. counts: at least one; as a process grid depends on the factors of a count,
    powers of two are a good choice. Cost: an evaluation of both per count, up to the crossing.
    Source: Davis 2017, section 5.6.3 (Hera and DawnDev).
    """
    ahead = ((ranks, first(ranks) < second(ranks)) for ranks in counts)
    for (before, was), (ranks, now) in itertools.pairwise(ahead):
        if was != now:
            return before, ranks
    return None


def relative(variants: Sequence[Variant]) -> list[tuple[float, float]]:
    """Return the speedup of each variant over the first one, and the ratio of their node-hours."""
    base = variants[0].prediction
    return [
        (
            base.time_s / v.prediction.time_s,
            cost_ratio(v.prediction.time_s, v.prediction.nodes, base.time_s, base.nodes),
        )
        for v in variants
    ]


# ---- the request -----------------------------------------------------------------------------------------------------


def space_options(app: bridge.App, options: dict, weak: bool) -> tuple[dict, list[int]]:
    """Return the options of the choices' space, and in weak scaling the numbers of ranks that `choices_of` takes.

    options: --process-grid `all` represents every grid of --ranks. weak: --cells are the cells of one rank.
    Raises UsageError for a process grid that is incompatible with --ranks or with weak scaling.
    """
    if weak:  # one rank has all --cells; the others follow from it
        counts = lists.numbers(options["ranks"], "--ranks")
        _refuse_fixed_grid(options["process_grid"] or "")
        return options | {"ranks": "1"}, counts
    if options["process_grid"] == ALL:
        return options | {"process_grid": _all_grids(app, options["ranks"])}, []
    return options, []


def choices_of(requests: Sequence[Request], counts: Sequence[int]) -> list[bridge.Choice]:
    """Return the choices of some requests, in their order; in weak scaling for each requested number of ranks.

    Raises UsageError when one of them cannot run or they are too many.
    """
    choices = [request.choice for request in requests]
    if counts:
        _refuse_too_many(len(choices) * len(counts))
        choices = [scaled(choice, ranks) for choice in choices for ranks in counts]
        for reason in filter(None, map(bridge.illegal, choices)):
            raise UsageError(reason)
    return choices


def _refuse_fixed_grid(process_grid: str) -> None:
    if process_grid == ALL or any(letter.isdigit() for letter in process_grid):
        raise UsageError(
            f"--weak needs a process grid for any number of ranks, not --process-grid {process_grid}; name a rule, or "
            "leave it out"
        )


def _all_grids(app: bridge.App, ranks: str) -> str:
    """Return every process grid of a number of ranks as a list. Raises UsageError for several numbers of ranks."""
    counts = lists.numbers(ranks, "--ranks")
    if len(counts) != 1 or not 1 <= counts[0] <= 10**6:
        raise UsageError(
            f"--process-grid all needs one number of ranks up to 1000000, not --ranks {ranks}; give one, or name the "
            "grids"
        )
    return ",".join("x".join(map(str, grid)) for grid in process_grids(counts[0], app.dims))


def settings(active: str | None, mapping: str) -> list[RunSettings]:
    """Return the settings of two lists. Raises UsageError for invalid values."""
    rules = [rule for rule in placement.rules() if rule != "custom"]
    counts: list[int | None] = list(lists.numbers(active, "--active")) if active else [None]
    return [RunSettings(rule, count) for rule in lists.names(mapping, rules, "--mapping") for count in counts]


def variants(choices: Sequence[bridge.Choice], machine: Profile, wanted: Sequence[RunSettings]) -> list[Variant]:
    """Return every choice under every setting, predicted. Raises UsageError when they are too many."""
    _refuse_too_many(len(choices) * len(wanted))
    return [variant(choice, machine, setting) for choice in choices for setting in wanted]


def _refuse_too_many(count: int) -> None:
    if count > MOST:
        raise UsageError(f"these lists request {count} predictions, more than {MOST}; shorten them")


# ---- two machines ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Predictions of two machines by ranks, and the numbers of ranks between which their order changes, if it does."""

    machines: tuple[str, str]
    predictions: dict[int, tuple[Variant, ...]]
    crossing: tuple[int, int] | None


def compared(choices: Sequence[bridge.Choice], machines: Sequence[Profile], wanted: Sequence[RunSettings]) -> Compared:
    """Return predictions of two machines over all numbers of ranks. Raises UsageError when more than ranks differ."""
    counts = [choice.ranks for choice in choices]
    if len(set(counts)) != len(choices) or len(wanted) != 1:
        raise UsageError("--against compares two machines over numbers of ranks; give one value of everything else")
    _refuse_too_many(2 * len(choices))
    ordered = sorted(choices, key=lambda choice: choice.ranks)
    found = {c.ranks: tuple(variant(c, machine, wanted[0]) for machine in machines) for c in ordered}
    one, other = (lambda ranks, place=place: found[ranks][place].prediction.time_s for place in range(2))
    first, second = (machine.name for machine in machines)
    return Compared((first, second), found, crossover(one, other, found))
