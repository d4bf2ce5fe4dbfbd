"""Machine profiles: reading, writing, what is refused, and the shipped ones."""

from __future__ import annotations

import copy
import json

import pytest

from haloscope.errors import UnavailableError, UsageError
from haloscope.model import profile, segments

SEGMENT = {"from_bytes": 0, "to_bytes": None, "latency_s": 1e-6, "per_byte_s": 1e-9}
LEAST = {
    "schema": "haloscope-profile",
    "schema_version": 1,
    "name": "least",
    "origin": "calibrated",
    "source": "a test",
    "machine": {"host": "h", "cpu": "c", "nodes": 1, "sockets_per_node": 2, "cores_per_socket": 6},
}


def with_part(path: str, value) -> dict:
    """The least profile with one part set; `path` is its place, parts separated by dots."""
    data = copy.deepcopy(LEAST)
    here = data
    *way, last = path.split(".")
    for name in way:
        here = here.setdefault(name, {})
    here[last] = value
    return data


def test_a_profile_survives_saving_and_loading(tmp_path):
    for name in profile.names():
        shipped = profile.load(name)
        profile.save(shipped, tmp_path / "new" / "p.json")
        assert profile.load(tmp_path / "new" / "p.json") == shipped


def test_published_machines_have_the_same_kernels_and_no_other_section_and_say_so():
    kernels = {name: profile.load(name).section("kernels").keys() for name in ("minerva", "hector", "hera", "dawndev")}
    assert "hydra.Madvmz1/A/f64" in kernels["minerva"]
    for name, own in kernels.items():
        assert own == kernels["minerva"]
        with pytest.raises(UnavailableError, match=f"profile '{name}' has no section 'pack'"):
            profile.load(name).section("pack")


def test_unknown_names_and_unreadable_files_are_refused_with_a_remedy(tmp_path):
    with pytest.raises(UsageError, match="did you mean minerva"):
        profile.load("minrva")
    with pytest.raises(UsageError, match=r"cannot read the profile .*No such file"):
        profile.load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"schema": ')
    with pytest.raises(UsageError, match=r"bad.json is not JSON"):
        profile.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({}, "it is not a machine profile"),
        (LEAST | {"schema_version": 2}, "version 2 of the format, this program reads 1"),
        ({k: v for k, v in LEAST.items() if k != "machine"}, "'machine' is a required property"),
        (LEAST | {"kernel": {}}, "'kernel' was unexpected"),
        (with_part("network.classes.rack", {"segments": [SEGMENT]}), "'rack' is not one of"),
        (with_part("network.classes.node", {"segments": []}), "network/classes/node/segments"),
        (with_part("network.classes.node", {"segments": [SEGMENT | {"per_byte_s": -1}]}), "less than the minimum"),
        (with_part("kernels.laplace", {}), "does not match"),
        (with_part("pack.lines", {"two": [SEGMENT]}), "'two' does not match"),
        (
            with_part("network.classes.node", {"segments": [SEGMENT | {"to_bytes": 8}, SEGMENT | {"from_bytes": 9}]}),
            "network/classes/node/segments: segments must follow one another: "
            "one ends at 8 bytes, the next starts at 9",
        ),
    ],
)
def test_profiles_that_are_not_valid_say_where_and_why(data, fault, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(data))
    with pytest.raises(UsageError) as caught:
        profile.load(tmp_path / "p.json")
    assert fault in str(caught.value)
    with pytest.raises(UsageError):
        profile.save(data, tmp_path / "q.json")
    assert not (tmp_path / "q.json").exists()


@pytest.mark.parametrize("section", ["network", "pack", "kernels", "reductions", "transports"])
def test_a_section_that_is_not_there_is_named(section):
    with pytest.raises(UnavailableError, match=f"profile 'least' has no section '{section}'"):
        profile.checked(LEAST).section(section)


def test_the_nearest_locality_class_is_used_and_of_two_the_farther_one():
    law = {
        "node": {"segments": [SEGMENT | {"latency_s": 1e-6}]},
        "self": {"segments": [SEGMENT | {"latency_s": 2e-6}]},
    }
    p = profile.checked(with_part("network.classes", law))
    latency = {c: p.network_class(c)["segments"][0].fixed for c in profile.CLASSES}
    assert latency == {"self": 2e-6, "socket": 1e-6, "node": 1e-6, "network": 1e-6}
    with pytest.raises(UsageError, match="unknown locality class"):
        p.network_class("rack")


def test_kernels_and_packing_are_read_by_name_and_count():
    row = {"from_cells": 0, "to_cells": None, "fixed_s": 0, "per_cell_s": 1e-9}
    p = profile.checked(with_part("kernels", {"a/b/f64": {"1": [row], "6": [row]}}))
    assert set(p.kernel("a/b/f64")) == {1, 6}
    with pytest.raises(UnavailableError, match="no cost of kernel 'a/c/f64'"):
        p.kernel("a/c/f64")
    q = profile.checked(with_part("pack", {"lines": {"2": [SEGMENT]}}))
    assert segments.evaluate(q.packing("lines")[2], 1000) == pytest.approx(2e-6)
    with pytest.raises(UnavailableError, match="packing strided data"):
        q.packing("strided")
