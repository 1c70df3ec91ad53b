"""YAML with memory of where things stand, so that every complaint about a recipe names its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sfumato.data.format import format_for
from sfumato.errors import FileMissing, InvalidRecipe, NotThatFormat, Problem, UnknownFormat

__all__ = ["Located", "parse", "read_document"]


@dataclass(frozen=True, kw_only=True)
class Located:
    """A document as plain data, with the tree it was read from."""

    value: Any
    tree: Any
    source: str

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line on which the deepest known part of ``path`` stands."""
        node, found = self.tree, None
        for key in path:
            if isinstance(node, CommentedMap) and key in node:
                found = node.lc.key(key)[0] + 1
            elif isinstance(node, CommentedSeq) and isinstance(key, int) and key < len(node):
                found = node.lc.item(key)[0] + 1
            else:
                break
            node = node[key]
        return found


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


def read_document(path: str | Path, *, kind: str, fix: str) -> str:
    """The text of a recipe or the like; one that is not there, is data, or is not UTF-8, is refused in words."""
    if kind != "log" and is_data(path):
        raise NotThatFormat(
            f"{path} is a file of data, not a {kind}.", fix=fix.replace("FILE", Path(path).name), path=str(path)
        )
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise FileMissing(f"There is no {kind} at {path}.", fix=fix, path=str(path)) from None
    except UnicodeDecodeError:
        raise NotThatFormat(f"{path} is not written in UTF-8.", fix="Save it again as UTF-8.", path=str(path)) from None


def is_data(path: str | Path) -> bool:
    """Whether a file's name says that it holds a table."""
    try:
        return Path(path).is_file() and bool(format_for(Path(path)))
    except UnknownFormat:
        return False


def parse(text: str, *, source: str = "recipe") -> Located:
    """Read YAML 1.2: ``NO`` is Norway and not false, ``02141`` keeps its zero when quoted."""
    yaml = YAML(typ="rt")
    yaml.allow_duplicate_keys = False
    try:
        tree = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        words = f"not valid YAML: {str(error.problem or error.context).splitlines()[0]}"
        raise InvalidRecipe([Problem(where="", line=line, message=words)], source=source) from None
    except YAMLError:
        raise InvalidRecipe([Problem(where="", line=None, message="not valid YAML")], source=source) from None
    return Located(value=_plain(tree), tree=tree, source=source)
