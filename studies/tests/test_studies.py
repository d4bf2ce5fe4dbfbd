"""All studies: their names, what they are, and what they refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from haloscope import records, studies
from haloscope.studies.findings import NEEDS
from test_lab import needs_namespaces
from test_records import write as write_lines

# Of a study that another machine has measured: options that no test machine has by itself.
ELSEWHERE = {"cores": 64, "repetitions": 2, "launches": 1}


def planned_elsewhere(name: str, **changes) -> tuple[studies.Options, list[dict]]:
    """Return options of a study, and a record for each request that it plans with them."""
    study = studies.load(name)
    device = "host" if name == "vanecek2020" else ""
    sizes = tuple(size + 8 for size in study.DEFAULTS["quick"].sizes)
    options = dataclasses.replace(study.DEFAULTS["quick"], sizes=sizes, device=device, **ELSEWHERE, **changes)
    return options, [records.skipped(r, "made up", 3, "launch-1") for r in study.plan(options).all()]


def write(file: str, name: str, options: studies.Options, found: Iterable[dict]) -> None:
    """Write a file of records as a study does: its options come first."""
    write_lines(Path(file), records.of_study(name, dataclasses.asdict(options)), *found)


@pytest.mark.parametrize("name", [n for n in studies.names() if hasattr(studies.load(n), "findings")])
def test_every_study_ends_with_the_findings_of_its_paper(haloscope, name):
    options, found = planned_elsewhere(name)
    judged = studies.load(name).findings((), options)
    assert 8 <= len(judged) <= 15 and len({one.name for one in judged}) == len(judged)
    assert all(one.statement.endswith(".") and one.section and one.here.verdict == NEEDS for one in judged)
    write("r.jsonl", name, options, found)
    text = haloscope("study", name, "--from", "r.jsonl").out
    assert text.rstrip().endswith(f"Of {len(judged)} findings, here {len(judged)} cannot be judged.")
    assert haloscope("study", name, "--replay").out.rstrip().splitlines()[-3].startswith(f"Of {len(judged)} findings")


def test_an_unknown_study_gets_the_nearest_names(haloscope):
    result = haloscope("study", "wite2011")
    assert result.code == 2 and "did you mean white2011" in result.err


def test_the_studies_are_listed_when_none_is_named(haloscope):
    result = haloscope("study")
    assert result.code == 0
    assert "white2011" in result.out and "valen2023" in result.out


def test_a_study_without_versions_for_devices_says_so(haloscope):
    result = haloscope("study", "schroeter2021", "--quick", "--device", "host")
    assert result.code == 2 and "--device works with valen2023, vanecek2020" in result.err


def test_every_study_is_found_by_name_and_says_what_it_is():
    for name in studies.names():
        study = studies.load(name)
        assert study.SUMMARY
        assert set(study.DEFAULTS) == {"quick", "full"}


@pytest.mark.parametrize("name", studies.names())
def test_a_report_takes_the_options_of_its_records(haloscope, name):
    options, found = planned_elsewhere(name)
    write("r.jsonl", name, options, found)
    result = haloscope("study", name, "--from", "r.jsonl")
    assert result.code == 3 and "left out" not in result.err, result.err  # all requests were skipped, and all are known


@pytest.mark.parametrize("name", [n for n in studies.names() if not hasattr(studies.load(n), "ANY_PLAN")])
def test_records_outside_the_plan_are_named(haloscope, name):
    options, found = planned_elsewhere(name)
    other = {**found[0], "id": "of another plan"}
    write("r.jsonl", name, options, [*found, other])
    result = haloscope("study", name, "--from", "r.jsonl")
    assert f"1 of {len(found) + 1} records are not of this plan and left out: of another plan" in result.err
    write("r.jsonl", name, options, [other])
    result = haloscope("study", name, "--from", "r.jsonl")
    assert result.code == 1 and "none of 1 records is of this plan, such as of another plan" in result.err
    assert not result.out


def test_records_without_options_are_reported_by_the_options_of_the_call(haloscope):
    options, found = planned_elsewhere("valen2023")
    write_lines(Path("r.jsonl"), *found)
    result = haloscope("study", "valen2023", "--quick", "--from", "r.jsonl")
    assert result.code == 1 and "pass --quick, --sizes and the other options" in result.err
    sizes = ",".join(map(str, options.sizes))
    result = haloscope("study", "valen2023", "--quick", "--sizes", sizes, "--from", "r.jsonl")
    assert result.code == 3 and "left out" not in result.err


def test_records_of_another_study_or_of_two_plans_are_refused(haloscope):
    options, found = planned_elsewhere("valen2023")
    write("r.jsonl", "valen2023", options, found)
    result = haloscope("study", "white2011", "--from", "r.jsonl")
    assert result.code == 2 and "records of study valen2023, not of white2011" in result.err
    write("s.jsonl", "valen2023", dataclasses.replace(options, ranks=4), found)
    result = haloscope("study", "valen2023", "--from", "r.jsonl", "--from", "s.jsonl")
    assert result.code == 2 and "different options, ranks 2 and 4; report each alone" in result.err


def test_records_of_a_plan_without_sizes_ask_for_them(haloscope):
    options, found = planned_elsewhere("schroeter2021")
    write("r.jsonl", "schroeter2021", dataclasses.replace(options, sizes=()), found)
    result = haloscope("study", "schroeter2021", "--from", "r.jsonl")
    assert result.code == 2 and "hold no sizes of the study; pass the ones that were measured by --sizes" in result.err
    sizes = ",".join(map(str, options.sizes))
    assert haloscope("study", "schroeter2021", "--sizes", sizes, "--from", "r.jsonl").code == 3


def test_a_file_takes_records_of_one_plan_only(haloscope):
    options, found = planned_elsewhere("valen2023")
    write("r.jsonl", "valen2023", options, found)
    before = Path("r.jsonl").read_bytes()
    result = haloscope("study", "valen2023", "--quick", "--output", "r.jsonl", "--resume")
    assert result.code == 2 and "r.jsonl holds records of valen2023 with " in result.err
    assert Path("r.jsonl").read_bytes() == before


def test_options_that_no_study_has_are_a_bad_line(haloscope):
    bad = records.of_study("valen2023", {"sizes": "all"})
    write_lines(Path("r.jsonl"), bad)
    assert records.read("r.jsonl").bad == 1
    assert haloscope("study", "valen2023", "--from", "r.jsonl").code == 1


@needs_namespaces
def test_a_study_runs_on_the_hosts_of_an_emulated_cluster(haloscope):
    words = ("--quick", "--sizes", "32", "--depths", "1", "--steps", "4", "--launches", "1", "--output", "r.jsonl")
    result = haloscope("study", "valen2023", *words, "--lab", "2", "--latency", "100us")
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    assert {tuple(records.hosts_of(record)) for record in found} == {("node0", "node1")}
    assert all(record["environment"]["emulated_network"] for record in found)
