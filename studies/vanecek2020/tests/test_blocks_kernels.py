"""Source of the kernels of blocks: one body to pack, one to unpack, and the places of its atomic operations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[1] / "app"
SOURCES = {file.name: file.read_text() for file in APP.iterdir() if file.suffix in (".hpp", ".cpp")}


def bodies(source: str) -> dict[str, str]:
    """Return the text of each function of the device, by its name; operators by the struct that has them."""
    heads = list(re.finditer(r"^struct (\w+)|HALOSCOPE_FUNCTION [\w:]+ (\w+|operator\(\))\(", source, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(source)]
    found, struct = {}, ""
    for head, end in zip(heads, ends, strict=True):
        struct = head[1] or struct
        if head[2]:
            found[struct if head[2].startswith("operator") else head[2]] = source[head.end() : end]
    return found


def callers(pattern: str) -> set[str]:
    return {name for name, body in bodies(SOURCES["device.hpp"]).items() if re.search(pattern, body)}


@pytest.mark.ids("NC7")
def test_one_body_packs_and_one_unpacks_for_all_kernels():
    elsewhere = {name for name, text in SOURCES.items() if re.search(r"\be\.(out|in)\b", text)}
    assert elsewhere == {"device.hpp"}
    assert callers(r"\be\.out\b") == {"pack_elements"} and callers(r"\be\.in\b") == {"unpack_elements"}
    assert callers(r"\bpack_elements<") == {"pack_part"} and callers(r"\bunpack_elements<") == {"unpack_part"}
    assert callers(r"\bpack_part\(") == {"PackBlocks", "pack"}
    assert callers(r"\bunpack_part\(") == {"UnpackBlocks", "unpack"}
    assert {"pack", "unpack"} <= set(re.findall(r"\b(\w+)\(team, block", bodies(SOURCES["device.hpp"])["QueueBlocks"]))


@pytest.mark.ids("NT4")
def test_a_channel_is_posted_without_atomic_operations():
    assert callers(r"\b(take|add_to_word)\(") == {"append", "count_packed"}
    assert callers(r"\bappend\(") == {"post"} and callers(r"\bcount_packed\(") == {"pack"}
    functions = bodies(SOURCES["device.hpp"])
    assert "if (q.lock != nullptr) return append(block, chunk);" in functions["post"]
    assert "if (q.at_once > 0) team.one([&] { count_packed(); });" in functions["pack"]
