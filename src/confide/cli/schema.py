"""`confide schema`: draft a public schema from a file, merge several parties' drafts, check a file against one."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.lines import folded

if TYPE_CHECKING:
    from confide.schema.check import Findings, Place
    from confide.schema.merge import Difference
    from confide.schema.schema import Schema

schema = typer.Typer(help="Draft a public schema, merge drafts, or check a file against one.", rich_markup_mode=None)


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
    from confide.files import OWNER_ONLY, check_new, write_whole

    if output is not None:
        check_new(output, "--output")
    from confide.schema.suggest import draft_file, to_agree
    from confide.schema.suggest import suggest as draft

    found, notes = draft(data, label, group)
    document = draft_file(found, notes)
    if output is not None:
        write_whole(output, document.encode(), OWNER_ONLY, new=True)
    if json:
        where = str(output) if output is not None else None
        result = {"schema": found.to_dict(), "agree": to_agree(found, notes), "private": True, "output": where}
        typer.echo(jsonlib.dumps(result, ensure_ascii=False, indent=2))
    elif output is None:
        typer.echo(document, nl=False)
    else:
        typer.echo(f"{output}: a draft of {features(found)}.\n"
                   "Private until agreed: go through the lines marked AGREE first, each has its\n"
                   "reason, and do not send the file before.")  # fmt: skip


@schema.command()
def merge(
    drafts: Annotated[list[Path], typer.Argument(metavar="FILE…", help="The parties' schemas, at least 2.")],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the schema here, a new file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of TOML.")] = False,
) -> None:
    """Make one schema of several parties' drafts, and show where they differ.

    Takes what is wide enough for all: the range around all ranges, all categories and marks. A column that not all
    have, or that they read differently, is ignored. Lines marked DIFFERS say what each draft has. A draft that was not
    agreed on is private, and whoever merges sees it: warns of those.

    Example: confide schema merge mercy.toml north.toml lake.toml --output schema.toml
    """
    from confide.files import OWNER_ONLY, check_new, write_whole

    if output is not None:
        check_new(output, "--output")
    from confide.schema.merge import merge as merged
    from confide.schema.merge import merged_file, named_files
    from confide.schema.schema import Schema
    from confide.schema.suggest import is_draft

    names = named_files(drafts)
    found, differences = merged({name: Schema.load(path) for name, path in names.items()})
    private = [name for name, path in names.items() if is_draft(path)]
    document = merged_file(found, differences, private)
    if output is not None:
        write_whole(output, document.encode(), OWNER_ONLY, new=True)
    if json:
        where = str(output) if output is not None else None
        result = {
            "schema": found.to_dict(),
            "private": private,
            "output": where,
            "differences": [{"field": ".".join(d.at), "given": d.given, "taken": d.taken} for d in differences],
        }
        typer.echo(jsonlib.dumps(result, ensure_ascii=False, indent=2))  # fmt: skip
    elif output is None:
        typer.echo(document, nl=False)
    else:
        typer.echo(f"{output}: {features(found)}, merged from {len(names)} files.")
        show_differences(differences)
    if private:
        told = (f"Still drafts: {', '.join(private)}. Their ranges and categories were read off rows and are private, "
                "here and in what was merged. Their owners should replace them by what is known without the data, "
                "before anybody else sees them.")  # fmt: skip
        typer.echo(folded(told, rest=""), err=True)


def features(schema: Schema) -> str:
    count = len(schema.features)
    return f"{count} feature{'' if count == 1 else 's'}"


def show_differences(differences: list[Difference]) -> None:
    from confide.schema.merge import cut, in_short

    typer.echo(f"{len(differences)} differences; taken was:" if differences else "The files do not differ.")
    for one in differences:
        typer.echo(cut(f"\n  {'.'.join(one.at)} = {in_short(one.taken)}", 81))
        wide = max(map(len, one.given))
        for who, value in one.given.items():
            typer.echo(cut(f"    {who:{wide}}  {in_short(value)}", 80))


@schema.command()
def check(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header, or Parquet.")],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The agreed schema.")],
    party: Annotated[str | None, typer.Option(metavar="NAME", help="All rows are this party's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Places to list at most.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Count what in a file does not fit the schema, by column, and list it by place.

    Says what `confide fit` and `confide node run` will do with it. Prints no value of any row, but the counts are of
    your rows: keep them to yourself. Exit code 0: the file fits; 1: it does not.

    Example: confide schema check data.csv --schema schema.toml
    """
    from confide.schema.check import check as find
    from confide.schema.schema import Schema

    agreed = Schema.load(schema)
    found = find(data, agreed, limit, party)
    if json:
        document = {"file": str(data), "schema": agreed.hash(), "fits": found.fits, "private": True,
                    "header": found.header, "rows": found.rows, "rows_that_do_not_fit": found.unfit,
                    "features": len(agreed.features), "columns": found.by_column(agreed), "limit": limit,
                    "problems": listed(found.flaws), "clipped": listed(found.clipped)}  # fmt: skip
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    elif found.header:
        typer.echo(f"{data}: the header does not fit, the rows were not read")
        for line in found.header:
            typer.echo(folded(line, "  ", "    "))
    else:
        typer.echo(f"{data}: {found.rows:,} rows, {features(agreed)}")
        show(found.by_column(agreed))
        say("Does not fit", found.flaws, limit)
        say("Outside its range, counts as the nearer end", found.clipped, limit)
        typer.echo("\n" + folded(outcome(agreed, found), rest=""))
    if not found.fits:
        raise typer.Exit(1)


def show(counts: list[dict[str, Any]]) -> None:
    """A table of at most 80 columns."""
    if not counts:
        return
    typer.echo("\nCounted in your rows, for your eyes only:")
    names = [shortened(one["column"] or "(whole row)") for one in counts]
    wide, digits = max(map(len, names)), max(len(f"{one['count']:,}") for one in counts)
    for name, one in zip(names, counts, strict=True):
        typer.echo(f"  {name:{wide}}  {one['count']:>{digits},}  {one['what'].split(',')[0]}; {one['becomes']}"[:80])


def outcome(schema: Schema, found: Findings) -> str:
    """What the commands that train will do with this file."""
    clipped = sum(found.clip_counts.values())
    nearer = f" Values outside their range, {clipped:,}, count as its nearer end, in both." if clipped else ""
    if found.fits:
        return (f"Every row fits schema {schema.hash()[:16]}: `confide fit` and `confide node run` take the file as "
                f"it is.{nearer}")  # fmt: skip
    return (
        f"{found.unfit:,} of {found.rows:,} rows do not fit. `confide fit` and `confide node run` name the first and "
        f"stop, before any training. Rows that are damaged once a node has begun to train count as the fixed public "
        f"row, every feature 0 and {schema.label.name} = {schema.invalid_label!r}, without a word.{nearer}"
    )


def say(title: str, found: list[Place], limit: int) -> None:
    """One line each, 80 columns."""
    if not found:
        return
    more = f", the first {limit}" if len(found) == limit else ""
    typer.echo(f"\n{title}{more}:")
    wide = max(len(place) for place, _, _ in found)
    for place, column, what in found:
        typer.echo(f"  {place:{wide}}  {f'{shortened(column)}: ' if column else ''}{what}"[:80])


def shortened(column: str) -> str:
    return column if len(column) <= 28 else column[:27] + "…"


def listed(found: list[Place]) -> list[dict[str, str | None]]:
    return [{"place": place, "column": column or None, "what": what} for place, column, what in found]
