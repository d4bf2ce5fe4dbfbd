"""ThreadSanitizer on blocks that exchange buffers. Its build is made from scratch, so all are long."""

from __future__ import annotations

import pytest

import test_blocks_runs as blocks
from long_run import LONG
from test_sanitizers import fixed_addresses, on_devices, ranks_on_devices, recorded  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.ids("NT2", "NX1")
@pytest.mark.parametrize("ranks", [1, 2])
def test_thread_sanitizer_is_silent_on_blocks_that_tell_the_cpu(request, tmp_path, ranks):
    program = [request.getfixturevalue(name) for name in ("ranks_on_devices", "fixed_addresses")]
    variants = [*blocks.BASELINES, *blocks.TASKQUEUES, *blocks.PROPOSED]
    lines = [blocks.request(variant, iterations=500 if LONG else 10) for variant in variants]
    found = recorded(lines, ranks, [program[0], *program[1]], tmp_path, "block_delay_us=50")
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(lines)
