"""Variants of the exchange of blocks: the flows, the words of a variant, and all variants of Vanecek 2020.

`studies/vanecek2020/app/variant.cpp` has the same words. Source: tables 3.1 and 3.2, sections 3.6, 4.6 and 5.4.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from haloscope.errors import UsageError, unknown_name

TYPES = ("double", "float", "int")  # of elements

BASELINE, TASKQUEUE, KERNELS = FLOWS = ("baseline", "taskqueue", "kernels")


@dataclass(frozen=True)
class Switch:
    """Two words of which a variant has one; `always`: its name also contains the default word."""

    off: str
    on: str
    flows: tuple[str, ...]
    always: bool = True


@dataclass(frozen=True)
class Number:
    """A word NAME=N, and the value of N in a variant without the word."""

    name: str
    usual: int
    flows: tuple[str, ...]


SWITCHES = (
    Switch("waitall", "testany", (BASELINE,)),
    Switch("channel", "queue", (TASKQUEUE,)),
    Switch("pinned", "device", (TASKQUEUE,)),
    Switch("nonblocking", "blocking", FLOWS),
    Switch("coherent", "noncoherent", (BASELINE, KERNELS)),
    Switch("unpadded", "padded", (TASKQUEUE,), always=False),
    Switch("plain", "dummy", FLOWS, always=False),
)
NUMBERS = (
    Number("chunks", 1, (TASKQUEUE,)),
    Number("throttle", 0, (TASKQUEUE,)),
    Number("threads", 1, (TASKQUEUE,)),
    Number("backoff", 0, (TASKQUEUE, KERNELS)),
)


def all_variants() -> list[str]:
    """Return every combination of the words that names always have: 8 baselines, 8 task queues, 4 kernels per block."""
    found = []
    for flow in FLOWS:
        words = [(s.off, s.on) for s in SWITCHES if s.always and flow in s.flows]
        found += [f"{flow}:{','.join(chosen)}" for chosen in itertools.product(*words)]
    return found


def flow_of(variant: str) -> str:
    """Return the flow of a variant."""
    return variant.partition(":")[0]


def words_of(variant: str) -> list[str]:
    """Return the words of a variant after its flow."""
    return [word for word in variant.partition(":")[2].split(",") if word]


def without(variant: str, *names: str) -> str:
    """Return a variant without some words that it may have; a number is named without its value."""
    kept = [word for word in words_of(variant) if word.partition("=")[0] not in names]
    return f"{flow_of(variant)}:{','.join(kept)}"


def exchanged(variant: str, before: str, after: str) -> str:
    """Return a variant with one word in the place of another; the variant itself if it lacks that word."""
    return f"{flow_of(variant)}:{','.join(after if word == before else word for word in words_of(variant))}"


def canonical(variant: str) -> str:
    """Return a variant's full name, in which it has a word of every switch.

    variant: "taskqueue:queue,chunks=4". Raises UsageError for an unknown flow or word, two words of one kind, and a
    value that is not a number.
    """
    flow = flow_of(variant)
    if flow not in FLOWS:
        raise UsageError(unknown_name("flow of blocks", flow, FLOWS))
    chosen: dict[str, str] = {}
    for word in words_of(variant):
        kind = _kind_of(flow, word)
        if kind in chosen:
            raise UsageError(
                f"variant '{variant}' has '{chosen[kind]}' and '{word}', of the same kind; give one of them"
            )
        chosen[kind] = word
    return f"{flow}:{','.join(_names(flow, chosen))}"


def _kind_of(flow: str, word: str) -> str:
    switches = [s for s in SWITCHES if flow in s.flows]
    numbers = [n.name for n in NUMBERS if flow in n.flows]
    for switch in switches:
        if word in (switch.off, switch.on):
            return switch.on
    name, _, value = word.partition("=")
    if name not in numbers:
        known = [w for s in switches for w in (s.off, s.on)] + [f"{number}=N" for number in numbers]
        raise UsageError(unknown_name(f"word of the {flow} of blocks", word, known))
    if not (value.isascii() and value.isdecimal()):
        raise UsageError(f"'{word}' of a variant of blocks is not possible; write {name}=N with a whole number")
    return name


def _names(flow: str, chosen: dict[str, str]) -> list[str]:
    switches = [chosen.get(s.on, s.off) for s in SWITCHES if flow in s.flows and (s.always or chosen.get(s.on) == s.on)]
    values = {n: int(chosen[n.name].partition("=")[2]) for n in NUMBERS if n.name in chosen}
    return switches + [f"{n.name}={value}" for n, value in values.items() if value != n.usual]
