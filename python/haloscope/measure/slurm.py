"""Job scripts for Slurm: the runs of a study, one job per number of nodes and ranks, each repeated within its job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import outputs
from haloscope.errors import UsageError
from haloscope.measure.request import Measurable

REPEATS = 3  # runs in one job, as in the thesis (Schroeter 2021, chapter 5)

TEMPLATE = """\
#!/bin/bash
# {job.about}
#SBATCH --job-name={job.name}
#SBATCH --nodes={job.nodes}
#SBATCH --ntasks={job.ranks}
#SBATCH --ntasks-per-node={per_node}
#SBATCH --cpus-per-task={threads}
#SBATCH --exclusive
#SBATCH --time={time}
#SBATCH --output={job.name}-%j.log
{extra}
# Set HALOSCOPE_RANK to the program haloscope-rank of a build with this cluster's MPI.
set -euo pipefail
: "${{HALOSCOPE_RANK:?set it to the path of haloscope-rank}}"
cd "${{SLURM_SUBMIT_DIR:-.}}"
export OMP_NUM_THREADS={threads}
for repeat in {repeats}; do
  srun --ntasks={job.ranks} --ntasks-per-node={per_node} --cpu-bind={job.binding} \\
    --distribution=block:{job.distribution}{srun_extra} \\
    "$HALOSCOPE_RANK" --requests {job.name}.requests.jsonl --output {job.name}.jsonl \\
    --launch-id "launch-$repeat" --expect-ranks {job.ranks}
done
"""
HEADING = "study.jsonl"
SUBMIT = f'#!/bin/bash\n# {outputs.SUBMITTING}\nset -e\ncd "$(dirname "$0")"\n'


@dataclass(frozen=True)
class Job:
    """One job: requests for one rank count on `nodes` nodes. binding: the value of --cpu-bind (cores, threads)."""

    name: str
    about: str
    requests: tuple[Measurable, ...]
    nodes: int
    minutes: int
    binding: str = "cores"
    distribution: str = "block"  # of the ranks of a node over its sockets
    repeats: int = REPEATS
    partition: str = ""
    account: str = ""
    oversubscribe: bool = False  # more ranks than cores

    @property
    def ranks(self) -> int:
        """Ranks of every request."""
        return self.requests[0].ranks

    def script(self) -> str:
        """Return the text of the job script. Raises UsageError when the ranks do not fill the nodes evenly."""
        if self.nodes < 1 or self.ranks % self.nodes:
            fault = f"{self.ranks} ranks cannot be spread evenly over {self.nodes} nodes"
            raise UsageError(f"{self.name}: {fault}; choose a divisor")
        if any(r.ranks != self.ranks for r in self.requests):
            raise UsageError(f"{self.name}: a job holds requests for one rank count")
        extra = [f"#SBATCH --partition={self.partition}"] * bool(self.partition)
        extra += [f"#SBATCH --account={self.account}"] * bool(self.account)
        return TEMPLATE.format(
            job=self,
            per_node=self.ranks // self.nodes,
            threads=max(r.threads for r in self.requests),
            time=f"{self.minutes // 60:02}:{self.minutes % 60:02}:00",
            extra="\n".join([*extra, ""]) if extra else "",
            repeats=" ".join(str(i + 1) for i in range(self.repeats)),
            srun_extra=" --overcommit" if self.oversubscribe else "",
        )

    def lines(self) -> str:
        """Return the text of the job's requests file."""
        return "".join(json.dumps(r.line()) + "\n" for r in self.requests)


def write(jobs: Sequence[Job], folder: Path, heading: Mapping | None = None) -> list[Path]:
    """Write each job's script and requests into `folder`, and `submit.sh`, which submits all of them.

    heading: a record about all records of the jobs, which goes to study.jsonl. Returns the files. Nothing is
    written if one of them exists and was not written by Haloscope; as `outputs.writing`.
    """
    texts = {}
    for job in jobs:
        texts[folder / f"{job.name}.sbatch"] = outputs.SCRIPT, job.script()
        texts[folder / f"{job.name}.requests.jsonl"] = outputs.REQUESTS, job.lines()
    texts[folder / "submit.sh"] = outputs.SUBMISSION, SUBMIT + "".join(f"sbatch {j.name}.sbatch\n" for j in jobs)
    if heading is not None:
        texts[folder / HEADING] = outputs.RECORDS, json.dumps(dict(heading)) + "\n"
    for file, (kind, _) in texts.items():
        outputs.refuse_foreign(file, kind)
    for file, (kind, text) in texts.items():
        outputs.write(file, kind, text)
    (folder / "submit.sh").chmod(0o755)
    return list(texts)
