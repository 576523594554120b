"""`confide schema`: draft a public schema from a file, and check a file against one."""

from __future__ import annotations

import json as jsonlib
import os
from pathlib import Path
from typing import Annotated

import typer

Place = tuple[str, str, str]

schema = typer.Typer(help="Draft a public schema, or check a file against one.", rich_markup_mode=None)


@schema.command()
def suggest(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header, or Parquet.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="What to learn; by default the last.")] = None,
    group: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that names the party.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the draft here, a new file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of TOML.")] = False,
) -> None:
    """Draft a schema from your own file and mark what must be agreed.

    Reads ranges, rounded outward, and categories off the rows: the draft is private until every party has agreed on
    the lines marked AGREE.

    Example: confide schema suggest data.csv --label income --output schema.toml
    """
    if output is not None and output.exists():
        raise ValueError(f"--output {output}: exists already; give another name, or remove it first")
    from confide.problem.schema_io import dumps
    from confide.problem.suggest import HEAD
    from confide.problem.suggest import suggest as draft

    found, notes = draft(data, label, group)
    document = HEAD + "\n" + dumps(found, notes)
    if output is not None:
        save(output, document)
    if json:
        agree = [".".join(at) for at in notes if has(found.to_dict(), at)]
        where = str(output) if output is not None else None
        result = {"schema": found.to_dict(), "agree": agree, "private": True, "output": where}
        typer.echo(jsonlib.dumps(result, ensure_ascii=False, indent=2))
    elif output is None:
        typer.echo(document, nl=False)
    else:
        typer.echo(f"{output}: a draft of {len(found.features)} features.\n"
                   "Private until agreed: go through the lines marked AGREE first.")  # fmt: skip


@schema.command()
def check(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header, or Parquet.")],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The agreed schema.")],
    party: Annotated[str | None, typer.Option(metavar="NAME", help="All rows are this party's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Problems to list at most.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Find what in a file does not fit the schema, by place.

    Prints no value of any row. Exit code 0: every row fits; 1: some do not.

    Example: confide schema check data.csv --schema schema.toml
    """
    from confide.problem.ingest import check as find
    from confide.problem.schema import Schema

    agreed = Schema.load(schema)
    rows, flaws, clipped = find(data, agreed, limit, party)
    if json:
        document = {"file": str(data), "schema": agreed.hash(), "fits": not flaws, "rows": rows,
                    "features": len(agreed.features), "limit": limit, "problems": listed(flaws),
                    "clipped": listed(clipped)}  # fmt: skip
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    else:
        typer.echo(f"{data}: {rows:,} rows, {len(agreed.features)} features")
        say("does not fit", flaws, limit)
        say("outside its range, will be clipped", clipped, limit)
        if not flaws:
            typer.echo(f"Every row fits schema {agreed.hash()[:16]}.")
    if flaws:
        raise typer.Exit(1)


def say(title: str, found: list[Place], limit: int) -> None:
    """One line each, 80 columns."""
    if not found:
        return
    more = f", the first {limit}" if len(found) == limit else ""
    typer.echo(f"\n{title}{more}:")
    wide = max(len(place) for place, _, _ in found)
    for place, column, what in found:
        where = column if len(column) <= 28 else column[:27] + "…"
        typer.echo(f"  {place:{wide}}  {f'{where}: ' if where else ''}{what}"[:80])


def listed(found: list[Place]) -> list[dict[str, str | None]]:
    return [{"place": place, "column": column or None, "what": what} for place, column, what in found]


def has(table: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True


def save(path: Path, document: str) -> None:
    """A whole new file that only its owner may read, or none."""
    opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(document)
    except BaseException:
        path.unlink()
        raise
