"""The command line. Nothing heavy is imported before a command needs it, so that help and completion are instant.

A command is a function, or a group of them, in the file of its name; only the file of the one that was asked for is
loaded. Typer looks at every argument of what it is given, and most of them are other commands'.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from confide._version import __version__
from confide.errors import describe, expected

TRACKER = "https://github.com/confide/confide/issues"
COMMANDS = ("demo", "fit", "predict", "plan", "algorithms", "audit", "account", "randomize", "relay", "report",
            "reproduce", "sweep", "bench", "compile", "schema", "federation", "node")  # fmt: skip


class OneLine(TyperGroup):
    """Commands that fail with one line on stderr and exit code 2, or 130 for Ctrl-C; a bug of ours has a traceback."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "commands": dict.fromkeys(COMMANDS)})

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = loaded(cmd_name)
        return self.commands.get(cmd_name)

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except Exception as error:
            if expected(error):
                fail(describe(error))
            if not hasattr(error, "format_message"):
                error.add_note(
                    f"confide: this is a bug of ours: please report it, with the lines above, at {tracker()}"
                )
                raise
            where = getattr(getattr(error, "ctx", None), "command_path", "confide")
            words = args[0] if args else extra.get("args")
            fail(f"{misused(error, sys.argv[1:] if words is None else words)} (see `{where} --help`)")
        if code == 130:
            fail("interrupted", 130)
        sys.exit(code if isinstance(code, int) else 0)


def misused(error: Any, words: Sequence[str]) -> str:
    """What is wrong with a command: of an option first the value that was given, then what is allowed."""
    said, of = error.format_message().rstrip("."), getattr(error, "param", None)
    options = () if of is None or getattr(of, "multiple", False) else of.opts
    given = [f"{a} {b}" for a, b in pairwise(words) if a in options]
    given += [word.replace("=", " ", 1) for word in words if word.partition("=")[0] in options and "=" in word]
    if len(given) != 1 or not said.startswith("Invalid value"):
        return str(said)
    return f"{given[0]}: {error.message.partition(', unable')[0].rstrip('.').replace('Input should be', 'must be')}"


def loaded(name: str) -> Any:
    """The command of that name; a file that cuts its arguments in its own way has a COMMAND."""
    file = import_module(f"{__name__}.{name}")
    found = getattr(file, name)
    if isinstance(found, typer.Typer):
        made: Any = get_group(found)
        made.name = name
        return made
    one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    one.command(name, cls=getattr(file, "COMMAND", None))(found)
    return get_command(one)


def tracker() -> str:
    """Where bugs are reported: as the installed package says, else where the project began."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        said = metadata("confide").get_all("Project-URL") or []
    except PackageNotFoundError:
        said = []
    places = dict(one.split(", ", 1) for one in said if ", " in one)
    return places.get("Issues", TRACKER)


def fail(message: str, code: int = 2) -> None:
    """End with one line on stderr, and with the code even where that cannot be written, as on a full disk."""
    with suppress(OSError):
        print(f"confide: {message}", file=sys.stderr, flush=True)
    sys.exit(code)


app = typer.Typer(
    cls=OneLine,
    name="confide",
    help="Differentially private learning over a network without a server.",
    epilog="Example: confide demo",
    rich_markup_mode=None,  # plain help starts twice as fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def top(context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False
        ) -> None:  # fmt: skip
    if version:
        typer.echo(f"confide {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The `confide` program."""
    app(prog_name="confide")
