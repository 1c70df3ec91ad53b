"""What ``attack`` and ``measure`` accept as release and original, opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.api.kinds.microdata.protection import MicrodataProtection
from sfumato.data import read
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter
from sfumato.release import Lineage, Release
from sfumato.release.folder import load_lineage, load_release

__all__ = ["declared_schema", "open_release"]


def open_release(
    release: Any,
    *,
    original: Any,
    lineage: Lineage | str | Path | None,
    schema: Schema | None,
    knows: Sequence[str] | None,
    secrets: Sequence[str],
) -> tuple[Release, Data, Lineage | None]:
    """The release, its original with roles, and the row map where there is one."""
    if isinstance(release, MicrodataProtection):
        lineage = release.lineage if lineage is None and original is None else lineage
        original = release.original if original is None else original
        release = release.judged_release
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
) -> Data:
    if isinstance(original, Data):
        return original
    if schema is None:
        schema = declared_schema(release, {name: {"role": "quasi"} for name in knows or ()})
        for name in secrets:
            secret = schema.column(name).model_copy(update={"role": Role.SENSITIVE})
            schema = replace(schema, columns={**schema.columns, name: secret})
    return Data.of(read(original), schema)


def declared_schema(release: Release, otherwise: Mapping[str, Any] | None = None) -> Schema:
    """The roles and the privacy unit that the manifest of a release names; without them those of ``otherwise``."""
    recipe = release.manifest.get("recipe", {})
    declared = {**release.manifest.get("columns", {}), **recipe.get("columns", {})} or dict(otherwise or {})
    columns = {name: Column.model_validate(value) for name, value in declared.items()}
    return Schema(columns=columns, unit=recipe.get("unit"))
