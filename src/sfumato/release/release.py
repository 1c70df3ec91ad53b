"""A release: the masked table and its public manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.data.table import Table
from sfumato.wording import counted


@dataclass(frozen=True, kw_only=True)
class Release:
    """A masked table with the public description of how it was made.

    Method and parameters are public by design (transparency principle), and attacks may use the manifest. The seed,
    keys, the row map and counts of the original are not part of it.
    """

    table: Table
    manifest: Mapping[str, Any]
    """Plain data: ``sfumato`` (version), ``columns`` (role, kind, public hierarchy), ``models``, ``steps`` (name,
    parameters and public outcome of each), ``verdicts``, ``rows``."""

    def step(self, name: str) -> Mapping[str, object] | None:
        """The last step of that name in the manifest, or None."""
        steps = [step for step in self.manifest.get("steps", ()) if step["step"] == name]
        return steps[-1] if steps else None

    def __repr__(self) -> str:
        return f"<Release {counted(self.table.rows, 'row')}: {', '.join(self.table.columns)}>"
