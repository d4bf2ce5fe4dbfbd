"""The report of the 2020 study: tables of each workload and of single experiments, published numbers next to
measured ones.
"""

from __future__ import annotations

import fnmatch
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from haloscope.records.text import mpi_of
from haloscope.report import tables
from haloscope.studies import published
from haloscope_studies.vanecek2020 import blocks, blocks_timeline, matrix, printed, variants
from haloscope_studies.vanecek2020.blocks import Row

MOST_BLOCKS = 6  # columns of a table of blocks
THREADED = (
    "Some variants have several threads of the CPU, so MPI runs with `MPI_THREAD_MULTIPLE` in all launches; the "
    "thesis' "
    "has one thread."
)


class Measured:
    """The rows of some records, by their purpose."""

    def __init__(self, found: Sequence[Mapping]):
        """Sort the records of the study."""
        self.records = [record for record in found if record["kind"] == blocks.KIND]
        self.rows = blocks.rows(self.records)
        detailed = [row for row in self.rows if row.request["detail"] == "on"]
        self.first_sends = sorted(
            (row for row in detailed if not row.request["workload"]),
            key=lambda row: (row.request["bytes"][0], row.variant),
        )
        self.detailed = _by_workload([row for row in detailed if row.request["workload"]])
        self.posting = _by_workload([row for row in self.rows if row.request["detail"] == "posting"])
        self.timed = _by_workload([row for row in self.rows if row.request["detail"] == "off"])

    @property
    def on_gpu(self) -> bool:
        """True where printed numbers may stand next to these rows: the CPU imitated no device."""
        return not blocks.is_imitated(self.rows)

    def of_thesis(self, workload: str) -> list[Row]:
        """Return the timed rows of a workload, without the thesis' ideas."""
        return [row for row in self.timed[workload] if row.variant in variants.all_variants()]


def _by_workload(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for name in printed.workload_names():
        for members in blocks.groups([row for row in rows if row.request["workload"] == name]).values():
            found[name] += members
    return found


def set_ups(found: Sequence[Mapping]) -> list[Measured]:
    """Return measurements by device, ranks and sides: times of different set-ups are not compared."""
    parts: dict[tuple, list[Mapping]] = defaultdict(list)
    for record in found:
        if record["kind"] == blocks.KIND:
            parts[tuple(record["request"][name] for name in ("device", "ranks", "sides"))].append(record)
    return [Measured(part) for part in parts.values()]


def report(found: Sequence[Mapping]) -> str:
    """Return all tables as Markdown."""
    return "\n\n".join([*map(_report, set_ups(found)), *tables.refusals(found)])


def _report(here: Measured) -> str:
    sections = {"Machines": _machines(here)}
    for name, rows in here.timed.items():
        sections[blocks.heading(rows[0].request)] = f"{blocks.table(here.of_thesis(name))}{_beside(name, here)}"
    sections |= {
        "Headline speed-ups over the fastest baseline": _headlines(here),
        "Best of each kind over the fastest baseline": by_workload_table(here),
        "Proposals of the thesis, over the plain task queue": _ideas(here),
        "Activity of the CPU": _busy(here),
        "First send of an iteration, us": _first_of_iteration(here),
        "Packing a block, us": _packing(here),
        "Packing with its posting, and posting alone, us": _posting(here),
        "Iterations of a test, us": _iterations(here),
        "Sends of each block, us": _first_sends(here),
    }
    return "\n\n".join(f"### {title}\n\n{body}" for title, body in sections.items() if body)


def _machines(here: Measured) -> str:
    lines = [
        [row["testbed"], row["gpu"], row["cpu"], row["mpi"], f"HIP {row['hip']}"]
        for row in published(printed.STUDY, "machines")
    ]
    for row in here.rows[:1]:
        about = row.records[0]["environment"]
        lines.append(
            [
                "here",
                f"{about['device']['name']} ({row.request['device']})",
                about.get("cpu", ""),
                mpi_of(about),
                about["compiler"],
            ]
        )
    notes = [blocks.IMITATED] * blocks.is_imitated(here.rows)
    notes += [THREADED] * any("threads=" in row.variant for row in here.rows)
    return "\n\n".join([tables.markdown(lines, ["", "GPU", "CPU", "MPI", "compiler"]), *notes])


# ---- published next to measured --------------------------------------------------------------------------------------


def _beside(name: str, here: Measured) -> str:
    """Return printed speed-ups of tables 4.3 to 4.5 next to ours: over the same sends, in 4.3 over all baselines."""
    ours = {row.variant: row for row in here.of_thesis(name)}
    lines = []
    for row in printed.results() if here.on_gpu else ():
        if row.workload != name or row.gpu != "v100" or row.speedup is None or row.variant not in ours:
            continue
        mine = ours[row.variant]
        base = blocks.reference(list(ours.values()), None if row.table == "4.3" else row.blocking)
        gain = blocks.gain_cells(blocks.speedup(mine, base)) if base else ["", ""]
        lines.append(
            [
                row.variant,
                row.table,
                f"{1e6 * row.seconds:.1f}",
                f"{row.speedup:.3f}",
                f"{1e6 * mine.time.value:.1f}",
                *gain,
                printed.MISPRINT if row.misprinted else "",
            ]
        )
    headers = ["variant", "table", "V100 (us)", "V100 speed-up", "here (us)", "here", "95 %", "note"]
    return f"\n\n{tables.markdown(lines, headers, right=headers[2:6])}" if lines else ""


def _headlines(here: Measured) -> str:
    lines = []
    for h in printed.headlines() if here.on_gpu else ():
        rows = here.of_thesis(h.workload) if h.workload in here.timed else []
        base = blocks.reference(rows)
        gains = [blocks.speedup(row, base).value for row in rows if base is not None and h.is_of(row.variant)]
        ours = f"{(min if h.least else max)(gains):.3f}" if gains else ""
        lines.append([h.gpu, h.workload, h.text, f"{h.speedup:g}", ours])
    headers = ["gpu", "workload", "variant", "published", "here"]
    return tables.markdown(lines, headers, right=headers[3:]) if lines else ""


KINDS = {
    "task queue, pinned": "taskqueue:*,pinned,*",
    "task queue, memcpy": "taskqueue:*,device,*",
    "kernel per block": "kernels:*",
}  # figure 4.28, and kernels per block


def by_workload(here: Measured) -> dict[str, dict[str, float]]:
    """Return by kind the speed-up of its fastest variant over the fastest baseline, by workload (figure 4.28)."""
    found: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for name in here.timed:
        rows = here.of_thesis(name)
        base = blocks.reference(rows)
        for kind, pattern in KINDS.items():
            able = [row for row in rows if fnmatch.fnmatch(row.variant, pattern)]
            if base is not None and able:
                found[kind][name] = blocks.speedup(min(able, key=lambda row: row.time.value), base).value
    return found


def published_by_workload() -> dict[str, dict[str, float]]:
    """Return the same of the V100 where it is stated or follows from printed data."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for kind, word in (("task queue, pinned", "pinned"), ("task queue, memcpy", "device")):
        for h in printed.headlines():
            if h.gpu == "v100" and any(f",{word}," in pattern for pattern in h.patterns):
                found[kind][h.workload] = max(h.speedup, found[kind].get(h.workload, 0))
    return found


def by_workload_table(here: Measured) -> str:
    """Return figure 4.28 as a table."""
    ours, theirs = by_workload(here), published_by_workload() if here.on_gpu else {}
    names = printed.workload_names()
    lines = [
        [kind, who, *(f"{values[name]:.3f}" if name in values else "" for name in names)]
        for kind in KINDS
        for who, values in (("here", ours[kind]), ("V100", theirs.get(kind, {})))
        if values
    ]
    return tables.markdown(lines, ["kind", "", *names], right=names)


# ---- single experiments ----------------------------------------------------------------------------------------------


def _ideas(here: Measured) -> str:
    lines = []
    for name, rows in here.timed.items():
        known = {row.variant: row for row in rows}
        for variant in matrix.IDEAS:
            base = next(
                (
                    known[plain]
                    for plain in (matrix.PLAIN, matrix.STAGED)
                    if variant.startswith(plain) and plain in known
                ),
                None,
            )
            if variant in known and base is not None:
                gain = blocks.speedup(known[variant], base)
                lines.append(
                    [
                        name,
                        variant,
                        *blocks.gain_cells(gain),
                        *blocks.profile_cells(known[variant]),
                        *blocks.profile_cells(base),
                    ]
                )
    headers = ["workload", "variant", "speed-up", "95 %", "P1", "P2", "P1 plain", "P2 plain"]
    return tables.markdown(lines, headers, right=("speed-up", *headers[4:])) if lines else ""


def _busy(here: Measured) -> str:
    """Return P1 and P2 (figure 4.15), by workload; the thesis states ranges for L."""
    names = list(here.timed)
    busy = {
        name: {row.variant: blocks.profile_cells(row) for row in here.of_thesis(name) if row.profile} for name in names
    }
    known = list(dict.fromkeys(variant for cells in busy.values() for variant in cells))
    lines = [[variant, *(" / ".join(busy[name].get(variant, [])) for name in names)] for variant in known]
    headers = ["variant", *(f"{name}: P1 / P2" for name in names)]
    if here.on_gpu:
        lines = [[*line, _share(line[0])] for line in lines]
        headers.append("P1 of the V100, L")
    return tables.markdown(lines, headers)


def _share(variant: str) -> str:
    words = {"pinned", "device"} & set(variants.words_of(variant))
    if variants.flow_of(variant) != variants.TASKQUEUE:
        return ""
    buffer = "memcpy" if "device" in words else "pinned"
    return printed.range_text(*printed.observed("v100", "L", f"CPU hit share P1, {buffer}"), "%")


def first_sends_of(row: Row) -> tuple[float, float] | None:
    """Return seconds from an iteration's beginning to its first send, and to the first of a block other than 0; medians
    over launches and ranks.

    None where no timeline has both.
    """
    found = []
    for events in (record.get("timeline", ()) for record in row.records):
        for rank in {event["rank"] for event in events}:
            times = _first_sends_of_rank([e for e in events if e["rank"] == rank], len(row.request["bytes"]))
            found += [times] if times else []
    if not found:
        return None
    first, other = (statistics.median(values) for values in zip(*found, strict=True))
    return first, other


def _first_sends_of_rank(events: Sequence[Mapping], count: int) -> tuple[float, float] | None:
    """Return the times of `first_sends_of` of one rank; count: its blocks on a side."""
    begins = [event["begin_s"] for event in events if event["block"] < 0]
    sent = [(event["block"] % count, event["begin_s"]) for event in events if _is_send(event)]
    others = [at for block, at in sent if block > 0]
    if not begins or not others:
        return None
    return min(at for _, at in sent) - min(begins), min(others) - min(begins)


def _is_send(event: Mapping) -> bool:
    return bool(event["kind"] == "send" and event["block"] >= 0)


def _first_of_iteration(here: Measured) -> str:
    """Return the times of first sends, the purpose of throttling (section 5.4)."""
    lines = [
        [name, row.variant, *(tables.number(1e6 * seconds) for seconds in first_sends)]
        for name, rows in here.detailed.items()
        for row in blocks_timeline.with_timeline(rows)
        if (first_sends := first_sends_of(row))
    ]
    headers = ["workload", "variant", "any block", "blocks other than 0"]
    return tables.markdown(lines, headers, right=headers[2:]) if lines else ""


def _shown(sizes: Sequence[int]) -> list[int]:
    """Return the numbers of some blocks, smallest buffer first, the largest last."""
    by_size = sorted(range(len(sizes)), key=lambda block: sizes[block])
    return [by_size[int(k)] for k in np.unique(np.linspace(0, len(sizes) - 1, MOST_BLOCKS).round())]


def _packing(here: Measured) -> str:
    """Return figures 4.9 and 4.14: some blocks by the size of their buffers, and the statements of the text."""
    texts = []
    for name, rows in here.detailed.items():
        sizes = rows[0].request["bytes"]
        shown = _shown(sizes)
        headers = [f"{block} ({blocks.bytes_words(sizes[block])})" for block in shown]
        packed = [(row.variant, row.per_block("packing_s")) for row in rows if row.request["bytes"] == sizes]
        lines = [
            [variant, *(tables.number(1e6 * seconds[block]) for block in shown)]
            for variant, seconds in packed
            if seconds
        ]
        if lines:
            texts.append(tables.markdown(lines, [f"{name}, block", *headers], right=headers))
    stated = []
    for row in published(printed.STUDY, "micro_observations"):
        if row["quantity"].startswith("pack"):
            ends = dict.fromkeys(filter(None, (row["value_low"], row["value_high"])))
            stated.append([row["gpu"], row["workload"], row["quantity"], " .. ".join(ends)])
    if texts and here.on_gpu:
        texts.append(tables.markdown(stated, ["gpu", "workload", "published", "us"], right=("us",)))
    return "\n\n".join(texts)


def _posting(here: Measured) -> str:
    lines = []
    for name, rows in here.posting.items():
        for row in rows:
            times = [row.per_block(quantity) for quantity in ("packing_s", "posting_s")]
            lines.append([name, row.variant, *(tables.number(1e6 * statistics.mean(t)) if t else "" for t in times)])
    headers = ["workload", "variant", "packing, mean of blocks", "posting"]
    return tables.markdown(lines, headers, right=headers[2:]) if lines else ""


def iterations(row: Row) -> np.ndarray:
    """Return the seconds of every test's iterations, one line a test."""
    return np.array([test for record in row.records for test in record["iterations_s"]])


def _first_of_launches(row: Row) -> float:
    return float(statistics.median(record["iterations_s"][0][0] for record in row.records))


OF_ITERATIONS = (
    "baseline:waitall,nonblocking,coherent",
    "baseline:waitall,blocking,coherent",
    "baseline:testany,blocking,coherent",
    matrix.PLAIN,
)


def _iterations(here: Measured) -> str:
    """Return medians by iteration; the first one of a launch, which makes connections, is separate."""
    lines = []
    for name, rows in here.timed.items():
        for row in (r for r in rows if r.variant in OF_ITERATIONS):
            medians = np.median(iterations(row), axis=0)
            lines.append([name, row.variant, *(tables.number(1e6 * us) for us in (_first_of_launches(row), *medians))])
    numbers = [str(k + 1) for k in range(max((len(line) for line in lines), default=3) - 3)]
    table = tables.markdown(
        lines, ["workload", "variant", "first of a launch", *numbers], right=["first of a launch", *numbers]
    )
    if not lines or not here.on_gpu:
        return table if lines else ""
    stated = {
        name: printed.observed("v100", "M", f"first iteration, {name}")[0]
        for name in ("NB Waitall", "BL Waitall", "BL Testany")
    }
    return f"{table}\n\nPublished, V100, M, first iteration: {', '.join(f'{k} {v:g} us' for k, v in stated.items())}."


def _first_sends(here: Measured) -> str:
    """Return the first rendezvous of an iteration (figure 4.22), with block 0 as it is and raised, without and with a
    dummy message.
    """
    rows = [row for row in here.first_sends if row.per_block("sending_s")]
    count = max((len(row.request["bytes"]) for row in rows), default=0)
    lines = [[_message_text(row), *(tables.number(1e6 * s) for s in row.per_block("sending_s"))] for row in rows]
    stated = {key: f"{1e6 * seconds:g}" for key, seconds in printed.sends().items()}
    for case, prefix in (("", ""), (", block 0 raised", "raised ")) if here.on_gpu else ():
        lines.append([f"published, MI50, M{case}", *(stated.get(f"{prefix}{k}", "") for k in range(count))])
    headers = [str(k) for k in range(count)]
    return tables.markdown(lines, ["sends of block", *headers], right=headers) if rows else ""


def _message_text(row: Row) -> str:
    return f"block 0 of {blocks.bytes_words(row.request['bytes'][0])}{', dummy message' * ('dummy' in row.variant)}"
