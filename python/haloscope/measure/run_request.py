"""A request of `haloscope run`: refusals before the first launch, and the campaign that measures it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from haloscope import outputs
from haloscope.bridge import build
from haloscope.errors import UsageError
from haloscope.measure import probes
from haloscope.measure.campaign import Campaign
from haloscope.measure.space import Space, refuse_if_none_can_run


def refuse_unfit(planned: Space, options: Mapping[str, Any]) -> None:
    """Raise UsageError for a space that cannot run, and for a trace or fault that it cannot have.

    Raises UnavailableError without the rank program, or if this MPI cannot run a named strategy.
    """
    if options["trace"] and len(planned.requests) > 1:
        raise UsageError("--trace writes one file, and this is a space; specify one choice")
    if options["trace"]:
        outputs.refuse_foreign(options["trace"], outputs.TRACE)
    refuse_if_none_can_run(planned)
    _refuse_injection(options["inject"], planned)
    build.rank_program()  # before a record file is made
    probes.refuse_lacking(options["strategy"] or "")


def _refuse_injection(inject: str, planned: Space) -> None:
    """Raise UsageError for a fault in a rank that some request does not have."""
    rank = re.search(r"\brank=(\d+)", inject)
    fewest = min(request.ranks for request in planned.requests)
    if rank and int(rank[1]) >= fewest:
        raise UsageError(f"--inject names rank {rank[1]}, and ranks are 0 to {fewest - 1}; name one of these")


def campaign_of(planned: Space, output: Path, options: Mapping[str, Any], name: str) -> Campaign:
    """Return the campaign that measures a space as the options request. name: for the line of progress."""
    return Campaign(
        planned,
        output,
        launches=options["launches"],
        seed=options["order_seed"],
        resume=options["resume"],
        watchdog_s=options["watchdog"],
        inject=options["inject"],
        label=name,
    )
