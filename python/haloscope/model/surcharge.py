"""The cost of a transport beyond plain messages: all that a prediction knows about it."""

from __future__ import annotations

from dataclasses import dataclass

from haloscope import core
from haloscope.errors import NotAvailable
from haloscope.model.profile import Profile

PLAIN = "p2p"  # the transport that network costs are measured with; descriptions of others are relative to it
CONTIGUOUS_FROM, LINES_FROM = 4096, 64  # bytes without a gap: a page streams, a cache line is used whole


def stride_class(run_bytes: float) -> str:
    """Return the class of the profile's `pack` section for stretches of this many bytes without a gap."""
    return "contiguous" if run_bytes >= CONTIGUOUS_FROM else "lines" if run_bytes >= LINES_FROM else "strided"


def short_rows(traffic: core.Traffic) -> float:
    """Return how many stretches of memory shorter than a cache line a message has."""
    return 0.0 if traffic.in_place or traffic.run_bytes >= LINES_FROM else traffic.bytes / traffic.run_bytes


@dataclass(frozen=True)
class Surcharge:
    """The cost of a transport beyond plain messages, in seconds; copies: of each byte, beside packing."""

    per_message_s: float = 0.0
    per_round_s: float = 0.0
    per_exchange_s: float = 0.0
    per_byte_s: float = 0.0
    per_gapped_byte_s: float = 0.0  # of messages that are several stretches of memory
    per_row_s: float = 0.0  # per stretch that is shorter than a cache line
    per_touched_byte_s: float = 0.0  # received; shows in the sweep that reads it
    per_touched_row_s: float = 0.0
    copies: float = 0.0

    def of_message(self, traffic: core.Traffic) -> float:
        """Return the seconds that one message costs beside a plain one; may be negative."""
        gapped = 0 if traffic.in_place else traffic.bytes
        return (
            self.per_message_s
            + self.per_byte_s * traffic.bytes
            + self.per_gapped_byte_s * gapped
            + self.per_row_s * short_rows(traffic)
        )

    def of_reading(self, traffic: core.Traffic) -> float:
        """Return the seconds that sweeping takes longer because another core wrote the halo."""
        return self.per_touched_byte_s * traffic.bytes + self.per_touched_row_s * short_rows(traffic)


def surcharge(profile: Profile, transport: str) -> Surcharge:
    """Return the description of a transport as strategies write it, `NAME[:options]`.

    Raises NotAvailable when the profile has none for just these options.
    """
    known = {PLAIN: {}} | profile.data.get("transports", {})
    if transport not in known:
        raise NotAvailable(
            f"profile '{profile.name}' has no cost of transport '{transport}' (it has {', '.join(sorted(known))}); "
            f"calibrate with it, or choose another strategy"
        )
    return Surcharge(**{key: value for key, value in known[transport].items() if key in Surcharge.__dataclass_fields__})


def transports_of(strategy: str) -> tuple[str, str]:
    """Return the transports inside and between nodes of a strategy such as `ordered/shared+p2p`; often the same."""
    parts = strategy.partition("/")[2].split("+") if "/" in strategy else [strategy]
    return parts[0], parts[-1]
