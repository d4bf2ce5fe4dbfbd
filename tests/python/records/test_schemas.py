"""Documents held against the schemas: two libraries accept the same ones, and a fault is named by one or by both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest

from haloscope import records, schemas
from haloscope.model import profile
from mutate import changed
from toy import TOY

KEPT = Path(__file__).parents[3] / "results"
FILES = [
    KEPT / "transports.jsonl",
    KEPT / "gpu/nvidia-h200/blocks.jsonl",
    KEPT / "studies/davis2017-lab/records.jsonl.xz",
]


def documents():
    """The shortest kept record of each kind and a profile, with their schemas."""
    found = {"profile": (json.loads(TOY.read_text()), profile.SCHEMA_FILE)}
    kept = [record for file in map(records.read, FILES) for record in file.records + file.studies]
    for record in sorted(kept, key=lambda record: -len(json.dumps(record))):
        found[record["kind"]] = (record, records.SCHEMA_FILE)
    return found


DOCUMENTS = documents()


def accepts(document: object, file: Path) -> bool:
    return not list(schemas._validator(file, "").iter_errors(document))


def test_there_are_documents_of_many_kinds():
    assert {"profile", "measurement", "blocks", "study"} <= set(DOCUMENTS)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_both_libraries_accept_the_same_documents(kind):
    pytest.importorskip("jsonschema_rs")
    document, file = DOCUMENTS[kind]
    accepts_quickly = schemas._acceptance(file, "")
    assert accepts_quickly(document) and accepts(document, file)
    random = Random(kind)
    made = [changed(random, document) for _ in range(60)]
    assert [accepts_quickly(one) for one in made] == [accepts(one, file) for one in made]


def test_a_fault_is_named_without_the_quick_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schemas._acceptance.cache_clear()
    document, file = DOCUMENTS["measurement"]
    assert schemas.fault_of(document, file) == ""
    assert schemas.fault_of(document | {"schema": "other"}, file) == "schema: 'haloscope.record' was expected"
    schemas._acceptance.cache_clear()
