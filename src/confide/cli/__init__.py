"""The command line. Nothing heavy is imported before a command needs it, so that help and completion are instant."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from confide._version import __version__
from confide.cli import (
    account,
    algorithms,
    audit,
    bench,
    compile,
    demo,
    federation,
    fit,
    node,
    plan,
    predict,
    randomize,
    relay,
    report,
    reproduce,
    schema,
    sweep,
)
from confide.errors import describe, expected

TRACKER = "https://github.com/confide/confide/issues"


class OneLine(TyperGroup):
    """Commands that fail with one line on stderr and exit code 2, or 130 for Ctrl-C; a bug of ours has a traceback."""

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
            fail(f"{error.format_message().rstrip('.')} (see `{where} --help`)")
        if code == 130:
            fail("interrupted", 130)
        sys.exit(code if isinstance(code, int) else 0)


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


app.command()(demo.demo)
app.command()(fit.fit)
app.command()(predict.predict)
app.command(cls=plan.Several)(plan.plan)
app.command()(algorithms.algorithms)
app.command()(audit.audit)
app.command()(account.account)
app.add_typer(schema.schema, name="schema")
app.command()(randomize.randomize)
app.add_typer(federation.federation, name="federation")
app.add_typer(node.node, name="node")
app.command()(relay.relay)
app.command()(report.report)
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)
app.command()(bench.bench)
app.command()(compile.compile)


def main() -> None:
    """The `confide` program."""
    app(prog_name="confide")
