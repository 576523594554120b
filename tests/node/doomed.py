"""A member whose power goes between the payment for a round and its message: at the next one it pays for."""

import os
import signal

import nursery


def run(arguments, log, spot):
    """`spot` is "paid", before the noise is drawn, or "noised", when the journal is to have it."""
    from confide.node.journal import Journal
    from confide.node.purse import Purse

    pay = Purse.pay

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if spot == "paid":
        Purse.pay = lambda self, t: die(pay(self, t))
    else:
        Journal.commit = die
    nursery.run_node(arguments, log)


def start(village, name, spot):
    arguments = (village.arguments(name), str(village.folder / f"{name}.log"), spot)
    village.jobs[name] = nursery.CONTEXT.Process(target=run, args=arguments, daemon=True)
    village.jobs[name].start()
