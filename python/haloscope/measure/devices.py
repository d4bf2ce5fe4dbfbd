"""Back ends whose devices can hold the fields: present ones, reasons for absent ones, meaning of `--device auto`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haloscope.errors import UnavailableError, UsageError, unknown_name

if TYPE_CHECKING:
    from haloscope.model.profile import Profile

NONE, AUTO = "none", "auto"  # words for --device besides the names of back ends: the CPU; the first one present


def parse_devices(text: str) -> list[str]:
    """Return the items of --device, each once: names of back ends, `auto`, and "" for the CPU."""
    items = [item.strip() for item in text.split(",")]
    return list(dict.fromkeys("" if item == NONE else item for item in items))


def backends() -> list[dict]:
    """Return {"name", "absent": reason or "", "devices": [{"name", "total_bytes"}]} of each back end, real ones first.

    Starts the rank program. Raises UnavailableError without it.
    """
    from haloscope.measure import answers

    found: list[dict] = answers.information()["devices"]
    return found


def card() -> str:
    """Return the first back end that has a real device here, "" without one: the CPU's imitation does not count."""
    return next((b["name"] for b in backends() if not b["absent"] and b["name"] != "host"), "")


def default_device(option: str) -> str:
    """Return the back end that --device names or, if it names none, the back end of a GPU found here; "" for the CPU.

    Raises UsageError for several, and as `resolve` does.
    """
    if not option:
        return card()
    word = resolve(option)
    if "," in word:
        raise UsageError(f"--device '{option}' names several; give one")
    return "" if word == NONE else word


def resolve(text: str | None) -> str:
    """Return --device with `auto` replaced by the first present back end.

    Raises UsageError for an unknown name, UnavailableError with the reason for an absent back end.
    """
    words = parse_devices(text or NONE)
    known = {b["name"]: b["absent"] for b in backends()} if any(words) else {}
    for word in filter(None, words):
        if word not in (AUTO, *known):
            raise UsageError(unknown_name("device", word, [NONE, AUTO, *known]))
        if known.get(word):
            raise UnavailableError(f"device back end '{word}' is not available here: {known[word]}")
    first = next((name for name, absent in known.items() if not absent), "")
    if AUTO in words and not first:
        raise UnavailableError(f"no device is available here: {'; '.join(known.values())}")
    return ",".join(dict.fromkeys(first if word == AUTO else word or NONE for word in words))


def device_of(option: str | None, machine: Profile) -> str:
    """Return --device with `auto` replaced by the back end of a profile's device, and a lone `none` by "".

    Raises UnavailableError for `auto` if the profile has no device.
    """
    items = [machine.section("device")["backend"] if word == AUTO else word for word in parse_devices(option or "")]
    return ",".join(word or NONE for word in items) if any(items) else ""
