"""Build the documentation as a searchable site in build/site, with the reference of C++, C, Fortran and Python.

usage: .venv/bin/python scripts/make_site.py    (`make site` calls it; needs doxygen, and the wheels of locked/site.txt)

The pages of the repository keep their links. The reference comes from docstrings, and from the comments of the public
headers and of haloscope.f90. Broken links and unreadable comments are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
WORK = ROOT / "build" / "site-work"
SOURCE, XML, TREES = (WORK / name for name in ("source", "xml", "trees"))
HEADERS = ROOT / "include" / "haloscope"
FORTRAN = next((ROOT / "src").rglob("haloscope.f90"))
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
# Sections of the site: title and pages, in the order of the reader.
SECTIONS = {
    "Use it": ["docs/README.md", "docs/use/*.md", "examples/README.md"],
    "Understand it": ["docs/understand/*.md", "docs/understand/measured/README.md"],
    "Your machine": ["docs/machine/*.md"],
    "Studies": ["studies/*.md", "studies/*/README.md", "studies/*/docs/*.md"],
    "Extend it": ["docs/extend/*.md", "CONTRIBUTING.md"],
    "Reference": ["reference/*.md"],
    "Design": ["docs/design/*.md"],
    "Project": ["CHANGELOG.md"],
}
FIRST = ("docs/use/tutorial.md", "docs/use/install.md", "docs/use/library.md", "docs/use/languages.md")
# Headers of the reference: most used first, then the others by name.
CPP = ("haloscope.hpp", "exchange.hpp", "stepper.hpp", "best.hpp", "strategy.hpp", "box.hpp", "layout.hpp", "field.hpp")
PYTHON = {
    "haloscope.exchange": ("Grid", "Field", "Exchange"),
    "haloscope.sums": ("sum", "dot", "norm"),
    "haloscope.jax": ("Exchange",),
    "haloscope.numba": ("handle", "run", "start", "finish", "accumulate", "start_accumulate"),
    "haloscope.advice.best": ("best", "Best"),
    "haloscope.errors": ("HaloscopeError", "UsageError", "UnavailableError"),
}


# ---- pages -----------------------------------------------------------------------------------------------------------


def pages() -> list[Path]:
    """Return the pages of the repository that are a part of the site."""
    listed = [path for patterns in SECTIONS.values() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return list(dict.fromkeys([*listed, *sorted(ROOT.glob("docs/understand/measured/*.md"))]))


def copy_pages() -> None:
    """Copy the pages and the files that they link to, with the same relative places."""
    for page in pages():
        target = SOURCE / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(in_site(page))
    figures = SOURCE / "docs" / "understand" / "measured"
    add_tree(figures / "README.md", sorted(path.stem for path in figures.glob("*.md") if path.stem != "README"))


def in_site(page: Path) -> str:
    """Return the text of a page with its links adapted to the site."""
    return LINK.sub(lambda m: moved(page, m), page.read_text())


def add_tree(page: Path, names: list[str]) -> None:
    """Add a hidden list of subordinate pages to a page; the text of the page links to them."""
    listed = "\n".join(names)
    page.write_text(f"{page.read_text()}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")


def moved(page: Path, link: re.Match) -> str:
    """Return a link of a page, adapted to the site; copy its target. A link to a header leads to its reference."""
    target = (page.parent / link[1]).resolve()
    if "://" in link[1] or not target.is_relative_to(ROOT):
        return link[0]
    if target.is_dir():
        raise SystemExit(f"{page.relative_to(ROOT)}: {link[1]} is a folder, which a site cannot show; link to a file")
    place = os.path.relpath(SOURCE, SOURCE / page.relative_to(ROOT).parent)
    if target.is_relative_to(HEADERS) and target.suffix in (".hpp", ".h"):
        return f"]({place}/reference/{'c' if target.suffix == '.h' else f'cpp-{target.stem}'}.md)"
    if target == ROOT / "README.md":
        return f"]({place}/index.md{link[2] or ''})"
    if target == FORTRAN:
        return f"]({place}/reference/fortran.md)"
    if target.suffix != ".md" and target.exists():
        copied = SOURCE / target.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copied)
    return link[0]


# ---- reference -------------------------------------------------------------------------------------------------------


def read_comments() -> None:
    """Read the comments of the public headers into XML, separately for C++ and C."""
    settings = (ROOT / "docs" / "site" / "Doxyfile").read_text()
    for name, patterns in {"cpp": "*.hpp", "c": "exchange.h status.h"}.items():
        folder = XML / name
        folder.mkdir(parents=True)
        own = f"INPUT = {HEADERS}\nFILE_PATTERNS = {patterns}\nOUTPUT_DIRECTORY = {folder}\n"
        own += f"STRIP_FROM_PATH = {HEADERS.parent}\nSTRIP_FROM_INC_PATH = {HEADERS.parent}\n"
        subprocess.run(["doxygen", "-"], input=settings + own, text=True, check=True, cwd=ROOT)


def first_sentence(header: Path) -> str:
    """Return the comment that a header begins with."""
    lines = header.read_text().splitlines()
    return " ".join(
        line.removeprefix("//").strip() for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "//")]
    )


def cpp_pages() -> dict[str, str]:
    """Return the page of each public header of C++, and their index."""
    headers = sorted(HEADERS.rglob("*.hpp"), key=lambda h: (CPP.index(h.name) if h.name in CPP else len(CPP), h.name))
    rows = [f"| [{h.relative_to(HEADERS.parent)}](cpp-{h.stem}.md) | {first_sentence(h)} |" for h in headers]
    index = "\n".join(["# C++", "", "| header | |", "|---|---|", *rows, ""])
    made = {"cpp": index}
    for h in headers:
        name = h.relative_to(HEADERS.parent)
        made[f"cpp-{h.stem}"] = f"# {name}\n\n{first_sentence(h)}\n\n" + directive("doxygenfile", h.name, project="cpp")
    return made


def c_page() -> str:
    """Return the page of the C interface."""
    parts = [
        f"## haloscope/{name}\n\n" + directive("doxygenfile", name, project="c") for name in ("exchange.h", "status.h")
    ]
    return "# C\n\n" + "\n".join(parts)


def python_page() -> str:
    """Return the page of the Python package."""
    parts = []
    for module, names in PYTHON.items():
        for name in names:
            kind = "autoclass" if name[0].isupper() else "autofunction"
            options = {"members": "", "special-members": "__call__"} if kind == "autoclass" else {}
            parts.append(directive(kind, f"{module}.{name}", **options))
    return "# Python\n\n" + "\n".join(parts)


def directive(name: str, argument: str, **options: str) -> str:
    """Return a directive of Sphinx in Markdown."""
    lines = [f"   :{key}: {value}".rstrip() for key, value in options.items()]
    return "\n".join(["```{eval-rst}", f".. {name}:: {argument}", *lines, "```", ""])


# ---- Fortran ---------------------------------------------------------------------------------------------------------

BOUND = re.compile(r"^    (?:procedure|generic) :: (\w+) => (\w+)", re.MULTILINE)
COMMENTED = re.compile(r"^ *!> (.*\n(?: *!!.*\n)*) *(?:\w+ )*(?:subroutine|function) (\w+)\(([^()]*)\)", re.MULTILINE)


def fortran_page() -> str:
    """Return the page of the module for Fortran: its types, and their procedures with comments."""
    text = FORTRAN.read_text()
    head = re.match(r"!> (.*\n(?:!! ?.*\n)*)", text)[1]
    found = {name: (comment, arguments) for comment, name, arguments in COMMENTED.findall(text)}
    parts = ["# Fortran", "", *unwrapped(head), "", "```fortran", "use haloscope", "```", ""]
    for name, body in re.findall(r"^  type :: (halo_\w+)\n(.*?)^  end type", text, re.MULTILINE | re.DOTALL):
        parts += [f"## {name}", ""]
        for public, own in BOUND.findall(body):
            comment, arguments = found[own if own in found else next(key for key in found if key.startswith(own))]
            shown = ", ".join(word.strip(" &\n") for word in arguments.split(",") if word.strip(" &\n") != "this")
            parts += [
                f"### {name}%{public}",
                "",
                "```fortran",
                f"{name}%{public}({shown})",
                "```",
                "",
                *unwrapped(comment),
                "",
            ]
    return "\n".join(parts)


def unwrapped(comment: str) -> Iterator[str]:
    """Yield the lines of a comment as Markdown: a list item for each parameter, code that is indented."""
    for line in comment.splitlines():
        text = re.sub(r"^ *!! ?", "", line)
        text = re.sub(r"^@param (\w+(?:, \w+)*) +", r"- `\1`: ", text)
        text = re.sub(r" @param (\w+(?:, \w+)*) ", r" `\1`: ", text)
        yield text if text.startswith(("    ", "- ")) and not text.startswith("                ") else text.strip()


# ---- the site --------------------------------------------------------------------------------------------------------


def index_page(made: list[str]) -> str:
    """Return the first page: the README, and the lists of pages by section."""
    parts = [in_site(ROOT / "README.md")]
    for title, patterns in SECTIONS.items():
        found = [str(p.relative_to(ROOT)) for pattern in patterns for p in sorted(ROOT.glob(pattern))]
        if title == "Reference":
            found = [f"reference/{name}.md" for name in made if not name.startswith("cpp-")]
        found = [*(name for name in FIRST if name in found), *(name for name in found if name not in FIRST)]
        lines = [name.removesuffix(".md") for name in dict.fromkeys(found)]
        if lines:
            parts += [f"```{{toctree}}\n:caption: {title}\n:hidden:\n", *lines, "```", ""]
    return "\n".join(parts)


def main() -> int:
    """Build the site. Return the exit code of Sphinx."""
    for folder in (SITE, WORK):
        shutil.rmtree(folder, ignore_errors=True)
    copy_pages()
    read_comments()
    reference = {**cpp_pages(), "c": c_page(), "fortran": fortran_page(), "python": python_page()}
    (SOURCE / "reference").mkdir()
    for name, text in reference.items():
        (SOURCE / "reference" / f"{name}.md").write_text(text)
    add_tree(SOURCE / "reference" / "cpp.md", [name for name in reference if name.startswith("cpp-")])
    (SOURCE / "index.md").write_text(index_page(list(reference)))
    shutil.copyfile(ROOT / "docs" / "site" / "conf.py", SOURCE / "conf.py")
    environment = {**os.environ, "HALOSCOPE_XML": str(XML), "HALOSCOPE_PYTHON": str(ROOT / "python")}
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(TREES)]
    words = [sys.executable, "-m", "sphinx", *options, str(SOURCE), str(SITE)]
    return subprocess.run(words, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
