"""One-line changes of C++ sources, for scripts/mutants.py: operators, constants, conditions, arguments, statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A line of a source, and the line that replaces it."""

    file: str
    line: int
    before: str
    after: str
    rule: str = ""


SWAPS = {"<": "<=", ">": ">=", "==": "!=", "+": "-", "*": "/", "+=": "-=", "&&": "||", "min": "max", "++": "--"}
SWAPS |= {after: before for before, after in SWAPS.items()} | {"%": "*"}
OPERATORS = {
    "relation": r"(?<= )([<>]=?|[!=]=)(?= )",
    "arithmetic": r"(?<= )([-+*/%]|[-+]=)(?= )",
    "logic": r"(?<= )(&&|\|\|)(?= )",
    "extreme": r"\b(min|max)(?=\(|_element\()",
    "count": r"(\+\+|--)",
}
CONSTANT = r"(?<![\w.<'])\d+(?:\.\d+)?(?![\w.>'])"
# Of an `if` or `while` on one line, without declarations.
CONDITION = r"\b(?:if|while) \(((?:[^()=;]|[!=<>]=|\((?:[^()]|\([^()]*\))*\))+)\) (?=\w|\{|\+|-)"
ARGUMENTS = r"(?<=\w\()([\w.\[\]]+), ([\w.\[\]]+)(?=\))"
WORDS = "return|using|throw|case|const|else|if|for|while|auto|static|namespace|delete"
STATEMENT = rf"(?![\w:<>, ]+[&*]? \w+ [={{]|(?:{WORDS})\b)\w.*;[ \0]*"  # neither a declaration nor the head of a block
RESULT = r"(?<=return )([^;{}]+)(?=;)"


def masked(line: str) -> str:
    """Return a line with characters of texts and comments replaced."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', lambda text: "\0" * len(text[0]), line)
    return re.sub(r"//.*", lambda text: "\0" * len(text[0]), line)


def changes(line: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield the changes of a line without its indentation: rule, begin and end of the changed part, new part."""
    code = masked(line)
    if re.match(r"#|\0|\*|static_assert|template|using ", code):
        return
    for rule, pattern in OPERATORS.items():
        for found in re.finditer(pattern, code):
            yield rule, found.span(1), SWAPS[found[1]]
    for found in re.finditer(CONSTANT, code):
        whole = int if found[0].isdigit() else float
        yield from (
            ("constant", found.span(), str(whole(found[0]) + one)) for one in (1, -1) if float(found[0]) + one >= 0
        )
    for found in re.finditer(CONDITION, code):
        yield "condition", found.span(1), f"!({line[slice(*found.span(1))]})"
    for found in re.finditer(ARGUMENTS, code):
        yield "arguments", found.span(), f"{found[2]}, {found[1]}"
    for found in re.finditer(RESULT, code):
        yield "result", found.span(1), "{}"
    if re.fullmatch(STATEMENT, code) and code.count("(") == code.count(")") and re.search(r"\(| [-+*/|]?= ", code):
        yield "statement", (0, len(line)), ";"


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Return all mutants of a source. Statements are dropped only where the line above ends one."""
    found, above = [], ";"
    for number, line in enumerate(text.split("\n"), 1):
        code = masked(line.strip())
        for rule, (begin, end), new in changes(line.strip()):
            if rule != "statement" or above.endswith((";", "{", "}")):
                after = line.strip()[:begin] + new + line.strip()[end:]
                found.append(Mutant(file, number, line.strip(), after, rule))
        above = code.rstrip("\0 ") or above
    return found
