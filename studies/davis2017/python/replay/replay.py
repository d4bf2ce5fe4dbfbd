"""The replay as text: every recomputed result against its bar, walltimes, components, variants, observations."""

from __future__ import annotations

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope_studies.davis2017.replay import checks as davis2017_checks
from haloscope_studies.davis2017.replay import components, counts, hydra_runs, observations, reports, variants
from haloscope_studies.davis2017.replay import results as davis2017_results

# Checks that miss their bar, by name: strong scaling, where blocks are small; numerics that differ from the study's.
DOCUMENTED_MISSES = {
    "compute, strong, 9 runs beyond one node": "at 256 ranks blocks are below 30^3 cells, the smallest printed size",
    "walltime, strong, 32 ranks": "messages and sweeps of small blocks are predicted too slow",
} | {
    f"{counts.MISS}, {kernel}": "the sources of hydro3d access memory less often for an operation"
    for kernel in counts.LARGE
}


def replay() -> checks.Replay:
    """Recompute all results that the printed data allow. Returns Markdown, the checks and the results without a bar.

    Takes some seconds.
    """
    found = (*davis2017_checks.all_checks(), *davis2017_results.all_checks(), *counts.all_checks())
    without = reports.all_reports()
    sections = {
        "Results against their bars": checks.table(found),
        "Reports: results without a bar": checks.report_table(without),
        "Walltime: measured, the study's model, our costs from one node": walltimes(),
        "Components: measured, the study's model, our costs from one node": components.markdown(),
        "Variants A to L": variants.markdown(),
        "Observations besides walltimes": observations.markdown(),
        "Operations, accesses and misses of the remap": counts.markdown(),
    }
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return checks.Replay(text, found, without, DOCUMENTED_MISSES)


def walltimes() -> str:
    """Return the validation tables 5.12 to 5.14 with recomputed signed errors and our predictions."""
    lines, elsewhere = [], davis2017_results.elsewhere_off()
    for row in published("davis2017", "validation"):
        measured, model = float(row["measured_s"]), float(row["model_s"])
        line = [row["machine"], row["scaling"], f"{row['cells_per_side']}^3", row["pes"], measured, model]
        line += [row["error_printed_percent"] + "%", f"{(model / measured - 1):+.2%}"]
        if row["machine"] == "minerva":
            run = hydra_runs.run(row["scaling"], int(row["pes"]), int(row["cells_per_side"]))
            off = davis2017_results.minerva(run).total / measured - 1
        else:
            off = elsewhere[row["machine"], int(row["cells_per_side"]), int(row["pes"])]
        lines.append([*line, f"{measured * (1 + off):.2f}", f"{off:+.2%}"])
    headers = [
        "machine",
        "scaling",
        "cells",
        "ranks",
        "measured (s)",
        "model (s)",
        "printed",
        "error",
        "ours (s)",
        "error ",
    ]
    return tables.markdown(lines, headers, right=headers[3:])
