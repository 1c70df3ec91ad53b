"""Models whose fields have docstrings, read from its source when they are asked for.

Pydantic reads the source of a class when the class is made: a second or more for a process that needs every part and
no description.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class DocumentedModel(BaseModel):
    """A model whose JSON Schema describes each field by the docstring under it."""

    defined_at: ClassVar[tuple[str, int] | None] = None
    """File and line of the class statement; nothing for a class that was made by a call."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__") != cls.__module__:
            frame = frame.f_back
        cls.defined_at = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    @classmethod
    def field_docs(cls) -> dict[str, str]:
        """What each field means: the docstring under it, in the class that declares it last."""
        docs: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, DocumentedModel) and base.defined_at is not None:
                docs |= _own_docs(base.__name__, *base.defined_at)
        return {name: field.description or docs.get(name, "") for name, field in cls.model_fields.items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        schema = handler(core)
        fields = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in cls.field_docs().items():
            field = fields.get(cls.model_fields[name].alias or name)
            if field is not None and text:
                field["description"] = text
        return schema


def _own_docs(name: str, path: str, line: int) -> dict[str, str]:
    """The docstring under each field that the body of this class declares, ``""`` where there is none."""
    for node in _classes(path):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        if node.name == name and first <= line <= (node.end_lineno or line):
            return _under_fields(node)
    return {}


@lru_cache(maxsize=16)
def _classes(path: str) -> list[ast.ClassDef]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _under_fields(node: ast.ClassDef) -> dict[str, str]:
    fields = {}
    for one, after in pairwise([*node.body, ast.Pass()]):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            fields[one.target.id] = inspect.cleandoc(text) if isinstance(text, str) else ""
    return fields
