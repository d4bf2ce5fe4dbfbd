"""The GoogleTest programs of the build on several ranks: one item per suite and number of ranks. See test_cpp.py."""

from __future__ import annotations

import pytest

from test_cpp import cases, check


@pytest.mark.parametrize(("program", "suite", "ranks"), list(cases(lambda ranks: ranks > 1)))
def test_gtest(program, suite, ranks, tmp_path, request):
    check(program, suite, ranks, tmp_path, request)
