"""A terminal of 80 columns for the tests: a real pseudo-terminal, and a screen that follows what is written to it."""

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress

WIDTH, HEIGHT = 80, 24
SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])")
# The terminal becomes the program's own, so that Ctrl-C reaches it.
START = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from confide.cli import main; main()"


class Screen:
    """Lines of text, and a cursor; an escape sequence it does not know is an error."""

    def __init__(self):
        self.lines, self.row, self.column, self.cursor, self.widest, self.rest = [""], 0, 0, True, 0, ""

    def feed(self, text):
        text = self.rest + text
        while text:
            if text[0] == "\x1b":
                found = SEQUENCE.match(text)
                if found is None:
                    if len(text) > 20:
                        raise ValueError(f"unknown sequence {text[:20]!r}")
                    break  # its end is still to come
                self.control(*found.groups())
                text = text[found.end() :]
            else:
                self.character(text[0])
                text = text[1:]
        self.rest = text

    def control(self, private, number, letter):
        if letter == "m":
            return
        if private and number == "25" and letter in "hl":
            self.cursor = letter == "h"
        elif letter == "A":
            self.row = max(0, self.row - int(number or 1))
        elif letter == "K" and number == "2":
            self.lines[self.row] = ""
        else:
            raise ValueError(f"unknown sequence {private}{number}{letter}")

    def character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + c + line[self.column + 1 :]
            self.column += 1
            self.widest = max(self.widest, self.column)

    def __str__(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip()


class Terminal:
    """A program in a pseudo-terminal; `screen` follows what it shows."""

    def __init__(self, arguments):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self.before, self.screen, self.failure = termios.tcgetattr(self.slave), Screen(), None
        hidden = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        self.job = subprocess.Popen(
            [sys.executable, "-c", START, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            start_new_session=True, env={**environment, "TERM": "xterm-256color", "CONFIDE_THREADS": "1"},
        )  # fmt: skip
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.job.poll() is None:
            self.job.kill()
            self.job.wait()

    def read(self):
        decode = codecs.getincrementaldecoder("utf-8")().decode
        with suppress(OSError):  # that the other end is closed
            while data := os.read(self.master, 4096):
                try:
                    self.screen.feed(decode(data))
                except ValueError as error:
                    self.failure = self.failure or error

    def press(self, key):
        os.write(self.master, key)

    def end(self, seconds=120):
        """Wait for the program; its exit code. Everything it wrote has then been read."""
        code = self.job.wait(seconds)
        self.after = termios.tcgetattr(self.slave)
        os.close(self.slave)
        self.reader.join(10)
        os.close(self.master)
        assert self.failure is None, self.failure
        return code
