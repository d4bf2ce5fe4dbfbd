"""Results of the thesis, recomputed from its printed data: speed-ups, references, rates, sizes; and contradictions."""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.checks import Check, Report
from haloscope_studies.vanecek2020 import printed, variants
from haloscope_studies.vanecek2020.printed import HALF, Result

SERIES = (0, 5000, 10000)  # elements of the first block of each nine (table 4.1)
STEP, OF_A_SERIES, ELEMENT_BYTES = 15000, 9, 8
SCALES = {"XS": 1e-3, "S": 1, "M": 1, "L": 1, "XL": 10}  # of table 4.1


def replay() -> checks.Replay:
    """Recompute all results that the printed data allow. Returns Markdown, the checks, and results without a bar."""
    from haloscope_studies.vanecek2020 import predicted

    found = (*sizes(), *speedups(), *references(), *gains(), *baselines(), *packing(), *rendezvous())
    found += tuple(predicted.results())
    without = (*defects(), *consequences())
    sections = {
        "Results against their bars": checks.table(found),
        "Reports: results without a bar": checks.report_table(without),
        "Speed-ups recomputed": speedup_table(),
        "Speed-ups of the task queue by a model": predicted.table(),
    }
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return checks.Replay(text, found, without, predicted.DOCUMENTED)


def _claimed(id: str, name: str, low: float, high: float, note: str = "") -> Check:
    claim = printed.claims()[name]
    ours = printed.range_text(low, high if claim.high is not None else low, claim.unit)
    return Check(id, name, claim.text, ours, claim.bar, checks.state(claim.agrees(low, high)), note or claim.source)


def _all_of(id: str, title: str, agreeing: Sequence[bool], note: str = "") -> Check:
    return Check(id, title, str(len(agreeing)), f"{sum(agreeing)} agree", "all", checks.state(all(agreeing)), note)


# ---- sizes -----------------------------------------------------------------------------------------------------------


def elements(block: int, scale: float = 1) -> int:
    """Return a block's elements by the closed form of table 4.1, at least one in every block, times a scale."""
    of_table = max(SERIES[block // OF_A_SERIES] + STEP * (block % OF_A_SERIES), 1)
    return max(round(scale * of_table), 1)


def sizes() -> list[Check]:
    """NC2, NC3: the closed form of table 4.1, and the workloads derived from it."""
    blocks, loads = published(printed.STUDY, "blocks"), published(printed.STUDY, "workloads")
    form = [
        (int(r["elements"]), int(r["bytes"])) == (elements(k), ELEMENT_BYTES * elements(k))
        for k, r in enumerate(blocks)
    ]
    by_block = [
        bytes_ == ELEMENT_BYTES * elements(k, SCALES[r["workload"]])
        for r in loads
        for k, bytes_ in enumerate(printed.sizes(r["workload"]))
    ]
    totals = [_total_agrees(row) for row in loads]
    return [
        _all_of(
            "NC3", "table 4.1: sizes of blocks by a closed form", form, "three series of nine, 15 000 elements apart"
        ),
        _all_of("NC3", "sizes of the blocks of five workloads", by_block, "XS a thousandth of table 4.1, XL ten times"),
        _all_of("NC2", "blocks, least, largest and total of a workload", totals, "grids of 9 and 27 as products"),
    ]


def _total_agrees(row: dict[str, str]) -> bool:
    found = printed.sizes(row["workload"])
    grid = 1
    for extent in row["grid"].split("x") if row["grid"] else [str(len(found))]:
        grid *= int(extent)
    stated = [int(row[k]) for k in ("blocks", "smallest_block_B", "largest_block_B", "total_B_per_rank_and_direction")]
    return stated == [len(found), min(found), max(found), sum(found)] and grid == len(found)


# ---- speed-ups -------------------------------------------------------------------------------------------------------


def fastest(day: str, blocking: bool | None = None) -> float:
    """Return the seconds of the fastest baseline of workload M on a day; blocking: with such sends, None: any."""
    return min(
        r.seconds
        for r in printed.results()
        if variants.flow_of(r.variant) == variants.BASELINE and r.day == day and blocking in (None, r.blocking)
    )


def reference_of(row: Result) -> float | None:
    """Return the seconds that a printed speed-up refers to, None if they are not printed."""
    if row.table == "4.3":
        return fastest("2")
    return fastest("1", row.blocking) if row.table == "4.4" else None


def agrees(row: Result) -> bool:
    """Return whether a printed speed-up follows from the printed times, to its last digit."""
    reference = reference_of(row)
    return reference is not None and row.speedup is not None and abs(reference / row.seconds - row.speedup) <= HALF


def speedups() -> list[Check]:
    """NE1: printed speed-ups against printed times."""
    against = {"4.3": "the fastest baseline of that day", "4.4": "the fastest baseline with the same sends, day 1"}
    return [
        _all_of(
            "NE1",
            f"table {table}: speed-ups over {words}",
            [agrees(row) for row in printed.of_table(table) if not row.misprinted],
            "to the last digit; less the misprint",
        )
        for table, words in against.items()
    ]


def implied(rows: Sequence[Result]) -> tuple[float, float]:
    """Return the least and the most seconds of one reference that all printed speed-ups allow; least > most: no
    reference fits.
    """
    pairs = [(row.seconds, row.speedup) for row in rows if row.speedup is not None]
    return max(s * (up - HALF) for s, up in pairs), min(s * (up + HALF) for s, up in pairs)


def references() -> list[Check]:
    """NE1: times of baselines that are not printed, from speed-ups over them."""
    made = []
    for blocking, word in ((False, "nonblocking"), (True, "blocking")):
        low, high = implied([row for row in printed.of_table("4.5") if row.blocking == blocking])
        ours = f"{1e3 * low:.3f} .. {1e3 * high:.3f} ms"
        made.append(
            Check(
                "NE1",
                f"table 4.5, {word}: one baseline fits all speed-ups",
                "4",
                ours,
                "a range",
                checks.state(low <= high),
                "printed nowhere",
            )
        )
        made.append(_claimed("NE1", f"fastest baseline L {word}", 1e3 * low, 1e3 * high))
    low, high = implied(printed.of_table("4.6"))
    made.append(
        _claimed(
            "NE1", "fastest baseline M mi50", 1e3 * low, 1e3 * high, "one for all sends, though the caption has two"
        )
    )
    least = min(row.seconds for row in printed.of_table("4.6")) / high
    return [*made, _claimed("NE1", "taskqueue over baseline M mi50", least, least)]


def repaired(row: Result) -> float:
    """Return the seconds of a row; of the misprinted one, the seconds that its speed-up implies."""
    return (reference_of(row) or 0) / (row.speedup or 1) if row.misprinted else row.seconds


def gains() -> list[Check]:
    """NE1: statements of the text on the tables."""
    medium = [fastest("1") / repaired(row) for row in printed.of_table("4.4")]
    base = sum(implied([row for row in printed.of_table("4.5") if not row.blocking])) / 2
    large = [base / row.seconds for row in printed.of_table("4.5")]
    others = [
        max(h.speedup for h in printed.headlines() if h.gpu == "v100" and h.workload == name) for name in ("XS", "XL")
    ]
    best = [max(medium), max(large), *others]
    return [
        _claimed("NE1", "gain over the fastest baseline M", *_percent(medium), "with the misprint repaired"),
        _claimed(
            "NE1", "gain over the fastest baseline L", *_percent(large), "over the baseline that table 4.5 implies"
        ),
        _claimed(
            "NE1", "best taskqueue over best baseline", min(best), max(best), "M and L recomputed, XS and XL as stated"
        ),
        *_headlines({"M": max(medium), "L": max(large)}),
    ]


def _headlines(found: dict[str, float]) -> list[Check]:
    stated = {h.workload: h.speedup for h in printed.headlines() if h.gpu == "v100" and h.workload in found}
    return [
        Check(
            "NE1",
            f"headline speed-up {name}",
            f"{stated[name]:.3f}",
            f"{ours:.4f}",
            "to the last digit",
            checks.state(abs(ours - stated[name]) <= HALF),
        )
        for name, ours in found.items()
    ]


def _percent(ratios: Sequence[float]) -> tuple[float, float]:
    return 100 * (min(ratios) - 1), 100 * (max(ratios) - 1)


# ---- baselines -------------------------------------------------------------------------------------------------------


def baselines() -> list[Check]:
    """NB3, NE1, NI6: sends, days, deviations and the rate of data."""
    first, second = ({r.variant: r.seconds for r in printed.of_table(table)} for table in ("4.2", "4.3"))
    lost = [first[name] - second[name] for name in first]
    of_first = [100 * less / seconds for less, seconds in zip(lost, first.values(), strict=True)]
    shares = [100 * deviation / first[name] for name, deviation in deviations().items()]
    sends = [first[name.replace("nonblocking", "blocking")] / first[name] for name in first if "nonblocking" in name]
    large = sum(implied([row for row in printed.of_table("4.5") if not row.blocking])) / 2
    rates = [1e-9 * sum(printed.sizes(name)) / seconds for name, seconds in (("M", fastest("1")), ("L", large))]
    return [
        _claimed("NB2", "nonblocking over blocking M", *_percent(sends)),
        _claimed("NI6", "day 1 less day 2", 1e6 * min(lost), 1e6 * max(lost)),
        _claimed(
            "NI6", "day 1 less day 2 of day 1", min(of_first), max(of_first), "more than any gain: compare within a day"
        ),
        _claimed("NI6", "deviation of a baseline M", min(shares), max(shares)),
        _claimed(
            "NE1", "data rate of the fastest baseline", min(rates), max(rates), "M, and L by its implied baseline"
        ),
    ]


def deviations() -> dict[str, float]:
    """Return the printed standard deviations in seconds, by baseline."""
    return {
        variants.canonical(f"baseline:{row['completion_or_channel']},{row['send']}"): 1e-6 * float(row["deviation_us"])
        for row in published(printed.STUDY, "deviations")
    }


# ---- single times ----------------------------------------------------------------------------------------------------


def packing() -> list[Check]:
    """NE2: packing into pinned memory over packing into the device's."""
    pairs = {
        "packing pinned over device L": ("v100", "L", "pinned", "device buffer (upper bound)"),
        "packing pinned over device XL": ("v100", "XL", "pinned", "device buffer"),
        "packing coherent over non-coherent M mi50": ("mi50", "M", "coherent pinned", "non-coherent pinned"),
    }
    made = []
    for name, (gpu, workload, slow, fast) in pairs.items():
        (slow_low, slow_high), (fast_low, fast_high) = (
            printed.observed(gpu, workload, f"pack largest block, {memory}") for memory in (slow, fast)
        )
        made.append(_claimed("NE2", name, slow_low / fast_high, slow_high / fast_low))
    return made


def rendezvous() -> list[Check]:
    """NE4: the first rendezvous of an iteration is the slow one; the others take time by their size."""
    found, size = printed.sends(), printed.sizes("M")
    rates = [1e-9 * size[k] / found[f"raised {k}"] for k in (1, 2)]
    same = abs(rates[1] / rates[0] - 1) <= 0.02
    ratio = found["1"] / found["0"]
    return [
        _claimed("NE4", "first rendezvous over eager send M mi50", ratio, ratio),
        Check(
            "NE4",
            "sends after the first rendezvous go by their size",
            "proportional",
            f"{rates[0]:.3f}, {rates[1]:.3f} GB/s",
            "within 2 %",
            checks.state(same),
            "blocks 1 and 2, block 0 raised to 40 kB",
        ),
    ]


# ---- results without a bar -------------------------------------------------------------------------------------------


def defects() -> list[Report]:
    """Return printed values that the source contradicts elsewhere."""
    [row] = [row for row in printed.results() if row.misprinted]
    least = printed.claims()["gain over the fastest baseline M"].low
    [twin] = [r for r in printed.of_table(row.table) if r.seconds == row.seconds and r is not row]
    return [
        Report(
            f"table {row.table}, {row.variant}",
            f"{1e6 * row.seconds:.1f} us",
            f"{1e6 * repaired(row):.0f} us",
            f"the printed time repeats {twin.variant}; ours follows from the printed speed-up {row.speedup}, and "
            "gives the "
            f"stated least gain of {least} %",
        )
    ]


def consequences() -> list[Report]:
    """Return unprinted results that follow from printed data."""
    low, high = (
        sum(implied([r for r in printed.of_table("4.5") if r.blocking == blocking])) / 2 for blocking in (False, True)
    )
    return [
        Report(
            "nonblocking over blocking L",
            f"about {printed.claims()['nonblocking over blocking L'].text}",
            f"{100 * (high / low - 1):.1f} %",
            "from baselines that table 4.5 implies",
        ),
        _first_iteration(),
        _penalty(),
        *(
            Report(
                f"{h.text} over the fastest, mi50, {h.workload}",
                f"{h.speedup}",
                "",
                "no times of these baselines are printed",
            )
            for h in printed.headlines()
            if "baseline" in h.text
        ),
    ]


def _first_iteration() -> Report:
    means = [fastest("1", blocking) for blocking in (False, True)]
    first = [
        1e-6 * printed.observed("v100", "M", f"first iteration, {name}")[0] for name in ("NB Waitall", "BL Testany")
    ]
    counted = [mean + (seconds - mean) / printed.ITERATIONS for seconds, mean in zip(first, means, strict=True)]
    without, within = (", ".join(f"{1e6 * seconds:.0f}" for seconds in values) for values in (means, counted))
    why = "blocking sends would seem faster: warm-up decides the order"
    return Report("the first iteration of 13 counted, fastest baselines M (NB, BL), us", without, within, why)


def _penalty() -> Report:
    found = printed.sends()
    of_raised = found["raised 1"] * printed.RAISED_BYTES / printed.sizes("M")[1]
    ends = [(found["1"], found["1"] - found["raised 1"]), (found["raised 0"], found["raised 0"] - of_raised)]
    whole, penalty = (", ".join(f"{1e3 * seconds:.2f}" for seconds in values) for values in zip(*ends, strict=True))
    why = "whole sends less the time of one of that size after the first; block 0 as it is, and raised"
    return Report("penalty of the first rendezvous, mi50, ms", whole, penalty, why)


def speedup_table() -> str:
    """Return all printed times with printed and recomputed speed-ups."""
    lines = []
    for row in printed.results():
        reference = reference_of(row)
        ours = f"{reference / row.seconds:.4f}" if reference else ""
        implied_by = f"{1e6 * row.seconds * row.speedup:.0f}" if row.speedup and not reference else ""
        over = f"{1e6 * reference:.1f}" if reference else implied_by and f"{implied_by} implied"
        lines.append(
            [
                row.table,
                row.gpu,
                row.workload,
                row.variant,
                f"{1e6 * row.seconds:.1f}",
                f"{row.speedup or ''}",
                ours,
                over,
                "misprint" if row.misprinted else "",
            ]
        )
    headers = ["table", "gpu", "workload", "variant", "iteration (us)", "printed", "recomputed", "over (us)", "note"]
    return tables.markdown(lines, headers, right=headers[4:8])
