#!/usr/bin/env python3
"""Measure a device: `bench/gpu.py`, one command on a machine that has a device and Python and no network.

`bench/gpu.py --carry`, on a machine with nvcc and a network, collects the dependencies that such a machine lacks in
build/carry: both programs, MPICH, headers and the points of a calibration. Without them, the programs are built on the
machine with the device.

A run has three stages, each for a command of ten minutes. `smoke` measures one figure of every kernel, and checks every
transport and schedule byte for byte against the CPU's reference. `bars` measures the cases with an expected result.
`depth` measures the calibration and steps for its validation, checks every configuration, searches for memory faults,
and profiles kernels. Kernels come first because they need no MPI. Every result is written to the output folder
immediately. A case that crashes or takes too long affects only itself. `--resume` continues after an earlier command,
however it ended.

Afterwards, on any machine, `haloscope calibrate --from FOLDER/calibration.jsonl -o gpu.json` fits the profile, and
`haloscope validate FOLDER/steps.jsonl --profile gpu.json` reports its error for steps that the fit has not seen.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from gpu_build import (
    ROOT,
    Programs,
    ask_device,
    calibration,
    carry,
    check_device,
    find_programs,
    finish_build,
    mpi_library,
    packages,
)
from gpu_cases import blocks, first_of_each, line, steps_of, verification, waits_on_the_device
from gpu_ranks import UNAVAILABLE, Ranks, SharedDevice, given_up
from gpu_run import Deadline, Journal, Log, Trouble, end_leftovers, outcome, run
from gpu_table import table

JOURNALS = {"kernels": "case", "verified": "id", "steps": "id", "blocks": "id", "calibration": "id", "checks": "case"}
STAGES = {"smoke": 4.0, "bars": 9.0, "depth": 9.0}  # minutes
KERNEL_S = 40  # a kernel's case that takes longer is terminated
SHOWN_BAD = 10  # most failed cases that are printed per file; the file has all
TEST_S = 120  # a test program that takes longer is terminated
CARD = (
    "name",
    "driver_version",
    "clocks.sm",
    "clocks.mem",
    "power.draw",
    "power.limit",
    "temperature.gpu",
    "clocks_event_reasons.active",
    "mig.mode.current",
    "compute_mode",
    "utilization.gpu",
    "memory.used",
)
PROFILED = 8  # number of best kernels that are profiled


class Session:
    """One command: its results, its programs, and its requests."""

    def __init__(self, options: argparse.Namespace, target: Path, log: Log, deadline: Deadline, stack: ExitStack):
        self.options, self.target, self.log, self.deadline, self.stack = options, target, log, deadline, stack
        self.device, self.small = options.device, options.small or options.device == "host"
        self.journals = {name: Journal(target / f"{name}.jsonl", key) for name, key in JOURNALS.items()}
        if options.retry:
            for journal in (journal for journal in self.journals.values() if journal.lines):
                journal.drop(lambda found: outcome(found) == "failed")
        self.wanted: dict[str, set[str]] = {name: set() for name in JOURNALS}
        self.requested: list[tuple[str, int, list[dict]]] = []
        self.programs: Programs
        self.faults: list[str] = []
        self._ranks: Ranks | None = None
        self._tried = False

    # ---- the stages --------------------------------------------------------------------------------------------------

    def smoke(self) -> None:
        """Run the smoke stage: a figure of every kernel, tests, checks and a step of each transport and schedule."""
        self.kernels("smoke")
        self.tests()
        for n in (1, 2):
            self.verify(n, first_of_each(verification(n, self.aware())))
        for n in (2, 1):
            self.steps("smoke", n)

    def bars(self) -> None:
        """Measure the cases with an expected result, then all other block shapes of kernels."""
        self.kernels("smoke")
        self.kernels("bars")
        for n in (2, 1):
            self.steps("bars", n)
        for part in (0.5, 1.0):  # when time is short, shapes of kernels are more valuable than the last exchanges
            for n in (2, 1):
                self.lists("blocks", n, blocks(n, self.small, self.device), self.deadline.share(part))
            self.kernels("depth")

    def depth(self) -> None:
        """Measure the points that predictions need, and check all configurations."""
        for n, points in calibration(self.device).items():
            self.lists("calibration", n, points, self.deadline.share(0.5))
        self.memory_faults()
        self.profiles()
        for n in (1, 2) if self.small else (2, 4, 1):
            self.steps("depth", n)
        for n in (1, 2, 4) if self.small else (1, 2, 8):
            self.verify(n, verification(n, self.aware()))

    # ---- parts of the stages -----------------------------------------------------------------------------------------

    def find(self) -> None:
        """Find programs and device. Raises Trouble for a folder with results of another device."""
        self.programs = find_programs(self.options.build, self.device, self.log, self.deadline, self.target)
        answer = ask_device(self.programs.kernels, self.device, self.target, self.deadline)
        found = next(iter(answer.lines()), None)
        if found is None:
            raise Trouble(f"the device did not report its name: {answer.reason()}")
        kept = self.journals["kernels"].done.get("device")
        if kept and kept["device"] != found["device"]:
            raise Trouble(
                f"{self.target} has results of {kept['device']}, and here is {found['device']}; name another folder"
            )
        if not kept:
            self.journals["kernels"].append(found)
        self.log.say(f"device: {found['device']}")

    def kernels(self, stage: str) -> None:
        """Measure the kernels of a stage, each case in a separate process."""
        journal, words = self.journals["kernels"], [str(self.programs.kernels), "--device", self.device]
        words += ["--small"] if self.small else []
        names = self.cases([*words, "--list"], stage)
        names = names if stage == "smoke" else names[:: self.options.every]
        self.wanted["kernels"].update(names)
        for name in (name for name in names if name not in journal.done):
            if self.deadline.left() <= 0:
                break
            case = [*words, "--case", name, "--output", journal.path]
            ended = run(case, KERNEL_S, {}, self.target, until=self.deadline)
            journal.refresh()
            if name in journal.done or self.deadline.has_cut(ended):
                continue
            journal.append({"case": name, "error": ended.reason()})
            self.log.say(f"{name}: {ended.reason()}")
            check_device(ask_device(self.programs.kernels, self.device, self.target, self.deadline), self.deadline)
        self.log.say(f"kernels of stage {stage}: {sum(name in journal.done for name in names)} of {len(names)}")

    def cases(self, words: list[str], stage: str) -> list[str]:
        """Return the names of a stage's kernels."""
        listed = run(words, 20, {}, self.target, until=self.deadline)
        if listed.code != 0:
            self.faults.append(f"kernels of stage {stage} could not be listed: {listed.reason()}")
            self.log.say(self.faults[-1])
        return [found["case"] for found in listed.lines() if found["stage"] == stage]

    def ranks(self) -> Ranks | None:
        """Return the launcher of ranks, with an environment that works here; None without any."""
        if not self._tried and self.deadline.left() > 0:
            self._tried = True
            finish_build(self.programs, self.log, self.deadline, self.target)
            if self.programs.rank and self.deadline.left() > 0:
                self._ranks = self.start_ranks()
        return self._ranks

    def start_ranks(self) -> Ranks | None:
        """Start ranks, by an MPS daemon if available; it ends with the run. Kernels are measured outside of it."""
        shared = SharedDevice(self.programs, self.device, self.log, self.deadline, self.target)
        self.stack.callback(shared.end)
        shared.start()
        ranks = Ranks(self.programs, self.device, self.log, self.deadline, self.target, shared)
        if fault := ranks.try_out():
            self.faults.append("two ranks do not run")
            self.log.say(f"two ranks do not run: {fault}")
            return None
        self.log.say(f"two ranks run; MPS: {'yes' if shared.environment else 'no'}")
        return ranks

    def aware(self) -> bool:
        """Return whether MPI accepts device memory. The answer is recorded once."""
        journal = self.journals["checks"]
        ranks = self.ranks()
        if ranks and "device-aware" not in journal.done and self.deadline.left() > 0:
            answer = ranks.aware()
            if answer is not None:
                journal.append({"case": "device-aware", "answer": answer})
        return bool(journal.done.get("device-aware", {}).get("answer"))

    def lists(self, name: str, n: int, lines: Sequence[dict], until: Deadline | None = None) -> None:
        """Measure some requests on n ranks."""
        lines = list(lines)[:: self.options.every]
        journal, ranks = self.journals[name], self.ranks()
        self.wanted[name].update(request["id"] for request in lines)
        self.requested.append((name, n, lines))
        if ranks:
            ranks.run(n, lines, journal, until or self.deadline)
        self.log.say(f"{name}, {n} ranks: {sum(request['id'] in journal.done for request in lines)} of {len(lines)}")

    def rest(self) -> None:
        """Measure the remaining requests at the end, including requests of ways that were given up."""
        for name, n, lines in self.requested:
            if self._ranks:
                self._ranks.run(n, lines, self.journals[name], self.deadline, every=True)

    def verify(self, n: int, requests: Sequence) -> None:
        """Check some choices against the CPU's reference."""
        self.lists("verified", n, [line(request, n, self.device) for request in requests])

    def steps(self, stage: str, n: int) -> None:
        """Measure whole steps."""
        self.lists("steps", n, [line(r, n, self.device) for r in steps_of(stage, n, self.small, self.aware())])

    def tests(self) -> None:
        """Run the carried tests of devices, and exchanges of CuPy's and PyTorch's arrays."""
        if self.small:
            return
        if self.programs.tests:
            self.test("test_device", [self.programs.tests, "--gtest_brief=1"], {})
        ranks, journal, name = self.ranks(), self.journals["checks"], "arrays of Python"
        if not (ranks and self.programs.library):
            return
        if not packages().exists():
            version = packages().name.partition("-")[2]
            journal.append(
                {"case": name, "refused": f"nothing was carried for this Python; add --python {version} there"}
            )
            return
        there = {
            "HALOSCOPE_BUILD": str(self.programs.library.parent),
            "MPI4PY_LIBMPI": str(mpi_library()),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(packages())]),
        }
        words = [self.programs.mpiexec, "-n", "2", sys.executable, ROOT / "tests/bindings/ranks/card_exchanges.py"]
        self.test(name, words, ranks.environment | there)

    def test(self, name: str, words: Sequence[str | Path], environment: dict[str, str]) -> None:
        """Run a test program once. Its code 3 means that it cannot run here."""
        journal = self.journals["checks"]
        if name in journal.done or self.deadline.left() <= 0:
            return
        ended = run(words, TEST_S, environment, self.target, until=self.deadline)
        if self.deadline.has_cut(ended):
            return
        self.log.keep(ended.output)
        key = {0: "found", UNAVAILABLE: "refused"}.get(ended.code, "error")
        journal.append({"case": name, key: ended.reason()})
        self.log.say(f"{name}: {ended.reason()[-300:]}")

    def look_at_the_card(self, stage: str) -> None:
        """Record the GPU's clocks, power, driver and modes, which are necessary for judging shares later."""
        tool = shutil.which("nvidia-smi")
        if tool and self.device == "cuda":
            ask = [tool, f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"]
            ended = run(ask, 20, {}, self.target, until=self.deadline)
            values = ended.output.strip().split(", ")
            state = dict(zip(CARD, values, strict=False)) if ended.code == 0 else {"said": ended.reason()}
            self.journals["checks"].append({"case": f"card before {stage}", "state": state})
            self.log.keep(f"card before {stage}: {state}")

    def memory_faults(self) -> None:
        """Record the findings of compute-sanitizer in some configurations."""
        journal, ranks = self.journals["checks"], self.ranks()
        if ranks and "memory" not in journal.done and self.deadline.left() > 0:
            requests = [r for r in verification(2, False) if not waits_on_the_device(r["strategy"])]
            lines = [line(request, 2, self.device) for request in requests[::30]]
            found = ranks.memory_faults(lines)
            if found:
                journal.append({"case": "memory"} | found)
            self.log.say(f"compute-sanitizer: {' '.join(found.values()) if found else 'its time was up'}")

    def profiles(self) -> None:
        """Record the raw output of Nsight Compute for the best kernels."""
        journal, tool = self.journals["checks"], shutil.which("ncu")
        if tool is None or self.device != "cuda":
            return
        measured = [k for k in self.journals["kernels"].lines if k.get("figure") == "gpu-sweep" and "seconds" in k]
        best = sorted(measured, key=lambda k: -k["gb_per_s"])[:PROFILED]
        for name in (k["case"] for k in best):
            if f"profile {name}" in journal.done or self.deadline.left() <= 0:
                continue
            words = [
                tool,
                "--csv",
                "--clock-control",
                "none",
                "--kernel-name",
                "regex:run_body",
                "--launch-count",
                "1",
                self.programs.kernels,
                "--device",
                self.device,
                "--case",
                name,
                "--once",
            ]
            ended = run(words, 60, {}, self.target, until=self.deadline)
            if not self.deadline.has_cut(ended):
                journal.append({"case": f"profile {name}", "code": ended.code, "output": ended.output})

    # ---- the end -----------------------------------------------------------------------------------------------------

    def write_table(self) -> list[str]:
        """Write and return the table of all results so far."""
        kernels, steps, exchanged = (self.journals[name].lines for name in ("kernels", "steps", "blocks"))
        lines = table(kernels, steps, exchanged)
        (self.target / "table.md").write_text("\n".join(lines) + "\n")
        return lines

    def summary(self) -> bool:
        """Print the outcomes of all cases; return whether all requested cases were done and correct."""
        good = not self.faults
        for name, wanted in self.wanted.items():
            journal = self.journals[name]
            found = Counter(outcome(found, name == "verified") for key, found in journal.done.items() if key in wanted)
            found["left"] = sum(key not in journal.done for key in wanted)
            if wanted:
                counts = ", ".join(f"{count} {result}" for result, count in found.items() if count)
                self.log.say(f"{name}: {counts} (of {len(wanted)})")
            bad = [r for r in journal.lines if outcome(r, name == "verified") in ("wrong", "failed")]
            for record in bad[:SHOWN_BAD]:
                self.log.say(f"  {outcome(record, name == 'verified')}: {describe(record)}")
            for lost in given_up(journal) if JOURNALS[name] == "id" else ():
                self.log.say(f"  never worked: {lost}")
            good = good and not (found["wrong"] or found["failed"] or found["left"])
        return good and not any("error" in check for check in self.journals["checks"].lines)


def describe(record: dict) -> str:
    """Return a description of a failed case, on one line."""
    why = record.get("error") or record.get("reason") or record.get("verification", "")
    return f"{record.get('case') or record.get('id')}: {' '.join(str(why).split())[:300]}"


def take_over(options: argparse.Namespace, target: Path) -> None:
    """Adopt results of earlier commands: from the target, or from the folder of --resume.

    Raises Trouble for a target with results without --resume, and for a folder without results.
    """
    there = any((target / f"{name}.jsonl").exists() for name in JOURNALS)
    if there and options.resume is None:
        raise Trouble(f"{target} has results; continue with --resume, or name another folder with --output")
    if options.resume and not there:
        earlier = Path(options.resume)
        if not any((earlier / f"{name}.jsonl").exists() for name in JOURNALS):
            raise Trouble(f"{earlier} has no results to resume; pass the folder of an earlier run")
        target.mkdir(parents=True, exist_ok=True)
        for file in earlier.glob("*.jsonl"):
            shutil.copy(file, target)


def measure(options: argparse.Namespace) -> int:
    """Run the stages. Return 0 if all cases were done and correct, 1 if not, 3 without a device."""
    stages = list(STAGES) if options.stage == "all" else [options.stage]
    deadline = Deadline(60 * (options.minutes or sum(STAGES[stage] for stage in stages)))
    target = Path(options.output or os.environ.get("OUT") or ROOT / "results" / "gpu" / options.device).resolve()
    try:
        take_over(options, target)
    except Trouble as trouble:
        print(f"gpu.py: {trouble}", file=sys.stderr)
        return 2
    log = Log(target / "log.txt")
    end_leftovers(target)
    with ExitStack() as stack:
        stack.callback(end_leftovers, target)  # for SIGTERM while a process starts: nothing else would end it
        session = Session(options, target, log, deadline, stack)
        stack.callback(session.write_table)  # also at SIGTERM
        try:
            session.find()
            for stage in stages:
                session.look_at_the_card(stage)
                getattr(session, stage)()
                session.write_table()
            session.rest()
        except Trouble as trouble:
            log.say(str(trouble))
            session.faults.append(str(trouble))
        print("\n".join(session.write_table()))
        good = session.summary()
        log.say("done" if good else "some cases are missing or wrong; --resume continues with the missing ones")
        if not session.journals["kernels"].done:
            return 3
    return 0 if good else 1


def main() -> int:
    """Parse the command line and run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--carry", action="store_true", help="collect what a machine without network lacks, and stop")
    parser.add_argument(
        "--python", default="", metavar="VERSION", help="with --carry: the Python there (default: this one's)"
    )
    parser.add_argument("--device", default="cuda", choices=("cuda", "hip", "host"), help="back end (default: cuda)")
    parser.add_argument("--stage", default="all", choices=("all", *STAGES), help="stage to run (default: all)")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="continue with the results in the output folder, or in the folder of an earlier run",
    )
    parser.add_argument("--retry", action="store_true", help="with --resume: run failed cases again")
    parser.add_argument("--small", action="store_true", help="small grids; always with --device host")
    parser.add_argument("--output", default="", help="folder of the results (default: $OUT, or results/gpu/DEVICE)")
    parser.add_argument("--build", default="", help="folder of a finished build to use; its MPI must be on PATH")
    parser.add_argument(
        "--every", type=int, default=1, help="except for the smoke kernels, run only each N-th case (default: all)"
    )
    parser.add_argument(
        "--minutes", type=float, default=0, help="end after this time, even with cases left (default: by stage)"
    )
    options = parser.parse_args()
    if options.carry:
        try:
            carry(options.device, python=options.python)
        except Trouble as trouble:
            print(f"gpu.py: {trouble}", file=sys.stderr)
            return 1
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all started processes end too
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
