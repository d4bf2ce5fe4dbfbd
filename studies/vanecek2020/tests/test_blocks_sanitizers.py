"""ThreadSanitizer on blocks that exchange buffers. Its build is made from scratch, so all are long."""

from __future__ import annotations

import pytest

import test_blocks_runs as blocks
from long_run import LONG
from test_sanitizers import fixed_addresses, on_devices, ranks_on_devices, recorded  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


# Where several threads call MPI, one of them may copy a message whose arrival another one finds. MPI orders the two by
# atomic operations that are not instrumented, and ThreadSanitizer sees the copy alone: it leaves MPI's copies out.
WITHOUT_COPIES = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}
OF_ONE_THREAD = [v for v in (*blocks.BASELINES, *blocks.TASKQUEUES, *blocks.PROPOSED) if v not in blocks.THREADED]


@pytest.mark.ids("NT2", "NX1")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("variants", "environment"),
    [pytest.param(OF_ONE_THREAD, {}, id="one-thread"), pytest.param(blocks.THREADED, WITHOUT_COPIES, id="threads")],
)
def test_thread_sanitizer_is_silent_on_blocks_that_tell_the_cpu(request, tmp_path, ranks, variants, environment):
    program = [request.getfixturevalue(name) for name in ("ranks_on_devices", "fixed_addresses")]
    lines = [blocks.request(variant, iterations=500 if LONG else 10) for variant in variants]
    found = recorded(lines, ranks, [program[0], *program[1]], tmp_path, "block_delay_us=50", **environment)
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(lines)
