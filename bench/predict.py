"""Figure `predict`: wall time of whole processes that predict or simulate a step of 2048 and of 100 000 ranks."""

from pathlib import Path

from processes import HALOSCOPE, report

ROOT = Path(__file__).resolve().parent.parent
PROFILE = str(ROOT / "results" / "accuracy" / "machine.json.xz")  # as calibrated, with intervals
FEW_S, MANY_S = 1.0, 10.0  # bars of 2048 and of 100 000 ranks


def predict(ranks: int, *words: str) -> list[str]:
    """Return the command that predicts advection3d with walls in x and z, for a large number of rank classes."""
    return [HALOSCOPE, "predict", "advection3d", "--ranks", str(ranks), "--periodic", "y", "--profile", PROFILE, *words]


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
CASES = {
    "2048 ranks, ordered": (predict(2048, *UNEVEN), FEW_S),
    "2048 ranks, direct, dealt to the nodes in turn": (predict(2048, *IN_TURN), FEW_S),
    "100 000 ranks, ordered": (predict(100_000, *UNEVEN), MANY_S),
    "100 000 ranks, direct": (predict(100_000, *UNEVEN, "--strategy", "direct/p2p"), MANY_S),
    "two simulated steps, 100 000 ranks": (SIMULATED, MANY_S),
}

if __name__ == "__main__":
    report("predict", CASES)
