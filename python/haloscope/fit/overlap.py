"""Imperfect overlap: the part of a plain message's flight that its receiver must spend in calls even while it computes.

The fit compares steps that overlap with the bulk step of the same block in the same launch, so that common costs
cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloscope.fit import counts, laws
from haloscope.fit.laws import Terms
from haloscope.model import predict
from haloscope.model.profile import Profile

PARTS = np.linspace(0, 1, 11)  # tried values: predictions are not linear in the part
FEW = 4  # pairs below which nothing is fitted
NAME = "held_share"


def fit(data: dict, steps: Sequence) -> Terms | None:
    """Add section `overlap` to a profile with its other sections, from `in_step.Step`s of two ranks; return the fit.

    The section has the part that best explains the difference in exchange time between `split` and `bulk`, as a share
    of the step. Nothing is added if all parts fit the data equally well. Cost: one prediction for each part of PARTS
    and overlapping choice.
    """
    bulk = {s.like(): s for s in steps if s.choice.schedule == "bulk"}
    pairs = [
        (s, bulk[key])
        for s in steps
        if s.choice.schedule == "split" and s.transport == counts.PLAIN and (key := s.like(schedule="bulk")) in bulk
    ]
    if len(pairs) < FEW:
        return None
    [near, *_] = data["network"]["classes"]
    whole = np.array([b.exchange_s + b.compute_s + b.rest_s for _, b in pairs])
    measured = np.array([s.exchange_s - b.exchange_s for s, b in pairs]) / whole
    choices = {c for s, b in pairs for c in (s.choice, b.choice)}
    off = []
    for part in PARTS:
        profile = Profile({**data, "overlap": _section(near, float(part))})
        shown = {c: predict.predict(c, profile, samples=0).exchange_s * c.depth for c in choices}
        off.append(np.abs([shown[s.choice] - shown[b.choice] for s, b in pairs] / whole - measured))
    errors = np.array(off)
    best = int(errors.mean(axis=1).argmin())
    found = PARTS[(laws.resampled([s.launch for s, _ in pairs]) @ errors.T).argmin(axis=1)]
    low, high = (float(end) for end in np.quantile(found, (0.025, 0.975)))
    if low <= PARTS[0] and high >= PARTS[-1]:
        return Terms("steps/overlap", {}, {}, (NAME,), len(pairs), errors[best])
    value = float(PARTS[best])
    data["overlap"] = _section(near, value)
    return Terms(
        "steps/overlap", {NAME: value}, {NAME: (min(low, value), max(high, value))}, (), len(pairs), errors[best]
    )


def _section(near: str, part: float) -> dict:
    """Return section `overlap` for plain messages only: other transports copy elsewhere or not at all, so they keep the
    assumption of a profile without this section."""
    return {"held_of": {counts.PLAIN: {near: part}}}
