"""Advice: every legal way to exchange the halos of one grid, predicted, ranked, explained; a winner only if clear.

The C++ core enumerates, predicts and ranks the candidates. All predictions use the same profile and share its errors,
so two candidates differ when 95 % of the samples of the uncertain parameters agree on the faster one, and by more than
the effects that the model omits.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from haloscope import bridge
from haloscope.bridge import capi
from haloscope.errors import UsageError
from haloscope.measure import lists
from haloscope.model import predict
from haloscope.model.profile import Profile

DEPTHS = (1, 2, 4, 8, 16)
ORDERS = ("none", "nodes")


@dataclass(frozen=True)
class Arrangement:
    """The assignment of parts of the grid to ranks: values of `reorder` and `process_grid`."""

    reorder: str = "none"
    process_grid: str = ""


@dataclass(frozen=True)
class Candidate:
    """A choice with its prediction, and the number of its group of indistinguishable candidates.

    time_s: predicted seconds per time step. group: from 0, the group of the fastest candidate. described: the
    prediction as JSON, None where it was not requested.
    """

    requested: bridge.Choice
    changes: Mapping[str, Any] = field(hash=False)
    time_s: float
    group: int
    described: str | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def choice(self) -> bridge.Choice:
        """The choice: the requested one with the candidate's changes."""
        return changed(self.requested, self.changes)

    @functools.cached_property
    def prediction(self) -> predict.Prediction:
        """The prediction, without an interval.

        Available for the best, the simplest of each group and the fastest of each depth; for others where `advise` was
        called with `every`, else LookupError.
        """
        if self.described is None:
            raise LookupError(f"{name(self.choice)} was ranked without its prediction; call advise() with every=True")
        return predict.from_json(self.choice, json.loads(self.described))

    @property
    def equal(self) -> bool:
        """True when it is indistinguishable from the fastest candidate."""
        return self.group == 0


@dataclass(frozen=True)
class Group:
    """Candidates that the model cannot distinguish, fastest first, and the simplest one within 5 % of the first."""

    simplest: Candidate
    members: tuple[Candidate, ...]


@dataclass(frozen=True)
class Advice:
    """All candidates, fastest first, and in groups; changes that would alter the answer; reasons of missing ones.

    requested: the choice that they are candidates for. refused: reasons with the number of candidates, for illegal
    candidates and for costs that the profile lacks. by_depth: the fastest of each depth.
    """

    requested: bridge.Choice
    candidates: tuple[Candidate, ...]
    groups: tuple[Group, ...]
    changes: tuple[str, ...]
    refused: dict[str, int]
    by_depth: dict[int, Candidate]

    @property
    def best(self) -> Candidate:
        """The fastest by the prediction; see `equals`."""
        return self.candidates[0]

    @property
    def pick(self) -> Candidate:
        """The recommendation: the simplest of the first group."""
        return self.groups[0].simplest

    @property
    def equals(self) -> tuple[Candidate, ...]:
        """The candidates that are indistinguishable from the best, including the best."""
        return self.groups[0].members


def depths_of(text: str) -> list[int]:
    """Return the depths of --depth. Raises UsageError for anything else."""
    depths = lists.numbers(text, "--depth")
    if min(depths) < 1:
        raise UsageError(f"--depth {min(depths)} is not possible; use 1 or more")
    return depths


def different(
    arrangements: Sequence[Arrangement], choice: bridge.Choice, profile: Profile, setting: predict.RunSettings
) -> list[Arrangement]:
    """Return the arrangements that put ranks in different places on the nodes where a choice runs.

    Impossible ones are left out. Raises UsageError with the reason when all are impossible.
    Cost O(ranks log ranks) each.
    """
    where = predict.places_of(choice, profile, setting)
    layouts: dict[bridge.Layout, Arrangement] = {}
    problem = None
    for one in arrangements:
        try:
            layout = predict.layout_on(where, dataclasses.replace(choice, **dataclasses.asdict(one)))
        except UsageError as error:
            problem = problem or error
        else:
            layouts.setdefault(layout, one)
    if problem and not layouts:
        raise problem
    return list(layouts.values())


def changed(choice: bridge.Choice, changes: Mapping[str, Any]) -> bridge.Choice:
    """Return a choice with fields replaced by the changes that the core reports."""
    other: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    return dataclasses.replace(choice, **other)


def own_candidates(
    choice: bridge.Choice, depths: Sequence[int], arrangements: Sequence[Arrangement] = ()
) -> tuple[list[dict] | None, dict[str, int]]:
    """Return the candidates that another program's app accepts, as changes of the choice, and its reasons against
    others, each with a number of candidates. None for an app that accepts all: the library lists these itself.

    arrangements: () for the arrangement of the choice. Raises UsageError where the app accepts none. Cost: a line to
    the program and one back for each candidate.
    """
    if not bridge.refuses_itself(choice.app):
        return None, {}
    usual = [Arrangement(choice.reorder, choice.process_grid)]
    space = {"choice": choice.to_json(), "depths": list(depths), "arrangements": list(arrangements or usual)}
    listed = capi.answer("hs_expand", space)
    reasons = ["" if one["reason"] else bridge.own_refusal(changed(choice, one["changes"])) for one in listed]
    refused = dict(Counter(filter(None, reasons)))
    others = [one for one, reason in zip(listed, reasons, strict=True) if not reason]
    if refused and all(one["reason"] for one in others):
        raise UsageError(next(reversed(refused)))
    return ([one["changes"] for one in others] if refused else None), refused


def advise(
    choice: bridge.Choice,
    profile: Profile,
    setting: predict.RunSettings = predict.DEFAULTS,
    depths: Sequence[int] = DEPTHS,
    samples: int = predict.SAMPLES,
    orders: Sequence[str] = ORDERS,
    grids: Sequence[str] = (),
    every: bool = False,
) -> Advice:
    """Rank all candidates for the grid, app, ranks and threads of a choice.

    setting: as in `predict.predict`. depths: time steps per exchange to try. samples: number of parameter samples.
    orders: values of `reorder` to try, where they differ. grids: rules or process grids to try, where they differ and
    are possible; (): the one of the choice. every: include the predictions of all candidates.
    Raises UsageError when no candidate is legal, UnavailableError when the profile lacks costs that all need. Cost: one
    prediction each.
    """
    arrangements = [Arrangement(order, grid) for grid in grids or (choice.process_grid,) for order in orders]
    arrangements = different(arrangements, choice, profile, setting)
    among, refused = own_candidates(choice, depths, arrangements)
    request = {"choice": choice.to_json(), "setting": setting.to_json(), "samples": samples, "every": every}
    space = {"depths": list(depths), "arrangements": arrangements} if among is None else {"among": among}
    found = capi.answer("hs_advise", request | space, profile.handle)
    described = dict(found["predictions"])
    listed = enumerate(zip(found["candidates"], found["time_s"], found["group"], strict=True))
    ranked = tuple(
        Candidate(choice, changes, time_s, group, described.get(place)) for place, (changes, time_s, group) in listed
    )
    members: list[list[Candidate]] = [[] for _ in found["simplest"]]
    for candidate in ranked:
        members[candidate.group].append(candidate)
    groups = tuple(Group(ranked[place], tuple(m)) for place, m in zip(found["simplest"], members, strict=True))
    by_depth = {depth: ranked[place] for depth, place in found["first_of_depth"]}
    return Advice(choice, ranked, groups, tuple(found["changes"]), dict(found["refused"]) | refused, by_depth)


def name(choice: bridge.Choice) -> str:
    """Return a candidate's distinguishing fields, in terms of the command line."""
    substeps = f" {choice.substeps}" if choice.depth > 1 else ""
    order = f", reorder {choice.reorder}" * (choice.reorder != "none")
    grid = f", process grid {choice.process_grid}" * bool(choice.process_grid)
    return f"{choice.strategy}, {choice.schedule}, depth {choice.depth}{substeps}{grid}{order}"
