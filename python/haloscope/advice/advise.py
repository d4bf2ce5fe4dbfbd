"""Advice: every legal way to exchange the halos of one grid, priced, ranked, explained; no winner where none is clear.

The C++ core enumerates, prices and ranks the candidates. All are priced from the same profile and share its errors, so
two of them differ when 95 % of the draws of the uncertain parameters agree on which is faster, and by more than what
the model leaves out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope import core
from haloscope.core import capi
from haloscope.core.choice import handle_of
from haloscope.errors import UsageProblem
from haloscope.measure import lists
from haloscope.model import predict
from haloscope.model.profile import Profile

DEPTHS = (1, 2, 4, 8, 16)
ORDERS = ("none", "nodes")


@dataclass(frozen=True)
class Arrangement:
    """How ranks take parts of the grid: words of `reorder` and of `process_grid`."""

    reorder: str = "none"
    process_grid: str = ""


@dataclass(frozen=True)
class Candidate:
    """A choice with its prediction, and the group of those that cannot be told apart that it is in.

    asked: the choice that was asked about. advice, place: the core's ranking, and where in it this candidate is.
    time_s: predicted seconds per time step. group: from 0, which the fastest candidate is in.
    """

    asked: core.Choice
    advice: capi.CData
    place: int
    time_s: float
    group: int

    @functools.cached_property
    def prediction(self) -> predict.Prediction:
        """The prediction, without an interval. Cost: 0.1 ms when it is first asked for."""
        found = json.loads(capi.result_text("hs_advice_candidate", self.advice, self.place))
        return predict.from_json(changed(self.asked, found["changes"]), found)

    @property
    def equal(self) -> bool:
        """Whether it cannot be told from the fastest."""
        return self.group == 0


@dataclass(frozen=True)
class Group:
    """Candidates that cannot be told from the fastest of them, fastest first, and the simplest one within 5 % of
    that.
    """

    simplest: Candidate
    members: tuple[Candidate, ...]


@dataclass(frozen=True)
class Advice:
    """All candidates, fastest first, and in groups; what would change the answer; why some are missing.

    refused: reasons with the number of candidates, legality and lacking costs alike. by_depth: the fastest of each
    depth.
    """

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
        """What is advised: the simplest of the first group."""
        return self.groups[0].simplest

    @property
    def equals(self) -> tuple[Candidate, ...]:
        """Candidates that cannot be told from the best, the best itself included."""
        return self.groups[0].members


def depths_of(text: str) -> list[int]:
    """Return the depths of --depth. Raises UsageProblem for what is no list of them."""
    depths = lists.numbers(text, "--depth")
    if min(depths) < 1:
        raise UsageProblem(f"--depth {min(depths)} is not possible; use 1 or more")
    return depths


def candidates(choice: core.Choice, depths: Sequence[int] = DEPTHS) -> list[core.Choice]:
    """Return a choice with every strategy, schedule and depth, legal or not; deep ones with every kind of substeps.

    Choices that move the same data between the same ranks follow one another. `reference`, the oracle, is left out.
    With a device: strategies for its memory; with walls: plain messages of the host.
    """
    return [changed(choice, changes) for changes in _listed(choice, depths, [arrangement_of(choice)])]


def arrangement_of(choice: core.Choice) -> Arrangement:
    """Return how the ranks of a choice take parts of the grid."""
    return Arrangement(choice.reorder, choice.process_grid)


def _listed(choice: core.Choice, depths: Sequence[int], arrangements: Sequence[Arrangement]) -> list[dict]:
    """Return what differs in all candidates."""
    found = json.loads(capi.result_text("hs_candidates", handle_of(choice), [int(d) for d in depths], len(depths)))
    return [changes | dataclasses.asdict(one) for one in arrangements for changes in found]


def different(
    arrangements: Sequence[Arrangement], choice: core.Choice, profile: Profile, setting: predict.Setting
) -> list[Arrangement]:
    """Return the arrangements that put ranks in different places on the nodes where a choice runs.

    Those that cannot be are left out; where none can, UsageProblem says why. Cost O(ranks log ranks) each.
    """
    where = predict.places_of(choice, profile, setting)
    layouts: dict[core.Layout, Arrangement] = {}
    problem = None
    for one in arrangements:
        try:
            layout = predict.layout_on(where, dataclasses.replace(choice, **dataclasses.asdict(one)))
        except UsageProblem as error:
            problem = problem or error
        else:
            layouts.setdefault(layout, one)
    if problem and not layouts:
        raise problem
    return list(layouts.values())


def changed(choice: core.Choice, changes: Mapping[str, Any]) -> core.Choice:
    """Return a choice with the fields that the core says differ."""
    return dataclasses.replace(choice, **{k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()})


def own_candidates(
    choice: core.Choice, depths: Sequence[int], arrangements: Sequence[Arrangement] = ()
) -> tuple[list[dict] | None, dict[str, int]]:
    """Return what differs in those candidates that another program's app does not refuse itself, and how often it
    refuses others for which reason; None for all of the choice's own arrangement where it never does. () is that
    one."""
    declared, own = core.is_declared(choice.app), [arrangement_of(choice)]
    if not declared and list(arrangements or own) == own:
        return None, {}
    found = _listed(choice, depths, arrangements or own)
    if not declared:
        return found, {}
    kept, refused = [], {}
    for changes in found:
        candidate = changed(choice, changes)
        reason = "" if core.illegal_in_library(candidate) else core.own_refusal(candidate)
        if reason:
            refused[reason] = refused.get(reason, 0) + 1
        else:
            kept.append(changes)
    if not kept and refused:
        raise UsageProblem(next(reversed(refused)))
    return kept, refused


def advise(
    choice: core.Choice,
    profile: Profile,
    setting: predict.Setting = predict.PLAINLY,
    depths: Sequence[int] = DEPTHS,
    samples: int = predict.SAMPLES,
    orders: Sequence[str] = ORDERS,
    grids: Sequence[str] = (),
) -> Advice:
    """Rank all candidates for the grid, app, ranks and threads of a choice.

    setting: as in `predict.predict`. depths: time steps per exchange to try. samples: draws of the profile's
    parameters.
    orders: words of `reorder` to try, where they differ. grids: rules or process grids to try, where they differ and
    can be; (): that of the choice.
    Raises UsageProblem when none is legal, NotAvailable when the profile lacks what all need. Cost: one prediction
    each.
    """
    arrangements = [Arrangement(order, grid) for grid in grids or (choice.process_grid,) for order in orders]
    among, refused = own_candidates(choice, depths, different(arrangements, choice, profile, setting))
    listed = capi.load()[0].NULL if among is None else json.dumps(among).encode()
    given = (handle_of(choice), profile.handle, setting.to_c(), [int(d) for d in depths], len(depths), listed, samples)
    handle = capi.handle("hs_advice_create", "hs_advice", *given)
    found = json.loads(capi.result_text("hs_advice_json", handle))
    times = enumerate(zip(found["time_s"], found["group"], strict=True))
    ranked = tuple(Candidate(choice, handle, place, time_s, group) for place, (time_s, group) in times)
    members: list[list[Candidate]] = [[] for _ in found["simplest"]]
    for candidate in ranked:
        members[candidate.group].append(candidate)
    groups = tuple(Group(ranked[place], tuple(m)) for place, m in zip(found["simplest"], members, strict=True))
    by_depth = {depth: ranked[place] for depth, place in found["first_of_depth"]}
    return Advice(ranked, groups, tuple(found["changes"]), dict(found["refused"]) | refused, by_depth)


def name(choice: core.Choice) -> str:
    """Return a candidate's distinguishing fields, in words of the command line."""
    substeps = f" {choice.substeps}" if choice.depth > 1 else ""
    order = f", reorder {choice.reorder}" * (choice.reorder != "none")
    grid = f", process grid {choice.process_grid}" * bool(choice.process_grid)
    return f"{choice.strategy}, {choice.schedule}, depth {choice.depth}{substeps}{grid}{order}"
