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
