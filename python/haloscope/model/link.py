"""Profiles of a machine whose nodes are joined by another network."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from haloscope.model.profile import CLASSES, Profile

if TYPE_CHECKING:
    from haloscope.lab.link import Link

HANDSHAKE = 3  # crossings of a message that asks its receiver first; others take one


def over_link(profile: Profile, link: Link) -> Profile:
    """Return a profile of the same machine whose nodes are joined by `link`.

    What the profile knows of messages between nodes, else of those that go farthest, is taken without the network that
    it was measured in, if that was an emulated one, and `link` put on top: its latency once for each crossing, its
    bandwidth as time per byte. Packing, sweeps and messages inside nodes stay. Jitter is not looked at.
    Raises NotAvailable for a profile without messages.
    """
    data = copy.deepcopy(profile.data)
    classes = profile.section("network")["classes"]
    farthest = max(classes, key=CLASSES.index)
    before = data["machine"].get("emulated_network") if farthest == "network" else None
    latency = link.latency_s - (before["latency_s"] if before else 0.0)
    per_byte = _per_byte(link.bandwidth_bytes_per_s) - _per_byte(before["bandwidth_bytes_per_s"] if before else 0.0)
    asks_from = data.get("overlap", {}).get("rendezvous_from_bytes")
    network = copy.deepcopy(classes[farthest])
    for segment in network["segments"]:
        crossings = HANDSHAKE if asks_from is not None and segment["from_bytes"] >= asks_from else 1
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
