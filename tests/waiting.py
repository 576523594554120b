"""Waiting for something to be true, never for a time to pass."""

import asyncio
import os
import time
from pathlib import Path


def wait_for(condition, seconds=180.0, pause=0.02):
    """Whether it came true in time. Looking takes a fifth of a core at most: those who are waited for need it more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.thread_time()
        if condition():
            return True
        time.sleep(max(pause, 4 * (time.thread_time() - began)))
    return False


async def until(condition, seconds=120.0):
    """Among other tasks of this loop: returns when it is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s"
        await asyncio.sleep(0.01)


async def unanswered(question, link, *words):
    """Ask, until the link's trouble has any of these words: there is no answer yet, and the question is taken back."""
    asked = asyncio.ensure_future(question)
    try:
        await until(lambda: asked.done() or (link.trouble and any(one in link.trouble for one in words or [""])))
        assert not asked.done(), asked
    except AssertionError as error:
        raise AssertionError(f"trouble {link.trouble!r}: must have one of {words}") from error
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


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
