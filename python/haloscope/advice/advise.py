"""Advice: every legal way to exchange the halos of one grid, priced, ranked, explained; no winner where none is clear.

All candidates are priced from the same profile and share its errors. So two candidates are compared under the same
draws of the uncertain parameters, and differ when 95 % of the draws agree on which is faster.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from haloscope import core
from haloscope.errors import HaloscopeError, NotAvailable, UsageProblem
from haloscope.model import predict, price, sampling, segments, surcharge
from haloscope.model.profile import Profile

DEPTHS = (1, 2, 4, 8, 16)
ORDERS = ("none", "nodes")
SUBSTEPS = ("full", "shrink", "blocked")
CONTENDERS = 6  # candidates that are compared with the best
MARGIN = 0.05  # candidates this near are equal where the profile gives no intervals
BOXED = f"ordered/{surcharge.PLAIN}"
FACTORS = (2.0, 0.5)  # factors applied to costs, to see whether the answer changes

# What could differ on the machine: words, the section of the profile, the parameters in it that are scaled.
CHANGES = (
    ("latency of messages", "network", ("latency_s",)),
    ("time per byte of messages", "network", ("per_byte_s",)),
    ("time to pack", "pack", ("latency_s", "per_byte_s")),
    ("time to sweep", "kernels", ("fixed_s", "per_cell_s")),
    ("time to pack on the device and to copy to and from it", "device", ("latency_s", "per_byte_s")),
    ("time to sweep on the device", "device", ("fixed_s", "per_cell_s")),
    ("time to hand work to the device", "device", ("operation_s", "notice_s", "signal_s")),
)


@dataclass(frozen=True)
class Candidate:
    """A prediction, what bounds it, and whether it can be told from the best."""

    prediction: predict.Prediction
    reason: str
    equal: bool


@dataclass(frozen=True)
class Advice:
    """All candidates, fastest first; the fastest of each depth; what would change the answer; why some are missing.

    refused: reasons with the number of candidates, legality and lacking costs alike.
    """

    candidates: tuple[Candidate, ...]
    changes: tuple[str, ...]
    refused: dict[str, int]

    @property
    def best(self) -> Candidate:
        """The fastest by the prediction; see `equals`."""
        return self.candidates[0]

    @property
    def equals(self) -> tuple[Candidate, ...]:
        """Candidates that cannot be told from the best, the best itself included."""
        return tuple(c for c in self.candidates if c.equal)

    def by_depth(self) -> dict[int, Candidate]:
        """The fastest candidate of each depth."""
        found: dict[int, Candidate] = {}
        for candidate in self.candidates:
            found.setdefault(candidate.prediction.choice.depth, candidate)
        return dict(sorted(found.items()))


def candidates(
    choice: core.Choice, depths: Sequence[int] = DEPTHS, orders: Sequence[str] = ORDERS[:1]
) -> Iterator[core.Choice]:
    """Yield a choice with every strategy, schedule and depth, legal or not; deep ones with every kind of substeps.

    orders: words of `reorder`.

    Choices that move the same data between the same ranks follow one another. `reference`, the oracle, is left out.
    With a device: strategies for its memory; with walls: plain messages of the host.
    """
    names = [*core.device_strategy_names(), BOXED] if choice.device else core.strategy_names()
    strategies = sorted((s for s in names if "/" in s), key=lambda s: s.partition("/")[0])
    for reorder, depth, strategy, schedule in itertools.product(orders, depths, strategies, core.schedule_names()):
        for substeps in SUBSTEPS if depth > 1 else SUBSTEPS[:1]:
            yield dataclasses.replace(
                choice, strategy=strategy, schedule=schedule, depth=depth, substeps=substeps, reorder=reorder
            )


def different(
    orders: Sequence[str], choice: core.Choice, profile: Profile, setting: predict.Setting
) -> tuple[str, ...]:
    """Return the orders (words of `reorder`) that put ranks in different places on the nodes where a choice runs.

    Cost O(ranks log ranks).
    """
    where, node, _ = predict.placed(choice, profile, setting)
    layouts: dict[core.Layout, str] = {}
    for reorder in orders:
        layouts.setdefault(core.make_layout(dataclasses.replace(choice, reorder=reorder), node, where.socket), reorder)
    return tuple(layouts.values())


def advise(
    choice: core.Choice,
    profile: Profile,
    setting: predict.Setting = predict.PLAINLY,
    depths: Sequence[int] = DEPTHS,
    samples: int = predict.SAMPLES,
    orders: Sequence[str] = ORDERS,
) -> Advice:
    """Rank all candidates for the grid, app, ranks and threads of a choice.

    setting: as in `predict.predict`. depths: time steps per exchange to try. samples: draws of the profile's parameters.
    orders: words of `reorder` to try, where they differ.
    Raises UsageProblem when none is legal, NotAvailable when the profile lacks what all need. Cost: one prediction each.
    """
    if not choice.device:
        price.require_kernels(profile, choice)
    found, refused, last = [], {}, None
    for candidate in candidates(choice, depths, different(orders, choice, profile, setting)):
        try:
            found.append(predict.predict(candidate, profile, setting, samples=0))
        except (UsageProblem, NotAvailable) as problem:
            last = problem if last is None or isinstance(problem, NotAvailable) else last
            refused[str(problem)] = refused.get(str(problem), 0) + 1
    if not found:
        raise last or HaloscopeError("there is nothing to advise on; give at least one depth")
    found.sort(key=lambda p: p.time_s)
    rivals = {i: _Rival(found[i], profile, setting) for i in _rivals(found)}
    equal = [i in rivals and (i == 0 or rivals[i].equals(rivals[0], samples)) for i in range(len(found))]
    if all(equal[:CONTENDERS]):  # more may be equal than were looked at
        equal = [e or p.time_s <= found[0].time_s * (1 + MARGIN) for e, p in zip(equal, found, strict=True)]
    ranked = tuple(Candidate(p, reason(p, profile), e) for p, e in zip(found, equal, strict=True))
    return Advice(ranked, tuple(_changes(list(rivals.values()))), refused)


def _rivals(found: Sequence[predict.Prediction]) -> list[int]:
    """Return the places of possible winners: the first few, and the first of each depth and schedule."""
    kept = set(range(min(CONTENDERS, len(found))))
    for key in ("depth", "schedule"):
        firsts: dict = {}
        for i, prediction in enumerate(found):
            firsts.setdefault(getattr(prediction.choice, key), i)
        kept |= set(firsts.values())
    return sorted(kept)


class _Rival:
    """A candidate that can be priced again with other parameters, relative to its prediction."""

    def __init__(self, prediction: predict.Prediction, profile: Profile, setting: predict.Setting):
        self.prediction, self.profile = prediction, profile
        case = predict.Case(prediction.choice, profile, setting)
        usual = price.Prices(profile, prediction.choice)
        worst = case.slowest(case.classes(profile), usual)
        self.one = next((c for c in worst if c.rank == prediction.worst_rank), worst[0])
        self.case, self.usual = case, case.alone(self.one, usual)

    def time(self, profile: Profile) -> float:
        """Return the seconds per step that another profile would give."""
        prices = price.Prices(profile, self.prediction.choice)
        return self.prediction.time_s * self.case.alone(self.one, prices) / self.usual

    def equals(self, best: _Rival, samples: int) -> bool:
        """Whether this one cannot be told from the best."""
        ratio = self.prediction.time_s / best.prediction.time_s
        spread = sampling.spread(self.profile, lambda drawn: self.time(drawn) / best.time(drawn), samples)
        return ratio <= 1 + MARGIN if spread is None else ratio * spread[0] <= 1


def _changes(rivals: Sequence[_Rival]) -> Iterator[str]:
    """Say which changes of the machine would put another candidate first."""
    best = rivals[0]
    for words, section, names in CHANGES:
        for factor in FACTORS if section in best.profile.data else ():
            scaled = Profile(_scaled(best.profile.data, section, names, factor))
            times = [rival.time(scaled) for rival in rivals]
            first = min(range(len(rivals)), key=times.__getitem__)
            if times[first] < times[0] * (1 - 1e-9):
                how = "twice" if factor > 1 else "half"
                yield f"with {how} the {words}, {name(rivals[first].prediction.choice)} would be first"


def _scaled(data: dict, section: str, names: Sequence[str], factor: float) -> dict:
    data = {**data, section: copy.deepcopy(data[section])}

    def scale(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in names and isinstance(value, int | float):
                    node[key] = value * factor
                else:
                    scale(value)
        elif isinstance(node, list):
            for value in node:
                scale(value)

    scale(data[section])
    return data


def name(choice: core.Choice) -> str:
    """Return a candidate's distinguishing fields, in words of the command line."""
    substeps = f" {choice.substeps}" if choice.depth > 1 else ""
    order = f", reorder {choice.reorder}" * (choice.reorder != "none")
    return f"{choice.strategy}, {choice.schedule}, depth {choice.depth}{substeps}{order}"


# ---- reasons -------------------------------------------------------------------------------------------------------------


def reason(prediction: predict.Prediction, profile: Profile) -> str:
    """Return in one clause what bounds the exchange of a prediction, and its share of the step."""
    share = prediction.exchange_s / prediction.time_s
    if prediction.messages == 0:
        return "no messages: the rank has all it needs"
    messages = _messages(prediction)
    hidden = prediction.busy["message"] - prediction.terms["message"]
    if share < 0.02:
        return f"compute-bound: {_hidden(hidden, prediction)}{messages} cost {share:.1%} of a step"
    exposed = {t: s for t, s in prediction.terms.items() if t not in ("compute", "reduction")}
    largest = max(exposed, key=exposed.get)
    texts = {
        "message": f"{bound_by(prediction, profile)}: {messages}",
        "wait": "imbalance: peers are late",
        "synchronisation": f"synchronisation-bound: {messages}",
        "copy": "bound by copies to itself",
        "d2h": f"bound by copies from the device: {messages}",
        "h2d": f"bound by copies to the device: {messages}",
        "launch": f"bound by handing work to the device: {messages}",
    }
    what = texts.get(largest, f"packing-bound: {messages}")
    return f"{what}; exchange {share:.0%} of a step"


def _messages(prediction: predict.Prediction) -> str:
    least, most = prediction.message_bytes
    sizes = f"{least} B" if least == most else f"{least} to {most} B"
    return f"{prediction.messages} messages of {sizes}"


def _hidden(hidden: float, prediction: predict.Prediction) -> str:
    return "messages hidden, " if hidden > 0.5 * prediction.busy["message"] > 0 else ""


def bound_by(prediction: predict.Prediction, profile: Profile) -> str:
    """Whether the mean message spends more time on latency or on bytes, between the nodes if there are several."""
    law = profile.network_class("network" if prediction.nodes > 1 else "socket")["segments"]
    size = prediction.bytes / prediction.messages
    return "latency-bound" if 2 * segments.evaluate(law, 0) > segments.evaluate(law, size) else "bandwidth-bound"
