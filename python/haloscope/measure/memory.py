"""Memory of this machine: the bytes that a request's fields take, and refusals of requests that need more."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from haloscope import bridge
from haloscope.bridge.choice import Choice
from haloscope.bridge.layout import SPLIT_BY
from haloscope.measure.request import Request
from haloscope.measure.space import Space

_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)

# Fields of a choice that the bytes of its fields depend on: its step, the split of the grid, the depth of halos.
STORED_BY = (*SPLIT_BY, "form", "real", "set", "depth")


def free_bytes() -> int:
    """Return the bytes that new processes can use here: of the machine, or of the control group if it has fewer."""
    import psutil

    free: int = psutil.virtual_memory().available
    for limit, used in _LIMITS:
        try:
            free = min(free, int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return max(free, 0)


def field_bytes(choice: Choice) -> int:
    """Return the bytes of the fields of all ranks, halos and slots included."""
    step, layout = bridge.step_of(choice), bridge.make_layout(choice)
    specs = [bridge.exchange_spec(choice, stage) for stage in range(len(step.stages))]
    halo = [max(s.low[d] + s.high[d] for s in specs) for d in range(len(choice.cells))]
    extents = zip(choice.cells, layout.ranks, halo, strict=False)
    points = math.prod(cells + ranks * layers for cells, ranks, layers in extents)
    return int(points * sum(q.element_bytes * q.slots for q in step.quantities))


def copies(request: Request) -> int:
    """Return the number of times that the host's memory holds the fields of a request's ranks.

    Fields on a GPU take none, unless the host computes walls around them; the memory of an imitated device is the
    host's. Verification of a result has separate fields, in the host's memory.
    """
    device: str = request.document.get("device", "")
    on_host = not device or not bridge.messages_on_device(request.choice)
    return on_host + (device == "host") + bool(request.verify)


def needed_bytes(request: Request) -> int:
    """Return the bytes of the host's memory that the fields of a request's ranks take together."""
    return field_bytes(request.choice) * copies(request)


def refusal(request: Request, free: int) -> str:
    """Return the reason that a request does not fit in `free` bytes, and a size that fits; "" if it fits."""
    needed = needed_bytes(request)
    if needed <= free:
        return ""
    cells, share = request.choice.cells, (free / needed) ** (1 / len(request.choice.cells))
    fits = "x".join(str(_rounded(n * share)) for n in cells)
    return (
        f"the fields of {request.choice.shape} cells take "
        f"{_size(needed)}{' with what verifies them' * bool(request.verify)}, "
        f"and {_size(free)} are free here; use --cells {fits} or fewer{_unverified(request, free)}"
    )


def _unverified(request: Request, free: int) -> str:
    """Return the advice not to verify, if the fields then fit; else ""."""
    needed = needed_bytes(request.measured(verify=0))
    if not request.verify or needed > free:
        return ""
    return f", or --verify 0, which needs {_size(needed) if needed else 'none'}"


def set_aside(space: Space[Request]) -> Space[Request]:
    """Return the space without requests that do not fit into free memory, which are refused, each with its reason."""
    free, large = free_bytes(), []
    for group in _stored_alike(space.requests):
        most = field_bytes(group[0].choice) * max(map(copies, group))
        large += group if most > free else []
    reasons = {id(request): why for request in large if (why := refusal(request, free))}
    refused = [(r, reasons[id(r)]) for r in space.requests if id(r) in reasons]
    return Space([r for r in space.requests if id(r) not in reasons], space.refused + refused, space.lacking)


def _stored_alike(requests: Iterable[Request]) -> Iterable[list[Request]]:
    """Return requests in groups whose fields take the same number of bytes."""
    groups: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        groups[repr([request.document.get(name) for name in STORED_BY])].append(request)
    return groups.values()


def _rounded(cells: float) -> int:
    """Return the number cut to two leading digits."""
    digits = 10 ** max(0, math.floor(math.log10(max(cells, 1))) - 1)
    return max(1, int(cells // digits * digits))


def _size(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
