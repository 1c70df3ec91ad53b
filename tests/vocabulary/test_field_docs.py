"""Docstrings under fields: found for every class statement, and read only when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from pydantic import Field

from sfumato.field_docs import DocumentedModel


def kept(cls: Any) -> Any:
    return cls


class Base(DocumentedModel):
    first: int = 1
    """The first
    field."""
    second: int = 2
    """The second."""
    third: int = Field(default=3, description="By hand.", alias="3rd")
    """Not this."""
    fourth: int = 4


@kept
class Derived(Base):
    """No docstring of a field: this describes the class."""

    second: int = 5
    fourth: int = 6
    """Now described."""


def described(cls: type[DocumentedModel]) -> dict[str, str | None]:
    return {name: field.get("description") for name, field in cls.model_json_schema()["properties"].items()}


def test_the_schema_describes_each_field() -> None:
    expected = {"first": "The first\nfield.", "second": "The second.", "3rd": "By hand.", "fourth": None}
    assert described(Base) == expected


def test_a_derived_class_keeps_descriptions_of_the_fields_that_it_does_not_declare_again() -> None:
    expected = {"first": "The first\nfield.", "second": None, "3rd": "By hand.", "fourth": "Now described."}
    assert described(Derived) == expected


def test_classes_of_one_name_have_their_own_descriptions() -> None:
    def one() -> type[DocumentedModel]:
        class Inner(DocumentedModel):
            value: int
            """Of one."""

        return Inner

    def other() -> type[DocumentedModel]:
        class Inner(DocumentedModel):
            value: int
            """Of the other."""

            nested: Base
            """A model."""

        return Inner

    assert described(one()) == {"value": "Of one."}
    assert described(other()) == {"value": "Of the other.", "nested": "A model."}


def test_a_class_without_source_has_no_descriptions() -> None:
    names: dict[str, Any] = {"__name__": __name__, "DocumentedModel": DocumentedModel}
    exec("class Typed(DocumentedModel):\n    value: int\n    'Unseen.'\n", names)
    assert described(names["Typed"]) == {"value": None}


def test_listing_all_parts_reads_no_source() -> None:
    """Nor does it import what only some of them use."""
    code = """
import sys, sfumato.field_docs
from sfumato.registry import KINDS, registry
parts = [part for kind in KINDS for part in registry(kind)]
assert sfumato.field_docs._classes.cache_info().misses == 0
assert not {"scipy.stats", "scipy.optimize"} & set(sys.modules)
assert all(registry("model").get("k-anonymity").field_docs().values())
assert sfumato.field_docs._classes.cache_info().misses
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
