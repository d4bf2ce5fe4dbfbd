"""What measured steps took over what the fitted costs say; predictions of steps that are like them follow that.

How near a choice is to a measured step, and how its ratios are averaged, is in `model/correction.hpp` of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from haloscope import core
from haloscope.calibration import counts

if TYPE_CHECKING:
    from haloscope.calibration.in_step import Step

DIGITS = 4  # of what is written: ratios are known to a few percent


def add(data: dict, bulk: Iterable[Step], predicted: Callable[[core.Choice], tuple[float, float] | None]) -> None:
    """Add `corrections` to the transports of a profile.

    data: a profile with all other costs, changed in place. bulk: steps in bulk. predicted: seconds of a choice's exchange and
    sweeps by these costs, None where they cannot tell. The median over launches counts.
    """
    launches: dict[core.Choice, list[Step]] = defaultdict(list)
    for step in bulk:
        if step.transport in data["transports"] and predicted(step.choice):
            launches[step.choice].append(step)
    for choice, steps in launches.items():
        if likeness := _likeness(choice):
            found = [np.median([s.exchange_s for s in steps]), np.median([s.compute_s for s in steps])]
            ratios = {name: _rounded(seconds / by_costs) for name, seconds, by_costs
                      in zip(("exchange", "sweeps"), found, predicted(choice) or (), strict=True)}  # fmt: skip
            columns = data["transports"][steps[0].transport].setdefault("corrections", defaultdict(list))
            for name, value in (likeness | {"launches": len(steps)} | ratios).items():
                columns[name].append(value)


def _likeness(choice: core.Choice) -> dict | None:
    """Return what a step's messages and block are like, as a profile has it; None where its messages differ from each other."""
    plan = core.make_plan(core.make_layout(choice), 0, core.exchange_spec(choice))
    sent = {core.message_traffic(plan, i) for i, message in enumerate(plan.messages) if message.out}
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
