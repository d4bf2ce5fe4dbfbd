"""Exchanges of blocks as requests: variants, workloads, sides and devices."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope.errors import UsageError, unknown_name
from haloscope.measure import devices, launch, lists
from haloscope.measure.space import Space
from haloscope_studies.vanecek2020 import variants
from haloscope_studies.vanecek2020.blocks import KIND
from haloscope_studies.vanecek2020.variants import TYPES

WORKLOADS = ("XS", "S", "M", "L", "XL")
SCHEMES = ("pairs", "ring", "mixed")
SAMPLED, OFF = "sampled", "off"  # the default check; no detail
ELEMENT_BYTES = 8


@dataclass(frozen=True)
class Blocks:
    """One variant that exchanges the blocks of one workload.

    sizes: bytes of each block instead of the workload's. block_threads: 0 = the workload's. type: of elements. sides:
    of each rank, on its one device. detail: the logged events; a timeline needs some. warmup, iterations: of each of
    `repetitions` tests.
    """

    variant: str
    workload: str = "M"
    sizes: tuple[int, ...] = ()
    block_threads: int = 0
    type: str = TYPES[0]
    scheme: str = SCHEMES[0]
    ranks: int = 1
    sides: int = 1
    device: str = "auto"
    check: str = SAMPLED
    detail: str = OFF
    timeline: bool = False
    warmup: int = 3
    iterations: int = 10
    repetitions: int = 5

    strategies = ()  # blocks are sent without one

    @property
    def threads(self) -> int:
        """The cores that a rank would use: all, since an imitated device computes on them."""
        return launch.cores()

    @property
    def id(self) -> str:
        """A readable name, independent of the numbers of iterations and tests."""
        words = [KIND, "+".join(map(str, self.sizes)) or self.workload, f"r{self.ranks}", f"s{self.sides}", self.device]
        words += [f"t{self.block_threads}"] * bool(self.block_threads) + [self.type] * (self.type != TYPES[0])
        words += [self.scheme] * (self.scheme != SCHEMES[0])
        words += [self.check] * (self.check != SAMPLED) + [f"detail={self.detail}"] * (self.detail != OFF)
        return ",".join([*words, *["timeline"] * self.timeline, self.variant])

    def request(self) -> dict:
        """Return the request as the ranks receive it, and as a `skipped` or `failed` record holds it."""
        own: dict[str, Any] = {"bytes": list(self.sizes)} if self.sizes else {}
        own |= {"threads": self.block_threads} if self.block_threads else {}
        names = (
            "variant",
            "workload",
            "type",
            "scheme",
            "ranks",
            "sides",
            "device",
            "check",
            "detail",
            "timeline",
            "warmup",
            "iterations",
            "repetitions",
        )
        return own | {name: getattr(self, name) for name in names}

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        return {"kind": KIND, "id": self.id, "request": self.request()}


def plan(workloads: str, variants: Sequence[str], with_timeline: bool, options: Mapping[str, Any]) -> Space:
    """Return the exchanges of lists of workloads, variants and options of `haloscope blocks`.

    Raises UsageError for lists that cannot be read, and for options that exclude each other.
    """
    sizes = sizes_of(options["sizes"])
    names = lists.names(workloads, WORKLOADS, "workload")
    chosen, schemes = variant_list(variants), lists.names(options["scheme"], SCHEMES, "scheme")
    detail = options["detail"] or ("on" if with_timeline else OFF)
    if with_timeline and detail == OFF:
        raise UsageError("--timeline shows the log of --detail; use --detail on or posting")
    if sizes and len(names) > 1:
        raise UsageError("--bytes replaces a workload's sizes; name one workload, for its threads")
    settings = {name: options[name] for name in ("check", "warmup", "iterations", "repetitions")}
    settings["type"] = options["type"]
    settings |= {"device": _device_of(options["device"]), "detail": detail, "timeline": with_timeline}
    ranks = lists.numbers(options["ranks"], "--ranks") if options["ranks"] else [usual_ranks(settings["device"])]
    threads, sides = options["threads"] or 0, options["sides"]
    return Space(
        [
            Blocks(
                variant,
                name,
                sizes,
                threads,
                scheme=scheme,
                ranks=count,
                sides=sides or (2 if count == 1 else 1),
                **settings,
            )
            for count, name, scheme, variant in itertools.product(ranks, names, schemes, chosen)
        ]
    )


def _device_of(text: str) -> str:
    """Return the only back end of --device. Raises UsageError for several and for none."""
    found = devices.resolve(text)
    if "," in found or found == devices.NONE:
        raise UsageError(f"--device '{text}': blocks are of one device; use auto, cuda, hip or host")
    return found


def variant_list(texts: Sequence[str]) -> list[str]:
    """Return the variants, each once, of texts with lists: variants and globs of their full names, cut at semicolons;
    `all`.

    Raises UsageError for an unknown variant.
    """
    items = [item.strip() for text in texts for item in text.split(";") if item.strip()]
    if not items:
        raise UsageError(f"--variant names none; write for example --variant '{variants.all_variants()[0]}', or all")
    return list(dict.fromkeys(itertools.chain.from_iterable(map(_matching, items))))


def _matching(item: str) -> list[str]:
    pattern = "*" if item == "all" else item
    if not any(c in pattern for c in "*?["):
        return [variants.canonical(item)]
    valid = variants.all_variants()
    found = fnmatch.filter(valid, pattern)
    if not found:
        raise UsageError(unknown_name("variant of blocks", item, valid))
    return found


def sizes_of(text: str | None) -> tuple[int, ...]:
    """Return the bytes of the buffers in a list, which may repeat; () without a list.

    Raises UsageError for a buffer that is not made of whole elements.
    """
    sizes = tuple(lists.numbers(text, "--bytes", repeated=True)) if text else ()
    for size in sizes:
        if size < ELEMENT_BYTES or size % ELEMENT_BYTES:
            raise UsageError(
                f"--bytes {size} is not possible: buffers hold numbers of {ELEMENT_BYTES} bytes; use "
                f"multiples of {ELEMENT_BYTES}"
            )
    return sizes


def usual_ranks(device: str) -> int:
    """Return 2 if two ranks have a device each, or cores for an imitated one; else 1, a rank that has both sides.

    device: a back end. Ranks that share a GPU take turns, and a kernel that waits blocks the other rank's kernel.
    """
    here = next(len(b["devices"]) for b in devices.backends() if b["name"] == device)
    return 2 if here > 1 or (device == "host" and launch.cores() > 1) else 1
