"""Emulated networks: their texts, and profiles of a machine whose nodes are joined by an emulated network."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from haloscope import files
from haloscope.errors import UsageError

if TYPE_CHECKING:
    from haloscope.model.profile import Profile

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES_PER_S = {"kbit": 1e3 / 8, "Mbit": 1e6 / 8, "Gbit": 1e9 / 8, "kB": 1e3, "MB": 1e6, "GB": 1e9}
VARIABLE = "HALOSCOPE_LAB"  # the network whose first host runs the process, as JSON; inherited by its children
MOST_HOSTS = 200  # addresses of the network
HANDSHAKE = 3  # crossings of a message with a handshake (rendezvous); others take one


@dataclass(frozen=True)
class Link:
    """An emulated network.

    hosts: number of hosts, 2 to MOST_HOSTS. latency_s: added to each frame, in addition to the network stacks of both
    ends. bandwidth_bytes_per_s: of each host's link, each way; 0: as fast as the machine copies. jitter_s: mean of the
    random additional delay, exponentially distributed.
    """

    hosts: int = 2
    latency_s: float = 0.0
    bandwidth_bytes_per_s: float = 0.0
    jitter_s: float = 0.0

    def __post_init__(self) -> None:
        if not 2 <= self.hosts <= MOST_HOSTS:
            raise UsageError(f"an emulated cluster of {self.hosts} hosts is not possible; use 2 to {MOST_HOSTS}")

    @property
    def text(self) -> str:
        """A description of the network."""
        rate = (
            f"{8e-9 * self.bandwidth_bytes_per_s:g} Gbit/s" if self.bandwidth_bytes_per_s else "no limit of bandwidth"
        )
        jitter = f", jitter {1e6 * self.jitter_s:g} us" if self.jitter_s else ""
        return f"emulated network of {self.hosts} hosts: latency {1e6 * self.latency_s:g} us, {rate}{jitter}"

    def to_json(self) -> str:
        """Return the network in the form of records."""
        return json.dumps(dataclasses.asdict(self))


def time_of(text: str) -> float:
    """Return the seconds of a time such as 50us or 1ms. Raises UsageError for anything else."""
    return _quantity(text, SECONDS, "time", "50us, 1.5ms")


def rate_of(text: str) -> float:
    """Return the bytes per second of a rate such as 1Gbit or 100MB. Raises UsageError for anything else."""
    return _quantity(text, BYTES_PER_S, "bandwidth", "1Gbit, 100Mbit, 500MB")


def _quantity(text: str, units: Mapping[str, float], name: str, examples: str) -> float:
    match = re.fullmatch(r"\s*+(\d++\.?\d*+(?:e[-+]?\d++)?)\s*+([A-Za-z]*)(?:/s)?\s*", text)
    unit = match and (match[2].lower() if name == "time" else match[2])
    if match is None or (unit not in units and match[0].strip() != "0"):
        raise UsageError(f"'{text}' is not a {name}; write it as {examples}")
    return float(
        f"{float(match[1]) * units.get(unit or '', 0.0):.15g}"
    )  # 50 us are 5e-05 s, not 4.9999999999999996e-05


def current() -> Link | None:
    """Return the network that this process runs in, None outside an emulated cluster."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        return Link(**files.json_of(text))
    except (TypeError, ValueError):
        raise UsageError(f"{VARIABLE} is not a network of an emulated cluster; unset it") from None


def over_link(profile: Profile, link: Link) -> Profile:
    """Return a profile of the same machine whose nodes are joined by `link`.

    The costs of messages between nodes, else of the farthest messages in the profile, are the base. If they were
    measured in an emulated network, its latency and time per byte are subtracted. Then `link` is added: its latency
    once for each crossing, its bandwidth as time per byte. Packing, sweeps and messages inside nodes stay. Jitter is
    ignored.
    Raises UnavailableError for a profile without messages.
    """
    from haloscope.model.profile import CLASSES, Profile

    data = copy.deepcopy(profile.data)
    classes = profile.section("network")["classes"]
    farthest = max(classes, key=CLASSES.index)
    before = data["machine"].get("emulated_network") if farthest == "network" else None
    latency = link.latency_s - (before["latency_s"] if before else 0.0)
    per_byte = _per_byte(link.bandwidth_bytes_per_s) - _per_byte(before["bandwidth_bytes_per_s"] if before else 0.0)
    rendezvous_from = data.get("overlap", {}).get("rendezvous_from_bytes")
    network = copy.deepcopy(classes[farthest])
    for segment in network["segments"]:
        crossings = HANDSHAKE if rendezvous_from is not None and segment["from_bytes"] >= rendezvous_from else 1
        _move(segment, "latency_s", crossings * latency)
        _move(segment, "per_byte_s", per_byte)
    data["network"]["classes"]["network"] = network
    data["machine"] |= {"nodes": max(data["machine"]["nodes"], link.hosts)}
    return Profile(data)


def _per_byte(bandwidth: float) -> float:
    return 1 / bandwidth if bandwidth else 0.0


def _move(segment: dict, name: str, by: float) -> None:
    """Add to a cost and to its interval; no cost falls below 0."""
    segment[name] = max(0.0, segment[name] + by)
    if name in segment.get("interval", {}):
        segment["interval"][name] = [max(0.0, end + by) for end in segment["interval"][name]]
