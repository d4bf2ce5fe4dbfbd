"""The 2021 study: what it measures, its published figures, its tables, and a run on small grids."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from haloscope import records, studies
from haloscope.report import figures
from haloscope.studies import Options
from haloscope_studies.schroeter2021 import (
    cases as schroeter2021_cases,
)
from haloscope_studies.schroeter2021 import precision
from haloscope_studies.schroeter2021 import (
    report as schroeter2021_report,
)
from haloscope_studies.schroeter2021 import (
    study as schroeter2021,
)
from reports import section
from test_records import measurement

SMALL = Options(sizes=(6, 4), ranks=2, steps=12, repetitions=2, launches=2, nodes=2, cores=2)


@pytest.mark.ids("SG2")
@pytest.mark.parametrize("row", studies.published("schroeter2021", "weak_scaling_precisions"), ids=str)
def test_the_precision_finder_gives_the_published_residuals(row):
    last = -(-int(row["iteration"]) // 100) * 100  # the tabulated iterations are 99, 100, 4999, 5000
    found = precision.residuals(row["method"].replace("_", "-"), int(row["interlines"]), last)
    assert f"{found[int(row['iteration']) - last + 1]:.6e}" == f"{float(row['residuum']):.6e}"


def plain_residuals(in_place: bool, interlines: int, iterations: int, function: int) -> list[float]:
    """Residuals by the loops of the program, from the first line on."""
    count = 8 * interlines + 8
    u = [[0.0] * (count + 1) for _ in range(count + 1)]
    for i in range(count + 1 if function == 1 else 0):
        u[i][0] = u[0][i] = 1 - i / count
        u[i][count] = u[count][i] = i / count
    found = []
    for _ in range(iterations):
        old, residual = u if in_place else [list(row) for row in u], 0.0
        for i in range(1, count):
            for j in range(1, count):
                new = 0.25 * (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1])
                if function == 2:
                    new += 0.5 * (math.pi / count) ** 2 * math.sin(math.pi * i / count) * math.sin(math.pi * j / count)
                residual = max(residual, abs(new - u[i][j]))
                u[i][j] = new
        found.append(residual)
    return found


@pytest.mark.ids("SG2")
@pytest.mark.parametrize("function", [1, 2])
@pytest.mark.parametrize("method", precision.METHODS)
@pytest.mark.parametrize(("interlines", "iterations"), [(0, 40), (2, 60)])
def test_transforms_give_the_residuals_of_a_plain_loop(method, interlines, iterations, function):
    expected = plain_residuals(method == "gauss-seidel", interlines, iterations, function)
    found = [precision.residuals(method, interlines, k, function) for k in range(1, iterations + 1)]
    assert [last for _, last in found] == pytest.approx(expected, rel=1e-9)
    assert [before for before, _ in found] == pytest.approx([math.inf, *expected[:-1]], rel=1e-9)


@pytest.mark.ids("SG2")
@pytest.mark.parametrize(
    ("method", "interlines", "iterations", "expected"),
    [
        ("jacobi", 0, 10, "2.581787e-02"),
        ("gauss-seidel", 0, 10, "2.984447e-02"),
        ("jacobi", 10, 1000, "2.332824e-04"),
        ("jacobi", 30, 500, "6.475146e-04"),
        ("jacobi", 50, 500, "6.758782e-04"),
        ("jacobi", 100, 100, "3.544251e-03"),
        ("gauss-seidel", 100, 100, "3.783478e-03"),
    ],
)
def test_the_precision_finder_gives_the_reference_values(method, interlines, iterations, expected):
    assert f"{precision.residuals(method, interlines, iterations)[-1]:.6e}" == expected
    wanted = precision.target(method, interlines, iterations)
    assert (
        precision.residuals(method, interlines, iterations)[-1]
        < wanted
        < precision.residuals(method, interlines, iterations)[-2]
    )


@pytest.mark.ids("SG1")
def test_the_eight_experiments_compare_the_three_final_versions():
    made = schroeter2021_cases.eight_experiments(SMALL)
    kinds = {(c.variants[0][1].method, c.variants[0][1].scaling, c.variants[0][1].end) for c in made}
    assert len(made) == len(kinds) == 8
    assert all([name for name, _ in c.variants] == ["p2p", "rma", "shared"] for c in made)
    for c in made:
        for _, case in c.variants:
            assert not schroeter2021_cases.request(case, SMALL).refused


@pytest.mark.ids("SG1", "SA1")
def test_full_runs_have_the_published_sizes_ranks_and_precisions():
    full = schroeter2021.DEFAULTS["full"]
    table = {int(r["ranks"]): int(r["interlines"]) for r in studies.published("schroeter2021", "table_5_1")}
    for ranks in schroeter2021_cases.FULL_RANKS:
        case = schroeter2021_cases.Case("jacobi", scaling="weak", ranks=ranks)
        assert schroeter2021_cases.interlines(case, full) == table[ranks]
        assert schroeter2021_cases.request(case, full).requests[0].choice.cells == (8 * table[ranks] + 7,) * 2
    assert full.launches >= schroeter2021_report.LEAST_LAUNCHES
    assert schroeter2021_cases.target(schroeter2021_cases.Case("jacobi", "precision"), full) == 7.0637e-5
    assert schroeter2021_cases.iterations(schroeter2021_cases.Case("jacobi"), full) == 5000
    assert schroeter2021_cases.iterations(schroeter2021_cases.Case("jacobi", scaling="weak"), full) == 100


@pytest.mark.ids("SG3", "SG6")
def test_every_topic_of_the_study_has_its_comparisons():
    made = schroeter2021_cases.comparisons(SMALL)
    assert {c.topic for c in made} == set(schroeter2021_cases.TOPICS) - {"Large case"}  # of 200 ranks
    assert all(len(c.variants) >= 2 for c in made)
    placed = [c for c in made if c.topic == "Placement"]
    assert {c.variants[0][1].nodes for c in placed} == {1, 2}
    crowded = [c for c in made if c.topic == "Full node"]
    assert {c.variants[0][1].ranks for c in crowded} == {2, 4}
    requests = schroeter2021.plan(SMALL).requests
    assert len({r.id for r in requests}) == len(requests)


def test_parts_are_compared_by_both_terminations_and_links_on_several_nodes_only():
    made = schroeter2021_cases.parts(SMALL)
    for topic in ("Synchronisation", "Links between nodes"):
        cases = [c.variants[0][1] for c in made if c.topic == topic]
        assert len(cases) == 8 == len({(c.method, c.scaling, c.end) for c in cases}), topic
        assert {c.nodes for c in cases} == {2 if topic == "Links between nodes" else 1}
    alone = schroeter2021_cases.parts(dataclasses.replace(SMALL, nodes=1))
    assert len(made) - len(alone) == 8 and not any(c.topic == "Links between nodes" for c in alone)
    odd = schroeter2021_cases.parts(dataclasses.replace(SMALL, ranks=3))
    assert not any(c.topic == "Links between nodes" for c in odd)
    for comparison in made:
        for _, case in comparison.variants:
            assert not schroeter2021_cases.request(case, SMALL).refused, comparison


def test_the_large_case_has_the_published_ranks_nodes_size_and_a_tabulated_precision():
    full = schroeter2021.DEFAULTS["full"]
    made = schroeter2021_cases.large(full)
    assert [len(c.variants) for c in made] == [3, 3, 3, 3, 3]
    case = schroeter2021_cases.Case("jacobi", "precision", ranks=200, nodes=5, interlines=3000)
    assert made[1].variants[0][1] == case
    assert 7.179002e-05 < schroeter2021_cases.target(case, full) < 7.181006e-05
    assert schroeter2021_cases.request(case, full).requests[0].choice.cells == (24007, 24007)


def test_published_ratios_are_those_of_the_thesis():
    ratios = schroeter2021_report.published_ratios()
    assert round(ratios["rma over p2p, all-to-last"], 3) == 1.237
    assert round(1 - ratios["shared over p2p, one full node"], 3) == 0.077
    assert round(ratios["shared over p2p, two nodes"], 3) == 1.364
    assert round(1 - ratios["split over one communicator"], 3) == 0.063


def made_up(seconds: dict[str, list[float]], options: Options) -> list[dict]:
    """Records of the whole study in which each version takes these seconds, one number per launch."""
    found = []
    for r in schroeter2021.plan(options).requests:
        choice = r.choice
        version = next((v for v in ("shared", "rma") if v in choice.strategy), "p2p")
        for launch, value in enumerate(seconds[version]):
            steps = 10 + 3 * ("precision=" in r.id and "gauss" in r.id)
            record = measurement(
                r.id,
                f"launch-{launch + 1}",
                [value, 1.01 * value, 0.99 * value],
                steps=steps,
                app=choice.app,
                cells=list(choice.cells),
                strategy=choice.strategy,
                schedule=choice.schedule,
                ranks=choice.ranks,
            )
            found.append(record)
    return found


@pytest.mark.ids("SG4", "SI1")
def test_ratios_to_p2p_name_a_version_only_outside_the_noise():
    noisy = {"p2p": [1.0, 1.3, 0.8, 1.1, 1.0], "rma": [1.1, 0.9, 1.2, 0.95, 1.0], "shared": [2.0, 2.4, 1.9, 2.1, 2.2]}
    text = schroeter2021.report(made_up(noisy, SMALL), SMALL)
    rows = section(text, "Run time over that of p2p")
    assert len(rows) == 8 + 4 + 2
    assert all("cannot tell apart" in row[5] and "shared" not in row[5] for row in rows)
    winners = section(text, "Which version for which case")
    assert len(winners) == 8 and not any(row[2] for row in winners)  # on 2 ranks and small grids, unlike the thesis
    clear = {"p2p": [1.0, 1.01, 1.02, 1.0, 1.0], "rma": [0.5, 0.51, 0.5, 0.5, 0.5], "shared": [2.0] * 5}
    rows = section(schroeter2021.report(made_up(clear, SMALL), SMALL), "Run time over that of p2p")
    assert all(row[5] == "rma" and float(row[1]) == pytest.approx(0.5, abs=0.01) for row in rows)


@pytest.mark.ids("SI1")
def test_too_few_launches_name_no_version_however_far_apart_they_are():
    clear = {"p2p": [1.0] * 4, "rma": [0.5] * 4, "shared": [2.0] * 4}
    rows = section(schroeter2021.report(made_up(clear, SMALL), SMALL), "Run time over that of p2p")
    assert all("cannot tell apart" in row[5] for row in rows)


@pytest.mark.ids("SG1", "SG3", "SG4", "SG6")
def test_the_report_has_a_table_per_topic(tmp_path):
    even = {"p2p": [1.0, 1.0], "rma": [1.2, 1.2], "shared": [0.9, 0.9]}
    found = made_up(even, SMALL)
    text = schroeter2021.report(found, SMALL)
    for topic in set(schroeter2021_cases.TOPICS) - {"Large case"}:
        assert section(text, topic), topic
    rows = section(text, "Published figures next to ours")
    assert len(rows) == 7 and all(row[3] == "not measured" for row in rows)  # no size or number of ranks is the thesis'
    files = schroeter2021.figures(found, SMALL, tmp_path / "f")
    assert [f.suffix for f in files] == [".svg", ".png"] and all(f.stat().st_size > 5000 for f in files)


@pytest.mark.ids("SG1", "SG3", "SG6")
def test_published_figures_stand_next_to_runs_of_the_same_ranks_nodes_and_size():
    full = schroeter2021.DEFAULTS["full"]
    even = {"p2p": [1.0, 1.0], "rma": [1.2, 1.2], "shared": [0.9, 0.9]}
    text = schroeter2021.report(made_up(even, full), full)
    rows = {(row[0], row[1]): row for row in section(text, "Published figures next to ours")}
    ours = {name.removeprefix("run time, "): row[2:4] for (name, _), row in rows.items()}
    assert ours["rma over p2p, all-to-last"] == ["1.237", "1.200"]
    assert ours["shared over p2p, one full node"] == ["0.923", "0.900"]
    assert ours["shared over p2p, two nodes"] == ["1.364", "0.900"]
    assert ours["shared over rma, traced"] == ["0.984", "0.750"]
    assert ours["split over one communicator"] == ["0.937", "1.000"]
    assert len(section(text, "Large case")) == 4 * 3
    assert {row[3] for (name, _), row in rows.items() if "extra" in name} == {str(13 - 5000)}
    winners = section(text, "Which version for which case")
    assert len(winners) == 8 * 7 and all(row[2] for row in winners)


def environment(found: list[dict], **parts) -> list[dict]:
    """The records with these parts of their environments."""
    return [record | {"environment": record["environment"] | parts} for record in found]


EVEN = {"p2p": [1.0, 1.0], "rma": [1.2, 1.2], "shared": [0.9, 0.9]}


@pytest.mark.ids("SG3")
def test_rows_name_hosts_and_imitated_nodes():
    one = schroeter2021.report(environment(made_up(EVEN, SMALL), hosts=["a", "a"]), SMALL)
    assert [row[0] for row in section(one, "Placement")][::3] == [
        "jacobi, 2 ranks, 1 host",
        "jacobi, 2 ranks, 1 host split into 2 nodes",
        "gauss-seidel, 2 ranks, 1 host",
        "gauss-seidel, 2 ranks, 1 host split into 2 nodes",
    ]
    two = schroeter2021.report(environment(made_up(EVEN, SMALL), hosts=["a", "b"]), SMALL)
    assert {row[0] for row in section(two, "Placement")} - {""} == {
        "jacobi, 2 ranks, 2 hosts",
        "gauss-seidel, 2 ranks, 2 hosts",
    }


def test_no_published_figure_stands_next_to_imitated_nodes():
    full = schroeter2021.DEFAULTS["full"]
    text = schroeter2021.report(environment(made_up(EVEN, full), hosts=["a"]), full)
    rows = section(text, "Published figures next to ours")
    measured = {f"{row[0]}, {row[1]}" for row in rows if row[3] != "not measured"}
    assert len(measured) == 2 and all(" on 1 node," in name for name in measured), measured
    winners = section(text, "Which version for which case")
    assert {row[0].split(", ")[-2] for row in winners if row[2]} == {"4 ranks", "8 ranks"}


def test_the_report_names_an_emulated_network():
    text = schroeter2021.report(environment(made_up(EVEN, SMALL), emulated_network={"latency_s": 5e-5}), SMALL)
    assert text.startswith("Network: ") and "50" in text.splitlines()[0]
    assert "Network" not in schroeter2021.report(made_up(EVEN, SMALL), SMALL)


def test_single_launches_show_no_interval():
    alone = {version: seconds[:1] for version, seconds in EVEN.items()}
    rows = section(schroeter2021.report(made_up(alone, SMALL), SMALL), "Eight experiments")
    assert rows and all(row[3] == "" and row[7] == "" for row in rows)
    rows = section(schroeter2021.report(made_up(EVEN, SMALL), SMALL), "Eight experiments")
    assert all(" .. " in row[3] for row in rows)


def test_ratios_are_drawn_on_a_logarithmic_axis(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda fig, stem: drawn.append(fig) or [])
    schroeter2021.figures(made_up(EVEN, SMALL), SMALL, tmp_path / "f")
    assert drawn[0].axes[0].get_xscale() == "log"


@pytest.mark.ids("SG1", "SG4")
def test_a_run_on_small_grids_measures_checks_and_reports_everything(haloscope):
    words = ("--sizes", "6,4", "--steps", 12, "--repetitions", 1, "--launches", 2, "--output", "r.jsonl")
    result = haloscope("study", "schroeter2021", "--quick", *words)
    assert result.code == 0, result.err
    file = records.read("r.jsonl")
    assert not file.bad_lines and file.measurements
    assert all(r["verification"]["status"] == "passed" for r in file.measurements)
    experiments = section(result.out, "Eight experiments")
    assert len(experiments) == 24
    by_precision = [r for r in file.measurements if "precision=" in r["id"]]
    assert by_precision and all(r["request"]["steps"] >= 12 for r in by_precision)
    assert all(r["request"]["steps"] == 12 for r in by_precision if "jacobi" in r["id"])
    assert "Published figures next to ours" in result.out and "r.svg" in result.err


@pytest.mark.ids("SG7")
def test_job_scripts_cover_the_full_study_without_measuring(haloscope, tmp_path):
    result = haloscope("study", "schroeter2021", "--slurm", "jobs")
    assert result.code == 0, result.err
    scripts = {p.stem for p in (tmp_path / "jobs").glob("*.sbatch")}
    assert {
        "schroeter2021-1x4",
        "schroeter2021-2x8",
        "schroeter2021-3x32",
        "schroeter2021-1x72",
        "schroeter2021-4x9",
    } <= scripts
    lines = (tmp_path / "jobs" / "schroeter2021-3x32.requests.jsonl").read_text().splitlines()
    requests = [json.loads(line)["request"] for line in lines]
    assert all(request["repetitions"] == 1 and request["ranks"] == 96 for request in requests)
    assert any(request["cells"] == [4103, 4103] and request["steps"] == 5000 for request in requests)
    refused = haloscope("study", "valen2023", "--slurm", "jobs")
    assert refused.code == 2 and "schroeter2021" in refused.err


def test_records_of_a_cluster_are_reported_without_measuring(haloscope, tmp_path):
    options = dataclasses.replace(schroeter2021.DEFAULTS["quick"], cores=2)
    found = made_up({"p2p": [1.0, 1.0], "rma": [1.2, 1.2], "shared": [0.9, 0.9]}, options)
    half = len(found) // 2
    for name, part in (("a.jsonl", found[:half]), ("b.jsonl", found[half:])):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in part))
    result = haloscope("study", "schroeter2021", "--quick", "--from", "a.jsonl", "--from", "b.jsonl")
    assert result.code == 0, result.err
    assert len(section(result.out, "Eight experiments")) == 24
