"""Exchanges that others have timed: the table, the fit, predictions, regret, and `haloscope validate --external`."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest

from haloscope.errors import UsageError
from haloscope.fit import external_fit as fits
from haloscope.fit import external_judge, external_table, ghexbench
from haloscope.model import profile as profiles

COLUMNS = "node_grid,socket_grid,core_grid,cells,halo,fields,element_bytes,strategy,median_s,cache_bytes"
ROW = "1x1x1,1x1x2,2x2x1,16x16x16,1,2,8,direct/p2p,1e-4,1e6"
STRATEGIES = (
    "direct/p2p",
    "ordered/p2p",
    "direct:fields=serial/p2p",
    "ordered:fields=serial/p2p",
    "direct/shared+p2p",
    "ordered/shared+p2p",
)
TRUTH = {
    "memory_bytes_per_s": 2e10,
    "scatter": 1.8,
    "latency_s": 8e-6,
    "injection_bytes_per_s": 2e9,
    "row_s": 2e-8,
    "field_returns": 0.9,
    "buffer_visits": 1.3,
    "message_s": 2e-6,
    "byte_s": 6e-10,
    "shared_message_s": 2e-6,
    "shared_row_s": 2e-8,
    "shared_byte_s": 1e-10,
}


def file_of(folder, *lines: str, columns=COLUMNS):
    path = folder / "theirs.csv"
    path.write_text("\n".join((columns, *lines)) + "\n")
    return path


def rows_of(path) -> list[external_table.Measured]:
    return list(external_table.read(path).rows)


def true_values(rows) -> dict[str, float]:
    return {fits.key_of(p, row): TRUTH[p.name] for row in rows for p in fits.PARAMETERS}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table whose times are those that the model predicts for TRUTH."""
    shapes = itertools.product(("1x1x1", "2x1x1"), (12, 20), (1, 2), (1, 3), STRATEGIES)
    lines = [
        f"{nodes},1x1x2,2x2x1,{n}x{n}x{n},{halo},{fields},8,{strategy},1,6e5"
        for nodes, n, halo, fields, strategy in shapes
    ]
    folder = tmp_path_factory.mktemp("made")
    rows = rows_of(file_of(folder, *lines))
    times = fits.Predictor(rows).times(true_values(rows))
    timed = [line.replace(",1,6e5", f",{t:.9e},6e5") for line, t in zip(lines, times, strict=True)]
    return file_of(folder, *timed)


# ---- the table ----


def test_a_row_is_read_with_what_it_leaves_out_at_its_default(tmp_path):
    [row] = rows_of(file_of(tmp_path, ROW))
    assert (row.process_grid, row.nodes, row.sockets, row.cores, row.threads) == ((2, 2, 2), 1, 2, 4, 1)
    assert row.strategy == "direct/p2p"
    assert (row.program, row.packs_all, row.centiles_s) == ("program", False, {})


def test_a_program_may_have_any_name(tmp_path):
    for name in ("3d-code", "7", "p5_s"):
        [row] = rows_of(file_of(tmp_path, f"{ROW},{name},2e-4", columns=f"{COLUMNS},program,p95_s"))
        assert (row.program, row.centiles_s) == (name, {"p95_s": 2e-4})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("1e-4", "0"), "column median_s holds '0', which is not a number above 0"),
        (("1e-4", "nan"), "column median_s holds 'nan'"),
        (("2x2x1", "2x2"), "core_grid has 2 dimensions, node_grid 3"),
        (("2x2x1", "2x0x1"), "column core_grid holds '2x0x1'"),
        (("direct/p2p", "direct/p3p"), "p3p"),
        ((",1,2,8,", ",99,2,8,"), "column halo holds '99', which is not a whole number from 1 to 64"),
        ((",1,2,8,", ",17,2,8,"), "a halo of 17 layers is wider than a block of 16 cells"),
        ((",1,2,8,", ",1,2,5,"), "element_bytes is 5; values have 4 or 8"),
        ((",1,2,8,", ",1,,8,"), "column fields holds ''"),
        (("1x1x1", "100x100x100"), "blocks; at most 1000000"),
        ((",1e6", ""), "another number of columns"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(tmp_path, change, complaint):
    with pytest.raises(UsageError, match="line 3") as raised:
        external_table.read(file_of(tmp_path, ROW.replace("16x16x16", "32x32x32"), ROW.replace(*change)))
    assert complaint in str(raised.value)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        external_table.read(tmp_path / "absent.csv")
    with pytest.raises(UsageError, match=r"unknown column 'medians'; did you mean median_s"):
        external_table.read(file_of(tmp_path, ROW, columns=COLUMNS.replace("median_s", "medians")))
    renamed = COLUMNS.replace("median_s", "time").replace("strategy", "variant")
    with pytest.raises(UsageError, match=r"unknown columns .*; it lacks the columns strategy, median_s; see docs/"):
        external_table.read(file_of(tmp_path, ROW, columns=renamed))
    with pytest.raises(UsageError, match="it lacks the column strategy"):
        external_table.read(file_of(tmp_path, columns=COLUMNS.replace("strategy,", "")))
    with pytest.raises(UsageError, match="holds no exchanges"):
        external_table.read(file_of(tmp_path))
    with pytest.raises(UsageError, match="lines 2 and 3 are the same exchange"):
        external_table.read(file_of(tmp_path, ROW, ROW))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="it is not text"):
        external_table.read(tmp_path / "binary.csv")


GHEXBENCH = ",".join((*ghexbench.COLUMNS, "bytes_both_ways_all_ranks"))


def test_columns_of_ghexbench_are_read_too(tmp_path):
    lines = [
        "27,64,double,ranks,1,4,xpmem_stage_onefield,2e-3,1577097216",
        "1,64,float,ranks,3,1,mpi_comm,2e-4,23286528",
    ]
    first, second = rows_of(file_of(tmp_path, *lines, columns=GHEXBENCH))
    assert (first.process_grid, first.nodes, first.cores) == ((9, 9, 12), 27, 18)
    assert (first.strategy, first.element_bytes) == ("ordered:fields=serial/shared+p2p", 8)
    assert first.packs_all
    assert (second.program, second.element_bytes, second.one_buffer) == ("mpi_comm", 4, True)


def test_the_bytes_that_a_row_counts_decide_what_its_values_are(tmp_path):
    found = external_table.read(file_of(tmp_path, "1,64,float,threads,1,1,mpi_comm,2e-3,14602752", columns=GHEXBENCH))
    assert found.rows[0].element_bytes == 8
    assert found.rows[0].threads == 18
    assert "real=float, mode=threads count 8 B" in found.notes[0]
    with pytest.raises(UsageError, match="values have 4 or 8"):
        external_table.read(file_of(tmp_path, "1,64,float,threads,1,1,mpi_comm,2e-3,14602", columns=GHEXBENCH))
    with pytest.raises(UsageError, match="not a cube of nodes"):
        external_table.read(file_of(tmp_path, "2,64,float,ranks,1,1,mpi_comm,2e-3,14602", columns=GHEXBENCH))
    with pytest.raises(UsageError, match="unknown executable 'mpi_com'; did you mean mpi_comm"):
        external_table.read(file_of(tmp_path, "1,64,float,ranks,1,1,mpi_com,2e-3,14602", columns=GHEXBENCH))


# ---- the fit ----


def test_blocks_are_on_the_nodes_and_sockets_whose_boxes_they_are_in():
    from haloscope.fit import external_predictions

    custom = external_predictions.setting_of((2, 1, 1), (1, 1, 2), (2, 1, 1)).custom
    assert custom == ((0, 0), (0, 0), (1, 0), (1, 0), (0, 1), (0, 1), (1, 1), (1, 1))


def test_a_fit_to_some_exchanges_predicts_the_others(made):
    """The times are the model's own, of costs that the fit does not know."""
    rows = rows_of(made)
    seen = external_judge.half_of_cases(rows)
    assert 0 < len(seen) < len(rows)
    fitted = fits.fit(seen, "made up")
    assert fitted.residual < 0.03
    rest = [row for row in rows if row not in seen]
    errors = [abs(p.error) for p in external_judge.judge(rest, fitted).pairs]
    assert len(errors) == len(rest)
    assert np.median(errors) < 0.03
    assert max(errors) < 0.2


def test_what_a_row_does_not_depend_on_changes_nothing(made):
    """`used_by` decides what is predicted again."""
    rows = rows_of(made)
    values = true_values(rows)
    usual = fits.Predictor(rows).times(values)
    for parameter in fits.PARAMETERS:
        others = fits.Predictor(rows).times(
            {k: v * (1.5 if k.startswith(parameter.name + " ") else 1) for k, v in values.items()}
        )
        moved = [row for row, a, b in zip(rows, usual, others, strict=True) if a != b]
        assert all(parameter.name in fits.used_by(row) for row in moved)


def test_too_few_rows_and_programs_without_any_are_refused(tmp_path):
    rows = rows_of(file_of(tmp_path, *(ROW.replace("16x16x16", f"{n}x16x16") for n in range(8, 16))))
    with pytest.raises(UsageError, match="7 exchanges are too few"):
        fits.fit(rows[:7], "")
    fitted = fits.fit(rows, "")
    other = dataclasses.replace(rows[0], program="another")
    found = external_judge.judge([other], fitted)
    assert found.pairs == ()
    [(reason, count)] = found.left_out.items()
    assert count == 1
    assert "nothing was fitted for another" in reason


def test_a_strategy_that_the_model_has_no_costs_of_is_counted_with_the_reason(tmp_path):
    rows = rows_of(file_of(tmp_path, *(ROW.replace("16x16x16", f"{n}x16x16") for n in range(8, 16))))
    other = dataclasses.replace(rows[0], strategy="ordered/rma-fence")
    found = external_judge.judge([other], fits.fit(rows, ""))
    assert "rma-fence" in next(iter(found.left_out))


# ---- regret and subsets ----


def pairs_of(tmp_path, *times):
    """Two ways for each case; times: measured and predicted of the first and second."""
    lines = [
        ROW.replace("16x16x16", f"{8 + i}x16x16").replace("direct/p2p", s).replace("1e-4", str(t[k]))
        for i, t in enumerate(times)
        for k, s in ((0, "direct/p2p"), (2, "ordered/p2p"))
    ]
    rows = rows_of(file_of(tmp_path, *lines))
    predicted = [t[k] for t in times for k in (1, 3)]
    return [external_judge.Pair(row, s, {}, "") for row, s in zip(rows, predicted, strict=True)]


def test_regret_is_the_measured_time_of_the_pick_over_the_best(tmp_path):
    found = external_judge.summarize_regret(
        external_judge.cases(pairs_of(tmp_path, (1.0, 9.0, 2.0, 3.0), (1.0, 1.0, 8.0, 2.0)))
    )
    assert (found.count, found.mean, found.worst) == (2, pytest.approx(2**0.5), 2.0)
    assert found.constant == ("program", "direct/p2p")
    assert (found.constant_mean, found.constant_worst) == (1.0, 1.0)
    assert external_judge.summarize_regret([]) is None


def test_conditions_choose_rows_and_misspellings_are_told(made):
    rows = rows_of(made)
    chosen = external_judge.select(
        rows, [external_judge.parse_condition("nodes=1"), external_judge.parse_condition("fields=1,3")]
    )
    assert {(r.nodes, r.fields) for r in chosen} == {(1, 1), (1, 3)}
    with pytest.raises(UsageError, match="no row has nodes=3; there are 1, 2"):
        external_judge.select(rows, [external_judge.parse_condition("nodes=3")])
    for text, complaint in (
        ("nodes", "is not a condition"),
        ("node=1", "did you mean nodes"),
        ("nodes=", "is not a condition"),
    ):
        with pytest.raises(UsageError, match=complaint):
            external_judge.parse_condition(text)
    with pytest.raises(UsageError, match="all rows have threads=1"):
        external_judge.cross_validate(rows, "threads")


# ---- the command ----


def test_one_file_is_fitted_and_the_rest_of_another_predicted(made, tmp_path, haloscope):
    lines = made.read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.startswith("1x1x1"))]) + "\n")
    done = haloscope("validate --holdout halo=2 --json --profiles fitted -o report --external", part)
    assert done.code == 0
    report = json.loads(done.out)
    assert len(report["exchanges"]) == 24
    assert {e["halo"] for e in report["exchanges"]} == {"2"}
    assert report["errors"][0]["median"] < 0.1
    assert report["regret"]["mean"] >= 1
    head = "<!-- Written by haloscope validate -->\n\n# Predicted against measured"
    assert (tmp_path / "report.md").read_text().startswith(head)
    [path] = tmp_path.glob("fitted-*.json")
    assert profiles.load(path).data["memory"]["cache_bytes"] > 0
    done = haloscope("validate", "--external", made, "--fit", part)
    assert done.code == 0
    assert "48 others are predicted" in done.out
    assert "nothing" not in done.out.partition("## Not predicted")[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--external x.csv --profile toy", "remove RECORDS, --profile"),
        ("--external x.csv --fit y.csv --fit-on nodes=1", "give one of them"),
        ("--external x.csv --cross node", "did you mean nodes"),
        ("--fit x.csv records.jsonl --profile toy", "--fit belongs to --external"),
        ("records.jsonl", "--profile"),
        ("", "pass record files, or --external FILE"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_read(haloscope, words, complaint):
    done = haloscope(f"validate {words}")
    assert done.code == 2
    assert complaint in done.err
