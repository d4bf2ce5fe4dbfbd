"""Short exchanges by ordinary launches, judged by their verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from haloscope import bridge, records, scratch
from haloscope.measure import launch, request
from haloscope.measure.doctor import check
from haloscope.measure.doctor.check import BROKEN, OK, Check, size_of
from haloscope.records.text import count_of

BLOCKS = (16, 128)  # cells per dimension of a rank: faces of 2 and 128 KiB, an eager and a rendezvous message


@dataclass(frozen=True)
class Runs:
    """Requested short runs, their records, and the problem that ended them early."""

    requests: Sequence[request.Request]
    found: Sequence[Mapping]
    problem: str = ""


def verified_requests(ranks: int, strategy: str, device: str = "") -> list[request.Request]:
    """Return short runs with small and with large messages, each compared with `reference`."""
    split = bridge.process_grid("cubic", ranks, (ranks,) * 3)
    grid = "x".join(map(str, split))
    of_all = bridge.Choice("laplace3d", (), ranks, strategy=strategy, device=device, process_grid=grid)
    choices = [replace(of_all, cells=tuple(block * r for r in split)) for block in BLOCKS]
    return [request.Request.of(choice, steps=2, repetitions=1, warmup=0, verify=3) for choice in choices]


def verified_runs(ranks: int, strategy: str, device: str = "") -> Runs:
    """Run `verified_requests` in an ordinary launch."""
    requests = verified_requests(ranks, strategy, device)
    with scratch.folder() as folder:
        job = launch.Job(requests, folder / "records.jsonl", "doctor", limit_s=check.LIMIT_S)
        outcome = launch.run(job)
    problem = outcome.fault.reason if outcome.fault else ""
    if not problem and len(outcome.records) < len(requests):
        ended = f"mpiexec ended with code {outcome.returncode}: {outcome.last_words}"
        problem = "; ".join(outcome.messages) or ended
    return Runs(requests, outcome.records, problem)


def judge_runs(name: str, runs: Runs) -> Check:
    """Judge by the verification of the runs: every value must equal the value of `reference`, bit for bit."""
    measured = [record for record in runs.found if record["kind"] in records.MEASURED]
    wrong = [f"verification {r['verification']['status']}" for r in measured if r["verification"]["status"] != "passed"]
    wrong += [record["reason"] for record in runs.found if record["kind"] == "skipped"]
    again = f"haloscope run {' '.join(request.words_of(runs.requests[-1].choice))}"
    if runs.problem or wrong:
        text = runs.problem or "; ".join(dict.fromkeys(wrong))
        return Check(name, BROKEN, text, f"'{again}' repeats it; try another strategy, or the network's settings")
    counts = [r["counts"] for r in measured]
    sizes = [size_of(c["message_bytes"] / c["messages"]) for c in counts if c["messages"]]
    environment = measured[0]["environment"]
    nodes = count_of(len(records.hosts_of(measured[0])), "node")
    messages = f"messages of {' and '.join(sizes)}" if sizes else "no messages"
    device = f", {environment['device']['name']}" if "device" in environment else ""
    strategy, ranks = runs.requests[0].choice.strategy, count_of(runs.requests[0].ranks, "rank")
    return Check(name, OK, f"{strategy}: passed, {messages}, {ranks} on {nodes}{device}")
