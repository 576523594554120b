"""A TCP proxy that can go silent without closing anything: a black-holed link, as a broken router makes it."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target`; while `silent` every byte in both directions is swallowed."""

    def __init__(self, port, target):
        self.target, self.silent, self._open = target, False, []
        self._door = socket.create_server(("127.0.0.1", port))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        with suppress(OSError):  # the door is closed
            while True:
                here, _ = self._door.accept()
                self._open.append(here)
                if self.silent:  # the kernel has answered, as it would not across a real black hole; nobody else will
                    continue
                try:
                    there = socket.create_connection(("127.0.0.1", self.target), 5)
                except OSError:
                    here.close()
                    continue
                there.settimeout(None)
                self._open.append(there)
                for one, other in ((here, there), (there, here)):
                    self._threads.append(threading.Thread(target=self._pump, args=(one, other)))
                    self._threads[-1].start()

    def _pump(self, one, other):
        with suppress(OSError):
            while data := one.recv(65536):
                if not self.silent:
                    other.sendall(data)
            if not self.silent:
                other.shutdown(socket.SHUT_WR)

    def reset(self):
        """Hang up on everybody, as a router that starts again."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        for one in (self._door, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(10)
