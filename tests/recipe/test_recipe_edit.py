"""Edits of a recipe in its text: what was asked changes, comments and all other lines stay."""

from __future__ import annotations

import pytest

from sfumato.data.yaml_documents import parse_yaml
from sfumato.errors import SfumatoError
from sfumato.recipe.edit import set_column, set_section

RECIPE = """\
# A recipe
sfumato: 1
data: people.csv  # the file
columns:
  # years
  age: {role: quasi, kind: integer}  # at admission
  zip:
    role: quasi
    kind: category  # keep zeros
  sex: quasi
# why five
models:
  # the first
  - k-anonymity: {k: 5}  # five
  # the second
  - l-diversity: {l: 2, column: ill}
#  - t-closeness: {t: 0.2}

# Identifiers are removed.
steps:
limits: {risk: 0.2}
"""


def test_unchanged_items_and_all_comments_stay() -> None:
    text = set_section(RECIPE, "models", [{"k-anonymity": {"k": 7}}, {"l-diversity": {"l": 2, "column": "ill"}}])
    assert text == RECIPE.replace("- k-anonymity: {k: 5}  # five", "- k-anonymity: {k: 7}")


def test_items_are_added_removed_and_moved() -> None:
    first, second = parse_yaml(RECIPE).value["models"]
    longer = set_section(RECIPE, "models", [first, second, "alpha-k"])
    assert "  - l-diversity: {l: 2, column: ill}\n  - alpha-k\n#  - t-closeness" in longer
    swapped = set_section(RECIPE, "models", [second, first])
    assert swapped.index("# the second") < swapped.index("# the first")
    assert "k-anonymity" not in set_section(RECIPE, "models", [second])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", [{"generalize": {"search": "optimal", "suppression": 0.05}}]),
        ("steps", ["mondrian"]),
        ("limits", {"risk": 0.09, "accepted": {"by": "A: B", "reason": "# no comment"}}),
        ("limits", None),
        ("seed", 7),
        ("title", "x: y # z"),
        ("models", []),
        ("models", None),
        ("data", {"file": "a.csv", "delimiter": ";"}),
    ],
)
def test_only_the_named_section_changes(key: str, value: object) -> None:
    text = set_section(RECIPE, key, value)
    before, after = parse_yaml(RECIPE).value, parse_yaml(text).value
    assert after.get(key) == value
    assert {k: v for k, v in after.items() if k != key} == {k: v for k, v in before.items() if k != key}
    comments = ["# A recipe", "# years", "# at admission", "# keep zeros", "# why five", "# Identifiers are removed."]
    assert [comment for comment in comments if comment not in text] == []
    assert set_section(text, key, value) == text


@pytest.mark.parametrize("column", ["age", "zip", "sex"])
@pytest.mark.parametrize(
    "setting",
    [
        ("kind", "number"),
        ("missing_codes", [-9, "n/a"]),
        ("hierarchy", {"intervals": [5, 10]}),
        ("hierarchy", {"taxonomy": {"tree": {"north: 1": ["a", "b"], "c": None}}}),
    ],
)
def test_a_setting_of_a_column_is_set_and_removed(column: str, setting: tuple[str, object]) -> None:
    key, value = setting
    text = set_column(RECIPE, column, key, value)
    assert parse_yaml(text).value["columns"][column][key] == value
    assert text.count("\n") >= RECIPE.count("\n")
    assert "# at admission" in text
    back = parse_yaml(set_column(text, column, key, None)).value["columns"][column]
    assert key not in back
    assert back["role"] == "quasi"


def test_what_cannot_be_edited_is_refused() -> None:
    shared = "sfumato: 1\ncolumns:\n  a: &x {role: quasi}\n  b: *x\n"
    with pytest.raises(SfumatoError, match="cannot be edited"):
        set_column(shared, "b", "kind", "integer")
    with pytest.raises(SfumatoError, match="no column `c`"):
        set_column(RECIPE, "c", "kind", "integer")
