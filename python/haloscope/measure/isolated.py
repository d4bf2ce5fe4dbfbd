"""Measurements of each request in a separate launch: a failure affects only the record of that request."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from haloscope import errors, files, records, scratch
from haloscope.measure import campaign, launch, probes
from haloscope.measure.request import Request
from haloscope.measure.space import Space


def ended_well(record: dict) -> bool:
    """Return whether a record holds times of a result whose verification did not fail."""
    return bool(record["kind"] == "measurement" and record["verification"]["status"] != "failed")


def reason(record: dict) -> str:
    """Return the reason that a record holds no such times."""
    found: str = record.get("reason", "its result differs from `reference`")
    return found


@dataclass
class Isolated:
    """Measures requests in one launch each, and appends every record to `output` before the next begins.

    timeout_s: wall time after which a launch is ended. resume: requests with a record in `output`, failures included,
    are not measured again; without it the file must not exist yet.
    """

    output: Path
    timeout_s: float = math.inf
    resume: bool = False
    complaints: list[str] = field(default_factory=list)
    _done: dict[tuple[str, str], dict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read existing records. Raises UsageError for a file not to be resumed, HaloscopeError if not writable."""
        files.refuse_additions(self.output)
        if self.output.is_file() and self.output.stat().st_size and not self.resume:
            raise errors.UsageError(f"{self.output} exists; continue it with --resume, or choose another --output")
        records.refuse_foreign(self.output)
        records.prepare(self.output)
        file = records.read(self.output)
        self.complaints += file.complaints()
        self._done = {(r["launch"]["id"], r["id"]): r for r in file.records if "tuning" in r and "launch" in r}

    def once(self, request: Request, launch_id: str) -> dict:
        """Measure one request and return its record, of kind measurement, failed or skipped.

        The record's `tuning.wall_s` is the whole cost, the start of the ranks included. Raises errors that do not
        concern this request alone: no program, no mpiexec, no space on the disk.
        """
        if known := self._done.get((launch_id, request.id)):
            return known
        begin = time.monotonic()
        record = _measured(request, launch_id, self.timeout_s)
        record["tuning"] = {"wall_s": time.monotonic() - begin}
        records.append(self.output, [record])
        self._done[launch_id, request.id] = record
        return record

    def paired(self, requests: list[Request], launches: int, name: str) -> tuple[list[dict], float]:
        """Measure requests interleaved, all of them in each launch; return records and wall seconds.

        Records go to a separate file, `output`-`name`. A rank that dies or gets stuck ends it: see `failed` records.
        """
        file = self.output.with_name(f"{self.output.stem}-{name}.jsonl")
        ids = {r.id for r in requests}
        held = {r["id"] for r in records.read(file).records} if file.is_file() else set()
        again = self.resume and held == ids  # launches of other requests do not pair with these
        run = campaign.Campaign(Space(requests), file, launches, resume=again, label=name)
        wanted, begin = set(run.launch_ids()), time.monotonic()
        try:
            found = run.run()
        except campaign.MeasuringFailed as failure:
            self.complaints.append(str(failure))
            found = run.results()
        return [r for r in found if r["launch"]["id"] in wanted], time.monotonic() - begin


def _measured(request: Request, launch_id: str, timeout_s: float) -> dict:
    if lacking := probes.lacking(*request.strategies):
        return records.skipped(request, lacking, errors.UNAVAILABLE, launch_id)
    with scratch.folder() as folder:
        file, findings = folder / "records.jsonl", probes.for_records()
        job = launch.Job([request], file, launch_id, findings=findings, limit_s=timeout_s)
        outcome = launch.run(job)
        left = records.read(job.output).records  # measurements, or the end of the ranks
    good = [r for r in left if r["id"] == request.id and r["kind"] == "measurement"]
    if good and not outcome.fault:
        return good[-1]
    if outcome.fault:
        return records.failed(request, outcome.fault, launch_id)
    words = "; ".join(outcome.messages) or outcome.last_words
    return records.skipped(request, words, outcome.exit_code, launch_id)
