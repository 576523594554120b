"""Faults that strike a village of real processes, by a schedule that follows from a seed and is written down.

A fault strikes once the village has come to the round that the schedule names; it is over when every member that it
struck has sent a later round. `faults.log` beside the members' logs has a line for each, to replay a run that failed.
"""

import os
import resource
import signal
import time
from dataclasses import dataclass

import doomed
import numpy as np
from proxy import Proxy
from village import free_ports
from waiting import wait_for

from confide.node.codes import Code
from confide.node.status import running

KINDS = {  # how many of each; some strike two members at once
    "kill": 30, "die paid": 4, "die noised": 4, "term": 6, "stop": 18, "full disk": 7, "full journal": 5, "hole": 4,
    "hole and reset": 10, "relay": 12,
}  # fmt: skip
STRIDE = (1, 6)  # rounds from one fault to the next
HEALED_SECONDS = 600.0  # of a machine that has much else to do; a black hole is noticed after 15


@dataclass(frozen=True)
class Fault:
    """What strikes whom, in which round, for how long."""

    number: int
    round: int
    kind: str
    victims: tuple[str, ...]
    seconds: float


def schedule(seed, members, behind_proxy, lost, last):
    """A list of faults, the same for the same seed; `lost` is struck by none after number `last`."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation([kind for kind, count in KINDS.items() for _ in range(count)])
    out, at = [], 4
    for number, kind in enumerate(map(str, kinds), start=1):
        at += int(rng.integers(*STRIDE))
        if kind == "relay":
            victims = ["relay"]
        elif kind.startswith("hole"):
            victims = [str(rng.choice(behind_proxy))]
        else:
            there = [name for name in members if name != lost or number <= last]
            several = 2 if kind in ("kill", "stop") and rng.random() < 0.3 else 1
            victims = [str(name) for name in rng.choice(there, size=several, replace=False)]
        out.append(Fault(number, at, kind, tuple(victims), float(rng.uniform(0.0, 0.4))))
    return out


class Havoc:
    """Strikes `village`, whose members in `ports` are reached through a proxy each."""

    def __init__(self, village, ports):
        self.village, self.struck = village, 0
        self.proxies = {name: Proxy(port, village.ports[name]) for name, port in ports.items()}
        self._log = (village.folder / "faults.log").open("a", buffering=1)
        self._began = time.monotonic()

    @staticmethod
    def ports(*names):
        return dict(zip(names, free_ports(len(names)), strict=True))

    def close(self):
        for proxy in self.proxies.values():
            proxy.close()
        self._log.close()

    def note(self, words):
        self._log.write(f"{time.monotonic() - self._began:7.2f} s  {words}\n")

    def story(self):
        return (self.village.folder / "faults.log").read_text()

    def strike(self, fault):
        """Wait for its round, strike, and wait until those who were struck, or need the relay, have moved on."""
        victims = fault.victims
        witnesses = [name for name in victims if name != "relay"] or list(self.village.outbound)
        assert self.village.passes(witnesses[0], fault.round - 1, HEALED_SECONDS), self.why(fault)
        before = {name: self.village.rounds_sent(name) for name in witnesses}
        self.note(f"{fault}, at {before}")
        getattr(self, "_" + fault.kind.replace(" ", "_"))(victims, fault.seconds)
        self.struck += 1
        for name, t in before.items():
            assert t < self.village.federation.algorithm.rounds, f"{fault}: the run is too short for so many faults"
            assert self.village.passes(name, t, HEALED_SECONDS), self.why(fault)

    def kill_once(self, name):
        """Outside the schedule, while nobody can move."""
        self.note(f"kill {name}")
        self._kill([name], 0.0)
        self.struck += 1

    def why(self, fault):
        logs = {name: self.village.log(name)[-2000:] for name in self.village.jobs}
        codes = {name: job.exitcode for name, job in self.village.jobs.items()}
        return f"{fault} was not survived; exit codes {codes}\n{self.story()}\n{logs}"

    # --- one method a kind ----------------------------------------------------------------------------------------

    def _kill(self, victims, seconds):
        self.village.kill(*victims)
        time.sleep(seconds)
        self.village.start(*victims)

    _relay = _kill

    def _die_paid(self, victims, seconds, spot="paid"):
        """Between the payment and the message: the round must be paid for again."""
        (name,) = victims
        self.village.kill(name)
        doomed.start(self.village, name, spot)
        job = self.village.jobs[name]
        assert wait_for(lambda: job.exitcode is not None, HEALED_SECONDS) and job.exitcode == -signal.SIGKILL
        self.village.start(name)

    def _die_noised(self, victims, seconds):
        self._die_paid(victims, seconds, "noised")

    def _term(self, victims, seconds):
        for name in victims:  # one that was started just now is a program that the system ends, until it holds the run
            assert wait_for(lambda name=name: running(self.village.run_folder(name)), HEALED_SECONDS)
        self.village.kill(*victims, how=signal.SIGTERM)
        codes = {name: self.village.jobs[name].exitcode for name in victims}
        assert codes == dict.fromkeys(victims, 128 + signal.SIGTERM), (codes, self.village.log(victims[0])[-2000:])
        self.village.start(*victims)

    def _stop(self, victims, seconds):
        for name in victims:
            os.kill(self.village.jobs[name].pid, signal.SIGSTOP)
        time.sleep(seconds)
        for name in victims:
            os.kill(self.village.jobs[name].pid, signal.SIGCONT)

    def _full_disk(self, victims, seconds):
        """Not a byte more in any file: the ledger is the first to want one."""
        self._limited(victims, 0)

    def _full_journal(self, victims, seconds):
        """As much room as the journal has taken: what is smaller may still grow, so that a round may be paid for."""
        self._limited(victims, (self.village.run_folder(victims[0]) / "journal").stat().st_size)

    def _limited(self, victims, size):
        (name,) = victims
        job = self.village.jobs[name]
        resource.prlimit(job.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        assert wait_for(lambda: job.exitcode is not None, HEALED_SECONDS), f"{name} goes on without a disk"
        assert job.exitcode == Code.SYSTEM, (job.exitcode, self.village.log(name)[-2000:])
        self.village.start(name)

    def _hole(self, victims, seconds):
        """Bytes are lost for a while and nobody is told: only pings find out."""
        proxy = self.proxies[victims[0]]
        proxy.silent = True
        time.sleep(seconds)
        proxy.silent = False

    def _hole_and_reset(self, victims, seconds):
        self._hole(victims, seconds)
        self.proxies[victims[0]].reset()
