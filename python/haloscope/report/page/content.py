"""The sections of a page about some records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope.model.profile import Profile
from haloscope.report.page import Section, blocks, choices, messages, predictions, ranks, surroundings, write


def sections(found: Sequence[dict], profile: Profile | None = None) -> list[Section]:
    """Return all sections that some records carry. profile: of the machine, for predictions."""
    made = []
    if cases := choices.cases_of(found):
        made += [choices.summary(cases), choices.rankings(cases), choices.phases(cases), ranks.section(found)]
        made += [predictions.section(found, profile)] if profile else []
        made += [choices.curves(cases), predictions.roofline(found, profile)]
    made.append(blocks.section(found))
    made.append(messages.section(found, profile))
    made.append(surroundings.section(found))
    return made


def title(found: Sequence[dict]) -> str:
    """Return the title of a page: the apps and the machine of some records."""
    apps = list(dict.fromkeys(r["request"]["app"] for r in found if "app" in r.get("request", {})))
    cpus = list(dict.fromkeys(r["environment"].get("cpu", "") for r in found if "environment" in r))
    where = f" on {cpus[0]}" if len(cpus) == 1 and cpus[0] else f" on {len(cpus)} machines" * (len(cpus) > 1)
    return f"Halo exchange{': ' + ', '.join(apps[:4]) if apps else ''}{where}"


def write_about(
    path: Path,
    found: Sequence[dict],
    profile: Profile | None = None,
    first: Sequence[Section] = (),
    last: Sequence[Section] = (),
    refresh_s: int = 0,
) -> str:
    """Write the page about some records, and return the line that names it. Errors: as `outputs.writing`.

    first, last: sections before and after. refresh_s: seconds after which an open page loads itself again.
    """
    return write_sections(path, title(found), [*first, *sections(found, profile), *last], refresh_s)


def write_sections(path: Path, heading: str, parts: Sequence[Section], refresh_s: int = 0) -> str:
    """Write a page of the sections that have any content, and return the line that names it."""
    write(path, heading, [part for part in parts if part.words or part.charts or part.tables], refresh_s)
    return f"page: {path}"
