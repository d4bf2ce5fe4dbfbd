"""Exchanges inside programs that Numba compiles, on several ranks."""

from __future__ import annotations

import sys
import tomllib

import pytest

from long_run import or_long
from paths import RANK_PROGRAMS, ROOT
from programs import run
from test_exchange import on_ranks

EXAMPLES = ROOT / "examples" / "compiled"
OLDEST = {"numba": "numba>=0.60"}


@pytest.mark.parametrize("ranks", or_long([1, 2], [3]))
def test_exchanges_in_functions_of_numba_have_the_bits_and_errors_of_plain_ones(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "numba_calls.py") == ["right"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_heat_of_numba_has_the_digits_of_plain_python(ranks):
    heat = on_ranks(ranks, ROOT / "examples" / "heat" / "heat.py")
    assert on_ranks(ranks, EXAMPLES / "heat_numba.py") == heat and "0.584141112193374" in heat


def test_an_example_of_compiled_programs_has_60_lines_at_most():
    sources = sorted(EXAMPLES.iterdir())
    assert [source.name for source in sources] == ["heat_numba.py"]
    assert all(len(source.read_text().splitlines()) <= 60 for source in sources)


@pytest.mark.parametrize("name", OLDEST)
def test_a_package_that_is_missing_is_named_when_its_module_is_imported(name):
    code = f"""
import sys
sys.modules[{name!r}] = None
import haloscope
haloscope.Exchange
try:
    import haloscope.{name}
except haloscope.UnavailableError as error:
    print(error)
"""
    assert f"pip install '{OLDEST[name]}'" in run(sys.executable, "-c", code)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras[name] == ["haloscope[exchange]", OLDEST[name]]


def test_the_package_does_not_import_them_by_itself():
    code = "import haloscope, sys; haloscope.Exchange; print({'numba'} & set(sys.modules))"
    assert run(sys.executable, "-c", code) == "set()\n"
