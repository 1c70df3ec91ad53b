"""YAML documents with line numbers: data sets, recipes, plans and settings, read, validated and written.

:func:`load_document` is the one place that turns a file into a pydantic model and its mistakes into lines of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sfumato.data.format import format_for
from sfumato.errors import FileMissing, InvalidRecipe, NotThatFormat, Problem, UnknownFormat
from sfumato.params import key_path, plain_message

Model = TypeVar("Model", bound=BaseModel)

_PLAIN_SCALAR = re.compile(r"(?:\.{0,2}/)*[A-Za-z_][A-Za-z0-9_./ +-]*[A-Za-z0-9_]|[A-Za-z_]")
_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, kw_only=True)
class YamlDocument:
    """A document as plain data, with the parsed tree that knows the line of each key."""

    value: Any
    tree: Any = None
    """None for plain data that was never text; such a document has no line numbers."""
    source: str
    moved: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """Keys of ``value`` that stand elsewhere in the text, and where: a short form that was written out in full."""

    def written(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        """A path in ``value`` as it stands in the text."""
        for full, short in self.moved.items():
            if tuple(path[: len(full)]) == full:
                return (*short, *path[len(full) :])
        return tuple(path)

    def line(self, path: Sequence[str | int]) -> int | None:
        """Line of the deepest key of ``path`` that is in the document; None if there is none."""
        node, line = self.tree, None
        for key in self.written(path):
            if isinstance(node, dict) and key in node:
                line = node.lc.key(key)[0] + 1  # type: ignore[attr-defined]
            elif isinstance(node, list) and isinstance(key, int) and key < len(node):
                line = node.lc.item(key)[0] + 1  # type: ignore[attr-defined]
            else:
                break
            node = node[key]
        return line

    def problem(self, path: Sequence[str | int], message: str) -> Problem:
        """A problem at ``path``, with its line."""
        return Problem(where=".".join(map(str, self.written(path))), line=self.line(path), message=message)


def load_document(model: type[Model], path: str | Path, *, kind: str, fix: str) -> Model:
    """Read a YAML file into a model; all its problems are in one error, with their lines.

    ``kind`` is what messages call the file and ``fix`` how to get one. Files that it names are relative to it: fields
    of the types :data:`sfumato.params.Location` and :data:`~sfumato.params.InputFile` are resolved here.
    """
    return validated(model, document_in(path, kind=kind, fix=fix), base=Path(path).parent)


def document_in(path: str | Path, *, kind: str, fix: str) -> YamlDocument:
    """The document in a file."""
    return parse_yaml(read_text_file(path, kind=kind, fix=fix), source=Path(path).name)


def document_of(written: str | Path | Mapping[str, Any], *, source: str) -> YamlDocument:
    """A document from YAML text, or from plain data, which has no lines."""
    if isinstance(written, Mapping):
        return YamlDocument(value=dict(written), source=source)
    return parse_yaml(str(written), source=source)


def file_of(plan: str | Path | Mapping[str, Any]) -> Path | None:
    """The file that a plan is in; None for a plan that is given itself, as plain data or text of several lines."""
    return None if isinstance(plan, Mapping) or "\n" in str(plan) else Path(plan)


def validated(model: type[Model], document: YamlDocument, *, base: Path | None = None) -> Model:
    """A parsed document as a model; ``base`` is the folder that the paths in it start from."""
    try:
        return model.model_validate(document.value, context={"base": base})
    except ValidationError as failure:
        own = model.model_fields
        required = {name for name, field in own.items() if field.is_required()}
        if isinstance(document.value, dict) and 2 * len(required & set(document.value)) < len(required):
            refuse_other_kind(document, own)
        raise InvalidRecipe(problems_of(document, model, failure), source=document.source) from None


def problems_of(
    document: YamlDocument, model: type[BaseModel], failure: ValidationError, *, inside: Sequence[str] = ()
) -> list[Problem]:
    """All faults of a document, or of the section ``inside`` it, with their lines."""
    return [
        document.problem((*inside, *place), plain_message(error, _model_at(model, place)))
        for error in failure.errors()
        for place in [key_path(error)]
    ]


_OTHER_KINDS = {
    "questions": ("a survey", "sfumato collect design"),
    "rappor": ("a RAPPOR plan", "sfumato collect rappor"),
    "party": ("a party file", "sfumato party serve"),
    "columns": ("a recipe", "sfumato protect"),
    "tables": ("a data set", "sfumato query"),
    "dataset": ("a plan", "sfumato protect"),
}
"""What a document is that has this key, and the command that takes it."""


def refuse_other_kind(document: YamlDocument, own: Iterable[str]) -> None:
    """Refuse a document that another command takes: it has a key of another kind that is none of its ``own``."""
    for key, (kind, command) in _OTHER_KINDS.items():
        if key in document.value and key not in own:
            problem = document.problem((key,), f"the file is {kind}. `{command}` takes it.")
            raise InvalidRecipe([problem], source=document.source)


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model that the last key of ``path`` belongs to; None if that is not plain to see."""
    kind: object = model
    for key in path[:-1]:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(key))
            kind = None if field is None else field.annotation
        else:
            kind = get_args(kind)[-1] if get_args(kind) else None
        while get_origin(kind) in (Annotated, Union, UnionType):
            kind = get_args(kind)[0]  # the type beside its validators, or beside None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def read_text_file(path: str | Path, *, kind: str, fix: str) -> str:
    """Text of a recipe, study, metadata file or query log. ``FILE`` in ``fix`` stands for the file's name."""
    if kind != "log" and _is_data(path):
        raise NotThatFormat(
            f"{path} is a data file, not a {kind}.", fix=fix.replace("FILE", Path(path).name), path=str(path)
        )
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise FileMissing(f"There is no {kind} at {path}.", fix=fix, path=str(path)) from None
    except UnicodeDecodeError:
        raise NotThatFormat(f"{path} is not encoded in UTF-8.", fix="Save it as UTF-8.", path=str(path)) from None


def _is_data(path: str | Path) -> bool:
    """Whether the suffix of an existing file belongs to a registered data format."""
    try:
        return Path(path).is_file() and bool(format_for(Path(path)))
    except UnknownFormat:
        return False


def parse_yaml(text: str, *, source: str = "recipe") -> YamlDocument:
    """Parse YAML 1.2, where ``NO`` is text and a quoted ``02141`` keeps its zero. Duplicate keys are refused."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="rt")
    yaml.allow_duplicate_keys = False
    try:
        tree = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        message = f"not valid YAML: {str(error.problem or error.context).splitlines()[0]}"
        raise InvalidRecipe([Problem(where="", line=line, message=message)], source=source) from None
    except YAMLError:
        raise InvalidRecipe([Problem(where="", line=None, message="not valid YAML")], source=source) from None
    return YamlDocument(value=_plain(tree), tree=tree, source=source)


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {_plain(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(item) for item in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    if isinstance(node, datetime):
        return datetime(node.year, node.month, node.day, node.hour, node.minute, node.second)
    if isinstance(node, date) or node is None:
        return node
    return str(node)


def yaml_text(document: object) -> str:
    """Plain data as YAML 1.2 text."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe")
    yaml.default_flow_style = None
    yaml.width = 100
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def yaml_scalar(text: str) -> str:
    """A YAML scalar: plain if that is safe, otherwise in double quotes."""
    if _PLAIN_SCALAR.fullmatch(text) and text.lower() not in _RESERVED and " #" not in text:
        return text
    escaped = "".join(_escape(character) for character in text)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08X}"


def yaml_flow(value: object) -> str:
    """Plain data on one line of YAML: ``{role: quasi, kind: integer}``."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{yaml_scalar(str(key))}: {yaml_flow(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(yaml_flow, value)) + "]"
        case str():
            return yaml_scalar(value)
        case float() if math.isinf(value):
            return ".inf" if value > 0 else "-.inf"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case None:
            return "null"
        case _:
            raise TypeError(f"no YAML form for {type(value).__name__}")
