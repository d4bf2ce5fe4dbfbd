"""studies/coverage.md: the state of every row, from checklists and a test report, and the page in the repository."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import test_cpp

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"white2011": 25, "valen2023": 25, "schroeter2021": 47, "vanecek2020": 48, "davis2017": 54}


def _script():
    spec = importlib.util.spec_from_file_location("coverage_script", ROOT / "studies" / "coverage.py")
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # dataclasses look their module up
    spec.loader.exec_module(script)
    return script


script = _script()
CHECKLISTS = script.read()
ROWS = {row.id: row for some in CHECKLISTS.values() for row in some}


def python(name: str, ids: str, outcome: str = "", **properties) -> str:
    """A test case of the report, with its ids and its other properties."""
    items = "".join(f'<property name="{k}" value="{v}"/>' for k, v in {"ids": ids, **properties}.items())
    return (
        f'<testcase classname="tests.python.test_a" name="{name}"><properties>{items}</properties>{outcome}</testcase>'
    )


def googletest(*covers: str) -> str:
    """The case of a GoogleTest program, with what each of its tests covers."""
    items = "".join(f'<property name="covers" value="{c}"/>' for c in covers)
    return (
        f'<testcase classname="tests.python.test_cpp" name="test_gtest[x]"><properties>{items}</properties></testcase>'
    )


def table(page: str) -> dict[str, list[str]]:
    """The cells of every row's line, by id."""
    lines = [line for line in page.splitlines() if re.match(r"\| [WVSND][A-Z]?\d+ \|", line)]
    cells = [[c.strip().replace(r"\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {line[0]: line[1:] for line in cells}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes the page from a report of the given test cases; its text."""

    def write(*cases: str) -> str:
        report, page = tmp_path / "r.xml", tmp_path / "coverage.md"
        report.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        assert script.main([str(report), "-o", str(page)]) == 0
        return page.read_text()

    return write


def state(page: str, row: str) -> str:
    return table(page)[row][2]


def reason(page: str, row: str) -> str:
    """The page's text of a missing part, "" where the row holds."""
    found = re.search(rf"^- \*\*(?:\w+, )*{row}(?:, \w+)*\*\*: (.+)$", page, re.MULTILINE)
    return found[1] if found else ""


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_a_row_holds_when_it_is_assessed_so_and_a_test_that_names_it_passed(written):
    page = written(python("test_good[1]", "W7 V3"), python("test_good[2]", "W7 V3"))
    assert state(page, "W7") == state(page, "V3") == "holds"
    assert table(page)["W7"][3] == "1" and "  - `test_a::test_good`" in page
    assert not reason(page, "W7")


def test_a_row_that_is_assessed_to_hold_is_open_without_a_test_that_passed(written):
    page = written()
    assert {cells[2] for cells in table(page).values()} == {"open"}
    assert reason(page, "W7") == "No test that names the row passed."
    weaker = next(row for row in ROWS.values() if row.missing)
    assert reason(page, weaker.id) == f"{weaker.missing} No test that names the row passed."


def test_a_failing_test_makes_its_row_open_whatever_else_passed(written):
    page = written(python("test_good", "W7 W5"), python("test_bad", "W7 W5", "<failure/>"))
    assert state(page, "W7") == state(page, "W5") == "open"
    assert reason(page, "W7") == "`test_a::test_bad` failed."
    assert table(page)["W7"][3] == "1 of 2" and "  - `test_a::test_bad`: failed" in page
    assert state(written(python("test_broken", "W7", "<error/>")), "W7") == "open"
    assert state(written(python("test_good[1]", "W7"), python("test_good[2]", "W7", "<failure/>")), "W7") == "open"


def test_a_skipped_case_does_not_count_as_run(written):
    page = written(python("test_not_run", "W7", "<skipped/>"), googletest("W8|Decomposition.W8_Cubes|skipped"))
    assert state(page, "W7") == state(page, "W8") == "open"
    assert reason(page, "W7") == "No test that names the row passed." and "`test_a::test_not_run`: skipped" in page
    page = written(googletest("SA6|Poisson.SA6_X (1 ranks)|skipped", "SA6|Poisson.SA6_X (2 ranks)|passed"))
    assert state(page, "SA6") == "holds" and table(page)["SA6"][4] == "2"


def test_rows_assessed_as_weaker_or_open_never_hold(written):
    page = written(*(python(f"test_{n}", row, ranks="1 2 3 4 5 6 7 8 9") for n, row in enumerate(ROWS)))
    for row in ROWS.values():
        if row.verdict != "holds":
            assert state(page, row.id) == script.HEADINGS[row.verdict]
            assert reason(page, row.id).startswith(row.missing)


def test_rank_counts_are_those_of_the_cases_that_passed(written):
    page = written(
        googletest(*(f"W3|Advection.W3_Shifts ({n} ranks)|passed" for n in (1, 2, 3, 4, 6, 8))),
        googletest("V11|Runner/Threads.V11_Delays/bulk|passed", "V11|Runner/Threads.V11_Delays/split|passed"),
        python("test_ranks[1]", "W22", ranks="1 2"),
        python("test_ranks[2]", "W22", "<skipped/>", ranks="3"),
    )
    assert table(page)["W3"][4] == "1-4, 6, 8" and "`Advection.W3_Shifts`: 1-4, 6, 8 ranks" in page
    assert table(page)["W22"][4] == "1, 2"
    assert table(page)["V11"][3:5] == ["1", "-"] and "  - `Threads.V11_Delays`\n" in page


def test_a_googletest_that_fails_at_one_rank_count_makes_its_rows_open(written):
    page = written(
        googletest("V6 V7|Exchange.V6_V7_Ghosts (2 ranks)|failed", "V6 V7|Exchange.V6_V7_Ghosts (3 ranks)|passed")
    )
    assert state(page, "V6") == state(page, "V7") == "open"


def test_a_row_that_asks_for_rank_counts_is_weaker_until_its_tests_ran_on_them(written):
    few = [f"SB1|Poisson.SB1_Jacobi ({n} ranks)|passed" for n in (1, 2, 3)]
    page = written(googletest(*few))
    assert state(page, "SB1") == "weaker than the claim"
    assert reason(page, "SB1") == "Not run on 4, 7, 8 ranks."
    more = [f"SB1|Poisson.SB1_Jacobi ({n} ranks)|passed" for n in (4, 7, 8)]
    assert state(written(googletest(*few, *more)), "SB1") == "holds"


def test_a_row_whose_acceptance_case_was_left_out_is_weaker(written):
    case = ROWS["SH2"].case.split("::")[1]
    near, itself = python("test_near", "SH2"), python(case, "SH2").replace("test_a", "test_poisson")
    assert state(written(near), "SH2") == "weaker than the claim"
    assert reason(written(near), "SH2") == f"The acceptance case itself, `test_poisson::{case}`, was not run."
    assert state(written(near, itself), "SH2") == "holds"


def test_a_device_is_imitated_unless_a_test_says_that_it_ran_on_a_card(written):
    assert table(written(python("test_a", "W14 W7")))["W14"][5] == "imitated device"
    page = written(python("test_a", "W14 W7"), python("test_b", "W14", device="card"))
    assert table(page)["W14"][5] == "GPU" and table(page)["W7"][5] == ""


@pytest.mark.parametrize("unknown", [python("t", "W99"), googletest("A1|Decomposition.A1_Rows|passed")])
def test_a_row_that_no_checklist_has_is_an_error_and_no_page_is_written(tmp_path, capsys, unknown):
    report = tmp_path / "r.xml"
    report.write_text(f"<testsuites><testsuite>{unknown}</testsuite></testsuites>")
    assert script.main([str(report), "-o", str(tmp_path / "page.md")]) == 1
    assert re.search(
        r"no checklist has (W99|A1), which (test_a::t|Decomposition.A1_Rows) names", capsys.readouterr().err
    )
    assert not (tmp_path / "page.md").exists()
    assert script.main([str(tmp_path / "absent.xml"), "-o", str(tmp_path / "page.md")]) == 2


# ---- what tests write into the report --------------------------------------------------------------------------------


def test_a_googletest_names_rows_at_its_start_and_at_that_of_its_parameter():
    assert test_cpp.rows_of("Poisson.SA3_SB1_JacobiGivesTheBytes") == ["SA3", "SB1"]
    assert test_cpp.rows_of("Runner/Threads.V11_Delays/W13_comm_thread") == ["V11", "W13"]
    assert test_cpp.rows_of("All/Poisson.NamesNone/avx2") == []


def test_all_tests_of_a_suite_failed_where_its_program_failed_without_saying_which(tmp_path):
    program, report = tmp_path / "program", tmp_path / "report.json"
    program.write_text("#!/bin/sh\nprintf 'Exchange.\\n  V6_Ghosts\\n  V7_Bytes/2  # GetParam() = 2\\n'\n")
    program.chmod(0o755)
    both = [("Exchange.V6_Ghosts", "failed"), ("Exchange.V7_Bytes/2", "failed")]
    assert test_cpp.outcomes(report, 1, program, "Exchange") == both  # it died: no report
    reported = [{"name": "V6_Ghosts"}, {"name": "V7_Bytes/2", "result": "SKIPPED"}]
    report.write_text(json.dumps({"testsuites": [{"name": "Exchange", "testsuite": reported}]}))
    assert test_cpp.outcomes(report, 1, program, "Exchange") == both  # another rank failed
    assert [state for _, state in test_cpp.outcomes(report, 0, program, "Exchange")] == ["passed", "skipped"]


def test_the_report_says_on_how_many_ranks_a_test_ran_and_whether_on_a_card(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pathlib, pytest\nfrom haloscope.measure import launch\n"
        "@pytest.mark.card\n@pytest.mark.ids('W3')\n"
        "def test_runs():\n    [launch.launcher_words(pathlib.Path('none'), n, 1) for n in (2, 5, 2)]\n"
        "def test_runs_nothing():\n    pass\n"
    )
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "conftest",
        "-c",
        os.devnull,
        "--junitxml",
        "r.xml",
        "test_it.py",
    ]
    paths = os.pathsep.join([str(ROOT), *sys.path])
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": paths})
    cases = {case.get("name"): case for case in xml.parse(tmp_path / "r.xml").iter("testcase")}
    properties = {name: {p.get("name"): p.get("value") for p in case.iter("property")} for name, case in cases.items()}
    assert properties == {"test_runs": {"ids": "W3", "device": "card", "ranks": "2 5"}, "test_runs_nothing": {}}


# ---- data, tests and page agree --------------------------------------------------------------------------------------


def test_all_rows_of_the_five_studies_are_there_with_acceptance_tests_and_verdicts():
    assert {study: len(rows) for study, rows in CHECKLISTS.items()} == COUNTS
    assert len(ROWS) == sum(COUNTS.values()) == 199
    letters = {"white2011": "W", "valen2023": "V", "schroeter2021": "S", "vanecek2020": "N", "davis2017": "D"}
    for study, rows in CHECKLISTS.items():
        for row in rows:
            assert re.fullmatch(rf"{letters[study]}[A-Z]?\d+", row.id)
            assert row.title and len(row.acceptance) > 5 and row.acceptance.endswith("."), row.id
            assert row.verdict in script.STATES
            assert bool(row.missing) == (row.verdict != "holds"), row.id
            assert not row.missing or row.missing.endswith("."), row.id


def sources(pattern: str) -> list[Path]:
    """The files of tests of the project and of the studies that match a pattern."""
    return [file for folder in ("tests", "studies") for file in (ROOT / folder).rglob(pattern)]


def test_every_row_that_a_test_names_is_in_a_checklist():
    names = [re.findall(r"TEST(?:_[PF])?\(\w+,\s*(\w+)\)", file.read_text()) for file in sources("*.cpp")]
    googletests = {row for some in names for name in some for row in test_cpp.rows_of(name)}
    marked = [re.findall(r"mark\.ids\(([^)*]*)\)", file.read_text()) for file in sources("test_*.py")]
    markers = {row for some in marked for arguments in some for row in re.findall(r'"(\w+)"', arguments)}
    assert len(googletests) > 50 and len(markers) > 50
    assert googletests | markers <= set(ROWS)


def test_acceptance_cases_are_tests_that_name_their_rows():
    for row in ROWS.values():
        if row.case:
            module, test = row.case.split("::")
            [source] = [file.read_text() for file in sources(f"{module}.py")]
            before = source.split(f"def {test}(")[0].rsplit("\n\n", 1)[1]
            assert f'"{row.id}"' in before, row.id


def test_the_page_in_the_repository_says_what_the_checklists_say():
    page = (ROOT / "studies" / "coverage.md").read_text()
    found = table(page)
    assert list(found) == list(ROWS)
    for row in ROWS.values():
        title, acceptance, shown = found[row.id][:3]
        assert (title, acceptance) == (row.title, row.acceptance)
        assert shown in (script.HEADINGS[row.verdict], "weaker than the claim", "open"), row.id
        assert script.STATES.index(row.verdict) <= list(script.HEADINGS.values()).index(shown), row.id
        assert reason(page, row.id).startswith(row.missing) and bool(reason(page, row.id)) == (shown != "holds"), row.id
    assert max(len(cell) for cells in found.values() for cell in cells) < 300


def test_the_summary_of_the_page_counts_its_tables():
    page = (ROOT / "studies" / "coverage.md").read_text()
    totals = [0] * 4
    for study, rows in CHECKLISTS.items():
        states = [state(page, row.id) for row in rows]
        counts = [len(rows), *(states.count(shown) for shown in script.HEADINGS.values())]
        assert f"| {study} | {' | '.join(map(str, counts))} |" in page
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
    assert f"| **all** | {' | '.join(map(str, totals))} |" in page
