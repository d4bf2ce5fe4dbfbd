"""Whatever the texts of records hold, figures of them are well-formed, show nothing that steers, and are soon drawn."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest

from guest_cases import guest_cases
from haloscope import records, terminal
from haloscope.bridge import build
from haloscope.report import figures
from long_run import LONG
from paths import ROOT
from test_any_file import emulated, imported, kept, measured
from test_any_input import time_limit
from test_records import write
from test_terminal import STEERS
from toy import TOY

EVIL = "\x1b[2J\u202e\ud800<b>&$\\frac{$" + "M" * 100_000
PLAIN = {"schedule": "bulk", "strategy": "ordered/p2p", "depth": 1}  # without which a figure has no base
OWN_TEXTS = ("validate", "map")  # commands whose figures have no text of a record
LONG_LINE = terminal.MOST_SHOWN + 100  # characters: a text of others, cut, after words of our own


# For each command that draws a figure of records: the records, and its words.
COMMANDS: dict[str, tuple[Callable[[], list[dict]], tuple]] = {
    "validate": (lambda: measured()[:4], ("validate", "r.jsonl", "--profile", TOY, "--samples", "2", "-o", "f")),
    "map": (
        emulated,
        ("map laplace2d --latency 50us --blocks 32 --depth 1 --measured r.jsonl --output f", "--profile", TOY),
    ),
    "microbench": (imported, ("microbench", "--from", "r.jsonl", "--figure", "f")),
    "demo": (lambda: kept("demo.jsonl", 24), ("demo", "--from", "r.jsonl", "--output", ".")),
} | guest_cases("DRAWING")


def texts_of(value: object, path: tuple = ()) -> set[tuple]:
    """The paths of all texts within a JSON value, the same for all members of a list."""
    if isinstance(value, dict):
        return set().union(*(texts_of(part, (*path, key)) for key, part in value.items()))
    if isinstance(value, list):
        return set().union(*(texts_of(part, path) for part in value))
    return {path} if isinstance(value, str) else set()


def rewritten(value: object, places: set[tuple], path: tuple = ()) -> object:
    """Return a JSON value with EVIL before the texts at some paths."""
    if isinstance(value, dict):
        return {key: rewritten(part, places, (*path, key)) for key, part in value.items()}
    if isinstance(value, list):
        return [rewritten(part, places, path) for part in value]
    return EVIL + value if isinstance(value, str) and path in places else value  # ids stay different


def free_texts(found: list[dict]) -> list[set[tuple]]:
    """The paths of texts that may be anything: each of a request alone, since it may decide what is drawn; the others
    together.
    """
    free = {path for path in texts_of(found) if not any(records.fault_of(rewritten(r, {path})) for r in found)}
    of_request = sorted(path for path in free if path[0] == "request")
    return [free - set(of_request), *({path} for path in (of_request if LONG else of_request[:1]))]


def check(drawing: str) -> None:
    assert not STEERS.search(drawing)
    texts = [element.text or "" for element in ElementTree.fromstring(drawing).iter() if element.tag.endswith("text")]
    assert texts and all(len(text) < LONG_LINE for text in texts)


@pytest.mark.parametrize("command", COMMANDS)
def test_any_text_of_a_record_is_a_short_text_in_a_figure(command, haloscope, tmp_path):
    make, words = COMMANDS[command]
    good, drawn = make(), []
    for places in free_texts(good):
        for file in tmp_path.iterdir():
            file.unlink()
        found = [r if PLAIN.items() <= r["request"].items() else rewritten(r, places) for r in good]
        write(tmp_path / "r.jsonl", *found)
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = haloscope(*words)
        assert result.code in (0, 2, 3), result.err
        drawn += [file.read_text() for file in tmp_path.glob("*.svg")]
    for drawing in drawn:
        check(drawing)
    assert drawn and (command in OWN_TEXTS or any(r"\x1b[2J\u202e\ud800&lt;b&gt;&amp;$" in one for one in drawn))


def test_labels_of_axes_and_lines_of_texts_are_few_and_short(tmp_path):
    def labelled(axes):
        axes.set_yticks([0, 1], [EVIL, "usual"])
        axes.set_yticks([0.5], [EVIL], minor=True)

    def named(axes):
        axes.bar([EVIL, "usual"], [1, 2], label=EVIL)
        axes.legend()

    def written(axes):
        axes.set(title=EVIL, xlabel=f"usual\n{EVIL}", ylabel="a\n" * 10_000)

    warnings.simplefilter("error")
    for number, draw in enumerate((labelled, named, written)):
        with figures.style():
            figure, axes = figures.plt.subplots(layout="constrained")
            draw(axes)
            svg, _ = figures.save(figure, tmp_path / str(number))
        check(svg.read_text())
        assert "usual" in svg.read_text()


def test_settings_of_the_current_folder_do_not_govern_figures(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 50\n")
    drawn = []
    for folder in (tmp_path, tmp_path / "bare"):
        folder.mkdir(exist_ok=True)
        words = ("from haloscope import cli", "cli.main(['demo', '--from', sys.argv[1], '--output', 'd'])")
        program = build.python("-c", "import sys; " + "; ".join(words), str(ROOT / "results" / "demo.jsonl"))
        subprocess.run(program, cwd=folder, check=True, capture_output=True)
        drawn.append((folder / "d" / "demo.svg").read_text())
    assert drawn[0] == drawn[1]


def test_names_that_begin_with_an_underscore_stand_in_legends():
    with figures.style():
        figure, axes = plt.subplots()
        for name in ("_sweep", "sweep"):
            axes.plot([1], [2], label=figures.legend_label(name))
        shown = [text.get_text().strip() for text in axes.legend().get_texts()]
    plt.close(figure)
    assert shown == ["_sweep", "sweep"]
