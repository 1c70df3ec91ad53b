"""Finished cells of a study as files, so that an interrupted study resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from sfumato import __version__
from sfumato.data.atomic import replacing
from sfumato.recipe import Recipe


def cell_key(recipe: Recipe, *, n_targets: int, data: str) -> str:
    """The name of a cell: a digest of its recipe, the number of targets, the content of the data and the version.

    The values of limits are left out, because they do not change results; their kinds decide which attacks run.
    """
    document = {key: value for key, value in recipe.to_dict().items() if key not in ("data", "limits")}
    document |= {
        "limited": sorted({"risk", *recipe.limits.items()}),
        "targets": n_targets,
        "content": data,
        "sfumato": __version__,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


class CellStore:
    """Cells as files, written atomically. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> dict[str, object] | None:
        path = self.folder / f"{key[:32]}.json" if self.folder is not None else None
        if path is None or not path.exists():
            return None
        try:
            cell: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        return cell

    def put(self, key: str, cell: Mapping[str, object]) -> None:
        if self.folder is not None:
            with replacing(self.folder / f"{key[:32]}.json", force=True) as path:
                path.write_text(json.dumps(cell, allow_nan=False), encoding="utf-8")
