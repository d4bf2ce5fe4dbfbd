"""Micro-benchmarks as requests: patterns with their transports, ranks, threads and sizes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import bridge
from haloscope.errors import UsageError
from haloscope.measure import launch, lists, memory
from haloscope.measure.space import Space
from haloscope.records import patterns
from haloscope.records.curves import BASE, MICROBENCH

ALL_SIZES = tuple(2**k for k in range(23))  # 1 B to 4 MiB
QUICK_SIZES = (1, 8, 256, 8192, 262144, 4194304)
WORKING_SETS = tuple(4096 * 2**k for k in range(18))  # 4 KiB to 512 MiB
QUICK_WORKING_SETS = WORKING_SETS[::3]
SEVERAL = "multi-pair"  # the pattern of pingpong by 1, 2, 4, ... concurrent pairs
NAMES = (*patterns.BY_NAME, SEVERAL)
RELIED_ON = {"put": "direct/rma-lockall", "get": "direct/rma-lockall:get"}  # strategies of the same calls of MPI
REDUCED_BYTES = 4  # of a number that allreduce adds
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_EVERY_THREAD_COUNT = 16  # up to here stream takes every number of threads, beyond it powers of two


@dataclass(frozen=True)
class Micro:
    """One micro-benchmark: patterns of one kind, and the ranks and threads that run them.

    transport: with its options, "" for patterns without messages. nodes: emulated, 0 = as MPI reports. sizes: bytes.
    fresh: senders write their messages before each transfer, as computing does; the writing is not counted.
    gap: distance of the two ranks of a pair, 0 = half the ranks. pairs: concurrent pairs, 0 = all.
    """

    transport: str = ""
    ranks: int = 2
    nodes: int = 0
    sizes: tuple[int, ...] = ALL_SIZES
    seconds: float = 0.01
    repetitions: int = 5
    threads: int = 1
    fresh: bool = False
    patterns: tuple[str, ...] = patterns.USUAL
    gap: int = 0
    pairs: int = 0

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that the MPI library has to support."""
        if self.transport:
            return (f"direct/{self.transport}",)
        return tuple(RELIED_ON[name] for name in self.patterns if name in RELIED_ON)

    @property
    def id(self) -> str:
        """A readable name, independent of the measuring time."""
        words = [MICROBENCH, *([self.transport] if self.transport else []), f"r{self.ranks}"]
        words += [f"n{self.nodes}"] * bool(self.nodes) + ["fresh"] * self.fresh
        words += [f"gap{self.gap}"] * bool(self.gap) + [f"pairs{self.pairs}"] * bool(self.pairs)
        words += [f"t{self.threads}"] * (self.threads > 1)
        return ",".join(words + ["+".join(self.patterns)] * (self.patterns != patterns.USUAL))

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        how = {"fresh": self.fresh, "bytes": list(self.sizes), "seconds": self.seconds, "repetitions": self.repetitions}
        return {"kind": MICROBENCH, "id": self.id, "request": self.request() | how}

    def request(self) -> dict:
        """Return the request as a `skipped` or `failed` record holds it."""
        about: dict = {"patterns": list(self.patterns), "ranks": self.ranks, "nodes": self.nodes}
        about |= {"transport": self.transport} if self.transport else {}
        return about | {"gap": self.gap, "pairs": self.pairs, "threads": self.threads}


@dataclass(frozen=True)
class Wanted:
    """The requested patterns, transports, ranks and sizes, as lists; an empty list selects its default.

    quick: fewer sizes, fewer and shorter samples. seconds: of a sample; repetitions: samples; None: the default.
    """

    names: Sequence[str] = patterns.USUAL
    transports: Sequence[str] = (BASE,)
    ranks: Sequence[int] = (2,)
    nodes: Sequence[int] = (0,)
    threads: Sequence[int] = ()
    sizes: Sequence[int] = ()
    gap: int = 0
    quick: bool = False
    seconds: float | None = None
    repetitions: int | None = None

    @property
    def message_sizes(self) -> tuple[int, ...]:
        """The sizes of messages, bytes."""
        return tuple(self.sizes) or (QUICK_SIZES if self.quick else ALL_SIZES)


def plan(wanted: Wanted) -> Space[Micro]:
    """Return the micro-benchmarks of some patterns.

    Raises UsageError for ranks that cannot be paired, for impossible numbers of nodes or threads, and for sizes that a
    pattern does not have or that do not fit into memory; the text names a remedy.
    """
    seconds = wanted.seconds or (0.002 if wanted.quick else 0.01)
    repetitions = wanted.repetitions or (3 if wanted.quick else 5)
    found = [*_messages(wanted), *_onesided(wanted), *_collectives(wanted), *_memory(wanted)]
    return Space([dataclasses.replace(micro, seconds=seconds, repetitions=repetitions) for micro in found])


def _of_kind(names: Sequence[str], kind: str) -> tuple[str, ...]:
    return tuple(name for name, p in patterns.BY_NAME.items() if name in names and p.kind == kind)


def _messages(wanted: Wanted) -> list[Micro]:
    paired, ring = _of_kind(wanted.names, patterns.PAIRS), _of_kind(wanted.names, patterns.RING)
    several = SEVERAL in wanted.names
    if not (paired or ring or several):
        return []
    if several and max(wanted.ranks) < 4:
        raise UsageError(f"pattern {SEVERAL} needs two pairs or more; use --ranks 4 or more")
    found, sizes = [], wanted.message_sizes
    for ranks in wanted.ranks:
        _check_ranks(ranks, wanted, bool(paired or several))
        counts = _counts_of_pairs(ranks, "pingpong" in paired) if several else []
        for transport, nodes in itertools.product(wanted.transports, wanted.nodes):
            micro = functools.partial(Micro, transport, ranks, nodes, sizes)
            found += [micro(patterns=ring)] if ring else []
            found += [micro(patterns=paired, gap=wanted.gap)] if paired else []
            found += [micro(patterns=("pingpong",), gap=wanted.gap, pairs=count) for count in counts]
    return found


def _onesided(wanted: Wanted) -> list[Micro]:
    names, found = _of_kind(wanted.names, patterns.ONESIDED), []
    for ranks in wanted.ranks if names else ():
        _check_ranks(ranks, wanted, True)
        found.append(Micro(ranks=ranks, sizes=wanted.message_sizes, patterns=names, gap=wanted.gap))
    return found


def _counts_of_pairs(ranks: int, all_measured: bool) -> list[int]:
    """Return 1, 2, 4, ... pairs; all pairs last, unless all are measured already."""
    most = ranks // 2
    return [2**k for k in range(most.bit_length()) if 2**k < most] + ([] if all_measured else [most])


def _check_ranks(ranks: int, wanted: Wanted, paired: bool) -> None:
    if ranks < 2 or (paired and ranks % 2):
        needs = "ranks work in pairs; use 2, 4, ..." if paired else "messages need 2 ranks or more"
        raise UsageError(f"--ranks {ranks} is not possible: {needs}")
    if paired and wanted.gap and ranks % (2 * wanted.gap):
        raise UsageError(
            f"--gap {wanted.gap} does not pair {ranks} ranks: i goes with i + gap in each {2 * wanted.gap} of them; "
            f"use a gap whose double divides {ranks}, as {ranks // 2}"
        )
    for nodes in wanted.nodes:
        if not 0 <= nodes <= ranks:
            raise UsageError(f"--nodes {nodes} is not possible with {ranks} ranks; use 0 to {ranks}")


def _collectives(wanted: Wanted) -> list[Micro]:
    found = []
    for name in _of_kind(wanted.names, patterns.COLLECTIVE):
        sizes = wanted.message_sizes
        if name == "allreduce":
            if any(size % REDUCED_BYTES for size in wanted.sizes):
                raise UsageError(f"allreduce adds numbers of {REDUCED_BYTES} bytes; give --bytes in multiples of them")
            sizes = tuple(size for size in sizes if size % REDUCED_BYTES == 0)
        found += [Micro(ranks=ranks, sizes=sizes, patterns=(name,)) for ranks in wanted.ranks]
    return found


def _memory(wanted: Wanted) -> list[Micro]:
    found, free = [], memory.free_bytes()
    for name in _of_kind(wanted.names, patterns.MEMORY):
        arrays = 3 if name == "stream" else 1
        sizes = tuple(wanted.sizes) or _memory_sizes(name, free, wanted.quick)
        for threads in wanted.threads or (_thread_counts(launch.cores()) if name == "stream" else [1]):
            needed = arrays * max(sizes) * (threads if name == "cache" else 1)
            if threads < 1 or needed > free:
                case = f"--threads {threads}" if threads < 1 else f"pattern {name} with {max(sizes)} bytes"
                why = "use 1 or more" if threads < 1 else f"{needed} bytes are needed, {free} are free; use fewer"
                raise UsageError(f"{case} is not possible: {why}")
            found.append(Micro(ranks=1, sizes=sizes, threads=threads, patterns=(name,)))
    return found


def _thread_counts(cores: int) -> list[int]:
    powers = {2**k for k in range(cores.bit_length()) if 2**k <= cores}
    return sorted({*range(1, min(cores, _EVERY_THREAD_COUNT) + 1), *powers, cores})


def _memory_sizes(name: str, free: int, quick: bool) -> tuple[int, ...]:
    """Return working sets that fit in half of the free memory; for STREAM, as it requires, 4 x the largest cache."""
    if name == "stream":
        return (min(max(4 * largest_cache(), 64 << 20), free // 8 // 4096 * 4096),)
    return tuple(size for size in (QUICK_WORKING_SETS if quick else WORKING_SETS) if size <= free // 2)


def largest_cache() -> int:
    """Return the bytes of this machine's largest cache, 0 where the system does not show it."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = (re.fullmatch(r"(\d+)([KMG])\s*", file.read_text()) for file in _CACHES.glob("index*/size"))
    return max((int(size[1]) * units[size[2]] for size in sizes if size), default=0)


def transport_names() -> list[str]:
    """Return every transport with every option list, against which globs are matched."""
    return [name.removeprefix("direct/") for name in bridge.strategy_names() if name.startswith("direct/")]


def transports(text: str) -> list[str]:
    """Parse a list of transports and globs, options included: `p2p,rma-*`. Raises UsageError with the nearest names."""
    found: list[str] = []
    for word in _words(text):
        if lists.is_glob(word):
            found += lists.matching(word, transport_names(), "transport")
        else:
            found.append(bridge.canonical_strategy(f"direct/{word}").removeprefix("direct/"))
    return list(dict.fromkeys(found))


def _words(text: str) -> list[str]:
    """Cut at the commas between transports: a word that begins none is an option of the one before it."""
    heads = {name.partition(":")[0] for name in transport_names()}
    words: list[str] = []
    for piece in text.split(","):
        head = piece.partition(":")[0]
        starts = head in heads or lists.is_glob(piece)
        if words and not starts and ":" in words[-1]:
            words[-1] += "," + piece
        else:
            words.append(piece)
    return words
