"""docs/coverage.md: from a test report to the state of every checklist row."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "coverage.py"
REPORT = """<testsuites><testsuite>
<testcase classname="tests.python.test_a" name="test_good[1]"><properties><property name="ids" value="W7 V3"/></properties></testcase>
<testcase classname="tests.python.test_a" name="test_good[2]"><properties><property name="ids" value="W7 V3"/></properties></testcase>
<testcase classname="tests.python.test_a" name="test_bad"><properties><property name="ids" value="W6"/></properties><failure/></testcase>
<testcase classname="tests.python.test_a" name="test_not_run"><properties><property name="ids" value="W5"/></properties><skipped/></testcase>
<testcase classname="tests.python.test_cpp" name="test_gtest[x]"><properties>
  <property name="covers" value="W8|Decomposition.W8_Cubes (2 ranks)|passed"/>
  <property name="covers" value="V6 V7|Exchange.V6_V7_Ghosts (2 ranks)|failed"/>
  <property name="covers" value="V6 V7|Exchange.V6_V7_Ghosts (3 ranks)|passed"/></properties></testcase>
{more}</testsuite></testsuites>"""


def run(tmp_path, more="") -> tuple[int, dict[str, str]]:
    spec = importlib.util.spec_from_file_location("coverage_script", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    report, page = tmp_path / "r.xml", tmp_path / "coverage.md"
    report.write_text(REPORT.format(more=more))
    code = script.main([str(report), "-o", str(page)])
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith(("| W", "| V", "| S"))]
    return code, {row[1].strip(): "|".join(row[3:5]) for row in rows}


def test_every_row_has_a_state_and_the_tests_behind_it(tmp_path):
    code, rows = run(tmp_path)
    assert code == 0
    groups = {"SA": 6, "SB": 4, "SC": 10, "SD": 5, "SE": 6, "SF": 4, "SG": 7, "SH": 3, "SI": 2}
    schroeter = {f"{letters}{n}" for letters, last in groups.items() for n in range(1, last + 1)}
    assert set(rows) == {f"{letter}{n}" for letter in "WV" for n in range(1, 26)} | schroeter
    assert rows["W7"].startswith(" passed ") and "`test_a::test_good`" in rows["W7"]
    assert rows["W6"].startswith(" failed ")
    assert rows["W5"].startswith(" open ") and "(skipped)" in rows["W5"]
    assert rows["W14"].startswith(" open (needs a GPU")
    assert rows["V1"].startswith(" open ")


def test_a_googletest_that_fails_at_one_rank_count_fails_its_rows(tmp_path):
    _, rows = run(tmp_path)
    assert rows["W8"].startswith(" passed ")
    assert rows["V6"].startswith(" failed ") and rows["V7"].startswith(" failed ")


def test_a_row_that_no_checklist_has_is_an_error(tmp_path, capsys):
    more = '<testcase name="t"><properties><property name="ids" value="W99"/></properties></testcase>'
    assert run(tmp_path, more)[0] == 1
    assert "W99" in capsys.readouterr().err
