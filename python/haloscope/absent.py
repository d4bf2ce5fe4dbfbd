"""Transports and schedules that users may look for and that a build can lack, each with the reason."""

from __future__ import annotations

NOT_YET = "is not part of this version"
TRANSPORTS = {
    "reference": NOT_YET, "p2p": NOT_YET, "persistent": NOT_YET, "partitioned": NOT_YET, "neighbor": NOT_YET,
    "rma-fence": NOT_YET, "rma-pscw": NOT_YET, "rma-lock": NOT_YET, "rma-lockall": NOT_YET, "shared": NOT_YET,
    "auto": NOT_YET, "staged": NOT_YET, "aware": NOT_YET, "ipc": NOT_YET, "taskqueue": NOT_YET,
}  # fmt: skip
SCHEDULES = {
    "bulk": NOT_YET, "split": NOT_YET, "interleaved": NOT_YET, "comm-thread": NOT_YET, "pipeline": NOT_YET,
    "resident": NOT_YET, "streams": NOT_YET, "box": NOT_YET, "box-overlap": NOT_YET,
    "faces": NOT_YET, "faces-overlap": NOT_YET,
}  # fmt: skip
