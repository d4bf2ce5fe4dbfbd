"""Figure `python`: the overhead of a call of haloscope.Exchange, measured without halos to move."""

import json
import sys
import time

from mpi4py import MPI

import haloscope

CALLS = 20_000


def seconds_per_call(call) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS


def main() -> None:
    grid = haloscope.Grid(MPI.COMM_SELF, (128, 128, 128))
    halo = haloscope.Exchange(grid, grid.zeros(), strategy="ordered/p2p")

    def start_and_finish() -> None:
        halo.start()
        halo.finish()

    for name, call in {"call": halo, "start and finish": start_and_finish}.items():
        samples = [seconds_per_call(call) * 1e6 for _ in range(5 if "--quick" in sys.argv else 41)]
        case = {
            "figure": "python",
            "case": f"128^3 doubles, {name}",
            "a": "haloscope.Exchange",
            "value": "a",
            "unit": "us",
            "bar": 10,
            "direction": "<=",
            "samples_a": samples,
            "notes": "no neighbours: nothing moves",
        }
        print(json.dumps(case), flush=True)


if __name__ == "__main__":
    main()
