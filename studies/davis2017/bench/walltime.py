"""Cases of figure `predict`: the time of a whole process that predicts the longest walltime of any rank."""

import sys
from pathlib import Path

from haloscope import bridge
from haloscope.model import placement, profile
from haloscope_studies.davis2017.replay import hydra_runs
from haloscope_studies.davis2017.replay import walltime as model

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench"))

from processes import report  # found by the line above

FEW_S, MANY_S = 1.0, 10.0  # bars of 2048 and of 100 000 ranks


def walltime(ranks: int) -> None:
    """Predict the longest walltime of any rank in a run of the study's application on the study's cluster."""
    cells = (5000,) * 3
    places = placement.place("fill", ranks, 2, 6)
    run = model.Run(cells, bridge.process_grid("prime-factors", ranks, cells), places, hydra_runs.iterations(100))
    model.worst(hydra_runs.validated(), profile.load("minerva"), run)


OWN = [sys.executable, __file__, "--walltime"]
CASES = {
    "walltime of the 2017 study, 2048 ranks": ([*OWN, "2048"], FEW_S),
    "walltime of the 2017 study, 100 000 ranks": ([*OWN, "100000"], MANY_S),
}

if __name__ == "__main__":
    if "--walltime" in sys.argv:
        walltime(int(sys.argv[-1]))
    else:
        report("predict", CASES)
