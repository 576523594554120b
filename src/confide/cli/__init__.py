"""The command line. Nothing heavy is imported before a command needs it, so that help and completion are instant."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from confide._version import __version__
from confide.cli import (
    account,
    algorithms,
    audit,
    bench,
    demo,
    federation,
    fit,
    node,
    plan,
    predict,
    randomize,
    report,
    reproduce,
    schema,
)

OURS = (ValueError, ArithmeticError, OSError, ImportError)  # what our own checks raise: one line, no traceback


class OneLine(TyperGroup):
    """Commands whose every failure is one line on stderr: exit code 2, or 130 for Ctrl-C."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except OURS as error:
            fail(describe(error))
        except Exception as error:
            if not hasattr(error, "format_message"):  # a mistake of ours: the traceback is wanted
                raise
            where = getattr(getattr(error, "ctx", None), "command_path", "confide")
            fail(f"{error.format_message().rstrip('.')} (see `{where} --help`)")
        if code == 130:
            fail("interrupted", 130)
        sys.exit(code if isinstance(code, int) else 0)


def describe(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def fail(message: str, code: int = 2) -> None:
    """End with one line on stderr."""
    print(f"confide: {message}", file=sys.stderr)
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
app.command()(report.report)
app.command()(reproduce.reproduce)
app.command()(bench.bench)


def main() -> None:
    """The `confide` program."""
    app(prog_name="confide")
