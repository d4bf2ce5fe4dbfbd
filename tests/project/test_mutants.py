"""The script of mutants: its changes of lines, its copy of the sources, and its table."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import mutants
from changed_lines import changes, mutants_of

TABLE = tomllib.loads(mutants.TABLE.read_text())


def changed(line: str) -> set[str]:
    """Return the lines that a line may become."""
    return {line[:begin] + new + line[end:] for _, (begin, end), new in changes(line)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if (a < b && c) go();", {"if (a <= b && c) go();", "if (a < b || c) go();", "if (!(a < b && c)) go();"}),
        ("return std::min(a, b);", {"return std::max(a, b);", "return std::min(b, a);", "return {};"}),
        ("x += 1;  // adds 1 < 2", {"x -= 1;  // adds 1 < 2", "x += 2;  // adds 1 < 2", "x += 0;  // adds 1 < 2", ";"}),
        ('say("1 < 2");', {";"}),
        ("int a = b;", set()),
        ("std::array<int, 3> three;", set()),
        ("#if N > 2", set()),
    ],
)
def test_a_line_becomes_each_of_its_mutants(line, expected):
    assert changed(line) == expected


def test_a_statement_is_dropped_only_where_one_begins():
    text = "a = b +\nc(d);\ne(f);"
    assert [(one.line, one.after) for one in mutants_of("x.cpp", text) if one.rule == "statement"] == [(3, ";")]


def test_a_draw_has_a_mutant_of_each_file_and_none_twice(monkeypatch):
    monkeypatch.setattr(mutants, "SOURCE", ROOT)
    drawn = mutants.draw(200, 1)
    assert drawn == mutants.draw(200, 1)
    assert len({(one.file, one.line) for one in drawn}) == len(drawn) >= 200
    files = [str(p.relative_to(ROOT)) for names in mutants.AREAS.values() for name in names for p in ROOT.glob(name)]
    assert {one.file for one in drawn} == {name for name in files if mutants_of(name, (ROOT / name).read_text())}
    areas = Counter(mutants.area_of(one.file) for one in drawn)
    assert set(areas) == set(mutants.AREAS)
    assert min(areas.values()) >= 50


def test_a_change_is_made_in_the_copy_and_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    source = tmp_path / "a.cpp"
    source.write_text("  a < b;\n  c;\n")
    [mutant] = [one for one in mutants_of("a.cpp", source.read_text()) if one.rule == "relation"]
    with mutants.applied(mutant):
        assert source.read_text() == "  a <= b;\n  c;\n"
    assert source.read_text() == "  a < b;\n  c;\n"
    source.write_text("d;\n")
    with pytest.raises(ValueError, match="draw mutants again"):
        mutants.place(mutant)
    ignored = subprocess.run(["git", "check-ignore", "-q", "build/mutants/source"], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_the_test_that_fails_is_named():
    gtest = "[ RUN      ] A.B\n[       OK ] A.B\n[ RUN      ] C.D/0\n"
    assert mutants.failing_test(-11, gtest) == "C.D/0"
    assert mutants.failing_test(-signal.SIGXCPU, gtest) == "time limit in C.D/0"
    assert mutants.failing_test(1, gtest + "[  FAILED  ] A.B (3 ms)\n") == "A.B"
    assert mutants.failing_test(1, "FAILED tests/a.py::b - AssertionError\n") == "tests/a.py::b"


@pytest.mark.parametrize("entry", TABLE.get("equivalent", []) + TABLE.get("row", []), ids=lambda entry: entry["file"])
def test_each_line_of_the_table_is_in_its_file_once(entry):
    lines = [line.strip() for line in (ROOT / entry["file"]).read_text().splitlines()]
    assert lines.count(entry["before"]) == 1
    assert entry["after"] != entry["before"]


@pytest.mark.parametrize("row", TABLE.get("row", []), ids=lambda row: " ".join(row["ids"]))
def test_the_test_of_a_row_carries_its_ids(row):
    named = set(re.findall(r"[A-Z]+\d+", row["test"]))
    if "program" not in row:
        file, _, name = row["test"].partition("::")
        above = (ROOT / file).read_text().partition(f"def {name.partition('[')[0]}(")[0].rpartition("\n\n\n")[2]
        named = set(re.findall(r'"([A-Z]+\d+)"', above))
    assert set(row["ids"]) <= named
