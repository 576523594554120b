"""docs/schema.md is a session: its Python blocks run, its schemas load, its commands say what the page says."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.schema.schema import Schema

PAGE = Path(__file__).parent.parent.parent / "docs" / "schema.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="documents are in the checkout only")


def shell(block):
    """Each command of a console block, and what the page says it prints."""
    for part in block.split("$ confide ")[1:]:
        command, _, said = part.partition("\n")
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.stderr
        assert done.output == said, command


def test_the_page_is_a_session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session: dict = {}
    seen = []
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.S):
        seen.append(kind)
        if kind == "python":
            exec(compile(block, "schema.md", "exec"), session)
        elif kind == "console":
            shell(block)
        elif "[label]" in block:
            assert Schema.from_toml(block).features == (
                "age",
                "glucose",
                "glucose=missing",
                "ward=surgery",
                "ward=medicine",
            )
        else:
            assert all(part in (tmp_path / "mercy.toml").read_text() for part in block.split("\n\n"))
    assert seen.count("console") == 3 and seen.count("toml") == 2 and seen.count("python") >= 7


def test_every_field_is_on_the_page():
    from confide.schema import document, schema

    words = {
        *document._TOP,
        *document._COLUMN,
        *document._LABEL,
        *schema.COLUMN_KINDS,
        *schema.LABEL_KINDS,
        *schema.OUTSIDE,
    }
    assert not [word for word in words if not re.search(rf"`[^`\n]*\b{word}\b[^`\n]*`", PAGE.read_text())]
