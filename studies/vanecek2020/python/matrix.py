"""Measurements of the study: all variants of each workload, also in detail, block 0 raised to a rendezvous message."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from haloscope.errors import UsageError
from haloscope.measure.space import Space
from haloscope.studies import Options
from haloscope_studies.vanecek2020 import requests, variants
from haloscope_studies.vanecek2020.printed import RAISED_BYTES
from haloscope_studies.vanecek2020.requests import Blocks

SMALL = ("XS", "S")  # workloads of an imitated device in a short run
NONCOHERENT = ("hip",)  # back ends with different memory of the two kinds
PLAIN = "taskqueue:channel,pinned,nonblocking"  # the thesis' best; its ideas are compared with it
THROTTLED = f"{PLAIN},throttle=2"  # blocks pack two at a time, so that the first ones are sent sooner (section 5.4)
STAGED = "taskqueue:channel,device,nonblocking"
IDEAS = (
    *(f"{PLAIN},{word}" for word in ("padded", "dummy", "chunks=4", "threads=2", "backoff=1")),
    THROTTLED,
    *(f"{STAGED},{word}" for word in ("chunks=4", "threads=2", "threads=3")),
)
DRAWN = ("baseline:waitall,nonblocking,coherent", PLAIN, THROTTLED)  # figures 4.4 and 4.8, and an idea for comparison
POSTING = (PLAIN, "taskqueue:queue,pinned,nonblocking")
FIRST_SEND = "baseline:testany,blocking,coherent"  # its sends have separate durations (section 4.6.1)
LOOKED_AT = ("M", "S")  # workloads of that experiment: the first measured one is used


def workloads(options: Options) -> list[str]:
    """Return the names of the workloads. Raises UsageError for numbers without a workload."""
    if bad := [n for n in options.sizes if not 1 <= n <= len(requests.WORKLOADS)]:
        names = ", ".join(f"{n} {name}" for n, name in enumerate(requests.WORKLOADS, 1))
        raise UsageError(f"--sizes {bad[0]} is not a workload of vanecek2020; use {names}")
    if options.sizes:
        return [requests.WORKLOADS[n - 1] for n in options.sizes]
    return list(SMALL if options.short and device(options) == "host" else requests.WORKLOADS)


def device(options: Options) -> str:
    """Return the back end: a GPU's, else the one that imitates devices."""
    return options.device or "host"


def of_thesis(back_end: str) -> list[str]:
    """Return the variants of tables 3.1 and 3.2 and the kernels per block, in one kind of memory if only one exists."""
    kinds = variants.all_variants()
    return [name for name in kinds if back_end in NONCOHERENT or "noncoherent" not in name]


def plan(options: Options) -> Space:
    """Return all measurements, each piece of work once."""
    return Space(list(dict.fromkeys(_requests(options))))


def _requests(options: Options) -> Iterator[Blocks]:
    where, ranks = device(options), options.ranks or requests.usual_ranks(device(options))
    how: dict[str, Any] = {"device": where, "ranks": ranks, "sides": 2 if ranks == 1 else 1}
    tests = how | {"repetitions": options.repetitions}
    names = workloads(options)
    for name, variant in itertools.product(names, (*of_thesis(where), *IDEAS)):
        yield Blocks(variant, name, **tests)
    for name, variant in itertools.product(names, (*of_thesis(where), THROTTLED)):
        yield Blocks(variant, name, detail="on", timeline=variant in DRAWN, **how, repetitions=1)
    for name, variant in itertools.product(names, POSTING):
        yield Blocks(variant, name, detail="posting", timeline=True, **how, repetitions=1)
    for name in [name for name in LOOKED_AT if name in names][:1]:
        yield from _first_sends(name, tests)


def _first_sends(name: str, how: dict) -> Iterator[Blocks]:
    from haloscope_studies.vanecek2020 import printed

    usual = tuple(printed.sizes(name))
    threads = {"S": 16, "M": 128}[name]
    for sizes, variant in itertools.product((usual, (RAISED_BYTES, *usual[1:])), (FIRST_SEND, f"{FIRST_SEND},dummy")):
        yield Blocks(variant, name, sizes, block_threads=threads, detail="on", **how)
