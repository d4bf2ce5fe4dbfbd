"""scripts/check_long.py: a run that was ended goes on, and the record counts every test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

from paths import ROOT

SCRIPTS = ROOT / "scripts"
TESTS = """
import os, pathlib, pytest, signal, time
def end(how):  # the run, whose process started that of the tests
    time.sleep(1)  # earlier outcomes have arrived
    os.kill(os.getppid(), how)
    time.sleep(1)
def test_passes(): pathlib.Path("ran").open("a").write("passes ")
def test_is_skipped(): pytest.skip("no card")
def test_fails(): assert pathlib.Path("mended").exists()
def test_is_killed():
    if not pathlib.Path("mended").exists(): end(signal.SIGKILL)
"""


@pytest.fixture
def check_long(tmp_path):
    """Return a function that runs the script on tests of its own, and the folder where it does."""
    (tmp_path / "test_them.py").write_text(TESTS)
    lines = [
        "import sys, pathlib",
        f"sys.path.insert(0, {str(SCRIPTS)!r})",
        "import check_long",
        f"folder = pathlib.Path({str(tmp_path)!r})",
        "check_long.JOURNAL, check_long.RECORD = folder / 'journal', folder / 'record.txt'",
        "check_long.TESTS = (str(folder / 'test_them.py'),)",
        "check_long.SIDE_BY_SIDE[check_long.SIDE_BY_SIDE.index('-n') + 1] = '1'",  # there is one file
        "check_long.state = lambda: 'later' if (folder / 'changed').exists() else 'abc'",
        "check_long.commits_since = lambda commit: {'abc': {'abc', 'later'}, 'later': {'later'}}[commit]",
        "sys.exit(check_long.main(sys.argv[1:]))",
    ]

    def run(*words: str) -> int:
        command = [sys.executable, "-c", "\n".join(lines), *words]
        bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(command, cwd=tmp_path, env=bare, check=False, capture_output=True, timeout=200).returncode

    return run, tmp_path


def test_a_killed_run_goes_on_with_tests_that_are_not_over(check_long):
    run, folder = check_long
    assert run() == -signal.SIGKILL
    assert not (folder / "record.txt").exists()
    with (folder / "journal").open("a") as file:
        file.write('{"id": "test_them.py::test_f')  # killed while it was written
    (folder / "mended").touch()
    assert run() == 0
    assert (folder / "ran").read_text() == "passes "  # once
    text = (folder / "record.txt").read_text()
    assert "commit abc, " in text
    assert "3 passed, 0 failed, 1 skipped, 0 not run" in text
    assert "skipped 1, first test_them.py::test_is_skipped: no card" in text
    cases = xml.parse(folder / "record.xml").iter("testcase")
    assert [case.get("name") for case in cases] == ["test_passes", "test_is_skipped", "test_fails", "test_is_killed"]


def test_an_interrupted_test_counts_as_not_run(check_long):
    run, folder = check_long
    (folder / "test_them.py").write_text(
        TESTS.replace("signal.SIGKILL", "signal.SIGINT") + "def test_never_begins(): pass"
    )
    assert run() == pytest.ExitCode.INTERRUPTED
    text = (folder / "record.txt").read_text()
    assert "1 passed, 1 failed, 1 skipped, 2 not run" in text
    assert "failed: test_them.py::test_fails" in text
    assert "not run: 2 of test_them.py" in text


def test_a_test_whose_process_ends_has_failed(check_long):
    run, folder = check_long
    (folder / "test_them.py").write_text("import os\ndef test_ends(): os._exit(9)\ndef test_passes(): pass")
    assert run() == pytest.ExitCode.TESTS_FAILED
    text = (folder / "record.txt").read_text()
    assert "0 passed, 1 failed, 0 skipped, 1 not run" in text
    assert "failed: test_them.py::test_ends" in text


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_on_changed_sources_begins_anew_unless_it_keeps_what_has_run(check_long, keep):
    run, folder = check_long
    (folder / "mended").touch()
    assert run() == 0
    (folder / "changed").touch()
    assert run(*["--keep"] * keep) == 0
    assert (folder / "ran").read_text() == "passes " * (1 if keep else 2)
    text = (folder / "record.txt").read_text()
    assert "commit later, " in text and "3 passed, 0 failed, 1 skipped, 0 not run" in text
    assert ("of them at commit abc: 4" in text) == keep


def test_a_run_that_keeps_goes_on_from_the_record_of_another_machine(check_long):
    run, folder = check_long
    assert run() == -signal.SIGKILL
    (folder / "test_them.py").write_text(TESTS.replace("signal.SIGKILL", "signal.SIGINT"))
    assert run() == pytest.ExitCode.INTERRUPTED
    (folder / "journal").unlink()
    (folder / "mended").touch()
    (folder / "changed").touch()
    assert run("--keep") == 0
    assert (folder / "ran").read_text() == "passes "
    text = (folder / "record.txt").read_text()
    assert "commit later, " in text and "3 passed, 0 failed, 1 skipped, 0 not run" in text
    assert "of them at commit abc: 1" in text  # the skipped one ran again
    assert "skipped 1, first test_them.py::test_is_skipped: no card" in text


@pytest.mark.parametrize(("since", "runs"), [("abc", 1), ("later", 2)])
def test_a_run_since_a_commit_runs_earlier_outcomes_again(check_long, since, runs):
    run, folder = check_long
    (folder / "mended").touch()
    assert run() == 0
    (folder / "changed").touch()
    (folder / "journal").unlink()
    assert run("--since", since) == 0
    assert (folder / "ran").read_text() == "passes " * runs
    # The skipped test runs again in any case.
    assert ("of them at commit abc: 3" in (folder / "record.txt").read_text()) == (runs == 1)


def test_an_interrupted_run_since_a_commit_keeps_earlier_outcomes(check_long):
    run, folder = check_long
    (folder / "mended").touch()
    assert run() == 0
    (folder / "changed").touch()
    (folder / "mended").unlink()
    (folder / "test_them.py").write_text(TESTS.replace("signal.SIGKILL", "signal.SIGINT"))
    assert run("--since", "later") == pytest.ExitCode.INTERRUPTED
    text = (folder / "record.txt").read_text()
    assert "2 passed, 1 failed, 1 skipped, 0 not run" in text
    assert "of them at commit abc: 1" in text  # the one that was interrupted


def test_the_commits_since_one_are_its_descendants_with_itself():
    command = [sys.executable, "-c", "import check_long; print(*check_long.commits_since('HEAD'))"]
    found = subprocess.run(command, cwd=SCRIPTS, check=True, capture_output=True, text=True).stdout.split()
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [head[:12]] == found


def test_a_run_of_some_tests_writes_no_record_of_all(check_long):
    run, folder = check_long
    assert run("test_them.py::test_passes", "-k", "passes or fails") == 0
    assert not (folder / "record.txt").exists()
    assert (folder / "journal").read_text().count("test_passes") == 1


def test_it_finds_tests_that_import_packages_of_the_checkout(tmp_path):
    lines = [
        "import sys, pathlib",
        f"sys.path.insert(0, {str(SCRIPTS)!r})",
        "import check_long",
        f"check_long.JOURNAL = pathlib.Path({str(tmp_path / 'journal')!r})",
        "sys.exit(check_long.run_in_checkout(sys.argv[1:]))",
    ]
    words = [sys.executable, "-c", "\n".join(lines), "--keep", "--collect-only", "-q", "tests/project/test_bench.py"]
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    found = subprocess.run(words, cwd="/", env=bare, check=False, capture_output=True, text=True, timeout=200)
    assert found.returncode == 0 and "test_bench.py: " in found.stdout, found.stdout + found.stderr
