"""The analytical model of Davis 2017 replayed: every result that its printed data allow to recompute, without a cluster.

Rows C1 to C13, D1, D3, F1 to F5 and H2 of the checklist stand beside the printed values; results without a bar are reports.
Tables then set our predictions, whose costs come from runs on one node, beside measured times and the study's own model, and
show what follows from the study's other measurements: its variants, waiting, memory and clock.
"""

from __future__ import annotations

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.davis2017 import checks as davis2017_checks
from haloscope.studies.davis2017 import components, hydra_runs, observations, reports, variants
from haloscope.studies.davis2017 import results as davis2017_results

SUMMARY = "Davis 2017: analytical model of a 3D hydrocode with near-neighbour exchange"
ONLY_REPLAY = "davis2017 cannot be measured yet: the app hydro3d does not exist"


def replay() -> checks.Replay:
    """Recompute what the paper's printed data allow. Returns Markdown text, the checks and the results without a bar.

    Takes some seconds.
    """
    found = (*davis2017_checks.all_checks(), *davis2017_results.all_checks())
    without = reports.all_reports()
    sections = {
        "Results against their bars": f"{checks.table(found)}\n\n{checks.summary(found)}",
        "Reports: results without a bar": checks.report_table(without),
        "Walltime: measured, the study's model, our costs from one node": walltimes(),
        "Components: measured, the study's model, our costs from one node": components.markdown(),
        "Variants A to L": variants.markdown(),
        "Observations besides walltimes": observations.markdown(),
    }
    return checks.Replay("\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items()), found, without)


def walltimes() -> str:
    """Return the validation tables 5.12 to 5.14 with recomputed signed errors and our predictions."""
    lines = []
    for row in published("davis2017", "validation"):
        measured, model = float(row["measured_s"]), float(row["model_s"])
        line = [row["machine"], row["scaling"], f"{row['cells_per_side']}^3", row["pes"], measured, model]
        line += [row["error_printed_percent"] + "%", f"{(model / measured - 1):+.2%}"]
        if row["machine"] == "minerva":
            run = hydra_runs.run(row["scaling"], int(row["pes"]), int(row["cells_per_side"]))
            ours = davis2017_results.minerva(run).total
            line += [f"{ours:.2f}", f"{(ours / measured - 1):+.2%}"]
        else:
            line += ["", ""]  # no kernel costs of the other machines are printed
        lines.append(line)
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
