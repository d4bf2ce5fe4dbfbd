"""All studies: their names, what they are, and what they refuse."""

from __future__ import annotations

from haloscope import studies


def test_an_unknown_study_gets_the_nearest_names(haloscope):
    result = haloscope("study", "wite2011")
    assert result.code == 2 and "did you mean white2011" in result.err


def test_the_studies_are_listed_when_none_is_named(haloscope):
    result = haloscope("study")
    assert result.code == 0
    assert "white2011" in result.out and "valen2023" in result.out


def test_a_study_without_versions_for_devices_says_so(haloscope):
    result = haloscope("study", "schroeter2021", "--quick", "--device", "host")
    assert result.code == 2 and "--device works with valen2023, vanecek2020" in result.err


def test_every_study_is_found_by_name_and_says_what_it_is():
    for name in studies.names():
        study = studies.load(name)
        assert study.SUMMARY
        assert set(study.DEFAULTS) == {"quick", "full"}
