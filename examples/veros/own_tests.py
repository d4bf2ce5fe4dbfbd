"""The distributed tests of Veros, each with the exchange of Veros, then with the exchange of this library.

pip install veros pytest 'PATH_OF_HALOSCOPE[exchange]'
git clone https://github.com/team-ocean/veros
python own_tests.py veros                   # further words go to pytest

The exit code is 0 if each test that passes with Veros' exchange also passes with this library's exchange, and this
library made every exchange in these tests, at least one in all.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as xml

SITE = Path(__file__).with_name("site")  # a sitecustomize module, which installs the exchange in spawned ranks too


def list_tests(folder, words):
    """Return the names of the tests in a folder, in pytest's notation."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--rootdir", folder, folder, *words]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    tests = [line for line in found.stdout.splitlines() if "::" in line and not line.startswith(" ")]
    if not tests:
        sys.exit(f"pytest finds no test in {folder}:\n{found.stdout}{found.stderr}")
    return tests


def run_test(folder, test, place, environment):
    """Return the outcome of one test: 'passed', 'failed' or 'skipped'.

    It runs in a separate pytest and process group: an MPI library that aborts may end all processes of its group.
    """
    report = place / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", folder, test, f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider"]
    subprocess.run(
        command, env={**os.environ, **environment}, check=False, cwd=folder, start_new_session=True, capture_output=True
    )
    case = next(xml.parse(report).iter("testcase"), None) if report.exists() else None
    if case is None or case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def run_with_haloscope(folder, test, place):
    """Return the outcome of one test with this library's exchange, and the counts of its ranks, by rank."""
    counts = place / "counts"
    counts.write_text("")
    path = os.pathsep.join([str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
    outcome = run_test(folder, test, place, {"PYTHONPATH": path, "HALOSCOPE_VEROS_COUNTS": str(counts)})
    return outcome, sorted(map(json.loads, counts.read_text().splitlines()), key=lambda line: line["rank"])


def find_fault(before, after, counts):
    """Return a text on the fault of a test under this library's exchange, or ''."""
    if before == "passed" != after:
        return "passes only with Veros' exchange"
    if after != "passed":
        return ""
    if not counts or len(counts) != counts[0]["ranks"]:
        return f"{len(counts)} ranks had this library's exchange"
    others = [line["rank"] for line in counts if line["asked"] != line["carried_out"]]
    return f"not all exchanges of ranks {others} were this library's" if others else ""


def main():
    """Run each test twice, print both results and the counts of each rank; return the exit status."""
    if len(sys.argv) < 2 or not Path(sys.argv[1], "test", "distributed").is_dir():
        sys.exit("usage: own_tests.py PATH_OF_VEROS_CHECKOUT [WORD_FOR_PYTEST ...]; the checkout has test/distributed")
    folder = Path(sys.argv[1], "test", "distributed").resolve()
    faults, exchanges = 0, 0
    print("test: by Veros' exchange, by Haloscope's; exchanges by Haloscope in ranks 0, 1, ...")
    with tempfile.TemporaryDirectory() as place:
        for test in list_tests(folder, sys.argv[2:]):
            before = run_test(folder, test, Path(place), {})
            after, counts = run_with_haloscope(folder, test, Path(place))
            numbers = [line["carried_out"] for line in counts]
            fault = find_fault(before, after, counts)
            print(f"{test}: {before}, {after}; {numbers}", f"FAULT: {fault}" if fault else "", flush=True)
            faults += bool(fault)
            exchanges += sum(numbers) if after == "passed" else 0
    print(f"{faults} faults, {exchanges} exchanges by Haloscope in tests that pass")
    return 0 if exchanges and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
