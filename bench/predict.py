"""Figure `predict`: how long whole processes take that predict or simulate a step of 2048 and of 100 000 ranks."""

import sys
from pathlib import Path

from processes import HALOSCOPE, report

ROOT = Path(__file__).resolve().parent.parent
PROFILE = str(ROOT / "results" / "accuracy" / "machine.json")  # as calibrated, with intervals
FEW_S, MANY_S = 1.0, 10.0  # bars of 2048 and of 100 000 ranks


def predict(ranks: int, *words: str) -> list[str]:
    """Return the command that predicts advection3d with walls in x and z, so that there are many classes of ranks."""
    return [HALOSCOPE, "predict", "advection3d", "--ranks", str(ranks), "--periodic", "y", "--profile", PROFILE, *words]


def walltime(ranks: int) -> None:
    """Predict the longest walltime of any rank in a run of the 2017 study's application on its own cluster."""
    from haloscope import bridge
    from haloscope.model import placement, profile
    from haloscope.studies.davis2017.replay import hydra_runs
    from haloscope.studies.davis2017.replay import walltime as model

    cells = (5000,) * 3
    places = placement.place("fill", ranks, 2, 6)
    run = model.Run(cells, bridge.process_grid("prime-factors", ranks, cells), places, hydra_runs.iterations(100))
    model.worst(hydra_runs.validated(), profile.load("minerva"), run)


UNEVEN = ("--cells", "1111x1001x999")
IN_TURN = ("--cells", "420", "--strategy", "direct/p2p", "--mapping", "round-robin")
SIMULATED = [
    HALOSCOPE,
    "simulate",
    "advection3d",
    "--cells",
    "1600x1600x1280",
    "--ranks",
    "100000",
    "--process-grid",
    "50x50x40",
    "--steps",
    "2",
    "--noise",
    "1%",
    "--profile",
    PROFILE,
]
OWN = [sys.executable, __file__, "--walltime"]
CASES = {
    "2048 ranks, ordered": (predict(2048, *UNEVEN), FEW_S),
    "2048 ranks, direct, dealt to the nodes in turn": (predict(2048, *IN_TURN), FEW_S),
    "100 000 ranks, ordered": (predict(100_000, *UNEVEN), MANY_S),
    "100 000 ranks, direct": (predict(100_000, *UNEVEN, "--strategy", "direct/p2p"), MANY_S),
    "walltime of the 2017 study, 2048 ranks": ([*OWN, "2048"], FEW_S),
    "walltime of the 2017 study, 100 000 ranks": ([*OWN, "100000"], MANY_S),
    "two simulated steps, 100 000 ranks": (SIMULATED, MANY_S),
}

if __name__ == "__main__":
    if "--walltime" in sys.argv:
        walltime(int(sys.argv[-1]))
    else:
        report("predict", CASES)
