"""The device part of a machine profile, from the records of a calibration: kernels, packing, copies, enqueueing."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from haloscope import records
from haloscope.fit import laws
from haloscope.fit.counts import touched
from haloscope.fit.laws import Law, Row, kernel_name
from haloscope.fit.points import KIND
from haloscope.model import segments
from haloscope.records import stats

PINNED, PAGEABLE = "pinned", "pageable"  # host memory of copies
HOST_COSTS = ("operation_s", "notice_s", "signal_s")


def fit(data: dict, good: Sequence[dict]) -> list[Law]:
    """Add section `device` to a profile if records measured a device; return the laws that it came from.

    good: records of any kind that did not fail. Tables are by number of ranks that measured concurrently on one device.
    """
    found = [r for r in good if r["kind"] == KIND and r["request"]["part"].startswith("device-")]
    kernels = [r for r in found if r["request"]["part"] == "device-kernel"]
    copies = [r for r in found if r["request"]["part"] == "device-copy"]
    if not kernels or not copies:
        return []
    device = kernels[0]["environment"]["device"]
    section: dict = {"backend": kernels[0]["request"]["device"], "name": device["name"], "per_node": device["on_node"]}
    shaped = [r for r in kernels if r["request"].get("device_block")]
    kernels = [r for r in kernels if r not in shaped]
    made = _kernels(section, kernels) + _copies(section, copies)
    if best := shapes(kernels, shaped):
        section["shapes"] = best
    section |= _host(copies)
    if conflict := _conflict(kernels):
        section["conflict"], section.setdefault("interval", {})["conflict"] = conflict
    data["device"] = section
    return made


def _sharing(record: dict) -> int:
    """Return the number of ranks that shared a device: the devices of a node are assigned to ranks in turn."""
    hosts = max(1, len(records.hosts_of(record)))
    devices: int = record["environment"]["device"]["on_node"] * hosts
    ranks: int = record["request"]["ranks"]
    return -(-ranks // devices)


def _kernels(section: dict, kernels: Sequence[dict]) -> list[Law]:
    rows: dict[tuple, list[Row]] = defaultdict(list)
    for record in kernels:
        q = record["request"]
        levels = q["depth"] if q.get("substeps") == "blocked" else 1
        for point in record["points"]:
            key = (kernel_name(q, point), levels, _sharing(record))
            rows[key].append(Row(record["launch"]["id"], point["cells"], min(point["sweep_s"])))
    return laws.fit_kernels(section, rows, "device/", most=3)


def _copies(section: dict, copies: Sequence[dict]) -> list[Law]:
    rows: dict[tuple, list[Row]] = defaultdict(list)
    for record in copies:
        launch, sharing = record["launch"]["id"], _sharing(record)
        for point in record["points"]:
            size = point["bytes"]
            both = min(np.add(point["pack_s"], point["unpack_s"])) / 2  # an exchange does both
            rows["pack", "", sharing].append(Row(launch, size + touched(size, point["row_bytes"]), float(both)))
            for way, memory in itertools.product(("d2h", "h2d"), (PINNED, PAGEABLE)):
                rows[way, memory, sharing].append(Row(launch, size, min(point[f"{way}_{memory}_s"])))
    made = []
    for (operation, memory, sharing), found in sorted(rows.items()):
        law = laws.fit_law("/".join(filter(None, ("device", operation, memory, str(sharing)))), found, most=3)
        made.append(law)
        table = section.setdefault(operation, {})
        table = table.setdefault(memory, {}) if memory else table
        table[str(sharing)] = segments.to_json(law.segments)
    return made


def shapes(kernels: Sequence[dict], shaped: Sequence[dict]) -> dict[str, dict]:
    """Return the fastest block shape of each kernel, of the shapes that beat the kernel's default in every launch."""
    own = {
        (r["launch"]["id"], kernel_name(r["request"], {}), r["points"][0]["cells"]): min(r["points"][0]["sweep_s"])
        for r in kernels
        if r["request"].get("substeps") != "blocked" and _sharing(r) == 1
    }
    ratios: dict[tuple, list[float]] = defaultdict(list)
    for r in shaped:
        q, point = r["request"], r["points"][0]
        if base := own.get((r["launch"]["id"], kernel_name(q, {}), point["cells"])):
            ratios[kernel_name(q, {}), q["device_kernel"], q["device_block"]].append(min(point["sweep_s"]) / base)
    best: dict[str, dict] = {}
    for (name, kernel, block), found in ratios.items():
        ratio = float(np.median(found))
        if max(found) < 1 and ratio < best.get(name, {"times": 1.0})["times"]:
            best[name] = {"kernel": kernel, "block": block, "times": ratio}
    return best


def _host(copies: Sequence[dict]) -> dict:
    """Return the host's costs of enqueueing work and of detecting its end, and of a word between kernel and host.

    They have intervals over launches, and come from the records with the fewest ranks per device.
    """
    fewest = min(_sharing(r) for r in copies)
    made: dict = {"interval": {}}
    for name in HOST_COSTS:
        launches: dict[str, list[float]] = defaultdict(list)
        for record in copies:
            if _sharing(record) == fewest:
                launches[record["launch"]["id"]] += [min(point[name]) for point in record["points"] if name in point]
        if not any(launches.values()):
            continue  # the records are older than this measurement
        estimate = stats.median_over_launches(list(launches.values()))
        made[name], made["interval"][name] = estimate.value, [estimate.low, estimate.high]
    return made


def _conflict(kernels: Sequence[dict]) -> tuple[float, list[float]] | None:
    """Return the slowdown of two concurrent sweeps over one (0: none, 1: twice as long) and its interval.

    Only the larger half of the blocks counts, since these fill a device. None without measured pairs of sweeps.
    """
    points = [
        (r["launch"]["id"], r["points"][0])
        for r in kernels
        if r["request"].get("substeps") != "blocked" and "two_sweeps_s" in r["points"][0]
    ]
    if not points:
        return None
    middle = float(np.median([p["cells"] for _, p in points]))
    launches: dict[str, list[float]] = defaultdict(list)
    for launch, p in points:
        if p["cells"] >= middle:
            launches[launch].append(min(p["two_sweeps_s"]) / min(p["sweep_s"]) - 1)
    estimate = stats.median_over_launches(list(launches.values()))
    value, low, high = (float(np.clip(v, 0, 1)) for v in (estimate.value, estimate.low, estimate.high))
    return value, [low, high]
