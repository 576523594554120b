"""Results on disk: a file appears whole or not at all, also after Ctrl-C or on a full disk."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from confide.errors import ConfideError

OWNER_ONLY = 0o600


def write_whole(path: str | Path, data: bytes | Iterable[bytes], mode: int = 0o666, *, new: bool = False,
                durable: bool = True) -> Path:  # fmt: skip
    """Write beside `path` and move it there, so that no reader ever meets half a file.

    data      all of it, or its pieces in turn
    new       never in the place of another file: FileExistsError
    durable   there after a power loss, too; without, that may leave the file that was there before
    """
    path = Path(path)
    part = write_beside(path, data, mode, durable=durable)
    try:
        if new:
            os.link(part, path)
        else:
            part.replace(path)
        if durable:
            sync_folder(path.absolute().parent)
        return path
    except FileExistsError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def write_beside(path: Path, data: bytes | Iterable[bytes], mode: int = 0o666, *, durable: bool = True) -> Path:
    """Write what shall become `path` under a name that nobody reads, and return that.

    Nothing is left of a failure; after a crash it is still there: `.<name>.<digits>.part`.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: {folder} is not a folder")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder, the name of a file is needed")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # no process meets what another left behind
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        return part
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, FileExistsError):  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def sync_folder(folder: Path) -> None:
    """What was made, renamed or removed there stays so after a power loss."""
    if hasattr(os, "O_DIRECTORY"):  # Windows has none, and needs none
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_new(path: Path, option: str) -> None:
    """Say now, not after the work, that a result can't be written; nothing is ever overwritten."""
    if path.exists() or path.is_symlink():
        raise ConfideError(f"{option} {path}: exists already; give another name, or remove it first")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfideError(f"{option} {path}: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise ConfideError(f"{option} {path}: no permission to write in {folder}")
