"""Figure `plan`: wall time of the whole process `haloscope plan ... --ranks 2048`, and of its start-up."""

from processes import HALOSCOPE, report

PLAN = [HALOSCOPE, "plan", "advection3d", "--cells", "420x420x420", "--ranks", "2048", "--strategy"]
CASES = {
    "2048 ranks, 3D": ([*PLAN, "ordered/p2p"], 1.0),
    "2048 ranks, 3D, 26 messages a rank": ([*PLAN, "direct/p2p"], 1.0),
    "start-up alone, --help": ([HALOSCOPE, "--help"], 0.3),
}

if __name__ == "__main__":
    report("plan", CASES)
