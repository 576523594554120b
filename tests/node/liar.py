"""A member that lies with its own key: its node, with what it hands out replaced."""

import numpy as np
import nursery

from confide.network import wire


def run(arguments, log, victims, at, value, times):
    """Tell `victims` in round `at` that every number is `value`, so many times; then the truth."""
    from confide.network import peer
    from confide.node.daemon import Daemon

    left = dict.fromkeys(victims, times)
    honest, made = peer.Server._answer, Daemon.__init__

    def tampered(self, home, federation, identity, member, *rest):
        made(self, home, federation, identity, member, *rest)
        server, frames = self.server, {}

        def answer(name, channel):
            t = channel.waits
            if t != at or server.latest < t or server.alarm or not left.get(name):
                return honest(server, name, channel)
            left[name] -= 1
            if t not in frames:
                truth = self._journal.frame(identity.card.digest, t)
                frames[t] = wire.pack(identity, federation.digest, t, np.full(member.width(t), value).tobytes(),
                                      b"".join(wire.statements(truth)))  # fmt: skip
            channel.waits = 0
            return channel.send(peer.Word.ANSWER, frames[t])

        server._answer = answer

    Daemon.__init__ = tampered
    nursery.run_node(arguments, log)


def start(village, name, victims, at, value, times=10**9):
    process = nursery.CONTEXT.Process(
        target=run, args=(village.arguments(name), str(village.folder / f"{name}.log"), victims, at, value, times),
        daemon=True,
    )  # fmt: skip
    process.start()
    village.jobs[name] = process
