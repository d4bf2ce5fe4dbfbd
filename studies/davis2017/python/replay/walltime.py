"""The walltime of an application on a machine, summed over its terms along one rank's path. Source: Davis 2017, ch. 5.

Message sizes come from the plans of the core; pairs per node from the placement; all times from the machine profile.
Messages at the same time follow the rule of `contention`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from haloscope import bridge
from haloscope.errors import UsageError, unknown_name
from haloscope.model import placement, segments
from haloscope.model.profile import Profile
from haloscope_studies.davis2017 import network
from haloscope_studies.davis2017.replay import contention
from haloscope_studies.davis2017.replay.terms import CATEGORIES, Application, Term

COMPONENTS = tuple(dict.fromkeys(CATEGORIES.values()))
COMBINE = ("sum", "max")  # of the times inside a node and across its border, per dimension


@dataclass(frozen=True)
class Run:
    """A run to predict.

    cells: global, three numbers. process_grid: ranks per dimension. placement: the mapping of the ranks. iterations:
    iterations[n] of them have n inner loops. rank: the rank of the summed path. combine: one of COMBINE.
    """

    cells: tuple[int, ...]
    process_grid: tuple[int, ...]
    placement: placement.Placement
    iterations: Mapping[int, int]
    rank: int = 0
    combine: str = "sum"

    @functools.cached_property
    def layout(self) -> bridge.Layout:
        """The grid split over the ranks, not periodic."""
        return bridge.Layout(self.cells, self.process_grid, (False,) * 3)

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Neighbour pairs inside and across the border of the worst node, per dimension."""
        return placement.pair_counts(self.process_grid, self.placement).worst

    @functools.cached_property
    def active(self) -> np.ndarray:
        """Per rank, the ranks on its socket."""
        return self.placement.active()

    def at(self, rank: int) -> Run:
        """Return the same run along another rank's path; properties independent of the rank are shared."""
        other = replace(self, rank=rank)
        other.__dict__.update(layout=self.layout, pairs=self.pairs, active=self.active)
        return other


@dataclass(frozen=True)
class Prediction:
    """Seconds of a whole run along one rank's path: in all, by component, by part within a component."""

    rank: int
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def components(self) -> dict[str, float]:
        """Seconds of compute, point_to_point, collectives, update_boundary and memory."""
        return {name: sum(self.parts.get(name, {}).values()) for name in COMPONENTS}

    @property
    def total(self) -> float:
        """Seconds in all: exactly the sum of the components."""
        return sum(self.components.values())


def predict(application: Application, profile: Profile, run: Run) -> Prediction:
    """Return the walltime of a run along the path of `run.rank`. Source: eq. 5.1 to 5.42.

    Cost: some milliseconds, plus O(ranks) array operations for the pairs on the worst node.
    Raises UsageError for a rank or combination that does not exist, UnavailableError when the profile lacks a cost.
    """
    if not 0 <= run.rank < run.placement.ranks:
        raise UsageError(f"rank {run.rank} is not one of 0 to {run.placement.ranks - 1}; choose one of these")
    if run.combine not in COMBINE:
        raise UsageError(unknown_name("combination", run.combine, COMBINE))
    parts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    costs = _Costs(application, profile, run)
    for term, times in application.run_counts(run.iterations).items():
        for part, seconds in costs.of(term).items():
            parts[CATEGORIES[term.kind]][part] += times * seconds
    return Prediction(run.rank, {name: dict(values) for name, values in parts.items()})


def worst(application: Application, profile: Profile, run: Run) -> Prediction:
    """Return the longest of all ranks' predictions; ranks with the same block, neighbours and socket load count
    once.
    """
    found = (predict(application, profile, run.at(rank)) for rank in representatives(run))
    return max(found, key=lambda prediction: prediction.total)


def representatives(run: Run) -> list[int]:
    """Return the lowest rank of each class of ranks that cost the same. Cost O(ranks) array operations."""
    at = placement.coordinates(run.process_grid)
    key = run.active.astype(np.int64)
    for d, ranks in enumerate(run.process_grid):
        # The first ranks of a dimension own one cell more; the core computes them along one line of ranks.
        stride = int(np.prod(run.process_grid[:d]))
        owned = np.array([run.layout.owned(i * stride).shape[d] for i in range(ranks)])
        ends = np.zeros(ranks, int)
        ends[0] += 1
        ends[-1] += 2
        _, kind = np.unique(np.stack((owned, ends), axis=1), axis=0, return_inverse=True)
        key = key * (kind.max() + 1) + kind.reshape(-1)[at[:, d]]
    return sorted(np.unique(key, return_index=True)[1].tolist())


class _Costs:
    """Seconds of one occurrence of a term, by part, for one run."""

    def __init__(self, application: Application, profile: Profile, run: Run):
        self._application, self._profile, self._run = application, profile, run
        self._active = int(run.active[run.rank])
        self._block = run.layout.owned(run.rank).shape

    def of(self, term: Term) -> Mapping[str, float]:
        if term.kind == "exchange":
            return self._exchange(term.name)
        if term.kind == "gather":
            return {term.name: self._gather(term.name)}
        if term.kind == "boundary":
            return {term.name: sum(self._kernel(term, self._face(d)) for d, _ in self._faces(term.name))}
        name = term.name if term.kind == "kernel" else f"{term.kind} {term.name}"
        return {name: self._kernel(term, float(np.prod(self._block)))}  # eq. 5.31

    def _kernel(self, term: Term, amount: float) -> float:
        table = self._profile.kernel(self._application.kernel_name(term))
        return segments.evaluate_at(table, self._active, amount)

    def _face(self, d: int) -> float:
        """Return the points of a face across dimension d. Eq. 5.32."""
        return float(np.prod([n for e, n in enumerate(self._block) if e != d]))

    def _faces(self, boundary: str) -> Iterable[tuple[int, int]]:
        wanted = self._application.faces(boundary)
        for d in range(3):
            for side in (-1, 1):
                offset = [side * (d == e) for e in range(3)]
                external = self._run.layout.neighbour(self._run.rank, offset) < 0
                if wanted == "both" or external == (wanted == "external"):
                    yield d, side

    def _gather(self, name: str) -> float:
        cores, ranks = self._profile.cores_per_node, self._run.placement.ranks
        return float(
            sum(
                g["count"] * network.allgather_time(self._profile, g["bytes"], ranks, cores)
                for g in self._application.gathers(name)
            )
        )

    def _exchange(self, name: str) -> Mapping[str, float]:
        """Return pack, messages and unpack of a stage: its dimensions are sequential, each waits for the worst node."""
        plan = bridge.make_plan(self._run.layout, self._run.rank, self._application.exchange(name))
        cost = {f"{name} {part}": 0.0 for part in ("pack", "messages", "unpack")}
        for d in range(3):
            sizes = [m.bytes for m in plan.sent() if m.round == d]
            arriving = [m.bytes for m in plan.messages if not m.out and m.round == d]
            faces = len({m.peer for m in plan.sent() if m.round == d})
            if not faces:
                continue
            if self._application.packed(name):
                cost[f"{name} pack"] += self._packing(sizes)
                cost[f"{name} unpack"] += self._packing(arriving)
            cost[f"{name} messages"] += self._messages(d, sizes[: len(sizes) // faces])
        return cost

    def _packing(self, sizes: list[int]) -> float:
        if "pack" not in self._profile.data and self._stage_factor("node") > 1:
            return 0.0  # contained in the stage factor
        table = self._profile.packing("contiguous")
        return sum(segments.evaluate_at(table, 1, size) for size in sizes)

    def _messages(self, d: int, sizes: list[int]) -> float:
        """Return the seconds of one dimension's messages, of all pairs of the worst node at the same time."""
        intra, inter = (pairs[d] for pairs in self._run.pairs)
        times = [
            self._stage_factor(where) * contention.batch_time(self._profile, where, sizes * pairs, sizes * pairs)
            for where, pairs in (("node", intra), ("network", inter))
        ]
        return max(times) if self._run.combine == "max" else sum(times)

    def _stage_factor(self, where: str) -> float:
        return float(self._profile.network_class(where)["contention"].get("stage_factor", 1.0))
