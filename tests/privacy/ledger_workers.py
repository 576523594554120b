"""Processes for the ledger's tests: one that imports once, then forks a worker for each line it is sent.

charge PATH RUN SIDE      charge round after round, and note each in SIDE once it is paid, until killed
race PATH RUN WHEN WHAT   at time WHEN try once to `charge` or `reserve`; exit code 0 if admitted, 3 if refused
open PATH WHEN            at time WHEN open the ledger
"""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from confide.privacy import Gaussian
from confide.privacy.ledger import BudgetExceeded, Ledger

EVENT = Gaussian(1.0, 1000.0)


def warm() -> None:
    """Load all that a charge needs, once, before anything is forked: a worker that loads libraries is killed idle."""
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        ledger.open_population("p", 1.0, 1e-6)
        ledger.charge("p", "warm", 1, [EVENT])


def charge(path: str, run: str, side: str) -> None:
    with Path(side).open("ab", buffering=0) as released, Ledger(path) as ledger:
        size = os.fstat(released.fileno()).st_size
        t = size // 7 + 1  # a killed worker's line is whole: one write of seven bytes
        while True:
            answer = ledger.charge("p", run, t, [EVENT])
            released.write(f"{t:05}{answer[0]}\n".encode())  # stands for journal and send
            t += 1


def race(path: str, run: str, when: str, what: str) -> None:
    with Ledger(path) as ledger:
        while time.time() < float(when):
            pass
        if what == "charge":
            ledger.charge("p", run, 1, [EVENT])
        else:
            ledger.reserve("p", run, [[EVENT]])


def opening(path: str, when: str) -> None:
    while time.time() < float(when):
        pass
    Ledger(path).close()


if __name__ == "__main__":
    warm()
    jobs = {"charge": charge, "race": race, "open": opening}
    for line in sys.stdin:
        name, *args = line.split()
        if name == "wait":
            print(os.waitstatus_to_exitcode(os.waitpid(int(args[0]), 0)[1]), flush=True)
        elif pid := os.fork():
            print(pid, flush=True)
        else:
            code = 1
            try:
                jobs[name](*args)
                code = 0
            except BudgetExceeded:
                code = 3
            finally:
                os._exit(code)
