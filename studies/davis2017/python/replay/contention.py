"""Messages at the same time, for the 2017 study's walltimes: latencies overlap, bytes take turns.

The study prints observations and no formula: in a node large messages follow one another, tiny ones do not; between
nodes the two directions barely disturb each other. The rule covers all of these. Its only fitted number is `duplex`,
the cost of a crossing message, which a profile's contention law has too. It holds on DawnDev, for which the study
printed the cost of pairs on one link (table A.12). Source: Davis 2017, section 5.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.model import segments
from haloscope.model.profile import Profile
from haloscope_studies.davis2017 import network


def batch_time(profile: Profile, where: str, one_way: Sequence[float], other_way: Sequence[float] = ()) -> float:
    """Return the seconds of concurrent messages on one shared resource (a node's memory, its link).

    where: locality class. one_way, other_way: bytes of each message in the two directions; either may be empty.
    The longest latency counts once. The bytes of a direction take turns; the bytes of the direction with less work
    add duplex - 1 of their time. Raises as `network.message_time` does.
    """
    law, (_, duplex) = profile.network_class(where)["segments"], network.contention(profile, where)
    found = [segments.segment_at(law, size) for size in (*one_way, *other_way)]
    turns = [segment.slope * size for segment, size in zip(found, (*one_way, *other_way), strict=True)]
    short, long = sorted((sum(turns[: len(one_way)]), sum(turns[len(one_way) :])))
    return max((segment.fixed for segment in found), default=0.0) + long + (duplex - 1) * short
