"""Campaigns: several launches of all requests of a space, in random order, with one record file, resumable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from haloscope import errors, records
from haloscope.measure import launch, probes, progress
from haloscope.measure.request import Measurable
from haloscope.measure.space import Space, shuffled
from haloscope.terminal import say

LAUNCH_NAME = "launch-"


class MeasuringFailed(errors.HaloscopeError):
    """The ranks ended before everything was measured; carries their exit code."""

    def __init__(self, message: str, exit_code: int):
        """Store the exit code of the ranks."""
        super().__init__(message)
        self.exit_code = exit_code


@dataclass
class Campaign:
    """A space to measure: its record file, its launches, and their (reproducible) random order.

    heading: a record about the campaign, which goes to the file before all others. resumable: its command has
    --resume, which an interrupted campaign names.
    """

    space: Space
    output: Path
    launches: int = 3
    seed: int = 0
    resume: bool = False
    watchdog_s: float = 0.0
    inject: str = ""
    label: str = "measuring"
    heading: Mapping | None = None
    resumable: bool = True
    on_message: Callable[[str], None] = field(default=say)

    def launch_ids(self) -> list[str]:
        """Return the names of the launches to run: from the first with --resume, else after those in the file."""
        taken = [_launch_number(r) for r in _existing(self.output)]
        first = 0 if self.resume else max(taken, default=0)
        return [f"{LAUNCH_NAME}{first + i + 1}" for i in range(self.launches)]

    def run(self) -> list[dict]:
        """Measure, and return all records of this space in the file, including records of earlier launches.

        Raises MeasuringFailed when a rank dies or gets stuck; everything measured until then is in the file.
        """
        records.refuse_foreign(self.output)
        records.prepare(self.output)
        if self.heading is not None:
            records.append(self.output, [dict(self.heading)])
        self._set_lacking_aside()
        jobs = self._jobs()
        total = sum(len(job.requests) for job in jobs)
        try:
            with progress.Line(total, self.label) as line:
                for job in jobs:
                    self._run_job(job, line)
        except KeyboardInterrupt:
            if self.resumable:
                again = "" if self.resume else f" with --output {self.output} --resume"
                self.on_message(f"the records until now are in {self.output}; the same command{again} continues")
            raise
        return self.results()

    def run_showing(self, show: Callable[[list[dict]], None]) -> list[dict]:
        """Measure as `run` does, and show the records at the end.

        If measuring fails or is interrupted, show the records until then, if any, and raise the error.
        """
        try:
            found = self.run()
        except (KeyboardInterrupt, errors.HaloscopeError):
            if self.output.is_file() and (found := self.results()):
                show(found)
            raise
        show(found)
        return found

    def _jobs(self) -> list[launch.Job]:
        ids = self.launch_ids()
        held = _existing(self.output) if self.resume else []
        done = records.done(held)
        self._refuse_measured_otherwise(held, set(ids))
        self._note_refused(ids[0], done)
        jobs = []
        for number, launch_id in enumerate(ids):
            order = shuffled(self.space.requests, self.seed, number)
            todo = Space([r for r in order if (launch_id, r.id) not in done])
            settings = self.output, launch_id, self.watchdog_s, self.inject
            jobs += [launch.Job(group, *settings, probes.for_records()) for group in todo.by_ranks().values()]
        return jobs

    def _refuse_measured_otherwise(self, held: Sequence[dict], launch_ids: set[str]) -> None:
        """Raise UsageError for a record that would be reused but was measured with settings other than requested."""
        requests = {request.id: request for request in self.space.requests} if held else {}
        for record in held:
            if record["kind"] not in records.MEASURED or record["launch"]["id"] not in launch_ids:
                continue
            if record["id"] in requests and (other := _measured_otherwise(record, requests[record["id"]])):
                raise errors.UsageError(
                    f"{self.output} holds {record['id']} with {other}; resume with the same, or choose another --output"
                )

    def _set_lacking_aside(self) -> None:
        """Skip requests with a strategy that fails a probe of this MPI."""
        reasons = {names: probes.lacking(*names) for names in {r.strategies for r in self.space.requests}}
        self.space = Space(
            [r for r in self.space.requests if not reasons[r.strategies]],
            self.space.refused,
            [*self.space.lacking, *((r, why) for r in self.space.requests if (why := reasons[r.strategies]))],
        )

    def _note_refused(self, launch_id: str, done: set) -> None:
        """Append records of the requests that cannot run, with their reasons."""
        refused = [(*pair, errors.USAGE) for pair in self.space.refused]
        refused += [(*pair, errors.UNAVAILABLE) for pair in self.space.lacking]
        new = (one for one in refused if (launch_id, one[0].id) not in done)
        records.append(self.output, [records.skipped(*one, launch_id) for one in new])

    def _run_job(self, job: launch.Job, line: progress.Line) -> None:
        outcome = launch.run(job, on_record=lambda record: line.step(record.get("id", "")))
        if outcome.fault:
            reason = f"{outcome.fault.reason}; the measurements until then are in {self.output}"
            raise MeasuringFailed(reason, errors.FAILED)
        if len(outcome.records) < len(job.requests):
            self._explain(outcome)
        for message in outcome.messages:
            self.on_message(message)

    def _explain(self, outcome: launch.Outcome) -> None:
        """Raise the ranks' error; if mpiexec swallowed it, first check the likeliest cause: a file not writable."""
        if outcome.messages:
            raise MeasuringFailed("; ".join(outcome.messages), outcome.exit_code)
        records.try_to_write(self.output)
        raise MeasuringFailed(f"mpiexec ended with code {outcome.returncode}: {outcome.last_words}", outcome.exit_code)

    def results(self) -> list[dict]:
        """Return all records of this space in the file, good lines only; bad lines are reported."""
        file = records.read(self.output)
        for complaint in file.complaints():
            self.on_message(complaint)
        ids = {r.id for r in self.space.all()}
        return [r for r in file.records if r["id"] in ids]


def _measured_otherwise(record: Mapping, request: Measurable) -> str:
    """Return the first setting in which a record differs from a request, with both values; "" where none does.

    Steps count only if they were requested and the run could not end by itself: such a run records its actual steps.
    """
    kept = record["request"]
    counts_steps = not getattr(request, "seconds", 0) and "outcome" not in record
    for part in (*["steps"] * counts_steps, "seconds", "repetitions", "warmup", "iterations", "timers", "sizes"):
        name = "bytes" if part == "sizes" else part
        value = getattr(request, part, None)
        wanted = list(value) if isinstance(value, tuple) else value
        if name in kept and wanted not in (None, []) and kept[name] != wanted:
            return f"{name} {kept[name]}, and {value} is requested"
    return ""


def _existing(path: Path) -> list[dict]:
    return records.read(path).records if path.is_file() else []


def _launch_number(record: dict) -> int:
    name = record.get("launch", {}).get("id", "").removeprefix(LAUNCH_NAME)
    return int(name) if name.isdigit() else 0


def exit_code(found: Sequence[dict]) -> int:
    """Return 1 if a check failed, 0 if anything was measured, else the code of the reason that nothing was measured.

    A request that failed and was measured later, by a resumed run, has not failed.
    """
    measured = [r for r in found if r["kind"] in records.MEASURED]
    done = records.done(measured)
    unmended = any(r["kind"] == "failed" and (r["launch"]["id"], r["id"]) not in done for r in found)
    if unmended or any(r["verification"]["status"] == "failed" for r in measured):
        return errors.FAILED
    if measured:
        return errors.OK
    codes = {r["exit_code"] for r in found if r["kind"] == "skipped"}
    if errors.FAILED in codes:
        return errors.FAILED
    return errors.UNAVAILABLE if errors.UNAVAILABLE in codes else errors.USAGE if codes else errors.OK
