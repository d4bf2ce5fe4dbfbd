"""Predictions: the time of a step and its breakdown from a choice and a machine profile. Evaluated by the C++ core."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope import bridge
from haloscope.bridge import capi
from haloscope.errors import UsageError
from haloscope.model import placement
from haloscope.model.profile import Profile

SAMPLES = 100  # of the profile's parameters, for the interval
# The phases that `Prediction.exchange_s` predicts, as a mean over ranks, like sweeps. Two ranks share the work of a
# message unevenly: the rank that sends first may receive inside that call, while the other waits. Only the sum over
# ranks counts this work once.
EXCHANGE_PHASES = ("pack", "send", "unpack", "copy", "wait", "desync")


@dataclass(frozen=True)
class Prediction:
    """The expected cost of a choice; times in seconds per time step.

    pace: the assumed pace by kind, relative to the pace at which the profile was calibrated; above 1: slower.
    interval: 90 % interval, from held-out measurements of the regime interval_from, or "all"; "": from the intervals of
    the profile's parameters and its discrepancy; None where the profile has no intervals. exchange_interval: of
    exchange_s, from held-out measurements only. regime: the resource that bounds the step; exchange_regime: the
    exchange. terms: parts along the critical path of the slowest class of ranks, which add up to time_s. busy: the same
    terms, hidden or not. worst_rank: the first rank of that class; worst_node: the node that sends the most bytes to
    other nodes. messages, bytes, message_bytes: sent by the worst rank in the exchanges of all stages; totals, and the
    smallest and largest message. bound: latency or bandwidth, by the mean message of that rank; "" without messages.
    reason: the bound of the exchange, in one clause. outside: costs needed beyond the calibrated range.
    """

    choice: bridge.Choice
    profile: str
    pace: Mapping[str, float]
    time_s: float
    interval: tuple[float, float] | None
    exchange_interval: tuple[float, float] | None
    interval_from: str
    regime: str
    exchange_regime: str
    terms: Mapping[str, float]
    busy: Mapping[str, float]
    worst_rank: int
    worst_node: int
    worst_node_bytes: int
    nodes: int
    classes: int
    messages: int
    bytes: int
    message_bytes: tuple[int, int]
    bound: str
    reason: str
    outside: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def exchange_s(self) -> float:
        """The exposed part of the exchange, without computing, reductions and the overhead of running a program."""
        return self.time_s - sum(self.terms[term] for term in ("compute", "reduction", "runner"))


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that a choice does not contain.

    placement: a rule of `placement.rules`; active: most cores in use per socket (None: all); custom: node and socket of
    each rank for rule `custom`; reductions: all-reduces per time step in addition to the app's; repeats: iterations of
    a loop of stages per time step.
    """

    placement: str = "fill"
    active: int | None = None
    custom: Sequence[tuple[int, int]] = ()
    reductions: int = 0
    repeats: int = 1

    def to_json(self) -> dict[str, object]:
        """Return the settings in the form of library requests."""
        placed = placement.setting_of(self.placement, self.active, self.custom)
        return placed | {"reductions": self.reductions, "repeats": self.repeats}


DEFAULTS = RunSettings()


def predict(
    choice: bridge.Choice,
    profile: Profile,
    setting: RunSettings = DEFAULTS,
    samples: int = SAMPLES,
    singly: bool = False,
) -> Prediction:
    """Return the predicted time of a step in the steady state of all ranks.

    samples: number of parameter samples for the interval, 0 = none. singly: compute the costs of every rank instead of
    one per class (slow; for checks). Raises UsageError when the choice cannot run, UnavailableError when the profile
    lacks a necessary cost. Cost: about a millisecond, a second for 10^5 ranks.
    """
    [found] = _predictions([choice], profile, setting, samples, singly)
    return found


def _predictions(
    choices: Sequence[bridge.Choice], profile: Profile, setting: RunSettings, samples: int, singly: bool = False
) -> list[Prediction]:
    for choice in choices:
        if reason := bridge.own_refusal(choice):
            raise UsageError(reason)
    question = {"choices": [c.to_json() for c in choices], "setting": setting.to_json(), "samples": samples}
    found = capi.answer("hs_predict", question | {"singly": singly}, profile.handle)
    return [from_json(choice, one) for choice, one in zip(choices, found, strict=True)]


def predict_all(
    requests: Iterable[Any], profile: Profile, setting: RunSettings, samples: int
) -> list[tuple[Any, Prediction]]:
    """Return requests, each with the prediction of its choice, fastest first. Raises as `predict` does."""
    listed = list(requests)
    found = _predictions([request.choice for request in listed], profile, setting, samples)
    made = list(zip(listed, found, strict=True))
    made.sort(key=lambda pair: pair[1].time_s)
    return made


def from_json(choice: bridge.Choice, found: Mapping[str, Any]) -> Prediction:
    """Return the prediction of a choice from the core's description."""
    values = {name: found[name] for name in Prediction.__dataclass_fields__ if name != "choice"}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    ordered = {name: {term: found[name][term] for term in terms()} for name in ("terms", "busy")}
    return Prediction(choice, **values | lists | ordered)


def median(found: Sequence[Prediction]) -> Prediction:
    """Return the prediction with the median time among some of one choice; of an even number the mean of the middle
    two, with the texts of the lower one."""
    ordered = sorted(found, key=lambda one: one.time_s)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if low is high:
        return low

    def mean(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        if isinstance(a, Mapping):
            return {name: mean(a[name], b[name]) for name in a}
        return tuple(map(mean, a, b)) if isinstance(a, tuple) else (a + b) / 2

    parts = ("pace", "time_s", "interval", "exchange_interval", "terms", "busy")
    return dataclasses.replace(low, **{name: mean(getattr(low, name), getattr(high, name)) for name in parts})


def terms() -> tuple[str, ...]:
    """Return the names of the terms of a prediction, in the order of tables."""
    return capi.names("terms")


def places_of(choice: bridge.Choice, profile: Profile, setting: RunSettings = DEFAULTS) -> placement.Placement:
    """Return the places of a choice's ranks on the profile's machine. Raises UsageError for an impossible setting."""
    request = {"choice": choice.to_json(), "setting": setting.to_json()}
    return placement.mapped(choice.ranks, request, profile.handle)


def layout_on(where: placement.Placement, choice: bridge.Choice) -> bridge.Layout:
    """Return the layout of a choice on the places of its ranks, or on the nodes that it is split over."""
    return bridge.make_layout(choice, bridge.choice_nodes(choice) if choice.nodes else where.node, where.socket)
