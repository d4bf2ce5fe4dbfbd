"""Tables of records."""

from __future__ import annotations

import pytest

from haloscope.errors import UsageError
from haloscope.records.rows import group_rows
from haloscope.report import tables
from test_records import measurement, spread


def three_configurations():
    found = []
    for k in range(4):
        found.append(measurement("base", f"launch-{k}", [1.0, 1.01, 0.99, 1.0]))
        found.append(measurement("fast", f"launch-{k}", [0.5, 0.51, 0.49, 0.5], depth=4))
        crowded = measurement("crowded", f"launch-{k}", [0.1, 0.1, 0.1], schedule="comm-thread", threads=2)
        crowded["environment"]["oversubscribed"] = True
        found.append(crowded)
    return found


def test_rows_are_ranked_fastest_first_and_oversubscribed_ones_last_without_a_place():
    table = group_rows(three_configurations())
    assert [row.id for row in table] == ["fast", "base", "crowded"]
    lines = tables.ranking(table, tables.baseline(table)).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == ["1", "2", "-"]
    assert "oversubscribed" in lines[2] and "1 (base)" in lines[1] and "2.00" in lines[0]


def test_the_baseline_is_plain_bulk_or_the_one_named():
    table = group_rows(three_configurations())
    assert tables.baseline(table).id == "base"
    assert tables.baseline(table, "fast").id == "fast"
    with pytest.raises(UsageError, match="did you mean fast"):
        tables.baseline(table, "fats")


@pytest.mark.ids("V16")
def test_phases_have_four_labelled_columns_of_statistics_over_ranks():
    record = measurement()
    record["phases_s"] = {"wait": spread(0) | {"rank0": 1e-6, "min": 2e-6, "mean": 3e-6, "max": 4e-6}}
    table = group_rows([record])
    header, _, line = tables.phases(table, "all").splitlines()
    assert [cell.strip() for cell in header.split("|")[3:7]] == ["rank 0 (us)", "min (us)", "mean (us)", "max (us)"]
    assert [cell.strip() for cell in line.split("|")[2:7]] == ["wait", "1.000", "2.000", "3.000", "4.000"]
    for statistic, value in (("rank0", "1.000"), ("min", "2.000"), ("mean", "3.000"), ("max", "4.000")):
        assert value in tables.phases(table, statistic)


@pytest.mark.ids("V17")
def test_outliers_are_counted_in_the_notes_and_stay_in_the_samples():
    record = measurement(seconds=(1.0, 1.01, 0.99, 1.0, 1.02, 5.0))
    [row] = group_rows([record])
    assert row.outliers == 1 and "1 outlier" in row.notes()
    assert row.step.samples == 6


def test_the_worst_verification_of_all_launches_is_shown():
    good, bad = measurement("a", "launch-1"), measurement("a", "launch-2")
    bad["verification"]["status"] = "failed"
    [row] = group_rows([good, bad])
    assert row.verification == "failed"


def test_texts_of_others_are_escaped_and_markup_of_our_own_is_not():
    texts = ["`a|b`", "![x](http://a.b/c)", "[x][y]", "[1]", tables.Markup("[page](page.md)")]
    text = tables.markdown([[text] for text in texts], ["cell"])
    shown = [line.removeprefix("|").removesuffix("|").strip() for line in text.splitlines()[2:]]
    assert shown == [r"\`a\|b\`", r"![x\](http://a.b/c)", r"[x\][y]", "[1]", "[page](page.md)"]


def test_a_comparison_has_no_winner_with_wrong_results_and_names_what_weakens_it():
    quick = [measurement("a", f"launch-{k}", [0.5, 0.51, 0.49]) for k in range(8)]
    slow = [measurement("a", f"launch-{k}", [1.0, 1.01, 0.99]) for k in range(8)]

    def compared() -> str:
        return tables.comparison([(group_rows(slow)[0], group_rows(quick)[0])])

    assert "B is 2 x faster |" in compared()
    quick[3]["environment"] |= {"oversubscribed": True, "cpu": "another"}
    assert "B is 2 x faster; B oversubscribed; other processors |" in compared()
    assert "of several processors" in group_rows(quick)[0].notes()
    slow[5]["verification"]["status"] = "failed"
    assert "none: the results of A are wrong |" in compared()
