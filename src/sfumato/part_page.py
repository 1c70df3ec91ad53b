"""The reference page of a part, as ``sfumato methods NAME`` shows it and as the documentation has it."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from sfumato.params import Part

_SECTION = {"method": "steps", "model": "models", "attack": "attacks", "measure": "measures"}


def _type_words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        words = [_type_words(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    name = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}.get(
        schema.get("type", ""), schema.get("type", "any value")
    )
    if schema.get("type") == "array":
        name = f"list of {_type_words(schema.get('items', {}))}"
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in bounds.items() if key in schema]
    return ", ".join([name, *limits])


def _parameters(cls: type[Part]) -> str:
    schema = cls.model_json_schema()
    rows = []
    for name, field in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        default = "required" if required else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        if not required and field.get("default") is None:
            default = "–"
        words = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {_type_words(field)} | {default} | {words} |")
    if not rows:
        return "It has no parameters.\n"
    return "\n".join(["| parameter | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def page(kind: str, cls: type[Part]) -> str:
    """The manual page of one part, as Markdown."""
    from sfumato.data.yaml_documents import yaml_text

    name = cls.part_name()
    text = [
        f"# {name}\n",
        f"*{kind}*\n",
        docstring(cls) + "\n",
        "## Parameters\n",
        _parameters(cls),
    ]
    if cls.main is not None:
        text.append(f"A bare value sets `{cls.main}`.\n")
    if cls.examples:
        shown: list[object] = [{name: example} if example else name for example in cls.examples]
        where = _SECTION.get(kind)
        document: object = {where: shown} if where else shown
        if kind == "hierarchy":
            document = {"columns": {"column": {"role": "quasi", "hierarchy": shown[0]}}}
        text += ["## Example\n", *_example(kind, cls, yaml_text(document))]
    if broken := getattr(cls, "broken_by", ()):
        attacks = ", ".join(f"[{attack}](../query-attack/{attack}.md)" for attack in broken)
        text += ["## Attacks that break it\n", f"{attacks}. What the policy does is no guarantee against them.\n"]
    if cls.reference:
        text += ["## Reference\n", cls.reference + "\n"]
    if proof := getattr(cls, "proof", ""):
        text += ["## Proof\n", proof + "\n"]
    return "\n".join(text)


def _example(kind: str, cls: type[Part], document: str) -> list[str]:
    """The examples of a part: a piece of a recipe, or Python for parts that no recipe holds."""
    if kind != "mechanism":
        return ["```yaml", document.rstrip(), "```\n"]
    calls = [f"{cls.__name__}({', '.join(f'{key}={value!r}' for key, value in e.items())})" for e in cls.examples]
    return ["```python", f"from sfumato.dp import {cls.__name__}\n", *calls, "```\n"]


def docstring(target: object) -> str:
    """The docstring as Markdown: examples become code blocks."""
    text = inspect.cleandoc(getattr(target, "__doc__", None) or "")
    text = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", text)
    return re.sub(
        r"(?m)((?:^(?:>>>|\.\.\.).*\n?(?:^(?!>>>|\.\.\.|\s*$).*\n?)*)+)", r"```pycon\n\1\n```\n", text
    ).strip()
