"""Ratios of measured to predicted times of steps, which correct predictions of similar steps.

The similarity of a choice to a measured step, and the average of the ratios, are defined in `model/correction.hpp` of
the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from haloscope import bridge
from haloscope.fit import counts

if TYPE_CHECKING:
    from haloscope.fit.in_step import Ratios

DIGITS = 4  # of written numbers: ratios are accurate to a few percent


def add(transports: dict, measured: Mapping[bridge.Choice, Ratios]) -> None:
    """Add `corrections` to the transports of a profile, in place.

    measured: by choice, ratios of the measured times of bulk steps to predictions with all other costs.
    """
    for choice, ratios in measured.items():
        transport = transports.get(counts.near_transport(choice.strategy))
        if transport is not None and (likeness := _likeness(choice)):
            row = likeness | {
                "launches": ratios.launches,
                "exchange": _rounded(ratios.exchange),
                "sweeps": _rounded(ratios.sweeps),
            }
            columns = transport.setdefault("corrections", defaultdict(list))
            for name, value in row.items():
                columns[name].append(value)


def _likeness(choice: bridge.Choice) -> dict | None:
    """Return the properties of a step's messages and block in the form of a profile; None if its messages differ."""
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    sent = {traffic for message, traffic in zip(plan.messages, plan.traffic, strict=True) if message.out}
    if len(sent) != 1:
        return None
    (one,) = sent
    return {
        "message_bytes": one.bytes,
        "run_bytes": one.run_bytes,
        "block_bytes": counts.slot_bytes(plan),
        "depth": choice.depth,
        "in_place": one.in_place,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
