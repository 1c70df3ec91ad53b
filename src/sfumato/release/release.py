"""What leaves the house: the masked table and its public manifest, saved and loaded as one folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.data.table import Table

__all__ = ["Release"]


@dataclass(frozen=True, kw_only=True)
class Release:
    """A masked table with everything an outsider may know about how it was made.

    Method and parameters are public by design: protection that fails once the method is known is no protection, and
    attacks are allowed to use the manifest. The seed, keys, the row map and counts of the original are not in it.
    """

    table: Table
    manifest: Mapping[str, Any]
    """Plain data: ``sfumato`` (version), ``columns`` (role, kind, public hierarchy), ``models``, ``steps`` (name,
    parameters and public outcome of each), ``verdicts``, ``rows``."""

    def step(self, name: str) -> Mapping[str, Any] | None:
        """The last step of that name in the manifest, or None."""
        found: Mapping[str, Any] | None = None
        for step in self.manifest.get("steps", ()):
            if step["step"] == name:
                found = step
        return found

    def __repr__(self) -> str:
        return f"<Release {self.table.rows} rows: {', '.join(self.table.columns)}>"
