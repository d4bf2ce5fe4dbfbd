#!/usr/bin/env python3
"""Run all tests, slow ones included; continue interrupted runs; store the record.

usage: .venv/bin/python scripts/check_long.py [--keep | --since COMMIT] [WORDS FOR PYTEST...]

Each test's outcome is written to build/check-long.jsonl immediately. The next run on the same sources leaves out tests
that passed or were skipped; on other sources it starts again. With --keep it continues there as well, also from the
record of another machine, and the record counts the tests of each commit. With --since it does so too, but runs tests
again whose outcome is of an earlier commit than this one; the record keeps that outcome until then. So a run of hours
may be spread over days and machines. At the end, and after Ctrl-C, a run of all tests writes results/check-long.txt
(commit, date, machine, counts, failures, skipped tests with reasons, tests that have not run yet) and
results/check-long.xml (JUnit, for studies/coverage.py and --keep). The exit code is pytest's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
JOURNAL = ROOT / "build" / "check-long.jsonl"
RECORD = ROOT / "results" / "check-long.txt"
TESTS = ("tests", "studies")
OVER = ("passed", "skipped")
# A run ends when a process of its tests ends: a new process would begin with the same test.
SIDE_BY_SIDE = ["-p", "xdist", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]


def git(*words: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def state() -> str:
    """Return the commit, and a hash of the differences from it outside results/."""
    changed = git("diff", "HEAD", "--", ":!results")
    for name in git("ls-files", "--others", "--exclude-standard", "-z", "--", ":!results").split("\0")[:-1]:
        changed += name + hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
    commit = git("rev-parse", "--short=12", "HEAD").strip()
    return f"{commit}+{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else commit


def commits_since(commit: str) -> set[str]:
    """Return the short names of a commit and of those after it."""
    return set(git("rev-list", "--abbrev-commit", "--abbrev=12", "HEAD", f"^{commit}^@").split())


class Collection:
    """A pytest plugin that records the names of all tests, in order, and the words of the command that named them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.arguments: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items) -> None:
        """Record names and words."""
        self.names = [item.nodeid for item in items]
        self.arguments = config.args


class Journal:
    """A pytest plugin that records outcomes; tests run in other processes.

    outcomes: by test id, the recorded facts. wanted: ids of all tests, in order. interrupted: Ctrl-C was pressed.
    commits: those whose outcomes count; None: all.
    """

    def __init__(self, of: str, keep: bool, wanted: list[str], commits: set[str] | None = None) -> None:
        self.state = of
        self.commits = commits
        self.interrupted = False
        self.wanted = wanted
        self.begun: dict[str, dict] = {}
        JOURNAL.parent.mkdir(exist_ok=True)
        JOURNAL.touch()
        text = JOURNAL.read_text()
        if text and not text.endswith("\n"):  # a run was killed in the middle of a line
            JOURNAL.write_text(text := text[: text.rfind("\n") + 1])
        noted = {one["id"]: one for one in map(json.loads, text.splitlines())}
        for name, one in recorded().items() if keep else ():
            noted[name] = max(one, noted.get(name, one), key=lambda known: known["at"])
        self.outcomes: dict[str, dict] = {
            name: noted[name] for name in wanted if name in noted and (keep or noted[name]["state"] == of)
        }

    def left(self) -> list[str]:
        """Return the ids of the tests that are not over."""
        over = {name for name, one in self.outcomes.items() if one["outcome"] in OVER and self._counts(one["state"])}
        return [name for name in self.wanted if name not in over]

    def _counts(self, of: str) -> bool:
        return self.commits is None or of.partition("+")[0] in self.commits

    def interrupt(self, *_) -> None:
        """End the run: the handler of Ctrl-C."""
        self.interrupted = True
        raise KeyboardInterrupt

    def pytest_runtest_logreport(self, report) -> None:
        """Record the outcome of a test when its last phase is over, unless it was interrupted."""
        if self.interrupted:
            return
        one = self.begun.setdefault(
            report.nodeid,
            {
                "id": report.nodeid,
                "state": self.state,
                "outcome": "passed",
                "seconds": 0.0,
                "text": "",
                "at": int(time.time()),
            },
        )
        one["seconds"] = round(one["seconds"] + report.duration, 2)
        if report.outcome != "passed" and one["outcome"] != "failed":
            skipped = report.outcome == "skipped" and isinstance(report.longrepr, list | tuple)
            one |= {"outcome": report.outcome, "text": report.longrepr[2] if skipped else report.longreprtext}
        if report.when in ("setup", "call"):  # else it is over, or its process has ended
            return
        one["properties"] = list(report.user_properties)
        self.outcomes[report.nodeid] = self.begun.pop(report.nodeid)
        with JOURNAL.open("a") as file:
            file.write(json.dumps(one) + "\n")


def junit(journal: Journal) -> xml.ElementTree:
    """Return the report of all outcomes, each with its file and the state of the sources, without texts of failures."""
    suite = xml.Element("testsuite", name="check-long", tests=str(len(journal.outcomes)))
    for one in journal.outcomes.values():
        path, _, name = one["id"].partition("::")
        case = xml.SubElement(
            suite,
            "testcase",
            classname=path.removesuffix(".py").replace("/", "."),
            name=name,
            time=str(one["seconds"]),
            file=path,
            state=one["state"],
            at=str(one["at"]),
        )
        if one["properties"]:
            properties = xml.SubElement(case, "properties")
            for key, value in one["properties"]:
                xml.SubElement(properties, "property", name=key, value=str(value))
        if one["outcome"] == "failed":
            xml.SubElement(case, "failure")
        if one["outcome"] == "skipped":
            xml.SubElement(case, "skipped", message=one["text"])
    xml.indent(suite, "")
    return xml.ElementTree(suite)


def recorded() -> dict[str, dict]:
    """Return the outcomes in the report by test, in the form of the journal; none without a report.

    Skipped tests are left out: another machine may meet their requirements.
    """
    report = RECORD.with_suffix(".xml")
    cases = map(outcome_of, xml.parse(report).iter("testcase")) if report.exists() else ()
    return {one["id"]: one for one in cases if one["outcome"] != "skipped"}


def outcome_of(case: xml.Element) -> dict:
    """Return the contents of a test's element of the report."""
    skipped = case.find("skipped")
    return {
        "id": f"{case.get('file')}::{case.get('name')}",
        "state": case.get("state"),
        "at": int(case.get("at")),
        "outcome": "failed" if case.find("failure") is not None else "passed" if skipped is None else "skipped",
        "seconds": float(case.get("time")),
        "text": "" if skipped is None else skipped.get("message"),
        "properties": [(one.get("name"), one.get("value")) for one in case.iter("property")],
    }


def machine() -> str:
    """Return processor, cores and system."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def record(journal: Journal) -> str:
    """Return results/check-long.txt."""
    counts = Counter(one["outcome"] for one in journal.outcomes.values())
    not_run = [name for name in journal.wanted if name not in journal.outcomes]
    hours = sum(one["seconds"] for one in journal.outcomes.values()) / 3600
    lines = [
        f"commit {journal.state}, {time.strftime('%Y-%m-%d', time.gmtime())}, written on {machine()}",
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped, {len(not_run)} not run; "
        f"{hours:.1f} h",
    ]
    earlier = Counter(one["state"] for one in journal.outcomes.values() if one["state"] != journal.state)
    lines += [f"of them at commit {state}: {count}" for state, count in earlier.items()]
    reasons = defaultdict(list)
    for one in journal.outcomes.values():
        if one["outcome"] == "skipped":
            reasons[one["text"].removeprefix("Skipped: ")].append(one["id"])
        if one["outcome"] == "failed":
            lines.append(f"failed: {one['id']}")
    lines += [f"skipped {len(ids)}, first {ids[0]}: {why}" for why, ids in sorted(reasons.items())]
    files = Counter(name.partition("::")[0] for name in not_run)
    lines += [f"not run: {count} of {name}" for name, count in sorted(files.items())]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Run the tests and write the record."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--since", type=commits_since, metavar="COMMIT")
    options, words = parser.parse_known_args(words)
    tests = Collection()
    code = pytest.main(["-qq", "--collect-only", *(words or TESTS)], plugins=[tests])
    if code != pytest.ExitCode.OK or "--collect-only" in words:
        return int(code)
    journal = Journal(state(), options.keep or options.since is not None, tests.names, options.since)
    code = run(journal, [word for word in words if word not in tests.arguments])
    if not words:
        RECORD.write_text(record(journal))
        junit(journal).write(RECORD.with_suffix(".xml"), encoding="unicode")
    return int(code)


def run(journal: Journal, words: list[str]) -> int:
    """Run the remaining tests, three at a time."""
    if not (left := journal.left()):
        return pytest.ExitCode.OK
    names = JOURNAL.with_suffix(".txt")
    names.write_text("".join(f"{name}\n" for name in left))
    signal.signal(signal.SIGINT, journal.interrupt)
    return pytest.main(["-q", "-o", "timeout=3600", *SIDE_BY_SIDE, *words, f"@{names}"], plugins=[journal])


def run_in_checkout(words: list[str]) -> int:
    """Run the tests of the checkout, from any folder."""
    os.environ["HALOSCOPE_LONG"] = "1"
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))  # like `python -m pytest`: tests import packages of the checkout
    return main(words)


if __name__ == "__main__":
    sys.exit(run_in_checkout(sys.argv[1:]))
