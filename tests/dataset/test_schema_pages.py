"""The pages on schema and init say what the code does."""

import contextlib
import io
import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from ruamel.yaml import YAML

from sfumato.dataset.hierarchy import hierarchy_from_dict

DOCS = Path(__file__).parents[2] / "docs"
ROWS = re.findall(r"^\| `(\{(?!file).*\})` \| (.*) \|$", DOCS.joinpath("schema.md").read_text(), re.M)
BLOCKS = [
    pytest.param(block, id=page)
    for page in ("schema.md", "init.md")
    for block in re.findall(r"```python\n(.*?)```", DOCS.joinpath(page).read_text(), re.S)
    if "people.csv" not in block
]


def typed(text: str, rule: str) -> object:
    if "dates" in rule:
        return date.fromisoformat(text)
    return float(text) if "." in text else int(text) if re.match("{(intervals|breaks)", rule) else text


def test_the_table_was_found():
    assert len(ROWS) == 12
    assert len(BLOCKS) == 2


@pytest.mark.parametrize(("rule", "levels"), ROWS)
def test_the_table_of_hierarchies(rule, levels):
    shown = re.findall(r"`([^`]*)`", levels)
    hierarchy = hierarchy_from_dict(YAML(typ="safe").load(rule)).bind("c", pl.Series([typed(shown[0], rule)]))
    assert shown in hierarchy.rows()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_examples_print_what_they_say(block):
    promised = re.findall(r"print\(.*\)\s+# (['(\[].*)$", block, re.M)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(block, {})
    assert promised
    assert all(line in said.getvalue() for line in promised)
