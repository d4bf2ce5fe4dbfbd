"""Micro-benchmarks of the transports: requests, and tables and a figure of latency, bandwidth and message rate."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import core
from haloscope.errors import UsageProblem, unknown_name
from haloscope.report import stats, tables

KIND = "microbench"
ALL_SIZES = tuple(2**k for k in range(23))  # 1 B to 4 MiB
QUICK_SIZES = (1, 8, 256, 8192, 262144, 4194304)
MESSAGE_RATE_BYTES = 8
BASE = "p2p"  # what ratios refer to


@dataclass(frozen=True)
class Micro:
    """One micro-benchmark: a transport with its options, ranks (in pairs), emulated nodes (0: as MPI says).

    fresh: senders write what they send before each transfer, as computing does; the writing is not counted.
    """

    transport: str
    ranks: int = 2
    nodes: int = 0
    sizes: tuple[int, ...] = ALL_SIZES
    seconds: float = 0.01
    repetitions: int = 5
    threads: int = 1
    fresh: bool = False

    strategies = property(lambda self: (f"direct/{self.transport}",))

    @property
    def id(self) -> str:
        """A readable name, independent of how long it is measured."""
        return (
            f"{KIND},{self.transport},r{self.ranks}" + (f",n{self.nodes}" if self.nodes else "") + ",fresh" * self.fresh
        )

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        how = {"fresh": self.fresh, "bytes": list(self.sizes), "seconds": self.seconds, "repetitions": self.repetitions}
        return {"kind": KIND, "id": self.id, "request": self.request() | how}

    def request(self) -> dict:
        """The request as a `skipped` or `failed` record holds it."""
        return {"transport": self.transport, "ranks": self.ranks, "nodes": self.nodes}


def transport_names() -> list[str]:
    """Return every transport with every option list that strategies are matched against."""
    return [name.removeprefix("direct/") for name in core.strategy_names() if name.startswith("direct/")]


def transports(text: str) -> list[str]:
    """Parse a list of transports and globs, options included: `p2p,rma-*`. Raises UsageProblem with the nearest names."""
    found: list[str] = []
    for word in _words(text):
        if any(c in word for c in "*?["):
            matching = fnmatch.filter(transport_names(), word)
            if not matching:
                raise UsageProblem(unknown_name("transport", word, transport_names()))
            found += matching
        else:
            found.append(core.canonical_strategy(f"direct/{word}").removeprefix("direct/"))
    return list(dict.fromkeys(found))


def _words(text: str) -> list[str]:
    """Cut at the commas between transports: a word that begins none is an option of the one before it."""
    heads = {name.partition(":")[0] for name in transport_names()}
    words: list[str] = []
    for piece in text.split(","):
        head = piece.partition(":")[0]
        starts = head in heads or any(c in piece for c in "*?[")
        if words and not starts and ":" in words[-1]:
            words[-1] += "," + piece
        else:
            words.append(piece)
    return words


@dataclass
class Curve:
    """Results of one micro-benchmark over all its launches: per message size the samples of each launch."""

    id: str
    request: dict
    records: list[dict]

    def sizes(self) -> list[int]:
        """The message sizes, bytes."""
        return sorted({entry["bytes"] for record in self.records for entry in record["sizes"]})

    def samples(self, size: int, what: str) -> dict[str, list[float]]:
        """Samples in seconds by launch: latency_s, exchange_s, batch_s or both_batch_s."""
        found: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            for entry in record["sizes"]:
                if entry["bytes"] == size:
                    found[record["launch"]["id"]] += entry[what]
        return dict(found)

    def time(self, size: int, what: str = "latency_s") -> stats.Estimate:
        """Median time over launches, seconds, with its interval."""
        return stats.median_over_launches(list(self.samples(size, what).values()))

    def window(self, size: int) -> int:
        """Messages in one batch of this size."""
        return next(e["window"] for e in self.records[0]["sizes"] if e["bytes"] == size)

    def bandwidth(self, size: int, both: bool = False) -> float:
        """Bytes per second of all pairs together, by the median batch; both: both directions at once, added up."""
        moved = self.request["pairs"] * self.window(size) * size * (2 if both else 1)
        return moved / self.time(size, "both_batch_s" if both else "batch_s").value

    def message_rate(self, size: int, both: bool = False) -> float:
        """Messages per second of all pairs together."""
        return self.bandwidth(size, both) / size

    @property
    def oversubscribed(self) -> bool:
        """True when some launch had more ranks than cores."""
        return any(r["environment"]["oversubscribed"] for r in self.records)

    @property
    def verification(self) -> str:
        """The worst state of all launches."""
        return "failed" if any(r["verification"]["status"] == "failed" for r in self.records) else "passed"


def curves(found: Iterable[dict]) -> list[Curve]:
    """Group micro-benchmarks by configuration, in the order in which they were first measured."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for record in found:
        if record["kind"] == KIND:
            groups[record["id"]].append(record)
    return [Curve(name, group[0]["request"], group) for name, group in groups.items()]


def groups_of(table: Sequence[Curve]) -> dict[tuple[int, int], list[Curve]]:
    """Curves that may be compared: those of the same ranks and nodes, the fastest small message first."""
    groups: dict[tuple[int, int], list[Curve]] = defaultdict(list)
    for curve in table:
        groups[curve.request["ranks"], curve.request["nodes"]].append(curve)
    return {key: sorted(group, key=lambda c: c.time(min(c.sizes())).value) for key, group in groups.items()}


def heading(key: tuple[int, int]) -> str:
    """Words for the ranks and nodes of a group."""
    ranks, nodes = key
    return f"{ranks} ranks in {ranks // 2} pair{'s' * (ranks > 2)}" + (
        f" on {nodes} emulated node{'s' * (nodes > 1)}" if nodes else ""
    )


def overview(group: Sequence[Curve]) -> str:
    """Return the table of a group: small messages against p2p, message rate, best bandwidth, both directions."""
    size = min(group[0].sizes(), key=lambda s: abs(s - MESSAGE_RATE_BYTES))
    base = next((c for c in group if c.request["transport"] == BASE), None)
    headers = ["transport", f"latency {size} B (us)", "95 %", f"x {BASE}", "95 % ", "verdict", "both ways (us)",
               f"rate {size} B (million/s)", "both ways (million/s)", "best (GB/s)", "at (B)", "both ways, best (GB/s)",
               "check"]  # fmt: skip
    lines = []
    for curve in group:
        latency = curve.time(size)
        line = [curve.request["transport"], tables.number(latency.value * 1e6), tables.interval(latency, factor=1e6)]
        line += ["1 (base)", "", ""] if curve is base else _against(curve, base, size)
        peak = max(curve.sizes(), key=curve.bandwidth)
        both = max(curve.bandwidth(s, both=True) for s in curve.sizes())
        line += [tables.number(curve.time(size, "exchange_s").value * 1e6), tables.number(curve.message_rate(size) / 1e6),
                 tables.number(curve.message_rate(size, both=True) / 1e6), tables.number(curve.bandwidth(peak) / 1e9), peak,
                 tables.number(both / 1e9), curve.verification + (", oversubscribed" if curve.oversubscribed else "")]  # fmt: skip
        lines.append(line)
    return tables.markdown(lines, headers, right=[h for h in headers if h not in ("transport", "verdict", "check")])


def _against(curve: Curve, base: Curve | None, size: int) -> list[str]:
    if base is None:
        return ["", "", ""]
    ratio = stats.ratio_of_launches(curve.samples(size, "latency_s"), base.samples(size, "latency_s"))
    words = stats.told(ratio, "slower", "faster")
    return [f"{ratio.value:.2f}", tables.interval(ratio, "{:.2f}".format), words]


def by_size(group: Sequence[Curve], what: str) -> str:
    """Return a table of all sizes: `what` is latency (us), exchange (us), bandwidth or both (GB/s)."""
    value = {
        "latency": lambda c, s: c.time(s).value * 1e6,
        "exchange": lambda c, s: c.time(s, "exchange_s").value * 1e6,
        "bandwidth": lambda c, s: c.bandwidth(s) / 1e9,
        "both": lambda c, s: c.bandwidth(s, both=True) / 1e9,
    }[what]
    headers = ["bytes", *(c.request["transport"] for c in group)]
    lines = [
        [size, *(tables.number(value(c, size)) if size in c.sizes() else "" for c in group)]
        for size in group[0].sizes()
    ]
    return tables.markdown(lines, headers, right=headers)


def figure(groups: dict[tuple[int, int], list[Curve]], title: str, stem: Path) -> list[Path]:
    """Draw latency and bandwidth over message size, one row of panels per group. Returns the files written."""
    from haloscope.report import figures
    from haloscope.report.figures import plt

    with plt.rc_context(figures.STYLE):
        fig, panels = plt.subplots(
            len(groups), 2, figsize=(12.5, 4.8 * len(groups)), layout="constrained", squeeze=False
        )
        for (key, group), (left, right) in zip(groups.items(), panels, strict=True):
            for number, curve in enumerate(group):
                look = {
                    "color": plt.cm.tab20(number % 20),
                    "marker": "os^v"[number // 20 % 4],
                    "markersize": 3,
                    "linewidth": 1.3,
                }
                sizes = curve.sizes()
                left.plot(sizes, [curve.time(s).value * 1e6 for s in sizes], label=curve.request["transport"], **look)
                right.plot(sizes, [curve.bandwidth(s) / 1e9 for s in sizes], **look)
            for axes, label, what in ((left, "latency (us)", "half a round trip"), (right, "GB/s", "batches, one way")):
                axes.set_xscale("log", base=2)
                axes.set_yscale("log")
                axes.grid(True, color=figures.GRID)
                axes.set_axisbelow(True)
                axes.set_xlabel("message (bytes)")
                axes.set_ylabel(label)
                axes.set_title(f"{heading(key)}: {what}", loc="left", fontweight="bold", fontsize=11)
            left.legend(frameon=False, fontsize=8, ncols=2)
        fig.suptitle(title, x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(fig, stem)
