"""What columnar files need besides their library: labels as JSON in their metadata; names and paths quoted for SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.data.table import ColumnLabels

__all__ = ["pack", "quoted_name", "quoted_path", "unpack"]


def pack(labels: Mapping[str, ColumnLabels]) -> str:
    """Labels as JSON text. Value labels are pairs, because a JSON key would turn the code 1 into the text "1"."""
    return json.dumps(
        {
            name: {
                "label": entry.label,
                "values": [[code, words] for code, words in entry.value_labels.items()],
                "missing": [list(code) if isinstance(code, tuple) else code for code in entry.missing],
                "display": entry.display,
            }
            for name, entry in labels.items()
        }
    )


def unpack(text: str | None) -> dict[str, ColumnLabels]:
    """The labels in such a text; none if there is none or it is not ours."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(text) if text else {}
        return {
            name: ColumnLabels(
                label=entry["label"],
                value_labels=dict(entry["values"]),
                missing=tuple(tuple(code) if isinstance(code, list) else code for code in entry["missing"]),
                display=entry["display"],
            )
            for name, entry in found.items()
        }
    except (ValueError, KeyError, TypeError):
        return {}


def quoted_name(name: str) -> str:
    """A name of a table or column as SQL writes it.

    >>> quoted_name('my "table"')
    '"my ""table\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_path(path: Path | str) -> str:
    """A path as an SQL string.

    >>> quoted_path("o'hara.csv")
    "'o''hara.csv'"
    """
    return "'" + str(path).replace("'", "''") + "'"
