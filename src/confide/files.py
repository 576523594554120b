"""Results on disk: a file appears whole or not at all, also after Ctrl-C or on a full disk."""

from __future__ import annotations

import os
from pathlib import Path

OWNER_ONLY = 0o600


def write_whole(path: str | Path, data: bytes, mode: int = 0o666) -> Path:
    """Write beside `path` and move it there, so that no reader ever meets half a file."""
    path = Path(path)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: {folder} is not a folder")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder, the name of a file is needed")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_new(path: Path, option: str) -> None:
    """Say now, not after the work, that a result can't be written; nothing is ever overwritten."""
    if path.exists() or path.is_symlink():
        raise ValueError(f"{option} {path}: exists already; give another name, or remove it first")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{option} {path}: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option} {path}: no permission to write in {folder}")
