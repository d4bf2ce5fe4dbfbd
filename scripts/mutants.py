#!/usr/bin/env python3
"""Change single lines of plans, packing, schedules and the model, and record whether tests fail.

usage: .venv/bin/python scripts/mutants.py [--count N] [--seed S] [--quick] [--rows]

The script works on a copy of the last commit in build/mutants, with a build there: it changes a line of the copy,
builds, and runs tests until one fails. Each mutant is a line of results/mutants.jsonl: `killed` by a test or a time
limit, `survived`, `equivalent` (the same machine code, or a reason in tests/mutants.toml), or `does not compile`. The
next run leaves out what the file has, but for survivors. Quick tests judge all mutants first, then all tests judge the
survivors, not with --quick. After a change of the sources, begin with an empty file. --rows makes the changes of
tests/mutants.toml instead, each of which breaks a row of a study's checklist: the test of the row must fail
(results/mutants-rows.jsonl). The exit code is 1 if a mutant survived.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from changed_lines import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE, BUILD, PACKAGES = (ROOT / "build/mutants" / name for name in ("source", "build", "packages"))
RECORD, ROWS = ROOT / "results/mutants.jsonl", ROOT / "results/mutants-rows.jsonl"
TABLE = ROOT / "tests/mutants.toml"
AREAS = {
    "plan": ("src/library/haloscope/core/plan*.cpp", "src/library/haloscope/core/layout.cpp"),
    "pack": ("src/library/haloscope/pack/*.cpp",),
    "schedules": ("src/library/haloscope/schedule/*.cpp",),
    "model": ("src/model/haloscope/*/*.cpp",),
}
FLAGS = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=1"]  # a changed line compiles one source
FLAGS += ["-DHALOSCOPE_AVX=OFF", "-DHALOSCOPE_BENCH=OFF", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold"]
OBJECTS = [BUILD / f"CMakeFiles/haloscope_{name}.dir" for name in ("core", "model")]  # of the areas
LIBRARIES = [BUILD / f"libhaloscope_{name}.a" for name in ("core", "model")]
PYTHON = str(ROOT / ".venv/bin/python")
SLOWEST = "CheckSteps.Acoustics*:Schedules.OnADevice*:Reordered.*"
SLOW = "*NeverRead*:Panels.PointsBeyond*:CheckSteps.*:Fold.EachCopy*:Refetch.Lines*:BlockPlan.Moves*"
PLANS = ["bridge/test_plan_properties.py", "bridge/test_plan_classes.py"]  # of tests/python/, without ranks
PROGRAMS = ["bridge/test_program_properties.py", "bridge/test_program_work.py"]
PREDICTIONS = ["model/test_predict.py", "model/test_placement.py", "model/test_refetch.py", "simulate/test_simulate.py"]
PREDICTIONS += ["model/test_device_model.py", "model/test_held_out.py", "bridge/test_bridge.py"]
PREDICTIONS += ["advice/test_advise.py", "advice/test_whatif.py", "advice/test_best.py"]
WITHOUT_RANKS = ["-k", "not calibrat and not example_of_the_page"]
QUICK = "quick tests alone"  # what survivors have been judged by before the long tests
ADDRESS_SPACE = 8 << 30  # of a test: a mutant may allocate without an end


@dataclass(frozen=True)
class Step:
    """Tests that run in one command, and the target of the build that they need. long: for survivors of the others."""

    target: str
    command: Sequence[str]
    areas: Sequence[str] = tuple(AREAS)
    long: bool = True


def gtest(program: str, tests: str, ranks: int = 0) -> list[str]:
    """Return the command of some tests of a GoogleTest program, started by mpiexec if it has ranks."""
    launcher = [str(ROOT / ".venv/bin/mpiexec"), "-n", str(ranks)] if ranks else []
    return [*launcher, str(BUILD / "tests" / program), f"--gtest_filter={tests}", "--gtest_fail_fast"]


def pytest(*tests: str) -> list[str]:
    """Return the command of some tests of pytest, with the same examples each time."""
    return [
        PYTHON,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        "not long",
        "--hypothesis-seed=0",
        "-p",
        "no:cacheprovider",
        *tests,
    ]


STEPS = [
    Step("test_pack", gtest("test_pack", "*"), ["pack"], long=False),
    Step("test_core", gtest("test_core", f"-{SLOWEST}:{SLOW}"), long=False),
    Step("test_core", gtest("test_core", f"{SLOW}-{SLOWEST}"), ["plan", "schedules"]),
    Step("haloscope_bridge", pytest(*(f"tests/python/{name}" for name in PLANS)), ["plan"]),
    Step("haloscope_bridge", pytest(*(f"tests/python/{name}" for name in PROGRAMS)), ["schedules"]),
    Step("haloscope_bridge", pytest(*(f"tests/python/{name}" for name in PREDICTIONS), *WITHOUT_RANKS), ["model"]),
    Step("test_core", gtest("test_core", SLOWEST), ["plan", "schedules"]),
]


def place(mutant: Mutant) -> int:
    """Return the index of the line in the copy of the source. Raises ValueError unless it is there exactly once."""
    lines = [line.strip() for line in (SOURCE / mutant.file).read_text().split("\n")]
    if mutant.line and lines[mutant.line - 1] == mutant.before:
        return mutant.line - 1
    if lines.count(mutant.before) != 1:
        raise ValueError(f"{mutant.file} has not one line `{mutant.before}`; change the table, or draw mutants again")
    return lines.index(mutant.before)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Change the line in the copy of the sources, and back at the end."""
    path, at = SOURCE / mutant.file, place(mutant)
    text = path.read_text()
    lines = text.split("\n")
    lines[at] = re.match(r"\s*", lines[at])[0] + mutant.after
    path.write_text("\n".join(lines))
    try:
        yield
    finally:
        path.write_text(text)


def sample(candidates: dict[str, list[Mutant]], count: int, rng: random.Random) -> list[Mutant]:
    """Return about `count` mutants, at most one of a line: each file's share is its share of all candidates, or one."""
    total, drawn = sum(map(len, candidates.values())), []
    for _, found in sorted(candidates.items()):
        lines = {one.line: one for one in rng.sample(found, len(found))}
        share = max(1, round(count * len(found) / total)) if found else 0
        drawn += rng.sample(list(lines.values()), min(share, len(lines)))
    return drawn


def draw(count: int, seed: int) -> list[Mutant]:
    """Return mutants, equally many of each area, in random order."""
    rng, drawn = random.Random(seed), []
    for patterns in AREAS.values():
        files = sorted(str(path.relative_to(SOURCE)) for pattern in patterns for path in SOURCE.glob(pattern))
        candidates = {name: mutants_of(name, (SOURCE / name).read_text()) for name in files}
        drawn += sample(candidates, math.ceil(count / len(AREAS)), rng)
    rng.shuffle(drawn)
    return drawn


def area_of(file: str) -> str:
    """Return the area of a source, "" for another."""
    return next((area for area, names in AREAS.items() if any(Path(file).match(name) for name in names)), "")


def refresh() -> str:
    """Bring the copy of the sources to the last commit, and return its name. Equal files keep their times."""
    if not SOURCE.exists():
        subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(SOURCE)], check=True)
    subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=SOURCE, check=True)
    subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=SOURCE, check=False)  # mutants have other times
    subprocess.run(["git", "checkout", "-qf", "--detach", "FETCH_HEAD"], cwd=SOURCE, check=True)
    PACKAGES.mkdir(exist_ok=True)
    for path in ROOT.glob(".venv/lib/python*/site-packages/*editable*.py"):  # so that Python imports from the copy
        (PACKAGES / path.name).write_text(path.read_text().replace(f"{ROOT}/", f"{SOURCE}/"))
    if not (BUILD / "build.ninja").exists():
        call(["cmake", "-G", "Ninja", "-S", str(SOURCE), "-B", str(BUILD), *FLAGS], 600)
    named = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(named, cwd=SOURCE, check=True, capture_output=True, text=True).stdout.strip()


def call(command: Sequence[str], limit_s: float, cpu_s: float = 3600) -> tuple[int, str]:
    """Run a command in the copy; return its exit code and its output. Each process has a limit of CPU seconds, since
    other programs may run; the limit of the command in seconds is for processes that wait."""
    environment = os.environ | {
        "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(PACKAGES),
        "HALOSCOPE_BUILD": str(BUILD),
        "OMP_WAIT_POLICY": "passive",
    }
    shutil.rmtree(SOURCE / ".hypothesis", ignore_errors=True)  # examples that other mutants failed with
    child = subprocess.Popen(
        ["prlimit", f"--as={ADDRESS_SPACE}", f"--cpu={math.ceil(cpu_s)}", *command],
        cwd=SOURCE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=limit_s)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return -signal.SIGXCPU, child.communicate()[0]


def failing_test(code: int, output: str) -> str:
    """Return the test that failed, or that ran when the process ended or its time was over."""
    named = re.findall(r"\[  FAILED  \] (\S+?),? |^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    running = re.findall(r"\[ RUN      \] (\S+)", output)
    name = next((a or b for a, b in named), running[-1] if running else "start of the tests")
    return f"time limit in {name}" if abs(code) in (signal.SIGXCPU, 128 + signal.SIGXCPU) else name


def build(target: str) -> bool:
    """Build a target and return whether it compiled."""
    return call(["ninja", "-C", str(BUILD), "-j1", target], 900)[0] == 0


def machine_code() -> dict[Path, bytes]:
    """Return the object files of the areas."""
    return {path: path.read_bytes() for folder in OBJECTS for path in folder.rglob("*.o")}


@contextmanager
def rebuilt(mutant: Mutant, clean: dict[Path, bytes]) -> Iterator[None]:
    """Put back the object files that change, and the source's time, so that the next build compiles nothing for it."""
    source = SOURCE / mutant.file
    times = source.stat()
    yield
    for path, content in clean.items():
        if path.exists() and path.read_bytes() != content:
            built = path.stat()
            path.write_bytes(content)
            os.utime(path, ns=(built.st_atime_ns, built.st_mtime_ns))  # else ninja distrusts the list of its headers
    for library in LIBRARIES:
        library.unlink(missing_ok=True)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))


def cpu_seconds() -> float:
    """Return the CPU seconds of all ended children."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def clean_times(steps: Sequence[Step]) -> list[float]:
    """Run tests of the sources as they are; return CPU seconds by step. Raises RuntimeError if a test fails."""
    seconds = []
    for step in steps:
        if not build(step.target):
            raise RuntimeError(f"{step.target} does not compile; see ninja -C {BUILD} {step.target}")
        before = cpu_seconds()
        code, output = call(step.command, 1800)
        seconds.append(cpu_seconds() - before)
        if code:
            raise RuntimeError(f"{failing_test(code, output)} fails without a mutant:\n{output[-3000:]}")
    return seconds


def judge(area: str, clean: dict[Path, bytes], steps: Sequence[Step], seconds: Sequence[float]) -> tuple[str, str]:
    """Return the verdict on a mutant that is applied, and the test or reason behind it."""
    built = ""
    for step, usual in zip(steps, seconds, strict=True):
        if area not in step.areas:
            continue
        if step.target != built and not build(step.target):
            return "does not compile", ""
        if not built and machine_code() == clean:
            return "equivalent", "same machine code"
        built = step.target
        code, output = call(step.command, 900, 10 + 5 * usual)
        if code:
            return "killed", failing_test(code, output)
    return "survived", "" if any(step.long for step in steps) else QUICK


def known_equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reasons why mutants change nothing that a caller could see, by file, line and changed line."""
    entries = tomllib.loads(TABLE.read_text()).get("equivalent", [])
    return {(one["file"], one["before"], one["after"]): one["reason"] for one in entries}


def read(path: Path) -> list[dict]:
    """Return the lines of a record."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(path: Path, lines: Sequence[dict]) -> None:
    """Write the lines of a record."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def cpu() -> str:
    """Return the model of the processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


def check_areas(commit: str, count: int, seed: int, again: bool) -> None:
    """Draw mutants and judge those that the record lacks, by quick tests; or, again, judge its survivors by all."""
    reasons, lines = known_equivalents(), read(RECORD)
    known = {(line["file"], line["line"], line["after"]) for line in lines}
    facts = {"verdict": "", "by": "", "commit": commit, "seed": seed, "cpu": cpu()}
    new = draw(count, seed) if not again else []
    lines += [vars(one) | facts for one in new if (one.file, one.line, one.after) not in known]
    steps = [step for step in STEPS if again or not step.long]
    seconds, clean = clean_times(steps), machine_code()
    for line in lines:
        if line["verdict"] not in ("", "survived" if again else ""):
            continue
        mutant = Mutant(*(line[name] for name in ("file", "line", "before", "after", "rule")))
        reason = reasons.get((mutant.file, mutant.before, mutant.after))
        if reason:
            line["verdict"], line["by"] = "equivalent", reason
        else:
            with rebuilt(mutant, clean), applied(mutant):
                line["verdict"], line["by"] = judge(area_of(mutant.file), clean, steps, seconds)
            line["commit"] = commit
        write(RECORD, [one for one in lines if one["verdict"]])
        print(f"{line['verdict']}: {mutant.file}:{mutant.line}: {mutant.after} ({line['by']})", flush=True)


def command_of(row: dict) -> list[str]:
    """Return the command of the test of a row."""
    return gtest(row["program"], row["test"], row.get("ranks", 0)) if "program" in row else pytest(row["test"])


def check_rows(commit: str) -> None:
    """Make the changes of the table that the record lacks, each after a run of its test without it."""
    known = {(one["file"], one["before"], one["after"], one["test"]): one for one in read(ROWS)}
    rows = tomllib.loads(TABLE.read_text())["row"]
    lines = [known.get((row["file"], row["before"], row["after"], row["test"]), row) for row in rows]
    for number, row in enumerate(rows):
        if lines[number].get("verdict") != "killed":
            lines[number] = row | {"verdict": judge_row(row), "commit": commit, "cpu": cpu()}
            print(f"{lines[number]['verdict']}: {row['ids']} {row['file']}: {row['after']}", flush=True)
        write(ROWS, [line for line in lines if "verdict" in line])


def judge_row(row: dict) -> str:
    """Return the verdict on a row's change, or that its test fails without it."""
    python = row["file"].endswith(".py")
    target = row.get("program", "haloscope_bridge" if python else "haloscope_installed")
    if not build(target) or call(command_of(row), 600)[0]:
        return "fails without the change"
    with applied(Mutant(row["file"], 0, row["before"], row["after"])):
        if not build(target):
            return "does not compile"
        return "killed" if call(command_of(row), 600)[0] else "survived"


def main() -> int:
    """Judge the mutants of the areas, or of the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=228, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--quick", action="store_true", help="no long tests for survivors")
    parser.add_argument("--rows", action="store_true", help="make the changes of tests/mutants.toml instead")
    asked = parser.parse_args()
    commit = refresh()
    if asked.rows:
        check_rows(commit)
    else:
        check_areas(commit, asked.count, asked.seed, again=False)
        if not asked.quick:
            check_areas(commit, asked.count, asked.seed, again=True)
    return int(any(line["verdict"] == "survived" for line in read(ROWS if asked.rows else RECORD)))


if __name__ == "__main__":
    raise SystemExit(main())
