"""The short table of `bench/gpu.py`: kernels against copies, steps, the gains of overlap and the box, and the bars.

The module imports only the standard library, because nothing else exists on the machine with the device.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Least share of a device-to-device copy's rate that the best kernel of a form must reach, with one step per launch.
SWEEP_BARS = {
    ("laplace2d", "star", "f32"): 0.95,
    ("laplace3d", "star", "f32"): 0.92,
    ("laplace3d", "star", "f64"): 0.92,
    ("advection3d", "dense", "f64"): 0.88,
    ("advection3d", "separable", "f64"): 0.88,
}
FUSED = ("laplace2d", "star", "f32")
FUSED_BAR, PACK_BAR, HIDDEN_BAR, BEST_BAR = 2.4, 0.8, 0.9, 1.17
HIDDEN = ("laplace2d", "f32")  # its exchange is short enough to be hidden completely
# Best task queue over best baseline, by workload; task queues in chunks over the same whole, on equal blocks.
STREAM_BAR = 1.3  # exchange by staged over staged:stream, whose streams wait for messages without the host
QUEUE_BARS, CHUNK_BAR = {"XL": 1.25, "L": 1.09, "M": 1.09}, 1.1
IMITATED = "An imitated device: times and shares mean nothing."
LAUNCH_FLOOR = 0.9  # a launch is at its floor if one of its pieces alone takes this share of its time


def share_of_copy(line: dict) -> float:
    """Return the median of copy time over kernel time, sample by sample; 0 for a case that did not run."""
    if "seconds" not in line:
        return 0.0
    return statistics.median(c / s for s, c in zip(line["seconds"], line["copy_seconds"], strict=True))


def copy_rate(line: dict) -> str:
    """Return a text with the GB/s of the launch and of the copy."""
    return f"{line['gb_per_s']:.0f} of {line['copy_gb_per_s']:.0f}" if "gb_per_s" in line else "did not run"


def launch_floor(line: dict) -> float:
    """Return the time of one piece alone as a share of a packing launch."""
    return statistics.median(line["one_piece_seconds"]) / statistics.median(line["seconds"])


def table(kernels: Sequence[dict], steps: Sequence[dict], exchanged: Sequence[dict]) -> list[str]:
    """Return all tables; of the block shapes only the best."""
    imitated = any(line.get("imitated") for line in kernels)
    measured = measurements(steps)
    return [
        *([IMITATED, ""] if imitated else []),
        *kernel_lines(best_shapes(kernels), packs_of(kernels), copies_of(kernels)),
        "",
        *overlap_lines(overlaps_of(kernels)),
        "",
        *step_lines(measured),
        "",
        *comparison_lines(comparisons(measured)),
        "",
        *queue_lines(queue_gains(exchanged)),
        "",
        *bar_lines(all_bars(kernels, steps, exchanged)),
    ]


def card_table(kernels: Sequence[dict], steps: Sequence[dict], exchanged: Sequence[dict]) -> list[str]:
    """Return the tables that show the quality of a GPU's kernels: bars, kernels, overlap."""
    shapes = kernel_lines(best_shapes(kernels), packs_of(kernels), copies_of(kernels))
    return [*bar_lines(all_bars(kernels, steps, exchanged)), "", *shapes, "", *overlap_lines(overlaps_of(kernels))]


def all_bars(kernels: Sequence[dict], steps: Sequence[dict], exchanged: Sequence[dict]) -> list[Bar]:
    """Return all bars with the values reached."""
    compared = comparisons(measurements(steps))
    return [
        *bars(best_shapes(kernels), packs_of(kernels), overlaps_of(kernels), compared),
        *queue_bars(queue_gains(exchanged)),
    ]


def measurements(steps: Sequence[dict]) -> list[dict]:
    """Return the records that were neither refused nor failed."""
    return [record for record in steps if record.get("kind") == "measurement"]


def packs_of(kernels: Sequence[dict]) -> list[dict]:
    """Return the lines of packing among the lines of kernels."""
    return [line for line in kernels if line.get("figure") == "gpu-pack"]


def copies_of(kernels: Sequence[dict]) -> list[dict]:
    """Return the lines of Haloscope's copy kernel, which show whether the device's copy is a fair bound."""
    return [line for line in kernels if line.get("figure") == "gpu-copy" and "seconds" in line]


def overlaps_of(kernels: Sequence[dict]) -> list[Overlap]:
    """Return the overlaps among the lines of kernels."""
    return [overlap_of(line) for line in kernels if line.get("figure") == "gpu-overlap"]


# ---- kernels ---------------------------------------------------------------------------------------------------------


def best_shapes(kernels: Sequence[dict]) -> dict[tuple, dict]:
    """Return the best block shape of each kernel, by app, form, type, variant and fused steps."""
    best: dict[tuple, dict] = {}
    for line in kernels:
        if line.get("figure") == "gpu-sweep":
            key = (line["app"], line["form"], line["real"], line["variant"], line["levels"])
            if key not in best or share_of_copy(line) > share_of_copy(best[key]):
                best[key] = line
    return best


def kernel_lines(best: dict[tuple, dict], packs: list[dict], copies: list[dict]) -> list[str]:
    """Return the table with a line per kernel."""
    out = ["| kernel | variant | block | of copy | GB/s, of the copy's |", "|---|---|---|---|---|"]
    for (app, form, real, variant, levels), line in best.items():
        steps_s = share_of_copy(line) * levels
        extra = f", {levels} steps: {steps_s:.2f} of one copy a step" if levels > 1 else ""
        block = "x".join(str(n) for n in line["block"] if n) or "default"
        out.append(
            f"| {app} {form} {real} | {variant}{extra} | {block} | {share_of_copy(line):.3f} | {copy_rate(line)} |"
        )
    out += [
        f"| copy of {line['bytes'] // 2**21} MiB | copy kernel of packing | | {share_of_copy(line):.3f} | "
        f"{copy_rate(line)} |"
        for line in copies
    ]
    return out + [
        f"| pack, 6 faces of 4 fields of {line['cells']}^3 | one launch | | {share_of_copy(line):.3f} "
        f"(launch floor {launch_floor(line):.2f} of it) | {copy_rate(line)} |"
        for line in packs
    ]


def best_rate(best: dict[tuple, dict], swept: tuple[str, str, str], fused: bool) -> float:
    """Return the number of steps in the time of one copy, by the best kernel with or without fused steps."""
    return max(
        (
            share_of_copy(line) * levels
            for (*of, _, levels), line in best.items()
            if tuple(of) == swept and (levels > 1) == fused
        ),
        default=0.0,
    )


# ---- overlap in one process ------------------------------------------------------------------------------------------


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median by order statistics: at least 95 %, or the range of few values."""
    ordered, n = sorted(values), len(values)
    below = 0.0
    for left in range(n // 2):
        below += math.comb(n, left) / 2**n
        if below > 0.025:
            return ordered[max(0, left - 1)], ordered[n - max(1, left)]
    return ordered[0], ordered[-1]


@dataclass
class Overlap:
    """The share of an exchange that the interior's sweep hides, pair by pair, and the largest possible share."""

    problem: str
    app: str
    real: str
    hidden: Sequence[float]
    possible: float

    @property
    def median(self) -> float:
        """Median of the pairs."""
        return statistics.median(self.hidden)


def overlap_of(line: dict) -> Overlap:
    """Return the overlap of a line, (serial - together) / (serial - interior).

    An exchange longer than the interior cannot be hidden completely.
    """
    interior = statistics.median(line["interior_seconds"])
    exchange = [serial - interior for serial in line["serial_seconds"]]
    pairs = zip(line["serial_seconds"], line["together_seconds"], line["interior_seconds"], strict=True)
    hidden = [(serial - together) / (serial - alone) if serial > alone else 0.0 for serial, together, alone in pairs]
    usual = statistics.median(exchange)
    cells = "x".join(str(n) for n in line["cells"] if n > 1)
    return Overlap(
        f"{line['app']} {line['real']} {cells}",
        line["app"],
        line["real"],
        hidden,
        min(1.0, interior / usual) if usual > 0 else 1.0,
    )


def overlap_lines(overlaps: Sequence[Overlap]) -> list[str]:
    """Return the table with a line per problem."""
    out = ["| one process, neighbours imitated | exchange hidden | 95 % | maximum |", "|---|---|---|---|"]
    for o in overlaps:
        low, high = median_interval(o.hidden)
        out.append(f"| {o.problem} | {o.median:.2f} | {low:.2f} .. {high:.2f} | {o.possible:.2f} |")
    return out


# ---- steps -----------------------------------------------------------------------------------------------------------


def step_lines(measured: list[dict]) -> list[str]:
    """Return the table with a line per measurement."""
    out = ["| steps | ranks | ms a step |", "|---|---|---|"]
    for record in measured:
        r = record["request"]
        walls = f" of {r['walls']}" if "walls" in r else ""
        name = f"{problem(record)} {r['strategy']} {r['schedule']}{walls} depth {r['depth']}"
        out.append(f"| {name} | {r['ranks']} | {step_s(record) * 1e3:.4f} |")
    return out


def problem(record: dict) -> str:
    """Return app, form and grid of a measurement."""
    r = record["request"]
    return f"{r['app']} {r['form']} {'x'.join(map(str, r['cells']))}"


def step_s(record: dict) -> float:
    """Return the median seconds of a step."""
    return record["time_s"]["step"]["median"]


@dataclass
class Comparison:
    """Gains of one problem; None: not measured.

    hidden: share of the exchange that streams hide. best, boxed: speed-ups of the best run and of the best box over the
    plain one. stream: speed-up of the exchange alone by streams that wait for messages.
    """

    problem: str
    app: str
    cells: int
    ranks: int
    hidden: float | None
    best: float | None
    boxed: float | None
    stream: float | None = None


def compare(same: list[dict]) -> Comparison:
    """Compare the measurements of one problem on one number of ranks."""
    step: dict[tuple, float] = {}
    swept: dict[tuple, float] = {}
    for record in same:
        q = record["request"]
        key = (q["schedule"], q["strategy"], q["depth"])
        step[key] = min(step_s(record), step.get(key, step_s(record)))
        swept[key] = record["phases_s"]["compute"]["max"]
    hidden = [
        (bulk - step["streams", *way]) / (bulk - swept[schedule, *way])
        for (schedule, *way), bulk in step.items()
        if schedule == "bulk" and ("streams", *way) in step and bulk > swept[schedule, *way]
    ]
    ways = [("bulk", strategy, 1) for strategy in ("ordered/staged", "ordered/staged:stream")]
    plain = step.get(ways[0])
    exchange = [step[way] - swept[way] for way in ways if way in step]
    boxed = [t for (schedule, *_), t in step.items() if schedule == "box-overlap"]
    request = same[0]["request"]
    return Comparison(
        problem(same[0]),
        request["app"],
        math.prod(request["cells"]),
        request["ranks"],
        max(hidden, default=None),
        plain / min(step.values()) if plain else None,
        plain / min(boxed) if plain and boxed else None,
        exchange[0] / exchange[1] if len(exchange) == 2 and min(exchange) > 0 else None,
    )


def comparisons(measured: list[dict]) -> list[Comparison]:
    """Return a comparison for each problem and number of ranks."""
    measured = [r for r in measured if r["request"]["schedule"] != "resident"]
    groups: dict[tuple, list[dict]] = {}
    for record in measured:
        groups.setdefault((problem(record), record["request"]["ranks"]), []).append(record)
    return [compare(same) for same in groups.values()]


def shown(value: float | None) -> str:
    """Return a value with two decimals, "" for None."""
    return "" if value is None else f"{value:.2f}"


def comparison_lines(compared: list[Comparison]) -> list[str]:
    """Return the table with a line per problem."""
    out = [
        "| problem | ranks | exchange hidden by streams, while ranks share the GPU | plain over best | plain over "
        "box-overlap "
        "| exchange, staged over staged:stream |",
        "|---|---|---|---|---|---|",
    ]
    return out + [
        f"| {c.problem} | {c.ranks} | {shown(c.hidden)} | {shown(c.best)} | {shown(c.boxed)} | {shown(c.stream)} |"
        for c in compared
    ]


# ---- blocks ----------------------------------------------------------------------------------------------------------


@dataclass
class QueueGain:
    """Ratios of two variants' times, test by test. which: the workload, or "equal" for equal blocks in chunks."""

    which: str
    ranks: int
    slower: str
    faster: str
    ratios: Sequence[float]

    @property
    def median(self) -> float:
        """Median of the ratios."""
        return statistics.median(self.ratios)


def tests_of(exchanged: Sequence[dict]) -> dict[tuple, dict[str, list[float]]]:
    """Return (workload or "equal", ranks) -> variant -> mean seconds of an iteration by test, in order."""
    found: dict[tuple, dict[str, list[float]]] = {}
    for record in (r for r in exchanged if r["kind"] == "blocks"):
        r = record["request"]
        means = [statistics.fmean(test[r["warmup"] :]) for test in record["iterations_s"]]
        variants = found.setdefault((r["workload"] or "equal", r["ranks"]), {})
        variants.setdefault(r["variant"], []).extend(means)
    return found


def gain_of(which: str, ranks: int, slower: dict[str, list[float]], faster: dict[str, list[float]]) -> QueueGain | None:
    """Return the gain of the fastest of one group over the fastest of the other; None if a group was not measured."""
    if not (slower and faster):
        return None
    first, second = (min(group, key=lambda name: statistics.median(group[name])) for group in (slower, faster))
    ratios = [a / b for a, b in zip(slower[first], faster[second], strict=False)]
    return QueueGain(which, ranks, first, second, ratios)


def queue_gains(exchanged: Sequence[dict]) -> list[QueueGain]:
    """Return the gains of task queues over baselines by workload, and of chunks over whole buffers."""
    found = []
    for (which, ranks), times in tests_of(exchanged).items():

        def some(keep: Callable[[str], bool], times: dict = times) -> dict[str, list[float]]:
            return {name: tests for name, tests in times.items() if keep(name)}

        if which == "equal":
            found.append(gain_of(which, ranks, some(lambda n: "chunks=" not in n), some(lambda n: "chunks=" in n)))
        else:
            found.append(
                gain_of(
                    which, ranks, some(lambda n: n.startswith("baseline")), some(lambda n: n.startswith("taskqueue"))
                )
            )
    return [gain for gain in found if gain]


def queue_lines(gains: Sequence[QueueGain]) -> list[str]:
    """Return the table with a line per workload and number of ranks. One rank has both sides: its messages stay in the
    process."""
    out = [
        "| blocks | ranks | best baseline, or whole | best task queue, or in chunks | ratio | min to max |",
        "|---|---|---|---|---|---|",
    ]
    return out + [
        f"| {g.which} | {g.ranks} | {g.slower} | {g.faster} | {g.median:.3f} | "
        f"{min(g.ratios):.3f} to {max(g.ratios):.3f} |"
        for g in gains
    ]


def queue_bars(gains: Sequence[QueueGain]) -> list[Bar]:
    """Return the bars of blocks. They refer to two ranks; a bar's name marks results with both sides in one rank."""
    required = {**QUEUE_BARS, "equal": CHUNK_BAR}
    return [
        Bar(
            f"blocks {g.which}, {'in chunks over whole' if g.which == 'equal' else 'task queue over baseline'}, "
            f"{'2 ranks' if g.ranks == 2 else 'both sides in one rank'}",
            required[g.which],
            g.median,
        )
        for g in gains
        if g.which in required
    ]


# ---- bars ------------------------------------------------------------------------------------------------------------


@dataclass
class Bar:
    """A required value and the value reached; None: not measured. holds: the verdict, if it depends on more than the
    value.
    """

    title: str
    required: float
    reached: float | None
    holds: bool | None = None

    def verdict(self) -> str:
        """Return a text on whether the bar holds."""
        if self.reached is None:
            return "not measured"
        return "yes" if (self.reached >= self.required if self.holds is None else self.holds) else "no"


def bars(
    best: dict[tuple, dict], packs: Sequence[dict], overlaps: Sequence[Overlap], compared: Sequence[Comparison]
) -> list[Bar]:
    """Return every bar except the bar of predictions, which needs a fitted profile: `haloscope validate` reports it."""
    found = [
        Bar(f"{' '.join(swept)}: share of the copy's rate", required, best_rate(best, swept, False) or None)
        for swept, required in SWEEP_BARS.items()
    ]
    one, fused = (best_rate(best, FUSED, several) for several in (False, True))
    found.append(
        Bar(
            f"{' '.join(FUSED)}: steps a second, fused over one by one",
            FUSED_BAR,
            fused / one if one and fused else None,
        )
    )
    found += [
        Bar(f"{o.problem}: share of the exchange hidden", HIDDEN_BAR, o.median)
        for o in overlaps
        if (o.app, o.real) == HIDDEN
    ]
    for line in packs:
        share = share_of_copy(line)
        found.append(
            Bar(
                "pack: share of the copy's rate, or at the floor of a launch",
                PACK_BAR,
                share,
                share >= PACK_BAR or launch_floor(line) >= LAUNCH_FLOOR,
            )
        )
    flat = [c for c in compared if c.app == "laplace2d" and c.ranks > 1]
    largest = max((c.cells for c in flat), default=0)
    found += [
        Bar(f"{c.problem}, {c.ranks} ranks: exchange, staged over staged:stream", STREAM_BAR, c.stream)
        for c in flat
        if c.cells == min(f.cells for f in flat)
    ]
    return found + [
        Bar(f"{c.problem}, {c.ranks} ranks: plain over best", BEST_BAR, c.best) for c in flat if c.cells == largest
    ]


def bar_lines(found: Sequence[Bar]) -> list[str]:
    """Return the table with a line per bar."""
    out = ["| bar | required | reached | holds |", "|---|---|---|---|"]
    return out + [f"| {bar.title} | {bar.required:.2f} | {shown(bar.reached)} | {bar.verdict()} |" for bar in found]
