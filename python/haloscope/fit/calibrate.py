"""A machine profile from the records of a calibration: fits with intervals, and notes on undetermined parameters."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haloscope import bridge, records
from haloscope.errors import UsageError
from haloscope.fit import calibrate_device, counts, in_step, laws, states
from haloscope.fit.counts import beyond_cache, stride_class
from haloscope.fit.laws import Law, Row, RowCost, Terms
from haloscope.fit.points import KIND, SECTIONS
from haloscope.model import pace, profile, segments
from haloscope.records import stats
from haloscope.records.curves import BASE, MICROBENCH, Curve, group_curves

NOWHERE = (math.inf, math.inf)  # limits that no block reaches
NEAR_BYTES = 512 << 10  # of one slot: two slots stay in a core's private cache
FEW_ROWS = 4  # points below which nothing is fitted


@dataclass
class Calibration:
    """A profile (`data`) with its fits: laws over amounts, terms of steps and transports, contention of messages."""

    data: dict
    laws: list[Law] = field(default_factory=list)
    transports: list[Terms] = field(default_factory=list)
    contention: Terms | None = None


def fit_profile(
    found: Iterable[dict], name: str = "", source: str = "records", notes: Sequence[str] = ()
) -> Calibration:
    """Fit a profile to records of `haloscope calibrate`.

    found: records of any kinds; micro-benchmarks of p2p, calibration points and whole steps count unless their
    verification failed. name: of the profile, default: the host's. source: the profile's `source`. notes: precede the
    notes of the fits. Sections without data are omitted. Raises UsageError without a usable record, and for records of
    several machines or MPI libraries.
    """
    measured = [r for r in found if r["kind"] in (MICROBENCH, KIND, "measurement")]
    good = [r for r in measured if r["verification"]["status"] != "failed"]
    if not good:
        raise UsageError("the records have no measured point of a calibration; run haloscope calibrate -o FILE.json")
    head = _head(good, name, source)
    failed = sorted({r["id"] for r in measured if r not in good})
    head["notes"] = [*notes, *(f"{name}: its check failed, left out" for name in failed)]
    found_states = states.split(good)
    fits = [_costs(head, state) for state in found_states]
    if len({frozenset(fit.data) for fit in fits}) > 1:  # a section was measured in only one state
        found_states, fits = [good], [_costs(head, good)]
    made, *others = fits
    if others:
        made.data["states"] = [{key: value for key, value in o.data.items() if key not in head} for o in others]
    made.data["notes"] += [*states.describe(found_states[1:], found_states[0]), *_remarks(made, found_states[0])]
    profile.checked(made.data, "the fitted profile")
    return made


def _costs(head: dict, good: Sequence[dict]) -> Calibration:
    """Fit all costs to records of one state of the machine. head: the parts of the profile that identify it."""
    made = Calibration(copy.deepcopy(head))
    _network(made, good)
    _packing(made, good)
    _kernels(made, good)
    _reductions(made, good)
    made.laws += calibrate_device.fit(made.data, good)
    made.transports += in_step.fit(made.data, good)
    if paces := pace.by_ranks(good):
        made.data["pace"] = paces
    return made


def _head(good: Sequence[dict], name: str, source: str) -> dict:
    """Return the parts of a profile that identify its machine."""
    most = max(r["request"]["ranks"] for r in good)
    machines = {
        (
            r["environment"].get("cpu", ""),
            r["environment"]["mpi_library"],
            *records.hosts_of(r),
        )
        for r in good
        if r["request"]["ranks"] == most
    }
    if len(machines) > 1:
        raise UsageError(
            f"the records are of {len(machines)} machines or MPI libraries "
            f"({'; '.join(' '.join(m) for m in sorted(machines))}); fit the records of one at a time"
        )
    (cpu, library, *hosts) = machines.pop()
    e = good[0]["environment"]
    sockets = e.get("sockets", 1)
    emulated = {"emulated_network": e["emulated_network"]} if "emulated_network" in e else {}
    return {
        "schema": profile.SCHEMA,
        "schema_version": profile.SCHEMA_VERSION,
        "name": name or (hosts or ["machine"])[0],
        "origin": "calibrated",
        "source": source,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "host": ", ".join(hosts) or "unknown",
            "cpu": cpu,
            "nodes": max(1, len(hosts)),
            "sockets_per_node": sockets,
            "cores_per_socket": max(1, e.get("cores", 1) // sockets),
        }
        | emulated,
        "mpi_library": " ".join(library.split()),
    }


def _points(good: Sequence[dict], part: str) -> Iterator[tuple[str, dict, dict]]:
    """Yield launch, request and point of every calibration record of one part."""
    for record in good:
        if record["kind"] == KIND and record["request"]["part"] == part:
            for point in record["points"]:
                yield record["launch"]["id"], record["request"], point


def _least(samples: Sequence[float]) -> float:
    """Return the least disturbed sample; each is a mean over many repeats, and disturbances only lengthen it."""
    return float(min(samples))


# ---- network ---------------------------------------------------------------------------------------------------------


def _network(made: Calibration, good: Sequence[dict]) -> None:
    curves = {
        c.request["ranks"]: c
        for c in group_curves(r for r in good if r["kind"] == MICROBENCH)
        if c.request["transport"] == BASE
    }
    if 2 not in curves:
        return
    where = "network" if len(records.hosts_of(curves[2].records[0])) > 1 else "socket"
    law = laws.fit_law(f"network/{where}", _samples(curves[2], "latency_s"), most=4)
    made.laws.append(law)
    network: dict = {"classes": {where: {"segments": segments.to_json(law.segments)}}}
    made.contention = _contention(good, curves[2], law)
    contention: dict[str, Any] = dict(made.contention.values)
    if made.contention.interval:
        contention["interval"] = {k: list(v) for k, v in made.contention.interval.items()}
    if pairs := _pairs(curves):
        contention["pairs"] = pairs
    if contention:
        network["classes"][where]["contention"] = contention
    made.data["network"] = network


def _samples(curve: Curve, quantity: str) -> list[Row]:
    return [
        Row(launch, size, _least(times))
        for size in curve.sizes()
        for launch, times in curve.samples(size, quantity).items()
    ]


# Start, minimum and maximum of each fitted parameter; gap_s in units of the latency.
_CONTENTION = {"duplex": (1.3, 1.0, 2.0), "shared": (0.7, 0.0, np.inf), "gap_s": (1.0, 0.0, np.inf)}


def _contention(good: Sequence[dict], curve: Curve, law: Law) -> Terms:
    """Fit how concurrent messages slow each other down; the law is in src/model/haloscope/model/network.hpp."""
    rows = [(r.launch, 1, r.amount, r.seconds) for r in _samples(curve, "exchange_s")]
    for launch, request, point in _points(good, "exchange"):
        if request["strategy"].endswith("/" + BASE) and point["gapped_bytes"] == 0:
            size = point["bytes"] / point["messages"]
            rows.append((launch, point["messages"], size, _least(point["exchange_s"])))
    launches, *columns = zip(*rows, strict=True)
    count, size, seconds = (np.array(column, float) for column in columns)
    alone = np.atleast_1d(segments.evaluate(law.segments, size))
    latency = law.segments[0].fixed
    several = bool((count > 1).any())
    names = ["duplex"] + ["shared"] * several + ["gap_s"] * (several and latency > 0)
    start, low, high = zip(*(_CONTENTION[name] for name in names), strict=True)
    units = {"duplex": 1.0, "shared": 1.0, "gap_s": latency}
    scale = np.array([units[name] for name in names])

    def errors(scaled: np.ndarray) -> np.ndarray:
        v = {name: _CONTENTION[name][0] * unit for name, unit in units.items()} | dict(
            zip(names, scaled * scale, strict=True)
        )
        occupied = np.maximum(0, alone - latency + v["gap_s"])
        others = v["shared"] * (count - 1) * occupied
        off: np.ndarray = (alone + others + (v["duplex"] - 1) * (occupied + others)) / seconds - 1
        return off

    def solve(weight: float | np.ndarray, loss: str = "linear") -> np.ndarray:
        from scipy import optimize

        found: np.ndarray = optimize.least_squares(
            lambda scaled: weight * errors(scaled), start, bounds=(low, high), loss=loss, f_scale=0.1
        ).x
        return found

    best = solve(1.0, laws.LOSS)
    found = np.array([solve(weight) for weight in np.sqrt(laws.resampled(launches))])
    ends = np.quantile(found, (0.025, 0.975), axis=0) * scale
    return Terms(
        "contention",
        dict(zip(names, map(float, best * scale), strict=True)),
        {name: (float(ends[0, k]), float(ends[1, k])) for k, name in enumerate(names)},
        tuple(set(units) - set(names)),
        len(rows),
        errors(best),
    )


def _pairs(curves: dict[int, Curve]) -> list[dict]:
    """Return the slowdown of a message by several concurrent pairs, per size."""
    single = curves[2]
    return [
        {"pairs": ranks // 2, "bytes": size, "factor": curve.time(size).value / single.time(size).value}
        for ranks, curve in sorted(curves.items())
        if ranks > 2
        for size in curve.sizes()
        if size in single.sizes()
    ]


# ---- packing and copying ---------------------------------------------------------------------------------------------


# Parameters by length of rows: rows of a page or more cost time per byte, rows shorter than a line per row.
GROWING = {
    "contiguous": ("slope",),
    "lines": ("slope", "per_row"),
    "strided": ("per_row", "slope"),
    "scattered": ("per_row", "slope"),
}


def _packing(made: Calibration, good: Sequence[dict]) -> None:
    """Fit packing and copying; blocks that a sweep leaves in the cache separately from larger ones, if that fits
    better."""
    rows: dict[tuple, list[tuple[float, Row]]] = defaultdict(list)
    for launch, request, point in _points(good, "pack"):
        stride, threads = stride_class(point["row_bytes"], point.get("pitch_bytes", 0)), request.get("threads", 1)
        measured = {"copy": (point["copy_bytes"], _least(point["copy_s"]))}
        if "pack_s" in point:  # an exchange does both
            measured["pack"] = point["bytes"], _least(np.add(point["pack_s"], point["unpack_s"])) / 2
        for section, (size, seconds) in measured.items():
            row = Row(launch, size, seconds, size / point["row_bytes"])
            rows[section, stride, threads].append((point["block_bytes"], row))
    if not rows:
        return
    limits = _cache_limits([found for (_, _, threads), found in rows.items() if threads == 1])
    far: dict = {}
    for (section, stride, threads), found in sorted(rows.items()):
        fixed = None  # time of a call, the same inside and outside the cache
        inside = [row for block, row in found if block < limits[0]]
        outside = [row for block, row in found if block >= limits[1]]
        apart = min(len(inside), len(outside)) >= FEW_ROWS
        for place, prefix, chosen in (
            (made.data, "", inside if apart else [row for _, row in found]),
            (far, "beyond_cache/", outside if apart else []),
        ):
            if chosen:
                law = laws.fit_rows(f"{prefix}{section}/{stride}/{threads}", chosen, GROWING[stride], fixed)
                made.laws.append(law)
                fixed = law.segments[0].fixed
                table = place.setdefault(section, {}).setdefault(stride, {})
                table[str(threads)] = segments.to_json(law.segments)
    if far:
        made.data["beyond_cache"] = {"from_block_bytes": limits[0], "to_block_bytes": limits[1]} | far


def _cache_limits(tables: Sequence[Sequence[tuple[float, Row]]]) -> tuple[float, float]:
    """Return the block sizes at which the cost of copying begins and stops to rise.

    With these limits, the laws of smaller and of larger blocks, mixed between the two, have the smallest error.
    tables: points with the sizes of their blocks, one table per law. Both limits are infinite unless they lower the
    error by a fifth.
    """
    sizes = sorted({block for table in tables for block, _ in table})
    apart = [(np.array([block for block, _ in table]), [row for _, row in table]) for table in tables]

    def error(limits: tuple[float, float]) -> float:
        return sum(laws.error_of_rows(rows, beyond_cache(blocks, limits)) for blocks, rows in apart)

    borders = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(sizes)]
    best = min(itertools.combinations_with_replacement(borders, 2), key=error, default=NOWHERE)
    return best if borders and error(best) < 0.8 * error(NOWHERE) else NOWHERE


# ---- kernels, reductions -----------------------------------------------------------------------------------


def _kernels(made: Calibration, good: Sequence[dict]) -> None:
    """Fit sweeps by number of ranks per host; of runs on several numbers of hosts, only runs on all hosts count.

    Sweeps that store around the cache have separate costs.
    """
    found: dict[tuple[str, int, int], dict[int, list[tuple[float, Row]]]] = defaultdict(lambda: defaultdict(list))
    for record in good:
        active = math.ceil(record["request"]["ranks"] / max(1, len(records.hosts_of(record))))
        for launch, q, point in _points([record], "kernel"):
            row = Row(launch, point["cells"], _least(point["sweep_s"]), point["cells"] / q["cells"][0])
            size = _slot_bytes(bridge.Choice.from_json(q))
            found[laws.kernel_name(q, point), q["depth"], active][q["ranks"]].append((size, row))
    chosen = {key: by_ranks[max(by_ranks)] for key, by_ranks in found.items()}
    costs = {
        name: laws.fit_row_cost(
            [
                row
                for (other, levels, _), rows in chosen.items()
                if (other, levels) == (name, 1)
                for size, row in rows
                if size <= NEAR_BYTES
            ]
        )
        for name, _, _ in chosen
    }
    limit = bridge.stream_from_bytes()
    inside, outside = {}, {}
    for key, rows in chosen.items():
        name, levels, _ = key
        near, far = ([row for size, row in rows if (size >= limit) == side] for side in (False, True))
        if levels > 1 or not near:
            near, far = [row for _, row in rows], []
        inside[key] = costs[name].counted(near)
        if far:
            outside[key] = costs[name].counted(far)
    made.laws += laws.fit_kernels(made.data, inside)
    streaming: dict = {}
    made.laws += laws.fit_kernels(streaming, outside, "streaming/")
    if streaming:
        made.data["streaming"] = streaming["kernels"]
    if lanes := {name: {"lanes": c.lanes, "cells": c.cells} for name, c in costs.items() if c != RowCost()}:
        made.data["rows"] = lanes


@functools.cache
def _slot_bytes(choice: bridge.Choice) -> float:
    """Return the bytes of one slot of the block that every rank of a point sweeps alone."""
    alone = dataclasses.replace(choice, ranks=1, process_grid="", depth=1, substeps="full")
    return counts.slot_bytes(bridge.make_plan(bridge.make_layout(alone), 0, bridge.exchange_spec(alone)))


def _reductions(made: Calibration, good: Sequence[dict]) -> None:
    for call in ("allreduce", "allgather"):
        times: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for launch, q, point in _points(good, "allreduce"):
            if samples := point.get(f"{call}_s"):
                times[q["ranks"]][launch] += samples
        rows = []
        for ranks, launches in sorted(times.items()):
            estimate = stats.median_over_launches(list(launches.values()))
            interval = {"time_s": [estimate.low, estimate.high]}
            rows.append({"ranks": ranks, "time_s": estimate.value, "interval": interval})
        if rows:
            made.data.setdefault("reductions", {})[call] = rows


# ---- notes -----------------------------------------------------------------------------------------------------------


def _remarks(made: Calibration, good: Sequence[dict]) -> list[str]:
    """Return notes on missing sections and undetermined parameters."""
    found = [f"section '{name}' is left out: nothing was measured for it" for name in SECTIONS if name not in made.data]
    crowded = sorted({r["request"]["ranks"] for r in good if r["environment"]["oversubscribed"]})
    if crowded:
        found.append(
            f"more ranks than cores in the points with {', '.join(map(str, crowded))} ranks: their times are unreliable"
        )
    found += pace.changes(good)
    exchanges = [t for t in made.transports if "per_exchange_s" in (*t.values, *t.dropped)]
    if exchanges and all("per_exchange_s" in terms.dropped for terms in exchanges):
        found.append("transports: all exchanges had equally many rounds, so the cost of one is in per_round_s")
    if unknown := not_identified(made):
        parameters = sum(len(names) for _, names in unknown)
        found.append(
            f"{parameters} parameters of {len(unknown)} fits could not be distinguished from 0 and count as 0; "
            "--verbose lists them"
        )
    return found


def not_identified(made: Calibration) -> list[tuple[str, list[str]]]:
    """Return the fits with parameters that the data do not determine and that count as 0, with these parameters."""
    found = []
    for law in made.laws:
        keys = segments.parameters(law.unit)
        names = [
            f"{keys[parameter]} from {law.segments[number].start:g} {law.unit}" for number, parameter in law.dropped
        ]
        found.append((law.name, names))
    for terms in made.transports:
        names = [name for name in terms.dropped if name != "per_exchange_s" or "per_round_s" in terms.dropped]
        found.append((terms.name, names))
    return [(name, names) for name, names in found if names]
