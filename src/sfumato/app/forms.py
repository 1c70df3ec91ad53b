"""Forms of parts: fields as JSON Schema and docs, taken from the registry. A new part needs no edit here."""

from __future__ import annotations

import inspect
import re
from itertools import takewhile
from typing import Any

from sfumato.params import Part
from sfumato.recipe.json_schema import json_schema
from sfumato.recipe.presets import preset_names, preset_text
from sfumato.recipe.validate import SECTIONS
from sfumato.registry import registry


def describe_parts() -> dict[str, Any]:
    """Definitions of all fields, the parts of every section of a recipe, hierarchies, and the presets."""
    schema = json_schema()
    kinds = {**SECTIONS, "hierarchies": "hierarchy"}
    return {
        "definitions": schema["$defs"],
        "parts": {section: [_part(kind, part) for part in registry(kind)] for section, kind in kinds.items()},
        "about": schema["properties"]["about"],
        "limits": list(schema["properties"]["limits"]["properties"]),
        "presets": [{"name": name, "about": _heading(preset_text(name))} for name in preset_names()],
    }


def _part(kind: str, part: type[Part]) -> dict[str, object]:
    return {
        "name": part.part_name(),
        "definition": f"{kind}.{part.part_name()}",
        "summary": part.summary().replace("``", "`"),
        "docs": plain_docs(part.__doc__ or ""),
        "reference": part.reference,
        "main": part.main,
        "example": next(iter(part.examples), {}),
    }


def plain_docs(docstring: str) -> list[str]:
    """Paragraphs of a docstring after the first, without examples and markup.

    >>> plain_docs("Summary.\\n\\nMore about :class:`It` and ``k``.\\n\\n>>> example()\\n1\\n")
    ['More about It and `k`.']
    """
    paragraphs = inspect.cleandoc(docstring).split("\n\n")[1:]
    kept = [" ".join(p.split()) for p in paragraphs if not p.lstrip().startswith((">>>", "...", "|", "==", "--"))]
    return [re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "`") for text in kept if text]


def _heading(text: str) -> str:
    """The comment at the beginning of a preset, without its lists of examples."""
    comment = [line[1:].removeprefix(" ") for line in takewhile(lambda line: line.startswith("#"), text.splitlines())]
    return " ".join(line for line in comment if line and not line.startswith(" ")).replace("`", "")
