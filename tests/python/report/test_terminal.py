"""Text that comes from files of others can do nothing to the terminal, to Markdown or to figures that it is printed
in.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from haloscope import cli, outputs, terminal
from haloscope.errors import UsageError
from haloscope.measure import probes, progress
from haloscope.report import tables
from paths import ROOT
from test_external import COLUMNS, ROW, file_of
from test_importers import OUTPUTS
from test_records import measurement, write
from toy import TOY

EVIL = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202eabc|`<script>$\\frac{$"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@given(st.text())
def test_what_is_printed_has_no_character_that_steers(text):
    for made in (terminal.printable(text), terminal.shown(text)):
        kinds = {unicodedata.category(c) for c in made} - ({"Cc"} if set("\n\t") & set(made) else set())
        assert "Cc" not in kinds
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029]", made)
        made.encode()


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_usual_text_is_printed_as_it_is(text):
    assert terminal.printable(text) == text


def test_control_characters_stand_as_their_codes_and_long_texts_end():
    assert terminal.shown("a\x1b[0m\u202e\n") == r"a\x1b[0m\u202e\n"
    assert terminal.shown("x" * 300) == "x" * 200 + "..."


def profile_of(folder: Path, **changes) -> Path:
    path = folder / "evil.json"
    path.write_text(json.dumps(json.loads(TOY.read_text()) | changes))
    return path


def records_of(folder: Path) -> Path:
    evil = measurement(EVIL, cells=[64, 64])
    evil["environment"] |= {"cpu": EVIL, "mpi_library": EVIL}
    evil["warnings"] = [EVIL]
    return write(folder / "evil.jsonl", evil, measurement("b", depth=2, cells=[64, 64]))


def imb_of(folder: Path) -> Path:
    text = (OUTPUTS / "imb-2021.txt").read_text()
    text = re.sub(r"(?<=MPI Benchmarks )[^,\n]+", lambda _: EVIL, text)
    (folder / "imb.txt").write_text(text + f"# Benchmarking {EVIL}\n")
    return folder / "imb.txt"


def skampi_of(folder: Path) -> Path:
    (folder / "skampi.txt").write_text((OUTPUTS / "skampi.txt").read_text() + f'\nbegin result "{EVIL}"\nend result\n')
    return folder / "skampi.txt"


COMMANDS = {
    "the name of a profile": lambda f: ("predict laplace2d --cells 64 -n 2 --profile", profile_of(f, name=EVIL)),
    "the version of a profile": lambda f: (
        "predict laplace2d --cells 64 --profile",
        profile_of(f, schema_version=EVIL),
    ),
    "a record": lambda f: ("validate", records_of(f), "--profile", TOY, "-o", f / "out"),
    "records compared": lambda f: ("compare", records_of(f), records_of(f)),
    "a column": lambda f: ("validate", "--external", file_of(f, ROW, columns=f"{COLUMNS},{EVIL}")),
    "a value": lambda f: ("validate", "--external", file_of(f, ROW.replace("direct/p2p", EVIL))),
    "IMB": lambda f: ("microbench", "--import", imb_of(f), "--output", f / "m.jsonl", "--figure", f / "m"),
    "SKaMPI": lambda f: ("microbench", "--import", skampi_of(f), "--output", f / "m.jsonl", "--figure", f / "m"),
    "hosts": lambda f: ("run", "laplace2d", "--cells", "64", "--hosts", EVIL),
    "an option": lambda f: ("run", EVIL),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_text_of_a_file_reaches_the_terminal_and_markdown_as_text_alone(name, haloscope, tmp_path):
    result = haloscope(*COMMANDS[name](tmp_path))
    assert result.code in (0, 1, 2, 3)
    assert "fault of haloscope" not in result.err
    assert not STEERS.search(result.out + result.err)
    figures = "".join(file.read_text() for file in tmp_path.glob("*.svg"))
    assert r"\x1b" in result.out + result.err + figures
    assert not STEERS.search(figures)
    for file in tmp_path.glob("*.md"):
        assert not STEERS.search(file.read_text())
        assert not re.search(r"(?<!\\)<script", file.read_text())


def test_notes_of_findings_are_printed_as_text(haloscope, monkeypatch):
    found = {
        "mpi_library": EVIL,
        "passed": ["start", "partitioned"],
        "failed": {"rma": EVIL},
        "notes": {"partitioned": EVIL},
    }
    monkeypatch.setattr(probes, "findings", lambda names="all": found)
    result = haloscope("info")
    assert "partitioned" in result.out
    assert not STEERS.search(result.out + result.err)


def test_a_cell_of_a_table_is_one_cell():
    made = tables.markdown([["a|b", "`c`"], ["<b>", "x < y"]], ["h|", "i"])
    lines = made.splitlines()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3, 3, 3, 3]
    assert r"\<b>" in made
    assert "x < y" in made


MARKUP = st.text(st.sampled_from("\\\\\\<<>|`&;#x3cab!/?-=\"' ")) | st.sampled_from(
    [
        r"\<script>alert(1)</script>",
        r"\\<b>",
        r"`\`<b>",
        "a\\",
        r"\|<!-- |",
        "&lt;b>",
        "<https://a.b>",
        "<?x",
        "<![CDATA[x]]>",
    ]
)


def rendered(text: str) -> list[Token]:
    """Return the tokens of Markdown, those within lines too, as a renderer that takes tags has them."""
    blocks = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [token for block in blocks for token in (block, *(block.children or ()))]


def is_live(token: Token) -> bool:
    return token.type.startswith("html") or token.markup == "autolink"


@given(MARKUP, MARKUP)
def test_a_cell_shows_its_text_and_has_no_tags_in_rendered_markdown(first, second):
    tokens = rendered(tables.markdown([[first, second]], ["a", "b"]))
    assert not any(map(is_live, tokens))
    cells = [after.children or () for before, after in itertools.pairwise(tokens) if before.type == "td_open"]
    assert ["".join(part.content for part in cell) for cell in cells] == [first.strip(), second.strip()]


@given(st.lists(MARKUP), MARKUP)
def test_a_file_of_markdown_has_no_tags(lines, cell):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.md"
        outputs.write_report(file, "\n".join([*lines, "", tables.markdown([[cell]], [cell]), "", *lines]))
        [mark] = [token.content for token in rendered(file.read_text()) if is_live(token)]
        assert mark.strip() == f"<!-- {outputs.VALIDATED} -->"


def test_what_is_printed_goes_through_one_place():
    free = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (*(ROOT / "python" / "haloscope").rglob("*.py"), *ROOT.glob("studies/*/python/**/*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"\bclick\.echo\(|(?<![\w.])print\(", line)
        and path.name not in ("terminal.py", "cli.py", "progress.py", "profiles.py")
    ]
    assert free == []


@pytest.mark.parametrize("fault", [KeyError("x\x1b"), RecursionError("deep"), ZeroDivisionError("division by zero")])
def test_a_fault_of_the_program_is_one_line_that_says_how_to_see_more(fault, monkeypatch, capsys):
    def fail(*_, **__):
        raise fault

    monkeypatch.setattr(cli.cli, "main", fail)
    with pytest.raises(type(fault)):
        cli.main(["info"])
    monkeypatch.delenv(cli.TRACE)
    assert cli.main(["info"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"{cli.TRACE}=1" in line
    assert type(fault).__name__ in line
    assert "\x1b" not in line


def test_an_error_is_one_line_whatever_it_quotes(monkeypatch, capsys):
    def fail(*_, **__):
        raise UsageError("a\nhaloscope: b\x1b[2J")

    monkeypatch.setattr(cli.cli, "main", fail)
    assert cli.main(["info"]) == 2
    assert capsys.readouterr().err == "haloscope: a\\nhaloscope: b\\x1b[2J\n"


def test_the_progress_line_shows_texts_of_others_as_they_are(monkeypatch):
    shown = io.StringIO()
    screen = Console(file=shown, force_terminal=True, width=200, highlight=False)
    monkeypatch.setattr(progress, "Console", lambda **_: screen)
    with progress.Line(2, "x[/bold]") as line:
        line.step("[red]y[/bold]")
        line.step(EVIL)
    assert "x[/bold] [red]y[/bold]" in shown.getvalue() and r"\x1b]52;c;aGk=" in shown.getvalue()
    assert "\x1b]52" not in shown.getvalue() and "\u202e" not in shown.getvalue()
