"""The aggregator of performance figures."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from bench import __main__ as bench
from haloscope import errors
from haloscope.records.rows import Row
from programs import executable


def case(**changes) -> dict:
    samples = {"samples_a": [2.0 + k / 100 for k in range(21)], "samples_b": [1.0] * 21}
    return (
        {
            "figure": "f",
            "case": "c",
            "unit": "ratio",
            "a": "ours",
            "b": "theirs",
            "value": "a/b",
            "bar": 2.05,
            "direction": ">=",
        }
        | samples
        | changes
    )


def test_the_value_is_the_median_of_paired_quotients_with_its_interval():
    found = bench.judged([case()])
    assert found["value"] == pytest.approx(2.10)
    assert found["interval"] == [pytest.approx(2.05), pytest.approx(2.15)]
    assert found["holds"] and found["pairs"] == 21


@pytest.mark.parametrize(
    ("changes", "value", "holds"),
    [
        ({"bar": 2.11}, 2.10, False),
        ({"bar": 2.11, "direction": "<="}, 2.10, True),
        ({"value": "b/a", "bar": 0.4}, 1 / 2.10, True),
        ({"value": "b/a", "bar": 0.4, "direction": "<="}, 1 / 2.10, False),
        ({"value": "a-b", "unit": "s", "bar": 1.2, "direction": "<="}, 1.10, True),
        ({"value": "a", "unit": "s", "bar": 3, "direction": "<=", "samples_b": []}, 2.10, True),
    ],
)
def test_the_bar_is_met_by_the_median_in_the_direction_given(changes, value, holds):
    found = bench.judged([case(**changes)])
    assert found["value"] == pytest.approx(value)
    assert found["holds"] is holds


def test_a_case_without_a_bar_is_reported_and_not_judged():
    found = bench.judged([case(bar=None)])
    assert found["value"] == pytest.approx(2.10) and found["holds"] is None
    row = bench.table([found | {"environment": {"mpi_library": "MPICH Version: 5.0.2"}}]).splitlines()[-1]
    assert [cell.strip() for cell in row.split("|")[7:9]] == ["none", ""]


def test_of_several_launches_each_counts_once_however_narrow_its_pairs():
    launches = [case(samples_a=[value] * 21, a=name) for value, name in ((1.0, "x"), (2.0, "y"), (9.0, "y"))]
    found = bench.judged(launches)
    assert found["value"] == 2.0 and found["interval"] == [1.0, 9.0]
    assert (found["pairs"], found["launches"], found["a"]) == (63, 3, "y")


def test_samples_that_make_no_pairs_are_refused():
    with pytest.raises(errors.HaloscopeError, match="make no pairs"):
        bench.judged([case(samples_b=[1.0])])
    with pytest.raises(errors.HaloscopeError, match="none of a/b"):
        bench.judged([case(value="a*b")])


def test_few_pairs_and_missed_bars_show_in_the_table():
    row = bench.judged([case(samples_a=[1.0] * 3, samples_b=[1.0] * 3)])
    text = bench.table([row | {"environment": {"mpi_library": "MPICH Version: 5.0.2"}}])
    assert "fewer than 20 pairs" in text and "| NO" in text


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("MPICH Version: 5.0.2 MPICH Release date: x", "MPICH 5.0.2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI 4.1.4"),
        ("Open MPI 4.1.4 (Debian), PETSc 3.18.5 (Debian)", "Open MPI 4.1.4"),
    ],
)
def test_figures_on_several_mpis_are_told_apart_by_name_and_version(library, name):
    assert bench.mpi_name({"mpi_library": library}) == name


def figure(monkeypatch, tmp_path, script: str):
    """A figure whose program is `script`, with results kept apart."""
    path = executable(tmp_path / "prog", script)
    monkeypatch.setattr(bench.Program, "command", lambda self: [str(path)])
    monkeypatch.setattr(bench, "FIGURES", {"f": [bench.Program("prog")]})
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results" / "bench.jsonl")


def test_each_case_becomes_one_line_with_its_environment(monkeypatch, tmp_path, capsys):
    figure(monkeypatch, tmp_path, f"echo '{json.dumps(case())}'\n")
    assert bench.main(["--figure", "f"], standalone_mode=False) == 0
    [line] = (tmp_path / "results" / "bench.jsonl").read_text().splitlines()
    stored = json.loads(line)
    assert {"figure", "case", "value", "interval", "unit", "bar", "holds", "pairs", "environment"} <= set(stored)
    assert {"cpu", "cores", "compiler", "mpi_library", "commit", "time_utc"} <= set(stored["environment"])
    assert "| f" in capsys.readouterr().out
    assert bench.main(["--figure", "f", "--quick"], standalone_mode=False) == 0
    assert len((tmp_path / "results" / "bench.jsonl").read_text().splitlines()) == 1


def test_a_program_that_fails_is_an_error_and_an_absent_one_is_named(monkeypatch, tmp_path, capsys):
    figure(monkeypatch, tmp_path, "echo no json; exit 4\n")
    with pytest.raises(errors.HaloscopeError, match="code 4"):
        bench.main(["--figure", "f"], standalone_mode=False)
    monkeypatch.undo()
    monkeypatch.setattr(bench, "FIGURES", {"f": [bench.Program("bench_that_is_not_built")]})
    assert bench.main(["--figure", "f"], standalone_mode=False) == 3
    assert "bench_that_is_not_built is not built" in capsys.readouterr().out


def test_only_cases_with_a_bar_are_counted(monkeypatch, tmp_path, capsys):
    lines = "".join(f"echo '{json.dumps(case(case=str(bar), bar=bar))}'\n" for bar in (None, 2.0, 3.0))
    figure(monkeypatch, tmp_path, lines)
    assert bench.main(["--figure", "f", "--quick"], standalone_mode=False) == 0
    assert "1 of 2 cases with a bar reach it." in capsys.readouterr().out


COMPILED = [p for programs in bench.FIGURES.values() for p in programs if not p.name.endswith(".py")]


@pytest.mark.long
@pytest.mark.parametrize("program", [pytest.param(p, id=f"{p.name}-{p.ranks}{p.preset}") for p in COMPILED])
def test_every_program_of_a_figure_begins_to_measure(program):
    command = [*program.command(), "--quick"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as started:
        try:
            output, _ = started.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return
    assert started.returncode == 0, output


def test_an_unknown_figure_gets_the_nearest_names():
    with pytest.raises(errors.UsageError, match="did you mean exchange"):
        bench.main(["--figure", "exchnge"], standalone_mode=False)


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of bench/ by its name."""
    monkeypatch.syspath_prepend(Path(bench.__file__).parent)
    return importlib.import_module


def printed(capsys) -> list[dict]:
    """What the lines that a script has printed are judged to be."""
    return [bench.judged([json.loads(line)]) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("name", ["plan", "predict"])
def test_figures_of_whole_processes_run_each_command_as_often_and_in_turn(script, monkeypatch, capsys, name):
    processes, commands = script("processes"), []
    monkeypatch.setattr(processes.sys, "argv", [f"{name}.py", "--quick"])
    monkeypatch.setattr(processes, "seconds", lambda command: commands.append(command) or 2.0)
    cases = script(name).CASES
    processes.report(name, cases)
    assert commands == [command for command, _ in cases.values()] * (1 + processes.QUICK_RUNS)
    found = printed(capsys)
    assert [f["case"] for f in found] == list(cases)
    assert {(f["value"], f["pairs"], f["unit"]) for f in found} == {(2.0, 2, "s")}
    assert {f["bar"]: f["holds"] for f in found} == {bar: bar >= 2 for _, bar in cases.values()}


def test_the_regret_of_tuning_is_against_the_fastest_of_those_measured_again(script, monkeypatch, capsys):
    """Launches of unequal pace pair: in each the pick takes 1.25 times the second of the finalists."""
    tune = script("tune")

    def row(name: str, seconds: float) -> Row:
        return Row(name, {}, {f"launch-{n}": [seconds * n, seconds * n] for n in range(1, 6)}, [])

    rows = {name: row(name, seconds) for name, seconds in (("pick", 1.25), ("a", 1.5), ("b", 1.0))}
    outcomes = [tune.Outcome("c", pick, ["a", "b"], 100, 7.0, 70.0) for pick in ("pick", "b")]
    assert [tune.regret(outcome, rows) for outcome in outcomes] == [pytest.approx(1.25), 1.0]
    monkeypatch.setattr(tune, "group_rows", lambda found: list(rows.values()))
    tune.report(outcomes, [])
    found = printed(capsys)
    assert [f["value"] for f in found] == [pytest.approx(1.25**0.5), pytest.approx(0.1)]
    assert [f["holds"] for f in found] == [False, True]


def test_every_case_of_the_tune_figure_has_candidates(script):
    tune = script("tune")
    for app, side in tune.CASES:
        assert len(tune.candidates(app, side)) > 20


def test_no_two_held_out_requests_of_the_accuracy_figure_have_one_id(script):
    ids = [request.id for request in script("accuracy").held_out()]
    assert len(set(ids)) == len(ids) > 500
