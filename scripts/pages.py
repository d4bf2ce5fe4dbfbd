"""Write measured tables and figures into README.md and docs/, from the records in results/.

usage: .venv/bin/python scripts/pages.py [--check]

The script reads results/demo.jsonl (a demo's records), results/test.txt (the last line of `make test`),
results/bench.jsonl (the newest line of each case; a page per figure), results/accuracy/ and results/lab/ (measured by
figures `accuracy` and `lab`), results/transports.jsonl (scripts/transports.py), results/mutants.jsonl and
results/mutants-rows.jsonl (scripts/mutants.py), and the two programs of examples/replaced. --check writes nothing; the
exit code is 1 where a page differs from its sources.
"""

import difflib
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
CHECK = "--check" in sys.argv
SCRATCH = tempfile.TemporaryDirectory()
FIGURES = Path(SCRATCH.name) if CHECK else ROOT / "docs" / "figures"
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "bench")]

import cards  # found by the line above
import mutants

from bench.__main__ import mpi_name, study_figures, table
from haloscope import studies
from haloscope.bridge import build
from haloscope.model.link import Link
from haloscope.report import tables

HALOSCOPE = build.python("-m", "haloscope.cli")


@functools.cache
def demo() -> str:
    """Return the output of `haloscope demo` for the recorded run; redraw docs/figures/demo.svg and .png."""
    folder = Path(SCRATCH.name, "demo")
    command = [*HALOSCOPE, "demo", "--from", "results/demo.jsonl", "--output", folder]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for drawn in folder.glob("demo.*"):
        shutil.copy(drawn, FIGURES)
    kept = [line for line in text.strip().splitlines() if not line.startswith(("records:", "figure:", "page:", "took"))]
    records = [json.loads(line) for line in (RESULTS / "demo.jsonl").read_text().splitlines()]
    where = next(r["environment"] for r in records if r["kind"] == "measurement")
    launches = len({r["launch"]["id"] for r in records})
    return "\n".join(kept).strip() + (
        f"\n\nMeasured, not simulated: {where['cpu']}, {where['cores']} cores, 2 ranks, {launches} launches, "
        f"{mpi_name(where)}, {where['compiler']}; records in results/demo.jsonl."
    )


def excerpt() -> str:
    """Return the first choice and the base of the demo's small 2D grid, and the recommendations of the demo."""
    lines = demo().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("### laplace2d, 64x64"))
    rows = [line for line in lines[start + 4 : lines.index("", start + 2)] if line.startswith("|")]
    base = next(row for row in rows if "(base)" in row)
    advice = next(line for line in lines if line.startswith("Here, "))
    kept = [[cell.strip() for cell in line.split("|")[1:10]] for line in (lines[start + 2], rows[0], base)]
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in kept]
    return "\n".join(["```", lines[start].removeprefix("### "), *shown, *textwrap.wrap(advice, 110), "```"])


def test() -> str:
    """Return the last line of pytest."""
    return f"```\n{(RESULTS / 'test.txt').read_text().strip()}\n```"


def newest() -> list[dict]:
    """Return the newest line of each case of each figure on each MPI."""
    found = [json.loads(line) for line in (RESULTS / "bench.jsonl").read_text().splitlines()]
    last = {(r["figure"], r["case"], mpi_name(r["environment"])): r for r in found}
    return [last[key] for key in sorted(last)]


SUMMARIES = {
    "accuracy": "predictions against measurements of cases that calibration never ran (relative errors; p; regret)",
    "lab": "predictions against measurements on emulated networks (relative errors; p; regret)",
    "deep": "fused time steps of a cache-blocked 2D sweep, over one step at a time",
    "exchange": "best two-sided exchange against an expert's plain one, and against PETSc",
    "exchange-shared": "exchange through shared memory, against the same expert",
    "auto": "exchange and step by `auto` after its trials, over the fastest transport that it tries",
    "opening": "seconds to open an exchange of 15 fields with 26 neighbours",
    "phases": "a run of 600 steps by `auto`, opening and trials included, over the same run by its fastest transport",
    "overhead": "time that the runner adds to a step written by hand",
    "redistribute": "fields that move to another split of their grid, against the best copy of as many bytes",
    "view": "exchanges of a user's own arrays, over exchanges of the library's fields",
    "own_app": "kernels that `haloscope_add_app()` generates for an external app, over its plain function",
    "stepper_order": "7-point sweep of a Stepper, boxes in strips over whole boxes",
    "replaced": "heat with its exchange by the library, over the same exchange written by hand",
    "ported": "exchanges with the structure of five codes by the library, over the same exchanges written by hand",
    "python": "a call of the Python exchange without a message",
    "plan": "plans of 2048 ranks, and start-up alone",
    "best": "advice and predictions as function calls, CPU seconds",
    "predict": "predictions and simulations of 2048 and 100 000 ranks",
    "simulate": "events per second of the simulator",
    "sweep": "one-step sweeps against the best copy of the same bytes",
    "tune": "the result of `haloscope tune` in a tenth of the time, against the best of all; and this time over "
    "measuring all",
}
SUMMARIES |= {name: figure["about"] for name, figure in study_figures().items() if figure["about"]}


MEASURED = "docs/understand/measured"
# Further pages of figures that have more than a table.
MORE = {
    "accuracy": "Errors by group, and a plot: [the model](../model.md#accuracy).",
    "lab": "Errors by network, and plots: [a cluster on one machine](../../machine/lab.md).",
    "ported": "The five codes: [port your code](../../use/porting.md#exchanges-of-five-codes-imitated).",
    "replaced": "The two programs, line by line: [an exchange replaced](../replaced.md).",
}


def bench() -> str:
    """Return a line per figure and MPI: its cases, the number that reach their bar, and the cases that miss it."""
    groups, lines = defaultdict(list), []
    for r in newest():
        groups[r["figure"], mpi_name(r["environment"])].append(r)
    for (figure, mpi), cases in sorted(groups.items(), key=lambda g: (list(SUMMARIES).index(g[0][0]), g[0][1])):
        ends = sorted(cases, key=lambda r: r["value"])
        unit = "" if cases[0]["unit"] == "ratio" else f" {cases[0]['unit']}"
        missed = "; ".join(
            f"{r['case']} {tables.number(r['value'])} ({r['direction']} {r['bar']:g})"
            for r in cases
            if r["holds"] is False
        )
        values = f"{tables.number(ends[0]['value'])} .. {tables.number(ends[-1]['value'])}{unit}"
        page = tables.Markup(f"[{figure}]({figure}.md)")
        lines.append([page, tables.Markup(SUMMARIES[figure]), mpi, values, reached(cases), missed])
    return tables.markdown(lines, ["figure", "measured", "MPI", "values", "reach their bar", "miss their bar"])


def reached(cases: Sequence[dict]) -> str:
    """Return the count of cases that reach their bar, and the count of cases with a bar, as text."""
    held = [r["holds"] for r in cases if r["holds"] is not None]
    return f"{sum(held)} of {len(held)}" if held else ""


def figure_pages() -> dict[str, str]:
    """Return the page of each figure: every case, and the machines."""
    groups = defaultdict(list)
    for r in newest():
        groups[r["figure"]].append(r)
    return {f"{MEASURED}/{figure}.md": figure_page(figure, cases) for figure, cases in groups.items()}


def figure_page(figure: str, cases: Sequence[dict]) -> str:
    """Return the page of one figure."""
    machines = sorted({machine(r["environment"]) for r in cases})
    held = reached(cases)
    parts = [
        f"# Figure {figure}",
        "<!-- Written by scripts/pages.py. -->",
        f"{SUMMARIES[figure][0].upper()}{SUMMARIES[figure][1:]}.",
        f'{held} cases reach their bar; the others have NO under "holds".' if held else "",
        table(cases, named=False),
        f"Measured, not simulated: {'; '.join(machines)}. Records in results/bench.jsonl.",
        MORE.get(figure, ""),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def machine(environment: dict) -> str:
    """Return processor, cores, MPI and compiler of a result."""
    cpu, cores, compiler = (environment[key] for key in ("cpu", "cores", "compiler"))
    return f"{cpu}, {cores} cores, {mpi_name(environment)}, {compiler}"


def transports() -> str:
    """Return the table of the fastest transport of each case."""
    from transports import table

    return table()


def accuracy() -> str:
    """Return the model's errors on held-out configurations by group; redraw docs/figures/model.svg and .png."""
    from haloscope import records
    from haloscope.advice import validate
    from haloscope.model import profile
    from haloscope.report import validate as report

    folder = RESULTS / "accuracy"
    machine = profile.load(folder / "machine.json.xz")
    found = validate.validate(records.read(folder / "held-out.jsonl.xz").records, machine, samples=0)
    report.plot(found, FIGURES / "model")
    judged = [r for r in newest() if r["figure"] == "accuracy"]
    where = judged[0]["environment"]
    head = (
        f"Measured, not simulated: {where['cpu']}, {where['cores']} cores, 2 ranks, {mpi_name(where)}; calibration in "
        f"full, then {len(found.pairs)} configurations that it never ran, each in {judged[0]['launches']} launches, "
        "and the recommendation and the fastest of each case again; `make bench FIGURE=accuracy`, records in "
        "results/accuracy. A case that misses its bar has NO."
    )
    step, exchange = (report.errors_table(found.pairs, exchange=which) for which in (False, True))
    plot = "![Predicted against measured](../figures/model.svg)"
    parts = (
        head,
        table(judged),
        plot,
        "Relative errors of a step:",
        step,
        "Of the exchange itself, where not hidden:",
        exchange,
    )
    return "\n\n".join(parts)


def lab() -> str:
    """Return errors on emulated networks, wins and losses of techniques; redraw docs/figures/lab.svg and .png."""
    import lab

    from haloscope.advice import validate
    from haloscope.measure import programs
    from haloscope.report import validate as report

    programs.use(lab.program(), lab.OWN, {})
    folders = sorted(lab.KEPT.iterdir())
    found = [lab.pairs_of(folder) for folder in folders]
    pairs = [pair for one in found for pair in one]
    report.plot(validate.Validation(tuple(pairs), (), {}, ()), FIGURES / "lab")
    judged = [r for r in newest() if r["figure"] == lab.FIGURE]
    where = judged[0]["environment"]
    head = (
        f"Measured on an emulated network, not simulated: {where['cpu']}, {where['cores']} cores, 2 hosts of 1 rank, "
        f"{mpi_name(where)} over TCP; a quick calibration in each of {len(folders)} networks, then {len(pairs)} "
        f"configurations that none of them ran, each in {lab.LAUNCHES} launches, and the recommendation and the "
        "fastest of each case again; `make bench FIGURE=lab`, records in results/lab. A case that misses its bar "
        "has NO."
    )
    counts = [[t.name, t.wins, t.loses, f"{t.right} of {t.distinct}"] for t in lab.techniques(found)]
    headers = ["technique", "wins", "loses", "predicted the right way"]
    rows = [
        [folder.name.replace("-", ", "), *(f"{e.median:.1%}" for e in errors_of(one))]
        for folder, one in zip(folders, found, strict=True)
    ]
    parts = (
        head,
        table(judged),
        "![Predicted against measured on emulated networks](../figures/lab.svg)",
        "Where a technique makes the step faster or slower than plain messages, beyond the noise of the measurements:",
        tables.markdown(counts, headers, right=headers[1:]),
        "Median relative errors, by network:",
        tables.markdown(rows, ["latency, bandwidth", "step", "exchange"], right=["step", "exchange"]),
    )
    return "\n\n".join(parts)


def errors_of(pairs: Sequence) -> Iterator:
    """Yield the errors of steps, then the errors of measured exchanges."""
    from haloscope.records.relative_errors import group_errors

    yield group_errors("step", [p.error for p in pairs])
    yield group_errors("exchange", [p.exchange_error for p in pairs if p.exchange_error is not None])


def lab_map() -> str:
    """Return the map of laplace2d in emulated clusters; redraw docs/figures/map.svg and .png."""
    import lab

    files = [word for path in sorted(lab.KEPT.glob("*/map.jsonl.xz")) for word in ("--measured", path)]
    words = ["--profile", lab.KEPT / f"50us-{lab.MAP_BANDWIDTH}" / "machine.json.xz", "--bandwidth", lab.MAP_BANDWIDTH]
    words += ["--blocks", ",".join(map(str, lab.BLOCKS)), "--latency", ",".join(lab.LATENCIES), "--depth", "1,4,16"]
    command = [*HALOSCOPE, "map", "laplace2d", *words, *files, "--output", FIGURES / "map"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return text.split("\n", 2)[2].split("\nfigure:")[0].strip()


def replaced() -> str:
    """Return the changes that replace a handwritten exchange: a diff of the two programs of examples/replaced."""
    old, new = (f"examples/replaced/{name}.cpp" for name in ("by_hand", "with_haloscope"))
    lines = [(ROOT / name).read_text().splitlines() for name in (old, new)]
    return "\n".join(["```diff", *difflib.unified_diff(*lines, old, new, n=1, lineterm=""), "```"])


def ratio(case: dict) -> str:
    """Return a figure's value with its interval."""
    low, high = case["interval"]
    return f"{tables.number(case['value'])} ({tables.number(low)} .. {tables.number(high)})"


def ported() -> str:
    """Return the table of exchanges by hand and by the library, with the strategy of the code and with `auto`."""
    cases = [r for r in newest() if r["figure"] == "ported"]
    of_code: dict[str, dict[bool, list[str]]] = defaultdict(dict)
    for r in cases:
        code, _, strategy = r["case"].rpartition(", ")
        by_hand, _, chosen = r["notes"].partition(" by hand; ")
        shown = chosen.removesuffix(" chosen") or strategy
        of_code[code][strategy == "auto"] = [by_hand.removesuffix(" by hand"), shown, ratio(r)]
    rows = [[code, *own[False], *own[True][1:]] for code, own in of_code.items() if len(own) > 1]
    heads = ["exchange", "by hand", "strategy that copies it", "ratio", "choice of auto", "ratio"]
    where = "; ".join(sorted({machine(r["environment"]) for r in cases}))
    launches = max((r["launches"] for r in cases), default=0)
    return (
        tables.markdown(rows, heads)
        + f"\n\nImitated exchanges, measured: {where}, 2 ranks, {launches} launches (`make bench FIGURE=ported`)."
    )


def changed_lines() -> str:
    """Return the table of mutants that tests notice, by area, and the count of the lines that break rows of studies."""
    found, rows = mutants.read(mutants.RECORD), mutants.read(mutants.ROWS)
    lines = []
    for area in (*mutants.AREAS, "all"):
        verdicts = Counter(one["verdict"] for one in found if area in ("all", mutants.area_of(one["file"])))
        killed, survived, equivalent = (verdicts[name] for name in ("killed", "survived", "equivalent"))
        score = f"{killed / (killed + survived):.0%}"
        lines.append([area, killed + survived + equivalent, equivalent, killed, survived, score])
    heads = ["lines of", "mutants", "equivalent", "noticed", "not noticed", "noticed, of those that differ"]
    ids = sorted({name for one in rows if one["verdict"] == "killed" for name in one["ids"]})
    commits = ", ".join(sorted({one["commit"] for one in found}))
    unjudged = sum(one["by"] == mutants.QUICK for one in found)
    text = (
        f"Mutants that compile, drawn with seed {found[0]['seed']}, of {commits}; {unjudged} of those that are not "
        f"noticed have been judged by the quick tests alone. Of {len(rows)} lines that break a row of a study, "
        f"{sum(one['verdict'] == 'killed' for one in rows)} fail the row's test: {', '.join(ids)}."
    )
    return f"{tables.markdown(lines, heads, right=heads[1:])}\n\n{textwrap.fill(text, 120)}"


def kept_runs(study: str) -> dict[str, dict]:
    """Return the descriptions of the kept runs of a study, by name."""
    plans = tomllib.loads((ROOT / "studies" / "kept.toml").read_text())
    names = [name for name, plan in plans.items() if plan["study"] == study]
    return {name: json.loads((RESULTS / "studies" / name / "about.json").read_text()) for name in names}


def findings(study: str) -> str:
    """Return the findings of a study's paper, judged by each kept run, and the parts that each run leaves out."""
    from haloscope.studies import running

    runs = kept_runs(study)
    judged = {}
    for name in runs:
        files = [RESULTS / "studies" / name / "records.jsonl.xz"]
        options, found = running.options_and_records(studies.load(study), study, False, {}, files)
        judged[name] = studies.load(study).findings(found, options)
    rows = [
        [one.statement, one.section, str(one.printed), *(str(judgement.here) for judgement in (one, *others))]
        for one, *others in zip(*judged.values(), strict=True)
    ]
    heads = ["finding", "section", "by the printed numbers", *(f"here: {name}" for name in runs)]
    return "\n\n".join([tables.markdown(rows, heads), *(run_text(name, about) for name, about in runs.items())])


def run_text(name: str, about: dict) -> str:
    """Return the command, the machine and the parts left out of a kept run, with the file of its report."""
    report = f"{name} (`results/studies/{name}/report.md`)"
    first = {part: values[0] for part, values in about.items() if isinstance(values, list)}
    where = "; ".join([machine(first), *(Link(**network).text for network in about.get("emulated_network", ()))])
    how = "imitated device" if "device" in about else "emulated network" if "emulated_network" in about else "measured"
    head = (
        f"{report}: `{about['command']}`; {about['records']} records of {len(about['launches'])} launches; {how}: "
        f"{where}. Left out:"
    )
    return "\n".join([head, "", *(f"- {reason}" for reason in about["left_out"])])


STUDIES = {f"studies/{name}/README.md": {"findings": functools.partial(findings, name)} for name in studies.names()}
PAGES = STUDIES | {
    "docs/use/porting.md": {"ported": ported},
    "docs/understand/replaced.md": {"diff": replaced},
    "docs/understand/model.md": {"accuracy": accuracy},
    "docs/machine/lab.md": {"lab": lab, "map": lab_map},
    "README.md": {"demo": excerpt, "test": test},
    "CONTRIBUTING.md": {"mutants": changed_lines},
    f"{MEASURED}/README.md": {"bench": bench},
    f"{MEASURED}/demo.md": {"demo": demo},
    "docs/understand/transports.md": {"measured": transports},
}


def filled(page: str, parts: dict[str, Callable[[], str]]) -> str:
    """Return a page with its marked parts rewritten."""
    text = (ROOT / page).read_text()
    for name, make in parts.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        body = make()
        text = pattern.sub(lambda m, body=body: f"{m[1]}\n{body}\n\n{m[2]}", text)
    return text


def main() -> int:
    """Rewrite (or check) the marked parts of the pages, and the pages of figures."""
    stale = cards.main()
    texts = {page: filled(page, parts) for page, parts in PAGES.items()} | figure_pages()
    for page, text in texts.items():
        path = ROOT / page
        stale |= not path.exists() or text != path.read_text()
        if not CHECK:
            path.write_text(text)
    return int(stale and CHECK)


if __name__ == "__main__":
    raise SystemExit(main())
