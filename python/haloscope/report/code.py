"""Lines of code that use a choice in a user's program, and the command that measures it."""

from __future__ import annotations

import shlex

from haloscope import bridge
from haloscope.bridge import Choice
from haloscope.measure.request import words_of
from haloscope.model.profile import Profile


def code_for(c: Choice) -> str:
    """Return the code that uses a choice in the user's program, and the command that measures it here."""
    step = bridge.step_of(c)
    if c.device or len(step.stages) > 1 or len(step.quantities) > 1:
        return f"## To measure it\n\n`{measuring_command(c)}`"
    layout, halo = bridge.make_layout(c), max(bridge.exchange_spec(c).low)
    cells, wraps = ", ".join(map(str, c.cells)), ", ".join(str(p).lower() for p in layout.periodic)
    memory = ", .memory = haloscope::MemoryKind::shared" if bridge.needs_shared_fields(c.strategy) else ""
    order = f', .process_grid = "{c.process_grid}"' * bool(c.process_grid) + ", .reorder = true" * (c.reorder != "none")
    real = {"f64": "double", "f32": "float"}[c.real]
    plain = c.schedule == "bulk" and c.depth == 1 and c.threads == 1
    in_place = any(sweep.in_place for stage in step.stages for sweep in stage.sweeps)
    return (
        f"## To use it\n\n```cpp\n"
        f"haloscope::Grid<{layout.dims}> grid{{comm, {{.cells = {{{cells}}}, .periodic = {{{wraps}}}{order}}}}};\n"
        f"haloscope::Field<{real}, {layout.dims}> u{{grid, {{.halo = {halo}, .slots = 2{memory}}}}};\n"
        f"{_exchange_code(c) if plain or in_place else _stepper_code(c)}```\n\n"
        f"To measure it: `{measuring_command(c)}`"
    )


def _exchange_code(c: Choice) -> str:
    verbs = "halo.start(slot);  /* interior */  halo.finish();  /* boundary */"
    if c.schedule == "bulk":
        verbs = "halo.exchange(slot);"
    return f'auto halo = haloscope::make_exchange(grid, {{u}}, "{c.strategy}");\n{verbs}\n'


def _stepper_code(c: Choice) -> str:
    """Return the lines of a Stepper, whose sweep is the user's function over boxes."""
    members = [f'choice.schedule = "{c.schedule}";', f'choice.strategy = "{c.strategy}";']
    members += [f"choice.threads = {c.threads};"] if c.threads > 1 else []
    if c.depth > 1:
        members += [f"choice.depth = {c.depth};", f"choice.substeps = haloscope::Substeps::{c.substeps};"]
    fused = ", {.fused = true}" if c.depth > 1 and c.substeps == "blocked" else ""
    note = "  // sweep: all steps of a tile in one call, see docs/use/library.md" if fused else ""
    return (
        f"haloscope::Choice choice;\n{' '.join(members)}\n"
        f"haloscope::Stepper step{{grid, {{u}}, choice, sweep{fused}}};{note}\nstep.run(steps);\n"
    )


def measuring_command(c: Choice) -> str:
    """Return the command that measures a choice."""
    return f"haloscope run {shlex.join(words_of(c))}"


def shape_hint(c: Choice, machine: Profile) -> str:
    """Return a sentence on the device block shape that the profile records as faster than the kernel's default.

    "" where the profile records none, or the choice has no device.
    """
    found = machine.data.get("device", {}).get("shapes", {}).get(bridge.kernel_of(c)) if c.device else None
    if not found:
        return ""
    return (
        f"Sweeps took {found['times']:.2f} of their time in other blocks when this machine was calibrated: "
        f"`--device-kernel {found['kernel']} --device-block {found['block']}`."
    )
