"""Column labels as JSON, for the metadata of Parquet and Arrow files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.data.table import ColumnLabels


def labels_to_json(labels: Mapping[str, ColumnLabels]) -> str:
    """Labels as JSON text. Value labels are pairs, because a JSON key would turn the code 1 into text."""
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


def labels_from_json(text: str | None) -> dict[str, ColumnLabels]:
    """The labels of such a text; empty if there is no text or it has another form."""
    try:
        entries: dict[str, dict[str, Any]] = json.loads(text) if text else {}
        return {
            name: ColumnLabels(
                label=entry["label"],
                value_labels=dict(entry["values"]),
                missing=tuple(tuple(code) if isinstance(code, list) else code for code in entry["missing"]),
                display=entry["display"],
            )
            for name, entry in entries.items()
        }
    except (ValueError, KeyError, TypeError):
        return {}
