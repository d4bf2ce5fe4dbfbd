"""Costs of messages: alone, sharing a node's injection rate, and as an all-gather; delays of concurrent messages.

A locality class of a profile (self, socket, node, network) has the time of a single message by segments, and a
contention law with three numbers, which the core applies to messages at the same time on one resource. A message of
time t occupies that resource for t - latency + gap, where the latency is the time of no bytes:

- `gap_s` (default: the latency): occupation by a message besides its bytes. The rest of latencies overlaps.
- `shared` (default 1): another message the same way takes that part of its time on the resource.
- `duplex` (default 2 inside a node, 1 between nodes): opposite messages take that part less 1. 1 = full duplex.

With the default gap, m equal messages take 1 + shared (m - 1) times one, and opposite ones `duplex` times that.
Source: Davis 2017, sections 5.3.4 and 5.3.5 (which print observations, no formula); gap: Culler et al. 1993 (LogP);
max-rate: Gropp, Olson, Samfass 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from haloscope.errors import UsageError
from haloscope.model import segments
from haloscope.model.profile import Profile


def message_time(profile: Profile, where: str, size: float) -> float:
    """Return the seconds of a lone message of `size` bytes between ranks of locality class `where`.

    Raises UnavailableError when the profile has no network, UsageError for an unknown class. Source: table 5.9.
    """
    return segments.evaluate(profile.network_class(where)["segments"], size)


def contention(profile: Profile, where: str) -> tuple[float, float]:
    """Return `shared` and `duplex` of a locality class, the defaults if the profile does not specify them."""
    factors = profile.network_class(where)["contention"]
    return factors.get("shared", 1.0), factors.get("duplex", 1.0 if where == "network" else 2.0)


def fit_shared(factors: Mapping[float, float]) -> float:
    """Return the `shared` that explains times of concurrent pairs over the time of one pair (relative least squares).

    factors: time over the single time, by pairs that use the same resource the same way (> 1).
    Raises UsageError without one such measurement.
    """
    use = {m: f for m, f in factors.items() if m > 1}
    if not use:
        raise UsageError("sharing of a link is measured with two or more concurrent pairs; no such record exists")
    m, f = np.array(list(use)), np.array(list(use.values()))
    return float(max(0.0, np.sum((m - 1) * (f - 1) / f**2) / np.sum((m - 1) ** 2 / f**2)))


def allgather_time(profile: Profile, size: float, ranks: int, cores_per_node: int) -> float:
    """Return the seconds of an all-gather to which each rank contributes `size` bytes: a tree of pair-wise steps.

    ranks, cores_per_node >= 1. ceil(log2 ranks) steps, the data doubling in each; the first ceil(log2 cores_per_node)
    of them inside nodes. The source leaves both roundings open; upwards they give its printed collective times.
    Source: Davis 2017, eq. 5.42.
    """
    steps = math.ceil(math.log2(ranks))
    inside = min(steps, math.ceil(math.log2(cores_per_node)))
    return sum(message_time(profile, "node" if i < inside else "network", 2**i * size) for i in range(steps))
