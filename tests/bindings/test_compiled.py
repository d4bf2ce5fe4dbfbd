"""Exchanges inside programs that JAX and Numba compile, on several ranks."""

from __future__ import annotations

import sys
import tomllib

import pytest

from long_run import LONG, or_long
from paths import RANK_PROGRAMS, ROOT
from programs import run
from test_exchange import on_ranks

EXAMPLES = ROOT / "examples" / "compiled"
OLDEST = {"jax": "jax>=0.10", "numba": "numba>=0.60"}


@pytest.mark.parametrize("ranks", or_long([2], [1, 4, 6]))
def test_exchanges_in_jax_and_their_derivatives_equal_their_matrix_and_its_transpose(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "jax_exchanges.py", *["whole"] * LONG) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3]))
def test_exchanges_in_functions_of_numba_have_the_bits_and_errors_of_plain_ones(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "numba_calls.py") == ["right"]


def test_examples_in_docstrings_of_jax_hold():
    code = "import doctest, haloscope.jax; print(*doctest.testmod(haloscope.jax))"
    failed, tried = on_ranks(1, "-c", code)
    assert failed == "0" and int(tried) > 5


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_heat_of_numba_has_the_digits_of_plain_python(ranks):
    heat = on_ranks(ranks, ROOT / "examples" / "heat" / "heat.py")
    assert on_ranks(ranks, EXAMPLES / "heat_numba.py") == heat and "0.584141112193374" in heat


def loss_without_ranks() -> float:
    """Return the loss of heat_jax.py by a program in JAX without ghost layers."""
    code = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
def step(u, _):
    return u + 0.2 * (sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u), None
def spread(u):
    return jax.lax.scan(step, u, None, length=20)[0]
y, x = np.indices((48, 32))
measured = spread(jnp.asarray((abs(y - 24) < 8) & (abs(x - 16) < 8), float))
loss = jax.jit(jax.value_and_grad(lambda u: 0.5 * jnp.sum((spread(u) - measured) ** 2)))
u = jnp.zeros((48, 32))
for _ in range(60):
    found, slope = loss(u)
    u = u - slope
print(float(found))
"""
    return float(run(sys.executable, "-c", code))


def test_the_gradients_of_an_example_lead_to_the_loss_of_a_program_without_ranks():
    wanted = loss_without_ranks()
    for ranks in (1, 2):
        assert float(on_ranks(ranks, EXAMPLES / "heat_jax.py")[-1]) == pytest.approx(wanted, rel=1e-8)


def test_an_example_of_compiled_programs_has_60_lines_at_most():
    sources = sorted(EXAMPLES.iterdir())
    assert [source.name for source in sources] == ["heat_jax.py", "heat_numba.py"]
    assert all(len(source.read_text().splitlines()) <= 60 for source in sources)


def test_structs_of_xla_are_laid_out_as_in_the_headers_of_jaxlib():
    import jax

    folders = [f"-I{ROOT / 'src'}", f"-I{jax.ffi.include_dir()}"]
    run("g++", "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", *folders, ROOT / "tests/bindings/xla_layout.cpp")


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
    code = "import haloscope, sys; haloscope.Exchange; print({'jax', 'numba'} & set(sys.modules))"
    assert run(sys.executable, "-c", code) == "set()\n"
