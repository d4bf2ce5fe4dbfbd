"""Spaces of requests: a cross product of choices, each piece of work once, impossible ones apart with reasons."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from haloscope import bridge
from haloscope.bridge.choice import Choice
from haloscope.errors import UsageError
from haloscope.measure.request import Measurable, Request

AnyRequest = TypeVar("AnyRequest", bound=Measurable)


@dataclass
class Space(Generic[AnyRequest]):
    """Requests to measure, and requests that cannot run, each with its reason."""

    requests: list[AnyRequest] = field(default_factory=list)
    refused: list[tuple[AnyRequest, str]] = field(default_factory=list)
    lacking: list[tuple[AnyRequest, str]] = field(default_factory=list)  # legal, but not on this MPI

    def __add__(self, other: Space[AnyRequest]) -> Space[AnyRequest]:
        """Return both together."""
        return Space(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def all(self) -> list[AnyRequest]:
        """Return all requests, also the ones that cannot run."""
        return [*self.requests, *(request for request, _ in (*self.refused, *self.lacking))]

    def by_ranks(self) -> dict[int, list[AnyRequest]]:
        """Return the requests grouped by rank count: each group is one start of mpiexec."""
        ordered = sorted(self.requests, key=lambda r: r.ranks)
        return {ranks: list(group) for ranks, group in itertools.groupby(ordered, key=lambda r: r.ranks)}


def refuse_if_none_can_run(planned: Space) -> None:
    """Raise UsageError with the reasons when no request can run, instead of writing a file of refusals."""
    if planned.requests:
        return
    reasons = list(dict.fromkeys(reason for _, reason in planned.refused))
    raise UsageError(reasons[0] + (f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""))


def expand(app: str, axes: Mapping[str, Sequence], settings: Mapping[str, Any] | None = None) -> Space[Request]:
    """Return the cross product of all axes for one app, each piece of work once, illegal ones refused with their
    reason.

    axes maps fields of Choice to the values to try; settings: of request.SETTINGS.
    """
    space: Space[Request] = Space()
    seen: set[str] = set()
    refuses = bridge.refuses_itself(app)
    for document, refused in bridge.product(app, axes):
        request = Request(document).measured(**(settings or {}))
        if request.id in seen:
            continue
        seen.add(request.id)
        if reason := refused or (bridge.own_refusal(request.choice) if refuses else ""):
            space.refused.append((request, reason))
        else:
            space.requests.append(request)
    return space


def normal(choice: Choice) -> Choice:
    """Return a choice without fields that have no effect on it, so that a cross product holds each work once."""
    try:
        return bridge.normal(choice)
    except UsageError:  # legality() reports it
        return choice


def with_verification(space: Space[Request], steps: int | None) -> Space[Request]:
    """Have every request compared with `reference` after `steps` steps (0: not at all).

    None: 2 x depth + 1 steps, which hold two whole exchanges and a last, shorter round.
    """
    depth = Choice.depth
    space.requests = [
        r.measured(verify=2 * r.document.get("depth", depth) + 1 if steps is None else steps) for r in space.requests
    ]
    return space


def shuffled(requests: Sequence[AnyRequest], seed: int, launch: int) -> list[AnyRequest]:
    """Return the requests in a random order that depends only on `seed` and the launch's number."""
    order = list(requests)
    random.Random(f"{seed}/{launch}").shuffle(order)
    return order
