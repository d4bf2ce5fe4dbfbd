"""The hosts of an emulated cluster and the network between them, as Linux namespaces of this machine.

Each host has a separate network, name, shared memory (/dev/shm, System V) and set of cores; files and process numbers
are the machine's. Nothing is left behind: a namespace ends with its last process, and each ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import scratch
from haloscope.bridge import build
from haloscope.errors import HaloscopeError, UnavailableError
from haloscope.measure import launch
from haloscope.model.link import VARIABLE, Link

TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "taskset": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "ip": "iproute2",
}
NETWORK = "10.77.0"
MTU = 9000
INTERFACE = "eth0"
END_S = 5.0
UP_TRIES = 200

# The program that `mpiexec` starts instead of ssh: SHELL [OPTIONS] HOST COMMAND...
SHELL = """\
#!/bin/sh
while :; do
  case "$1" in
    -l | -p | -o | -i) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1
shift
exec "$(dirname "$0")/enter-$host" sh -c "$*"
"""

# The first process of a host. It ends when the process that made it closes its input, at the latest when that ends.
FIRST = """
set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$2" /etc/hosts
ip link set lo up
echo ready
read -r end || true
"""
SWITCH = """
set -e
ip link set lo up
echo ready
read -r go
exec "$@"
"""


@dataclass
class Host:
    """One host: its name, its first process, the cores that its processes run on."""

    name: str
    first: subprocess.Popen
    cores: Sequence[int]


def missing() -> str:
    """Return why this machine cannot emulate a cluster, "" when it can."""
    absent = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if absent:
        return f"an emulated cluster needs {', '.join(absent)}; install it with the system's package manager"
    tried = _run(["unshare", *_as_root(), "--net", "--uts", "--ipc", "--mount", "true"])
    if tried.returncode:
        reason = (tried.stderr.strip() or "no reason given").splitlines()[-1]
        return (
            f"this machine does not let {'root' if os.geteuid() == 0 else 'users'} make network namespaces ({reason}); "
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns) or run as root, in a container with --privileged"
        )
    return ""


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


class Cluster:
    """An emulated cluster, which exists during its context.

    Raises UnavailableError if the machine cannot emulate one. Cost: a tenth of a second, and the core time that
    forwards frames.
    """

    def __init__(self, link: Link):
        self.link = link
        self.hosts: list[Host] = []
        self._all = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        if reason := missing():
            raise UnavailableError(reason)
        program = build.delay_line()
        with self._all as stack:
            self.folder = stack.enter_context(scratch.folder(scratch.LAB))
            names = [f"node{k}" for k in range(self.link.hosts)]
            addresses = (f"{NETWORK}.{k + 1} {name}" for k, name in enumerate(names))
            self._listing("hosts", ["127.0.0.1 localhost", *addresses])
            self._script("shell", SHELL)
            switch = ["sh", "-c", SWITCH, "switch", *self._line(program)]
            self._switch = self._start(["unshare", *_as_root(), "--net", *switch])
            cores = _shares(sorted(os.sched_getaffinity(0)), self.link.hosts)
            for name, own in zip(names, cores, strict=True):
                words = ["unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-c", FIRST, "first"]
                first = self._start(self._of_switch(["--user"], [*words, name, str(self.folder / "hosts")]))
                self.hosts.append(Host(name, first, own))
            for k in range(len(names)):
                self._connect(k, program)
            self._tell_switch()
            for host in self.hosts:
                self._wait_until_up(host)
            for host in self.hosts:
                entry = shlex.join(self._entered(host, from_inside=True))
                self._script(f"enter-{host.name}", f'#!/bin/sh\nexec {entry} "$@"\n')
            self._all = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    def command(self, words: Sequence[str], host: int = 0) -> list[str]:
        """Return the command that runs `words` on a host, in this folder; it ends with the process that starts it."""
        here = ["sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd())]
        return [*self._entered(self.hosts[host]), "setpriv", "--pdeathsig", "TERM", "--", *here, *words]

    def environment(self) -> dict[str, str]:
        """Return the environment variables that list the hosts for launchers of MPI libraries and for Haloscope."""
        names = [host.name for host in self.hosts]
        slots = self._listing("hosts.slots", [f"{name} slots=1024" for name in names])
        shell = str(self.folder / "shell")
        hydra = {
            "HYDRA_HOST_FILE": self._listing("hosts.names", names),
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": shell,
            "HYDRA_BINDING": "none",
            "UCX_TLS": "tcp,self",
            "FI_PROVIDER": "tcp",
        }
        mca = {
            "btl": "tcp,self,vader,sm",
            "pml": "ob1",
            "btl_tcp_if_include": f"{NETWORK}.0/24",
            "oob_tcp_if_include": f"{NETWORK}.0/24",
            "plm_rsh_agent": shell,
            "orte_default_hostfile": slots,
            "hwloc_base_binding_policy": "none",
            "btl_base_warn_component_unused": "0",
        }
        prte = {"plm_ssh_agent": shell, "prte_default_hostfile": slots, "hwloc_default_binding_policy": "none"}
        return (
            {VARIABLE: self.link.to_json(), "HALOSCOPE_HOSTS": ",".join(names)}
            | hydra
            | {f"OMPI_MCA_{name}": value for name, value in mca.items()}
            | {f"PRTE_MCA_{name}": value for name, value in prte.items()}
        )

    def run(self, words: Sequence[str]) -> int:
        """Run a command on the first host and return its exit code. A signal ends it and its child processes."""
        process = subprocess.Popen(self.command(words), env=os.environ | self.environment())

        def pass_on(number: int, _: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

        handlers = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), pass_on)
        with launch.handling(handlers | {signal.SIGINT: signal.SIG_IGN}):  # the terminal sends this one to both
            code = process.wait()
        return 128 - code if code < 0 else code

    # ---- setup

    def _line(self, program: Path) -> list[str]:
        link = self.link
        numbers = (1e9 * link.latency_s, link.bandwidth_bytes_per_s, 1e9 * link.jitter_s)
        return [str(program), "switch", *(f"{x:.9g}" for x in numbers), *(f"port{k}" for k in range(link.hosts))]

    def _start(self, words: Sequence[str]) -> subprocess.Popen:
        """Start the first process of a namespace, and wait until it is ready."""
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._all.callback(_end, process)
        self._expect(process, "ready")
        return process

    def _expect(self, process: subprocess.Popen, *answers: str) -> str:
        assert process.stdout is not None and process.stderr is not None
        answer: str = process.stdout.readline().strip()
        if answer not in answers:
            process.kill()
            reason = process.stderr.read().strip() or "no reason given"
            raise UnavailableError(f"cannot emulate a cluster here: {reason}")
        return answer

    def _of_switch(self, namespaces: Sequence[str], words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` in namespaces of the switch; the user namespace only if it exists."""
        mine = [n for n in namespaces if n != "--user" or os.geteuid() != 0]
        kept = ["--preserve-credentials"] if "--user" in mine else []
        return ["nsenter", "--target", str(self._switch.pid), *mine, *kept, *words] if mine else list(words)

    def _entered(self, host: Host, from_inside: bool = False) -> list[str]:
        """Return the words before a command that move it to a host. from_inside: a process of a host runs them."""
        user = [] if from_inside or os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        spaces = [*user, "--net", "--uts", "--ipc", "--mount"]
        return ["nsenter", "--target", str(host.first.pid), *spaces, "taskset", "-c", ",".join(map(str, host.cores))]

    def _connect(self, k: int, program: Path) -> None:
        host = self.hosts[k]
        port = f"port{k}"
        in_switch, in_host = ("--user", "--net"), self._entered(host)
        pair = ["ip", "link", "add", port, "mtu", str(MTU), "type", "veth", "peer", "name", INTERFACE, "mtu", str(MTU)]
        _do(self._of_switch(in_switch, [*pair, "netns", str(host.first.pid)]))
        _do(self._of_switch(in_switch, [str(program), "plain", port]))
        _do([*in_host, str(program), "plain", INTERFACE])
        _do(self._of_switch(in_switch, ["ip", "link", "set", port, "up"]))
        _do([*in_host, "ip", "address", "add", f"{NETWORK}.{k + 1}/24", "dev", INTERFACE])
        _do([*in_host, "ip", "link", "set", INTERFACE, "up"])

    def _wait_until_up(self, host: Host) -> None:
        """Wait until the interface is up: Linux may report it after a second, and MPI libraries skip it until then."""
        words = [*self._entered(host), "ip", "-oneline", "link", "show", INTERFACE]
        for _ in range(UP_TRIES):
            if " state UP " in _run(words).stdout:
                return
            time.sleep(0.05)
        raise HaloscopeError(f"cannot set up an emulated cluster: the network of {host.name} does not come up")

    def _tell_switch(self) -> None:
        assert self._switch.stdin is not None
        self._switch.stdin.write("go\n")
        self._switch.stdin.flush()
        self.real_time = self._expect(self._switch, "real-time", "normal") == "real-time"

    def _listing(self, name: str, lines: Sequence[str]) -> str:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))
        return str(self.folder / name)

    def _script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)


def _shares(cores: Sequence[int], hosts: int) -> list[Sequence[int]]:
    """Return equal shares of the cores; all of them for each host where they are too few."""
    each = len(cores) // hosts
    return [cores[k * each : (k + 1) * each] if each else cores for k in range(hosts)]


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True)


def _do(words: Sequence[str]) -> None:
    done = _run(words)
    if done.returncode:
        raise HaloscopeError(f"cannot set up an emulated cluster: '{shlex.join(words)}' failed: {done.stderr.strip()}")


def _end(process: subprocess.Popen) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def inside(words: Sequence[str], link: Link) -> int:
    """Run a command on the first host of an emulated cluster and return its exit code."""
    with Cluster(link) as cluster:
        return cluster.run(words)
