#!/usr/bin/env python3
"""Measure the fastest transport of each exchange: 2 ranks, a few minutes, records in results/transports.jsonl.

Run it by .venv/bin/python; scripts/pages.py makes the table of docs/understand/transports.md from the records.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

from haloscope import records
from haloscope.records import stats
from haloscope.records.rows import Row, group_rows
from haloscope.report import tables

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results" / "transports.jsonl"
LAUNCHES = 5
TRANSPORTS = (
    "p2p",
    "p2p:datatype",
    "persistent",
    "partitioned",
    "neighbor",
    "neighbor:persistent,packed",
    "rma-fence",
    "rma-fence:get",
    "rma-pscw",
    "rma-lock",
    "rma-lockall",
    "rma-lockall:flag",
    "shared",
    "shared:pull",
    "shared:packed",
)
SINGLE = (
    "p2p",
    "persistent",
    "partitioned",
    "rma-pscw:per-message",
    "rma-lock",
    "rma-lockall",
    "rma-lockall:flag",
    "shared",
    "shared:pull",
    "shared:packed",
)
CASES = {
    "3D star 32^3 a rank, split in z": ("laplace3d", "32x32x64", "1x1x2", ()),
    "3D star 64^3 a rank, split in z": ("laplace3d", "64x64x128", "1x1x2", ()),
    "3D star 128^3 a rank, split in z": ("laplace3d", "128x128x256", "1x1x2", ()),
    "3D star 64^3 a rank, split in x": ("laplace3d", "128x64x64", "2x1x1", ()),
    "3D box 64^3 a rank, split in x": ("advection3d", "128x64x64", "2x1x1", ("--form", "separable")),
    "2D star 256 x 512 a rank, split in y": ("laplace2d", "512x512", "1x2", ()),
    "2D star 2048 x 4096 a rank, split in y": ("laplace2d", "4096x4096", "1x2", ()),
    "Jacobi, 2055^2": ("poisson2d", "2055x2055", "", ()),
    "Gauss-Seidel pipeline, 2055^2": (
        "poisson2d",
        "2055x2055",
        "",
        ("--form", "gauss-seidel", "--schedule", "pipeline"),
    ),
}


def measure() -> None:
    """Measure every case with every transport; each launch measures all transports of a case."""
    RECORDS.unlink(missing_ok=True)
    for app, cells, grid, more in CASES.values():
        names = SINGLE if "pipeline" in more else TRANSPORTS
        command = [
            ROOT / ".venv/bin/haloscope",
            "run",
            app,
            "--cells",
            cells,
            "--ranks",
            "2",
            "--launches",
            LAUNCHES,
            "--strategy",
            ",".join(f"ordered/{name}" for name in names),
            "--seconds",
            "0.03",
            "--resume",
            "--output",
            RECORDS,
            *(["--process-grid", grid] if grid else []),
            *more,
        ]
        subprocess.run(list(map(str, command)), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def exchange(row: Row) -> dict[str, list[float]]:
    """Return the seconds per step outside the sweeps, which depend on the transport; mean over ranks, by launch."""
    seconds = defaultdict(list)
    for record in row.records:
        phases = record["phases_s"]
        seconds[record["launch"]["id"]].append(
            sum(phases.get(p, {}).get("mean", 0.0) for p in ("pack", "send", "wait", "unpack", "copy"))
        )
    return dict(seconds)


def line(title: str, rows: list[Row]) -> list[str]:
    """Return one row of the page's table."""
    base = next(row for row in rows if row.request["strategy"] == "ordered/p2p")
    best = rows[0]
    equal = [
        r
        for r in rows
        if stats.verdict_text(stats.ratio_of_launches(r.launches, best.launches), "s", "f") == stats.NO_CHOICE
    ]
    short = [row.request["strategy"].removeprefix("ordered/") for row in [best, *(r for r in equal if r is not best)]]
    gain = stats.ratio_of_launches(best.launches, base.launches)
    cost = stats.ratio_of_launches(exchange(best), exchange(base))
    slow = rows[-1]
    loss = stats.ratio_of_launches(slow.launches, base.launches)
    if base in equal:
        fastest = f"none faster than p2p within the interval ({len(equal)} of {len(rows)} equal)"
    else:
        fastest = ", ".join(short)
    return [
        title,
        fastest,
        f"{gain.value:.2f} ({tables.interval(gain, '{:.2f}'.format)})",
        f"{cost.value:.2f}",
        slow.request["strategy"].removeprefix("ordered/"),
        f"{loss.value:.2f} ({tables.interval(loss, '{:.2f}'.format)})",
    ]


def table() -> str:
    """Return the measured table, and the machine and MPI library on which it was measured."""
    found = records.read(RECORDS).records
    ranked = group_rows(found)
    lines = []
    for title, (app, cells, _, more) in CASES.items():
        form = "gauss-seidel" if "pipeline" in more else "jacobi" if app == "poisson2d" else None
        wanted = [int(n) for n in cells.split("x")]
        rows = [
            r
            for r in ranked
            if r.request["app"] == app
            and list(r.request["cells"])[: len(wanted)] == wanted
            and (form is None or r.request["form"] == form)
        ]
        if rows:
            lines.append(line(title, rows))
    where = found[0]["environment"]
    headers = [
        "case",
        "fastest, and transports equal to it",
        "best : p2p, step (95 %)",
        "best : p2p, exchange",
        "slowest",
        "slowest : p2p, step (95 %)",
    ]
    return (
        f"{tables.markdown(lines, headers)}\n\nMeasured: {where['cpu']}, 2 ranks on 2 cores, {LAUNCHES} launches, "
        f"{' '.join(where['mpi_library'].split()[:3])}; ordered pattern, bulk schedule, depth 1; every configuration "
        "verified. Ratios of medians, paired by launch; records in results/transports.jsonl."
    )


if __name__ == "__main__":
    measure()
