"""Waiting for something to be true, never for a time to pass."""

import os
import time
from pathlib import Path


def wait_for(condition, seconds=60.0, pause=0.02):
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return False


def is_at_work(job, seconds):
    """Whether a process that was started has used so many seconds of a core, however busy the machine is, and goes on.

    Python and our imports take less than two.
    """

    def used():
        if job.poll() is not None:
            return float("inf")
        fields = Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return wait_for(lambda: used() >= seconds, 120) and job.poll() is None
