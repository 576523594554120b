"""Whom a relay serves: the members of its federations, as papers amend them.

A relay takes no part in a run, so nobody tells it of amendments: whoever runs it gives it the papers of a member
(`agreements/RUN.json`). They are signed, so that it may come by them in any way. A file that changes is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, describe
from confide.network.identity import Card
from confide.node.agreement import Papers
from confide.node.codes import Untrusted
from confide.node.federation import Federation
from confide.node.packing import LONGEST_PAPERS, which_file


class Served:
    """Federations, and files with papers of theirs, each of which must be there and right."""

    def __init__(self, federations: Sequence[Federation], files: Sequence[Path] = ()) -> None:
        self._papers = [Papers(one) for one in federations]
        self._read: dict[Path, Any] = dict.fromkeys(files)  # which file was read last under this name
        self._said: dict[Path, str] = dict.fromkeys(files, "")
        for path in files:
            self._look(path)

    @property
    def federations(self) -> list[Federation]:
        """As they are by now."""
        return [papers.current for papers in self._papers]

    @property
    def members(self) -> list[list[Card]]:
        """Of each."""
        return [[*one.cards.values()] for one in self.federations]

    def refresh(self) -> list[str]:
        """Read what changed; a line, once, on a file that is of no use: what was known before still counts."""
        wrong, before = {}, self._said
        for path in self._read:
            try:
                self._look(path)
            except (ConfideError, OSError) as error:
                wrong[path] = describe(error)
        self._said = {path: wrong.get(path, "") for path in self._read}
        return [words for path, words in wrong.items() if words != before[path]]

    def _look(self, path: Path) -> None:
        with path.open("rb") as file:
            if (which := which_file(file.fileno())) == self._read[path]:
                return
            self._read[path], data = which, file.read(LONGEST_PAPERS + 1)
        why = ""
        for papers in self._papers:
            try:
                papers.take(data)
                return
            except Untrusted:
                raise
            except ConfideError as error:  # of another federation, perhaps
                why = str(error)
        raise ConfideError(f"{path}: papers of no federation that is served: {why}")
