"""What a neighbour signed and should not have, kept in the run's folder for whoever has to settle a dispute."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from confide.files import write_whole

MOST = 20  # frames of one neighbour: it must not fill the disk
DIGIT, DIGITS = "[0-9a-f]", 16  # of a frame's hash in the name of its file
LOG = logging.getLogger("confide.evidence")


class Evidence:
    """The folder `evidence` of a run. A failure to write is said and never ends a run.

    Of refused frames so many of a neighbour are kept; what contradicts itself always is: it ends the run for good.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "evidence"

    def frame(self, name: str, frame: bytes, why: str) -> None:
        """A frame with its sender's signature, as it came, and in a text beside it why it was refused."""
        if len(list(self.folder.glob(f"{name}-{DIGIT * DIGITS}.frame"))) >= MOST:
            return
        stem = f"{name}-{hashlib.sha256(frame).hexdigest()[:DIGITS]}"
        if self._keep(f"{stem}.frame", frame) and self._keep(f"{stem}.txt", f"{name}: {why}\n".encode()):
            LOG.warning("%s misbehaves: %s; its signed message is in %s", name, why, self.folder)

    def contradiction(self, party: str, round: int, text: str) -> str:
        """Where it is kept, as the end of a sentence; where the disk is full it is in the log alone."""
        path = self.folder / f"{party}-round-{round}.json"
        self._keep(path.name, text.encode())
        if path.exists():
            return f"the evidence is in {path}"
        LOG.error("evidence that could not be written: %s", " ".join(text.split()))
        return f"the evidence could not be written to {path}: it is in the log; do not start this node again"

    def contradictions(self) -> list[Path]:
        """Those that were kept."""
        return sorted(self.folder.glob("*-round-*.json"))

    def _keep(self, file: str, data: bytes) -> bool:
        """Whether it is new here."""
        path = self.folder / file
        try:
            self.folder.mkdir(exist_ok=True, mode=0o700)
            if path.exists():
                return False
            write_whole(path, data, 0o600)
        except OSError as error:
            LOG.warning("%s: %s", path, error.strerror)
            return False
        return True
