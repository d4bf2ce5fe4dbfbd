"""`haloscope plan`: tables and JSON for any rank count, and what bad input gets."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from haloscope import errors
from haloscope.commands.plan import command


def run(*words: str):
    """Run the subcommand alone, as the command line would."""
    return CliRunner().invoke(command, words)


def document(*words: str) -> dict:
    """Run it with --json and return what it prints."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.output)


def test_tables_show_grid_neighbours_messages_and_totals():
    result = run("advection3d", "--cells", "64x64x64", "--ranks", "8", "--depth", "2")
    assert result.exit_code == 0
    out = result.output
    assert "| process grid        | 2x2x2" in out
    assert "| block per rank      | 32x32x32" in out
    assert "| messages sent            |      48 |" in out
    assert "operation" not in out  # no program unless a schedule is asked for
    assert all(f"## {title}" in out for title in ("Rank 0", "Messages of rank 0", "One exchange, all 8 ranks"))


def test_a_program_is_shown_when_a_schedule_is_asked_for():
    result = run("laplace2d", "--cells", "32x32", "--ranks", "4", "--schedule", "split", "--tiles", "3")
    assert "## Program of rank 0: split" in result.output
    words = ("laplace2d", "--cells", "32x32", "--ranks", "4")
    [stage] = document(*words, "--schedule", "split", "--tiles", "3")["stages"]
    assert sum(op["kind"] == "progress" for op in stage["program"]["ops"]) == 2
    assert "program" not in document(*words)["stages"][0]


def test_json_and_tables_tell_the_same():
    words = ("advection3d", "--cells", "20x30x40", "--ranks", "6", "--strategy", "direct:merged/p2p", "--rank", "5")
    plan = document(*words)
    assert (plan["schema"], plan["schema_version"]) == ("haloscope.plan", 2)
    [stage] = plan["stages"]
    sent = [m for m in stage["messages"] if m["out"]]
    text = run(*words).output
    for m in sent:
        assert f"{m['bytes']:,}" in text
    assert stage["totals"]["ranks"] == 6
    assert plan["owned"]["hi"][0] - plan["owned"]["lo"][0] in (plan["block_cells_min"][0], plan["block_cells_max"][0])


def test_one_number_of_cells_is_a_cube_and_dimensions_may_be_closed():
    plan = document("laplace2d", "--cells", "24", "--ranks", "4", "--periodic", "x")
    assert plan["request"]["cells"] == [24, 24]
    assert plan["request"]["periodic"] == [True, False]
    assert {n["rank"] for n in plan["neighbours"] if n["direction"] == [0, -1]} == {-1}


def test_a_rank_alone_copies_and_sends_nothing():
    result = run("laplace3d", "--cells", "16", "--ranks", "1")
    assert "sends and receives no messages" in result.output
    assert "fills from itself" in result.output


@pytest.mark.ids("V5", "V13")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("laplac2d", "--cells", "64x64"), "did you mean laplace2d"),
        (("laplace2d", "--cells", "64x64x64"), "2"),
        (("laplace2d", "--cells", "0x64"), "0 cells in x"),
        (("laplace2d", "--cells", "-4x64"), "-4 cells in x"),
        (("laplace2d", "--cells", "64,128"), "one choice"),
        (("laplace2d", "--cells", "8x8", "--ranks", "100"), "ranks on 8 cells"),
        (("laplace2d", "--cells", "8x8", "--ranks", "0"), "use 1 to"),
        (("laplace2d", "--cells", "8x8", "--ranks", "4", "--depth", "5"), "reduce the depth"),
        (("laplace2d", "--cells", "8x8", "--strategy", "orderd/p2p"), "did you mean ordered/p2p"),
        (("laplace2d", "--cells", "8x8", "--schedule", "spilt"), "did you mean split"),
        (("laplace2d", "--cells", "8x8", "--strategy", "direct/p2p", "--schedule", "interleaved"), "one round"),
        (("laplace2d", "--cells", "8x8", "--ranks", "4", "--rank", "4"), "use 0 to 3"),
        (("laplace2d", "--cells", "8x8", "--process-grid", "3x1", "--ranks", "2"), "product is the rank count"),
        (("laplace2d", "--cells", "8x8", "--steps", "4", "--depth", "2", "--schedule", "bulk"), "4 steps at depth 2"),
    ],
)
def test_bad_input_names_the_fault_and_the_remedy(words, message):
    result = run(*words)
    assert isinstance(result.exception, errors.UsageError)
    assert message in str(result.exception)
    assert result.exception.exit_code == 2


def test_one_exchange_of_2048_ranks_is_added_up():
    """What it takes, a fraction of a second, is figure `plan`."""
    command_line = [sys.executable, "-m", "haloscope.commands.plan", "advection3d", "--cells", "420", "--ranks", "2048"]
    done = subprocess.run(command_line, check=True, capture_output=True, text=True)
    assert "all 2048 ranks" in done.stdout
    [sent] = (line for line in done.stdout.splitlines() if "messages sent" in line)
    assert [cell.strip() for cell in sent.split("|")[2:5]] == [f"{6 * 2048:,}", "6", "6"]


def test_nothing_heavy_is_imported():
    code = (
        "import sys, haloscope.commands.plan, haloscope.bridge;"
        "print([m for m in ('numpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
