"""Studies, subcommands and flags of other distributions: found, used, absent, and broken."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import made_up_study

NONE = "from importlib import metadata; metadata.entry_points = lambda **_: (); "
SHORT = ("--steps", "2", "--repetitions", "1", "--warmup", "0", "--launches", "1", "--output", "r.jsonl")


def ended(folder: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run `haloscope WORDS...` in a folder, whose distributions are installed."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {before}from haloscope import cli; sys.exit(cli.main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=folder, check=False, capture_output=True, text=True)


@pytest.fixture
def installed(tmp_path):
    """Return a folder with a distribution of a study, a subcommand and a flag, and one of a broken subcommand."""
    shutil.copy(made_up_study.__file__, tmp_path)
    texts = {
        "made_up": "".join(
            f"[{group}]\n" + "".join(f"{name} = {entry.value}\n" for name, entry in found.items())
            for group, found in made_up_study.GUESTS.items()
        ),
        "broken": "[haloscope.commands]\nbroken = no_such_module:command\nmisspelt = made_up_study:comand\n",
    }
    for name, text in texts.items():
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(text)
    return tmp_path


def test_a_study_of_another_distribution_is_listed_and_runs(installed):
    assert "made-up      Made up 2026" in ended(installed, "study").stdout
    done = ended(installed, "study", "made-up", "--quick", "--output", "r.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Made up 2026: is a small grid a grid?\n\nMeasured on ")
    assert "\n\n1 measured\n" in done.stdout


def test_a_study_without_data_draws_no_figures_of_a_paper(installed):
    done = ended(installed, "study", "made-up", "--figures", "drawn")
    assert done.returncode == 2 and "made-up lists no figures of its paper" in done.stderr


def test_a_subcommand_of_another_distribution_is_one_of_haloscopes(installed):
    done = ended(installed, "greet")
    assert (done.returncode, done.stdout) == (0, "good day\n")
    assert "unknown command 'gret'; did you mean greet" in ended(installed, "gret").stderr


def test_flags_of_another_distribution_are_translated_and_may_replace_the_tables(installed):
    assert "haloscope run laplace2d --side 8" in ended(installed, "run", "--help").stdout
    assert "--side INTEGER" in ended(installed, "run", "--help-all").stdout
    done = ended(installed, "run", "laplace2d", "--side", "8", "--ranks", "1", *SHORT)
    assert (done.returncode, done.stdout) == (0, "1 measured\n")
    assert "records: r.jsonl" in done.stderr


def test_a_guest_that_cannot_be_imported_is_named_with_the_remedy(installed):
    done = ended(installed, "broken")
    assert done.returncode == 3
    assert done.stderr.startswith("haloscope: broken has 'broken', which cannot be imported: No module named")
    assert "install broken again, or uninstall it" in done.stderr
    misspelt = ended(installed, "misspelt")
    assert misspelt.returncode == 3 and "'misspelt', which cannot be imported" in misspelt.stderr


def test_a_fault_of_a_guest_is_reported_as_one_of_its_distribution(installed, monkeypatch):
    monkeypatch.delenv("HALOSCOPE_TRACE")
    done = ended(installed, "greet", before="import made_up_study as m; m.command.callback = lambda: 1 / 0; ")
    assert done.returncode == 1
    assert done.stderr.startswith("haloscope: a fault of made_up itself, ZeroDivisionError: division by zero; ")


def test_help_lists_all_commands_where_one_cannot_be_imported(installed):
    listed = ended(installed, "--help")
    assert listed.returncode == 0
    text = " ".join(listed.stdout.split())
    assert "greet" in text and "broken has 'broken', which cannot be imported: No module named" in text


def test_without_studies_the_commands_work_and_name_the_missing_distribution(tmp_path):
    listed = ended(tmp_path, "--help", before=NONE)
    assert listed.returncode == 0 and "new ones: none installed." in " ".join(listed.stdout.split())
    assert "blocks " not in listed.stdout
    for words, code in ((("study",), 3), (("study", "white2011"), 3), (("study", "--help"), 0), (("run", "--help"), 0)):
        done = ended(tmp_path, *words, before=NONE)
        assert done.returncode == code
        text = " ".join((done.stdout + done.stderr).split())
        assert "haloscope-studies is not installed; in a checkout, 'pip install ./studies' installs it" in text
    assert ended(tmp_path, "run", "laplace2d", "--cells", "8", "--ranks", "1", *SHORT, before=NONE).returncode == 0
