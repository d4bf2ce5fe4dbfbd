"""Costs of whole time steps, beyond the costs of sweeps, packing and messages measured alone.

A message measured alone is sent repeatedly from the same warm memory. In a step its cells have just been swept, its
peer is sometimes late, and each operation has to be looked up and timed. The same holds for sweeps: a part of a block
costs more than its share of the whole. From phases of the steps of two ranks, this module scales the tables of sweeps,
packing and copies, and fits the sections `overlap`, `steps`, `transports` and `discrepancy` of a profile, in this
order, each on top of the previous ones.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haloscope import bridge
from haloscope.errors import HaloscopeError
from haloscope.fit import corrections, counts, laws, overlap, scaling
from haloscope.fit.laws import Terms
from haloscope.model import predict
from haloscope.model.profile import Profile

COMPUTING = ("compute", "inner", "outer")
PARTS = {"compute": COMPUTING, "pack": ("pack",), "unpack": ("unpack",), "copy": ("copy",)}
SHORT_S = 1e-4  # in longer steps, interrupts and the like hide the cost of the program itself
FEW = 4  # steps below which nothing is fitted
ALIKE = 0.1  # costs whose effects on exchanges differ by less than this cannot be separated from noise
REFITS = 4  # with the model's responses to the costs of the previous fit
# Parameters, and the property of a step that each is multiplied by.
RUNNING = {"per_program_s": "one", "per_operation_s": "operations"}
EXCHANGE = {
    "per_message_s": "messages",
    "per_round_s": "rounds",
    "per_byte_s": "bytes",
    "per_gapped_byte_s": "gapped_bytes",
    "per_row_s": "rows",
    "per_exchange_s": "one",
}
# Of a rank that writes into another's field.
WRITING = {"per_gapped_byte_s": "broken_bytes", "per_clean_byte_s": "clean_bytes"}
INTERRUPTS = {"interrupt_per_message_s": "messages", "interrupt_per_byte_s": "bytes"}
READING = {"per_touched_byte_s": "near_bytes", "per_touched_row_s": "near_rows"}
# Shares of sweeps that ranks wait, and the weight of each for a block, by its part beyond the cache.
WAITING: dict[str, Callable[[float], float]] = {
    "waiting_share": lambda beyond: 1 - beyond,
    "far_waiting_share": lambda beyond: beyond,
    "between_waiting_share": lambda beyond: 4 * beyond * (1 - beyond),
}
SPAN = "waiting_span_s"
SPANS_S = (math.inf, 0.1, 0.01, 1e-3, 1e-4)  # tried in turn
COPIED = ("buffers", "fields")  # ways in which ranks may copy messages themselves
PIECES = {
    "per_piece_s": "pieces",
    "per_piece_cell_s": "lowest",
    "per_piece_row_s": "extra_rows",
    "per_far_piece_row_s": "far_rows",
}


@dataclass(frozen=True)
class Step:
    """One program in one launch (all its time steps): measured seconds by kind, and counts of its components.

    parts: measured seconds by term of predictions, for terms with a separate phase.
    """

    launch: str
    choice: bridge.Choice
    exchange_s: float
    compute_s: float
    rest_s: float
    counts: dict[str, float]
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        """The transport, as named in strategies."""
        return counts.near_transport(self.choice.strategy)

    def like(self, **changes: Any) -> tuple:
        """Return a key that is equal for steps of the same launch that differ only in `changes`.

        The key ignores the memory of the fields, which follows from the transport.
        """
        return self.launch, dataclasses.replace(self.choice, **{"memory": "own", **changes})


def steps_of(records: Iterable[dict], profile: Profile) -> list[Step]:
    """Return the whole steps of two ranks among some records. profile: has the limits of the cache."""
    found, known = [], {}
    for record in records:
        if record["kind"] != "measurement" or record["request"]["ranks"] != 2:
            continue
        if record["id"] not in known:
            choice = bridge.Choice.from_json(record["request"])
            known[record["id"]] = choice, *_counts(choice, profile)
        choice, steps, amounts = known[record["id"]]
        spent = record["phases_s"]
        exchange, compute, rest, *parts = (
            steps * sum(spent[name]["mean"] for name in phases if name in spent)
            for phases in (predict.EXCHANGE_PHASES, COMPUTING, ("rest",), *PARTS.values())
        )
        found.append(
            Step(record["launch"]["id"], choice, exchange, compute, rest, amounts, dict(zip(PARTS, parts, strict=True)))
        )
    return found


def _counts(choice: bridge.Choice, profile: Profile) -> tuple[int, dict[str, float]]:
    """Return the number of time steps of a rank's program, and the counts of its components."""
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    step, in_place = bridge.step_of(choice), bridge.find_schedule(choice.schedule).in_place
    options = dataclasses.replace(bridge.schedule_options(choice), series="entry" if in_place else "whole")
    program = bridge.make_program(choice.schedule, step, plan, options)
    out = [(m, t) for m, t in zip(plan.messages, plan.traffic, strict=True) if m.out]
    pieces = [counts.piece_counts(s.region, plan, len(choice.cells)) for s in program.sweeps if s.region.volume]
    beyond = float(counts.beyond_cache(counts.slot_bytes(plan), profile.cache_limits))
    far = beyond >= 0.5
    extra = sum(rows for _, rows in pieces)
    sent, rows = sum(m.bytes for m, _ in out), sum(counts.short_rows(t) for _, t in out)
    return choice.depth, {
        "one": 1.0,
        "operations": len(program.ops),
        "messages": len(out),
        "rounds": len({m.round for m, _ in out}),
        "bytes": sent,
        "gapped_bytes": sum(m.bytes for m, t in out if not t.in_place),
        "broken_bytes": sum(m.bytes for m, t in out if not t.in_place and t.run_bytes < counts.CONTIGUOUS_FROM),
        "clean_bytes": sent * (1 - beyond) * (choice.depth == 1),
        "rows": rows,
        "near_bytes": sent * (not far),
        "near_rows": rows * (not far),
        "pieces": len(pieces),
        "lowest": sum(lowest for lowest, _ in pieces),
        "extra_rows": extra,
        "beyond": beyond,
        "far_rows": extra * far,
    }


def fit(data: dict, records: Sequence[dict]) -> list[Terms]:
    """Add the sections `overlap`, `steps`, `transports` and `discrepancy` to a profile and scale its tables to steps.

    data: a profile with network, packing and kernels, changed in place. Returns the fits: of `steps` and of plain
    messages, then two for each other transport, then of `overlap`. Without whole steps among the records, or without a
    section that they need, nothing is added.
    """
    plain = {key: value for key, value in data.items() if key not in ("steps", "transports", "overlap", "discrepancy")}
    if not {"network", "pack", "kernels"} <= set(data) or len(found := steps_of(records, Profile(plain))) < FEW:
        return []
    scaled = _scale(plain, found)  # first: all other costs are added to sweeps, packing and copies
    held = overlap.fit(plain, found)  # the overlap determines the times that all other costs are added to
    data |= plain
    predicted = _predictor(Profile(plain))
    bulk = [s for s in found if s.choice.schedule == "bulk"]
    base = [s for s in bulk if s.transport == counts.PLAIN and predicted(s.choice)]
    exchange = _plain_exchange(base, predicted, data)
    of_plain = [exchange, *([_interrupts(base, predicted)] if "network" in data["network"]["classes"] else [])]
    fits = [f for f in (scaled, _running(base), *of_plain, _pieces(found, predicted)) if f]
    data["steps"] = _section(fits, (*RUNNING, *WAITING, SPAN, *PIECES))
    data["transports"] = {counts.PLAIN: _section(of_plain, (*EXCHANGE, *INTERRUPTS))}
    for name in sorted({s.transport for s in bulk} - {counts.PLAIN}):
        if tried := _transport([s for s in bulk if s.transport == name], base, data):
            data["transports"][name] = tried.costs | ({"plain": True} if _is_plain(tried.costs, data) else {})
            fits += tried.fits
    by_all_costs = _predictor(Profile(data))
    data["discrepancy"] = discrepancy(bulk, by_all_costs)  # for predictions that no measured step corrects
    if "network" not in data["network"]["classes"]:
        corrections.add(data["transports"], ratios_of(bulk, by_all_costs))
    return [*fits, held] if held else fits


def _scale(plain: dict, found: Sequence[Step]) -> Terms | None:
    """Scale the tables of a profile without costs of steps to the times of plain steps."""
    machine = Profile(copy.deepcopy(plain))

    @functools.cache
    def terms(choice: bridge.Choice) -> Mapping[str, float]:
        try:
            return predict.predict(choice, machine, samples=0).terms
        except HaloscopeError:
            return {}

    base = [s for s in found if s.choice.schedule == "bulk" and s.transport == counts.PLAIN and terms(s.choice)]
    return scaling.scale(plain, base, terms, "network" in plain["network"]["classes"])


Predictor = Callable[[bridge.Choice], tuple[float, float] | None]


def _predictor(profile: Profile) -> Predictor:
    """Return a function that predicts the seconds of a program's exchange and sweeps; None if the profile cannot."""
    known: dict[bridge.Choice, tuple[float, float] | None] = {}

    def times(choice: bridge.Choice) -> tuple[float, float] | None:
        if choice not in known:
            try:
                found = predict.predict(choice, profile, samples=0)
                known[choice] = found.exchange_s * choice.depth, found.terms["compute"] * choice.depth
            except HaloscopeError:
                known[choice] = None
        return known[choice]

    return times


def _features(parameters: dict[str, str], steps: Sequence[Step]) -> dict[str, list[float]]:
    return {name: [s.counts[count] for s in steps] for name, count in parameters.items()}


def _running(base: Sequence[Step]) -> Terms | None:
    """Fit the time of short steps that no operation accounts for."""
    short = [s for s in base if s.compute_s + s.exchange_s < SHORT_S and s.rest_s > 0]
    if len(short) < FEW:
        return None
    rest = np.array([s.rest_s for s in short])
    return laws.fit_terms(
        "steps/running", _features(RUNNING, short), 1e-9 * rest, rest, [s.launch for s in short], True
    )


def _fit_exchange(
    steps: Sequence[Step], base: Sequence[float], data: dict, extra: dict[str, list[float]] | None = None
) -> Terms:
    """Fit the time of a transport's exchanges beyond `base`, by the model's response to each cost.

    A cost that adds time is paid for each message, byte or round. A cost that saves time shortens flights and packing:
    messages in flight together save it once, and a time cannot fall below 0. So each cost's column is the model's
    response to the value of the previous fit. Of all fits, including one without costs, the one with which the model is
    closest to the steps counts.
    """
    transport, on = steps[0].transport, data.get("transports", {}).get(counts.PLAIN, {})

    def exchanges(costs: dict) -> np.ndarray:
        return _exchanges(steps, data, {transport: costs})

    before, seconds, extra = exchanges(on), np.array([s.exchange_s for s in steps]), extra or {}

    def fit(features: dict) -> Terms:
        launches = [s.launch for s in steps]
        return laws.fit_terms(f"transports/{transport}", features | extra, base, seconds, launches, alike=ALIKE)

    def off(terms: Terms) -> float:
        costs = {name: on.get(name, 0.0) + value for name, value in terms.values.items() if name in EXCHANGE}
        waited = sum(terms.values.get(name, 0.0) * np.array(column) for name, column in extra.items())
        return _off(base + exchanges(on | costs) - before + waited, seconds)

    features, tried = _features(EXCHANGE, steps), [fit({})]
    for _ in range(REFITS):
        tried.append(fit(features))
        for name, value in tried[-1].values.items():
            if name in features:
                answer = (exchanges(on | {name: on.get(name, 0.0) + value}) - before) / value
                features[name] = [float(a) for a in answer]
    return min(tried, key=off)


def _known(predicted: Predictor, choice: bridge.Choice) -> tuple[float, float]:
    """Return the seconds of a choice that can be predicted."""
    found = predicted(choice)
    assert found is not None, choice
    return found


def _plain_exchange(base: Sequence[Step], predicted: Predictor, data: dict) -> Terms:
    """Fit the cost of plain exchanges beyond messages and packing alone: ranks wait for their peers' sweeps."""
    alone = [_known(predicted, s.choice)[0] for s in base]
    fits = {span: _waiting_exchange(base, alone, _waits(base, predicted, span), data) for span in SPANS_S}
    span = min(fits, key=lambda span: float(np.mean(np.abs(fits[span].errors))))
    fit = fits[span]
    if span == math.inf or not set(WAITING) & set(fit.values):
        return fit
    return dataclasses.replace(fit, values=fit.values | {SPAN: span}, interval=fit.interval | {SPAN: (span, span)})


def _waits(base: Sequence[Step], predicted: Predictor, span: float) -> dict[str, list[float]]:
    """Return the feature of each share of waiting, if a slower rank stays slow for `span` seconds."""
    sweeps = [_known(predicted, s.choice)[1] for s in base]
    return {
        name: [
            seconds / math.sqrt(1 + seconds / span) * part_of(s.counts["beyond"])
            for s, seconds in zip(base, sweeps, strict=True)
        ]
        for name, part_of in WAITING.items()
    }


def _waiting_exchange(base: Sequence[Step], alone: Sequence[float], waits: dict[str, list[float]], data: dict) -> Terms:
    """Fit exchanges with these waits. No rank waits a negative time: a negative share counts as 0."""
    while True:
        fit = _fit_exchange(base, alone, data, waits)
        negative = [name for name in waits if fit.values.get(name, 0.0) < 0]
        if not negative:
            return fit
        waits = {name: values for name, values in waits.items() if name not in negative}


def _interrupts(base: Sequence[Step], predicted: Predictor) -> Terms:
    """Fit the extra time of sweeps in steps with messages between nodes, whose interrupts need the core."""
    return laws.fit_terms(
        f"transports/{counts.PLAIN}, sweeps",
        _features(INTERRUPTS, base),
        [_known(predicted, s.choice)[1] for s in base],
        [s.compute_s for s in base],
        [s.launch for s in base],
        True,
    )


def _pieces(found: Sequence[Step], predicted: Predictor) -> Terms | None:
    """Fit the extra time of a block in pieces over one sweep of the same launch, beyond the cost of more calls."""
    whole = {s.like(): s for s in found if s.choice.schedule == "bulk" and s.choice.depth == 1}
    split = [
        s for s in found if s.choice.schedule == "split" and s.like(schedule="bulk") in whole and predicted(s.choice)
    ]
    if len(split) < FEW:
        return None
    alike = [whole[s.like(schedule="bulk")] for s in split]
    together = [
        w.compute_s + _known(predicted, s.choice)[1] - _known(predicted, w.choice)[1]
        for s, w in zip(split, alike, strict=True)
    ]
    apart = [max(s.compute_s, t) for s, t in zip(split, together, strict=True)]
    return laws.fit_terms("steps/pieces", _features(PIECES, split), together, apart, [s.launch for s in split], True)


@dataclass(frozen=True)
class Transport:
    """The costs of a transport in the form of a profile, and the fits that they come from."""

    costs: dict
    fits: list[Terms]


def _transport(steps: Sequence[Step], base: Sequence[Step], data: dict) -> Transport | None:
    """Fit the costs of a transport beyond plain messages of the same blocks and launch; None for too few steps.

    If no message leaves the node, costs that replace the transfer of messages are fitted too, and count if they are
    closer to the steps.
    """
    plain = {s.like(): s for s in base}
    pairs = [(s, plain[key]) for s in steps if (key := s.like(strategy=f"ordered/{counts.PLAIN}")) in plain]
    if len(pairs) < FEW:
        return None
    mine, theirs = zip(*pairs, strict=True)
    name, seconds = mine[0].transport, np.array([s.exchange_s for s in mine])
    beside = _fit_exchange(mine, [s.exchange_s for s in theirs], data)
    reading = laws.fit_terms(
        f"{beside.name}, sweeps",
        _features(READING, mine),
        [s.compute_s for s in theirs],
        [s.compute_s for s in mine],
        [s.launch for s in mine],
    )
    forms = [(beside, data["transports"][counts.PLAIN])]
    if "network" not in data["network"]["classes"]:
        forms += [(_instead_of_travelling(mine, data, how), {"copied": how}) for how in COPIED]
    tried = [Transport(_section([f, reading], (*(EXCHANGE | WRITING), *READING), on), [f, reading]) for f, on in forms]

    def off(made: Transport) -> float:
        return _off(_exchanges(mine, data, {name: made.costs}), seconds)

    return min(tried, key=off)


def _is_plain(costs: dict, data: dict) -> bool:
    """Return whether a transport has the costs of plain messages, so that their corrections apply to it."""
    return all(
        costs.get(name) == data["transports"][counts.PLAIN].get(name) for name in (*EXCHANGE, *READING, "copied")
    )


def _instead_of_travelling(steps: Sequence[Step], data: dict, how: str) -> Terms:
    """Fit the cost of a transport's exchanges beyond copies and waits, where ranks copy their messages themselves.

    how: one of COPIED.
    """
    name, seconds = steps[0].transport, [s.exchange_s for s in steps]
    base = _exchanges(steps, data, {name: {"copied": how}})
    costs = EXCHANGE | (WRITING if how == "fields" else {})
    return laws.fit_terms(
        f"transports/{name}", _features(costs, steps), base, seconds, [s.launch for s in steps], True, ALIKE, seconds
    )


def _off(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Return the deviation of predicted from measured seconds: the mean absolute logarithm of their ratios."""
    return float(np.mean(np.abs(np.log(predicted.clip(1e-9) / measured))))


def _exchanges(steps: Sequence[Step], data: dict, transports: dict) -> np.ndarray:
    """Return the seconds of exchanges by a profile with these costs of transports."""
    times = _predictor(Profile(data | {"transports": transports}))
    return np.array([_known(times, s.choice)[0] for s in steps])


def _section(fits: Sequence[Terms], names: Iterable[str], on: dict | None = None) -> dict:
    """Return some parameters of several fits with their intervals, added to the parameters of `on`."""
    made: dict = {key: value for key, value in (on or {}).items() if key != "interval"}
    interval: dict = dict((on or {}).get("interval", {}))
    for terms in fits:
        for name in names:
            if name in terms.values:
                before, ends = made.get(name, 0.0), interval.get(name, [made.get(name, 0.0)] * 2)
                made[name] = before + terms.values[name]
                widths = [
                    np.hypot(e - before, f - terms.values[name])
                    for e, f in zip(ends, terms.interval[name], strict=True)
                ]
                interval[name] = [float(made[name] - widths[0]), float(made[name] + widths[1])]
    return made | ({"interval": interval} if interval else {})


@dataclass(frozen=True)
class Ratios:
    """Ratios of measured to predicted times of a step's exchange and sweeps, by the median over its launches."""

    exchange: float
    sweeps: float
    launches: int


def ratios_of(bulk: Iterable[Step], predicted: Predictor) -> dict[bridge.Choice, Ratios]:
    """Return the ratios of all predictable steps by choice. predicted: seconds of exchange and sweeps."""
    launches: dict[bridge.Choice, list[Step]] = defaultdict(list)
    for s in bulk:
        launches[s.choice].append(s)
    found = {}
    for choice, steps in launches.items():
        if times := predicted(choice):
            taken = np.median([(s.exchange_s, s.compute_s) for s in steps], axis=0)
            exchange, sweeps = (float(ratio) for ratio in taken / times)
            found[choice] = Ratios(exchange, sweeps, len(steps))
    return found


def discrepancy(bulk: Iterable[Step], predicted: Predictor) -> dict[str, float]:
    """Return the deviations of measured from predicted sweeps and exchanges: root mean squares of logarithms of ratios.

    predicted: seconds of a choice's exchange and sweeps. The median over launches counts, as in validation. For sweeps
    of one block with several transports, the median over transports counts, since its sweeps are the same with all of
    them.
    """
    exchange: list[float] = []
    sweeps: dict[bridge.Choice, list[float]] = defaultdict(list)
    for choice, ratios in ratios_of(bulk, predicted).items():
        exchange.append(math.log(ratios.exchange))
        sweeps[dataclasses.replace(choice, strategy="")].append(math.log(ratios.sweeps))
    off = {"exchange": exchange, "compute": [float(np.median(alike)) for alike in sweeps.values()]}
    return {part: float(np.sqrt(np.mean(np.square(logs)))) for part, logs in off.items()}
