"""Write manual pages of `haloscope` and its subcommands: a wheel contains them.

usage: HALOSCOPE_BUILD=BUILD packaging/man_pages.py FOLDER

The pages are the help texts of the command line. Where the packages of a wheel's build are missing (pip's
--no-build-isolation), there are none.
"""

from __future__ import annotations

import re
import sys
from inspect import cleandoc
from pathlib import Path

try:
    import cffi  # noqa: F401 (the command line reads the fields of a choice from the library)
    import click
    from click_man.man import ManPage
except ImportError as error:
    print(f"no manual pages: {error}")
    sys.exit(0)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from haloscope import cli
from haloscope.options.kinds import GROUPS


def write_pages(folder: Path) -> None:
    """Write the pages of the library's commands; other distributions bring their own."""
    top = click.Context(cli.cli, info_name="haloscope")
    commands = {name: cli.cli.get_command(top, name) for name in cli.COMMANDS}
    first = page_of(top)
    first.commands = [(name, escaped(command.get_short_help_str(200))) for name, command in commands.items()]
    pages = [first, *(page_of(click.Context(one, parent=top, info_name=name)) for name, one in commands.items())]
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        (folder / (page.command.replace(" ", "-") + ".1")).write_text(str(page))


def page_of(context: click.Context) -> ManPage:
    """Return the page of a command: its help, then all its options in the order of --help-all."""
    command, page = context.command, ManPage(context.command_path)
    page.date, page.version = "", "Haloscope"
    page.short_help = escaped(command.get_short_help_str(200).rstrip("."))
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    page.description = roff_of(cleandoc(command.help))
    groups = list(GROUPS)
    options = [p for p in command.get_params(context) if isinstance(p, click.Option) and group_of(p) != "study"]
    options.sort(key=lambda option: (option.opts[0].startswith("--help"), groups.index(group_of(option))))
    records = [record for option in options if (record := option.get_help_record(context))]
    page.options = [(words, escaped(text)) for words, text in records]
    return page


def group_of(option: click.Option) -> str:
    """Return the group of --help-all that lists an option."""
    return getattr(option, "group", "everyday")


def roff_of(text: str) -> str:
    """Return a help text for man: lines of a paragraph that begins with a backspace stay as they are."""
    paragraphs = [escaped(paragraph) for paragraph in text.split("\n\n")]
    return "\n\n".join(re.sub("^\b\n(.*)", r".nf\n\1\n.fi", each, flags=re.DOTALL) for each in paragraphs)


def escaped(text: str) -> str:
    """Return text in which man finds no requests: no backslashes, no dots and quotes at starts of lines."""
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", r"\e"), flags=re.MULTILINE).replace("-", r"\-")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
