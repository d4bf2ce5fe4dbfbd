"""A whole tuning: the candidates, the trials, the winner measured again, and all candidates on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope.advice import advise
from haloscope.advice import tune as model
from haloscope.errors import UsageError
from haloscope.measure import launch, lists, progress
from haloscope.measure.isolated import Isolated
from haloscope.measure.request import Request
from haloscope.measure.space import Space, refuse_if_none_can_run
from haloscope.model.profile import Profile
from haloscope.records.stats import Estimate

# ---- candidates ------------------------------------------------------------------------------------------------------


def usual_orders(nodes: str | None) -> str:
    """Return the default orders of ranks to try: all orders on several nodes. nodes: a list of numbers, or None."""
    several = nodes is not None and max(lists.numbers(nodes, "--nodes")) > 1
    return ",".join(advise.ORDERS) if several else advise.ORDERS[0]


def plan(planned: Space, options: Mapping[str, Any]) -> Space:
    """Return the candidates of a space, with the reasons of illegal ones.

    Raises UsageError without any candidate, or for several grids.
    """
    found = _candidates(planned, options)
    refuse_if_none_can_run(found)
    return _on_own_cores(found)


def _candidates(planned: Space, options: Mapping[str, Any]) -> Space:
    """Return the requests without the oracle. Raises UsageError for several grids, and for the oracle alone."""
    for field in ("cells", "ranks"):
        if len({getattr(r.choice, field) for r in planned.requests}) > 1:
            raise UsageError(f"tuning is for one grid, --{field} '{options[field]}' names several; give one value")
    kept = [r for r in planned.requests if "/" in r.choice.strategy]
    if not kept and planned.requests:
        raise UsageError("`reference` serves for comparing results and is not a candidate; pass other strategies")
    return Space(kept, [pair for pair in planned.refused if "/" in pair[0].choice.strategy])


def _on_own_cores(planned: Space) -> Space:
    """Move requests with more threads than cores to the refused ones, unless the ranks alone are too many.

    Raises UsageError when that leaves none.
    """
    cores = launch.cores()
    crowded = [r for r in planned.requests if r.ranks <= cores < r.ranks * r.threads]
    kept = [r for r in planned.requests if r not in crowded]
    reasons = [(r, f"{r.ranks} ranks of {r.threads} threads are more than the {cores} cores here") for r in crowded]
    if not kept:
        raise UsageError(f"{reasons[0][1]}; use fewer --threads")
    return Space(kept, [*planned.refused, *reasons])


# ---- the tuning ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exhaustive:
    """The measurement of all candidates: the fastest, the seconds that it took, and the regret of the choice.

    regret: None where the choice is the fastest, or the two could not be measured again.
    """

    best: Request
    wall_s: float
    regret: Estimate | None


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning. measured: the winner and its rivals; `again` holds their second measurement."""

    space: Space
    profile: Profile | None
    order: model.Order
    trials: model.TrialRounds
    measured: Sequence[Request]
    again: model.Rerun | None
    chosen: Request
    exhaustive: Exhaustive | None
    complaints: Sequence[str]


def tune(
    planned: Space,
    profile: Profile | None,
    measurer: Isolated,
    budget: float | None,
    confirm: int,
    exhaustive: bool,
    seed: int,
) -> Tuned:
    """Find the fastest of some candidates; show a line of progress.

    budget: seconds for the trials, as in `model.TrialRounds`. confirm: launches that measure the winner and its rivals
    again. exhaustive: measure all candidates too. seed: of the random order. Raises HaloscopeError when none could be
    measured.
    """
    order = model.order(planned.requests, profile, seed=seed)
    app = planned.requests[0].choice.app
    with progress.Line(100, f"tuning {app} (% of the time)") as line:
        trials = model.TrialRounds(
            order.candidates, measurer.once, budget, model.ROUNDS, level=model.Levelling(profile)
        )
        trials.on_step = lambda text: line.reach(100 * trials.part, text)
        trials.run()
    winner, length = trials.ranking[0].request, trials.rounds[-1]
    rivals = [c for c in (model.default_of(winner), *(e.request for e in trials.ranking[1:2] if e.launches)) if c]
    again = model.rerun(measurer.paired, [winner, *rivals], confirm, "confirm", length) if confirm else None
    chosen = model.decide(winner, rivals, again) if again else winner
    whole = _against_all(trials, chosen, measurer, max(confirm, 5)) if exhaustive else None
    return Tuned(planned, profile, order, trials, [winner, *rivals], again, chosen, whole, measurer.complaints)


def _against_all(trials: model.TrialRounds, chosen: Request, measurer: Isolated, launches: int) -> Exhaustive:
    (best, *_), seconds = model.exhaustively(trials.candidates, measurer.once, trials.rounds[-1])
    if best.id == chosen.id:
        return Exhaustive(best, seconds, None)
    again = model.rerun(measurer.paired, [chosen, best], launches, "regret", trials.rounds[-1])
    return Exhaustive(best, seconds, again.ratio(chosen, best))
