"""Cases of this study for the general tests."""

from __future__ import annotations

import dataclasses


def measured() -> list[dict]:
    """Records of all comparisons, made up: the one-sided version is the slowest."""
    from haloscope_studies.schroeter2021 import study
    from test_schroeter import made_up

    options = dataclasses.replace(study.DEFAULTS["quick"], cores=2)
    return made_up({"p2p": [1.0, 1.0], "rma": [1.2, 1.2], "shared": [0.9, 0.9]}, options)


WRITERS = {
    "schroeter2021": (("study", "schroeter2021", "--quick", "--from", "r.jsonl"), ("r.svg", "r.png"), measured),
    "jobs": (
        ("study", "schroeter2021", "--slurm", "j"),
        ("j/submit.sh", "j/schroeter2021-1x4.sbatch", "j/schroeter2021-1x4.requests.jsonl"),
    ),
}
RESUMED = {
    "precision": ("run", "poisson2d", "--cells", 31, "--set", "precision=1e-2", "--steps", 1000, "--repetitions", 1)
}
FUZZED = {"poisson2d": {"app": "poisson2d", "cells": [64, 64], "ranks": 4, "process_grid": "1x4"}}
PIPELINE = ("poisson2d", "--cells", "31x31", "--form", "gauss-seidel", "--schedule", "pipeline")
OF_THE_RANK_PROGRAM = {
    f"pipeline-{scheme}": (
        *PIPELINE,
        *("--steps", "6", "--repetitions", "1", "--set", "precision=1e-9", "--set", f"residual={scheme}"),
    )
    for scheme in ("chain", "chain-pscw", "all-to-last", "accumulate")
}
