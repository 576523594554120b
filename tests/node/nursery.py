"""Processes that start at once: a server that has imported everything forks one for each node.

Killing and restarting nodes dozens of times would otherwise be dozens of imports of SciPy and Numba. Each node is a
process of its own all the same, running the command line.
"""

import multiprocessing
import os
import sys

os.environ["CONFIDE_THREADS"] = "1"  # no thread may live where a fork happens
# The server does not take over sys.path, and says nothing when it finds no module to load.
os.environ["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["nursery_warm"])


def run_node(arguments, log):
    """`confide` with these arguments, its output appended to `log`."""
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    sys.argv = ["confide", *arguments]
    from confide.cli import main

    try:
        main()
    except SystemExit:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # a full disk: multiprocessing would try again, fail, and lose the exit code
            sys.stdout = sys.stderr = None
        raise


def start(arguments, log):
    process = CONTEXT.Process(target=run_node, args=(arguments, str(log)), daemon=True)
    process.start()
    return process
