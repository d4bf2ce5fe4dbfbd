"""What compiled CUDA kernels cost: instructions a cell in the inner loop, and how wide and how early they load.

`nvdisasm -c FILE.cubin | python tests/support/cuda_code.py` prints it for every kernel that has a loop with stores.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

SECTION = re.compile(r"^\.text\.(\w+):$")
LABEL = re.compile(r"^(\.L_x_\d+):$")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
STORES = {"STG", "ST"}
REAL = re.compile(r"I([fd])E")
REALS = {"f": "f32", "d": "f64"}


@dataclass(frozen=True)
class Loop:
    """A loop of a kernel; a loop within it counts once.

    `loads`, `stores`: bytes of each of a thread's accesses to global memory, in their order.
    `first_loads`: loads before the first store that follows one, which are in flight together.
    """

    instructions: int
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    first_loads: int
    local: int
    shared_loads: int
    divisions: int

    def cells(self, real: int) -> float:
        """Cells of an iteration: each is stored once, by the widest stores where there are others for what is left
        over.
        """
        widest = max(self.stores)
        return self.stores.count(widest) * widest / real

    def per_cell(self, real: int) -> float:
        return self.instructions / self.cells(real)


def width(opcode: str) -> int:
    """Bytes that a thread loads or stores."""
    return next((WIDTHS[part] for part in opcode.split(".") if part in WIDTHS), 4)


def sections(listing: str) -> dict[str, tuple[list[tuple[str, str]], dict[str, int]]]:
    """Instructions and the places of labels of each kernel of an nvdisasm listing."""
    kernels: dict[str, tuple[list[tuple[str, str]], dict[str, int]]] = {}
    code, labels = [], {}
    for line in listing.splitlines():
        if match := SECTION.match(line):
            code, labels = kernels.setdefault(match[1], ([], {}))
        elif match := LABEL.match(line):
            labels[match[1]] = len(code)
        elif match := INSTRUCTION.match(line):
            code.append((match[1], match[2]))
    return kernels


def loop_of(code: list[tuple[str, str]]) -> Loop:
    opcodes = [opcode for opcode, _ in code]
    kinds = [opcode.split(".")[0] for opcode in opcodes]
    first = kinds.index("LDG") if "LDG" in kinds else 0
    end = next((i for i in range(first, len(kinds)) if kinds[i] in STORES | {"BAR"}), len(kinds))

    def of(*wanted: str) -> tuple[int, ...]:
        return tuple(width(opcode) for opcode, kind in zip(opcodes, kinds, strict=True) if kind in wanted)

    return Loop(
        instructions=len(code),
        loads=of("LDG"),
        stores=of(*STORES),
        first_loads=kinds[:end].count("LDG"),
        local=kinds.count("LDL") + kinds.count("STL"),
        shared_loads=kinds.count("LDS"),
        divisions=kinds.count("MUFU"),
    )


def loops(code: list[tuple[str, str]], labels: dict[str, int]) -> list[Loop]:
    """Those that store to global memory, each without the loops within it that store too."""
    spans = []
    for place, (opcode, words) in enumerate(code):
        target = TARGET.search(words) if opcode.startswith("BRA") else None
        if target and labels.get(target[1], place) < place:
            spans.append(range(labels[target[1]], place + 1))

    def stores(places: Iterable[int]) -> bool:
        return any(code[place][0].split(".")[0] in STORES for place in places)

    found = []
    for span in spans:
        within = [s for s in spans if s != span and s.start >= span.start and s.stop <= span.stop and stores(s)]
        own = [place for place in span if not any(place in s for s in within)]
        if stores(own):
            found.append(loop_of([code[place] for place in own]))
    return found


def inner_loops(listing: str) -> dict[str, list[Loop]]:
    """The loops of each kernel, by its short name."""
    found = {short_name(name): loops(*section) for name, section in sections(listing).items()}
    return {name: each for name, each in found.items() if each}


def short_name(mangled: str) -> str:
    """The kernel's template and its arguments: `StreamSweep Laplace3d f32 0`."""
    rest = re.sub(r"S\d*_", "", mangled.split("run_bodyI", 1)[-1])
    names = []
    while match := re.search(r"(L[bi])?(\d+)", rest):
        rest = rest[match.end() :]
        if match[1]:  # an argument that is a number
            names.append(match[2])
            continue
        names.append(rest[: int(match[2])])
        rest = rest[int(match[2]) :]
        if real := REAL.match(rest):
            names.append(REALS[real[1]])
    return " ".join(names)


def real_bytes(name: str) -> int:
    return 4 if "f32" in name.split() else 8


def table(listing: str) -> str:
    rows = [f"{'kernel':44} cells instr/cell LDG widest first STG LDS div local"]
    for name, each in sorted(inner_loops(listing).items()):
        real = real_bytes(name)
        rows.extend(
            f"{name:44} {loop.cells(real):5.4g} {loop.per_cell(real):10.1f} {len(loop.loads):3} "
            f"{max(loop.loads, default=0):6} {loop.first_loads:5} {len(loop.stores):3} {loop.shared_loads:3} "
            f"{loop.divisions:3} {loop.local:5}"
            for loop in sorted(each, key=lambda loop: loop.per_cell(real))
        )
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(sys.stdin.read()))
