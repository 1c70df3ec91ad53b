"""What ``attack`` and ``measure`` accept as release and original, opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.api.protection import Protection
from sfumato.data import read
from sfumato.errors import BadParameter
from sfumato.release import Lineage, Release
from sfumato.release.folder import load_lineage, load_release
from sfumato.schema import Column, Dataset, Schema

__all__ = ["open_release"]


def open_release(
    release: Any,
    *,
    original: Any,
    lineage: Lineage | str | Path | None,
    schema: Schema | None,
    knows: Sequence[str] | None,
    secrets: Sequence[str],
) -> tuple[Release, Dataset, Lineage | None]:
    """The release, its original with roles, and the row map where there is one."""
    if isinstance(release, Protection):
        lineage = release.lineage if lineage is None and original is None else lineage
        original = release.original if original is None else original
        release = release.release
    if original is None:
        raise BadParameter(
            "`original` is required: pass the table the release was made from.",
            fix="attack(release, original=table), or without the original: link(release, outside_file)",
        )
    opened = release if isinstance(release, Release) else load_release(release)
    row_map = _row_map(release, lineage)
    return opened, _dataset(original, opened, schema, knows, secrets), row_map


def _row_map(release: Any, lineage: Lineage | str | Path | None) -> Lineage | None:
    if isinstance(lineage, str | Path):
        loaded = load_lineage(Path(lineage))
        if loaded is None:
            raise BadParameter(f"{lineage} is not a row map.", fix="It is `lineage.parquet` in the private folder.")
        return loaded
    if lineage is None and isinstance(release, str | Path) and Path(release).is_dir():
        return load_lineage(Path(release))
    return lineage


def _dataset(
    original: Any, release: Release, schema: Schema | None, knows: Sequence[str] | None, secrets: Sequence[str]
) -> Dataset:
    if isinstance(original, Dataset):
        return original
    if schema is None:
        declared = release.manifest.get("recipe", {}).get("columns") or {
            name: {"role": "quasi"} for name in knows or ()
        }
        for name in secrets:
            declared = {**declared, name: {**declared.get(name, {}), "role": "sensitive"}}
        schema = Schema(columns={name: Column.model_validate(value) for name, value in declared.items()})
    return Dataset.of(read(original), schema)
