"""Maps of the best choice over networks and block sizes, predicted and measured."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haloscope import bridge, records
from haloscope.advice import advise
from haloscope.advice.best import best_of
from haloscope.advice.tune import DEFAULT
from haloscope.advice.whatif import scaled
from haloscope.errors import UsageError
from haloscope.measure import lists
from haloscope.model import predict
from haloscope.model.link import Link, over_link, rate_of, time_of
from haloscope.model.profile import Profile
from haloscope.records.rows import group_rows, speedup

MOST = 400  # places on a map


@dataclass(frozen=True)
class Spot:
    """A place on a map: the winning choice, its gain, and the number of choices indistinguishable from it.

    latency_s: of the network. block: cells of a rank in each dimension. gain: speed-up over the plain exchange,
    tune.DEFAULT. equals: number of indistinguishable choices. interval: of the gain, 95 %; None for predicted places.
    """

    latency_s: float
    block: int
    choice: bridge.Choice
    time_s: float
    gain: float
    equals: int
    interval: tuple[float, float] | None = None


def plain(choice: bridge.Choice) -> bridge.Choice:
    """Return the choice with the plain exchange."""
    return dataclasses.replace(choice, **DEFAULT)


def techniques(choice: bridge.Choice) -> tuple[str, ...]:
    """Return the techniques that distinguish a choice from the plain one, in a few words each; () without any."""
    strategy = choice.strategy
    pattern, _, transport = strategy.partition("/")
    words = [f"depth {choice.depth}"] * (choice.depth > 1)
    words += [choice.schedule] * (not bridge.find_schedule(choice.schedule).plain)
    words += [
        word
        for word in ("direct", "merged", "serial", "pipelined")
        if word in pattern and (word != "direct" or "merged" not in pattern)
    ]
    words += [transport.split(":")[0]] * (not transport.startswith("p2p"))
    return tuple(words)


def sizes_of(blocks: str) -> list[int]:
    """Return the block sizes of a list. Raises UsageError for a size below 1."""
    sizes = lists.numbers(blocks, "--blocks")
    if min(sizes) < 1:
        raise UsageError(f"--blocks {min(sizes)} is not possible; use 1 or more")
    return sizes


def links_of(ranks: int, latency: str, bandwidth: str) -> list[Link]:
    """Return the networks of a list of latencies, with links of one bandwidth, for each rank on a separate node."""
    rate = rate_of(bandwidth)
    return [Link(max(2, ranks), time_of(text), rate) for text in latency.split(",")]


def maps(
    choice: bridge.Choice,
    profile: Profile,
    links: Sequence[Link],
    blocks: Sequence[int],
    depths: Sequence[int],
    files: Sequence[Path],
    bandwidth: str,
) -> dict[str, list[Spot]]:
    """Return maps by name: the predicted map and, with files of records, the measured map.

    bandwidth: of the links, in the user's notation. Raises UsageError for more than MOST places, and for files without
    a plain exchange to compare with; other errors as in `predicted`.
    """
    if len(links) * len(blocks) > MOST:
        raise UsageError(f"these lists request {len(links) * len(blocks)} places, more than {MOST}; shorten them")
    found = {"predicted": predicted(choice, profile, links, blocks, depths)}
    if files:
        held = (record for file in files for record in records.read_aloud(file).records)
        found["measured"] = measured(held, choice.app, rate_of(bandwidth))
        if not found["measured"]:
            raise UsageError(
                f"--measured holds no plain exchange (ordered/p2p, bulk, depth 1) of {choice.app} in an emulated "
                f"cluster with lines of {bandwidth}; measure it with `haloscope run --lab 2 --bandwidth {bandwidth}`"
            )
    return found


def predicted(
    choice: bridge.Choice,
    profile: Profile,
    links: Sequence[Link],
    blocks: Sequence[int],
    depths: Sequence[int] = advise.DEPTHS,
    samples: int = predict.SAMPLES,
) -> list[Spot]:
    """Return the best choice for every network and size, by the model.

    choice: app, ranks and the rest; its cells are ignored. links: networks that join the ranks, each on a separate
    node. blocks: cells of a rank in each dimension. Errors: as for `best`. Cost: `best` for each, tens of milliseconds.
    """
    spots = []
    for link in links:
        machine = over_link(profile, link)
        for block in blocks:
            here = dataclasses.replace(with_blocks(choice, block), nodes=choice.ranks)
            found = best_of(here, machine, depths, fused=True, samples=samples)
            usual = predict.predict(plain(here), machine, samples=0)
            chosen, gain = _simplest((found.choice, *found.equals)), usual.time_s / found.time_s
            spots.append(Spot(link.latency_s, block, chosen, found.time_s, gain, len(found.equals)))
    return spots


def with_blocks(choice: bridge.Choice, block: int) -> bridge.Choice:
    """Return the choice on a grid in which every rank has `block` cells in each dimension."""
    dims = bridge.find_app(choice.app).dims
    return scaled(dataclasses.replace(choice, cells=(block,) * dims), choice.ranks)


def _simplest(choices: Sequence[bridge.Choice]) -> bridge.Choice:
    """Return the choice with the fewest techniques, of several the fastest. choices: fastest first."""
    return min(choices, key=lambda choice: len(techniques(choice)))


def measured(found: Iterable[dict], app: str, bandwidth_bytes_per_s: float) -> list[Spot]:
    """Return the fastest measured choice for every network and size, from records of `haloscope run --lab`.

    The result has only places where the plain exchange was measured too. Records of other apps, of wrong results, of
    links with another bandwidth, and of networks that are not emulated are left out.
    """
    places: dict[tuple[float, int], list[dict]] = defaultdict(list)
    for record in found:
        network = record.get("environment", {}).get("emulated_network")
        if record["kind"] != "measurement" or record["request"]["app"] != app or not network:
            continue
        if record["verification"]["status"] == "failed":
            continue
        if network["bandwidth_bytes_per_s"] == bandwidth_bytes_per_s:
            places[network["latency_s"], block_of(record["request"])].append(record)
    spots = []
    for (latency_s, block), here in sorted(places.items()):
        rows = group_rows(here)
        choices = {row.id: bridge.Choice.from_json(row.request) for row in rows}
        usual = [row for row in rows if choices[row.id] == plain(choices[row.id])]
        if not usual:
            continue
        level = [choices[row.id] for row in rows if row is rows[0] or speedup(rows[0], row).low <= 1]
        gain = speedup(rows[0], usual[0])
        ends = (gain.low, gain.high)
        spots.append(Spot(latency_s, block, _simplest(level), rows[0].step.value, gain.value, len(level) - 1, ends))
    return spots


def block_of(request: Mapping[str, Any]) -> int:
    """Return the most cells that a rank has in any dimension, by a record's request."""
    ranks = bridge.make_layout(bridge.Choice.from_json(request)).ranks
    longest: int = max(math.ceil(cells / n) for cells, n in zip(request["cells"], ranks, strict=False))
    return longest
